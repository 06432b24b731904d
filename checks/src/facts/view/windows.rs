//! Windows, under this program or around its WSL. From WSL there are two ways to it: the Windows
//! drives, if they are mounted, and Windows programs, if interop is on. What neither provides is
//! unknown, for the reason that the drives or interop are off.

use yolo_base::env::{PATH, USER, USERPROFILE, WSL_DISTRO_NAME};
use yolo_base::mounts;
use yolo_base::windows_paths::{Drives, Form};

use crate::facts::answer::{Fact, Output, Unknown};
use crate::facts::host::Host;
use crate::facts::question::Section;
use crate::wsl::config::{ConfigFile, Document};
use crate::wsl::exe_output;
use crate::wsl::old_windows::OldWindows;

/// Folders of `C:\Users` that do not belong to a person.
const NOBODYS: [&str; 8] = [
    "All Users",
    "Default",
    "Default User",
    "Public",
    "desktop.ini",
    "defaultuser0",
    "WDAGUtilityAccount",
    "WsiAccount",
];
/// The registry value with the build of Windows.
const BUILD: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\CurrentBuildNumber";
/// The registry value with the kind of Windows: `Client`, `Server` or `Server Core`.
const INSTALLATION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\InstallationType";
/// The registry value with the memory map of Windows.
const MEMORY_MAP: &str = r"HKLM\HARDWARE\RESOURCEMAP\System Resources\Physical Memory\.Translated";

impl Host {
    /// Whether this is Windows.
    pub fn is_windows(&self) -> Fact<bool> {
        Ok(self.os()? == "windows")
    }

    /// Whether Windows programs can be started from WSL.
    pub fn interop(&self) -> Fact<bool> {
        let folder = "/proc/sys/fs/binfmt_misc";
        // With systemd it is the second name.
        let mut known = self
            .text(&format!("{folder}/WSLInterop"))
            .map(|text| text.is_some_and(|text| !text.contains("disabled")));
        if let Ok(Some(text)) = self.text(&format!("{folder}/WSLInterop-late")) {
            known = Ok(!text.contains("disabled"));
        }
        known
    }

    /// Where drive C: is mounted in WSL, such as `/mnt/c`: from the table of mounts, or else from
    /// the root in /etc/wsl.conf.
    pub fn windows_drive(&self) -> String {
        let mounts = self.text("/proc/self/mountinfo").ok().flatten();
        if let Some(point) = mounts.and_then(|table| mounts::of_windows_drive(&table, 'C')) {
            return point;
        }
        let settings = self.file("/etc/wsl.conf").ok().flatten().unwrap_or_default();
        let settings = Document::parse(ConfigFile::WslConf, &settings);
        let root = settings.value("automount", "root").unwrap_or("/mnt/").trim_end_matches('/');
        format!("{root}/c")
    }

    /// The Windows user's folder: `C:\Users\mara` on Windows, the path that leads there in WSL.
    pub fn windows_profile(&self) -> Fact<String> {
        let profile = self.env(USERPROFILE).ok().flatten().filter(|folder| !folder.trim().is_empty());
        if self.is_windows()? {
            return profile.or_else(|| self.profile_of_recording('\\')).ok_or_else(|| {
                match self.env(USERPROFILE) {
                    Ok(_) => Unknown::because("USERPROFILE is not set"),
                    Err(why) => why,
                }
            });
        }
        let drive = self.windows_drive();
        if let Some(folder) = profile {
            return Ok(if folder.starts_with('/') { folder } else { under(&drive, &folder) });
        }
        let users = format!("{drive}/Users");
        // Windows appends its own PATH, with folders of its user.
        let path = self.env(PATH).ok().flatten().unwrap_or_default();
        let of_path = path.split(':').find_map(|folder| {
            let name = folder.strip_prefix(&users)?.strip_prefix('/')?.split('/').next()?;
            (!NOBODYS.contains(&name) && !name.is_empty()).then(|| format!("{users}/{name}"))
        });
        if let Some(folder) = of_path.or_else(|| self.profile_of_recording('/')) {
            return Ok(folder);
        }
        let names = self.folder(&users)?.ok_or_else(|| {
            Unknown(format!("{users} does not exist: WSL does not mount the Windows drive"))
        })?;
        self.profile_among(&users, &names)
    }

    fn profile_among(&self, users: &str, names: &[String]) -> Fact<String> {
        let mut names: Vec<&String> =
            names.iter().filter(|name| !NOBODYS.contains(&name.as_str()) && !name.starts_with('.')).collect();
        if names.len() > 1 {
            let me = self.env(USER).ok().flatten().unwrap_or_default();
            let has_file = |name: &&String| self.exists(&format!("{users}/{name}/.wslconfig")) == Ok(true);
            if let Some(mine) = names.iter().find(|name| name.eq_ignore_ascii_case(&me)).copied() {
                names = vec![mine];
            } else if let [only] = names.iter().copied().filter(has_file).collect::<Vec<_>>()[..] {
                names = vec![only];
            }
        }
        match names[..] {
            [name] => Ok(format!("{users}/{name}")),
            [] => Err(Unknown(format!("{users} contains no user folder"))),
            _ => Err(Unknown(format!(
                "{users} has the folders of {} users, and it is unknown which of them started WSL",
                names.len()
            ))),
        }
    }

    /// The folder of the one `.wslconfig` that a recording holds.
    fn profile_of_recording(&self, separator: char) -> Option<String> {
        let ending = format!("{separator}.wslconfig");
        let users = format!("{separator}Users{separator}");
        let names = self.recorded_names(Section::Files);
        let mut folders =
            names.iter().filter(|name| name.contains(&users)).filter_map(|name| name.strip_suffix(&ending));
        let first = folders.next()?;
        folders.next().is_none().then(|| first.to_owned())
    }

    /// The output of a Windows program, on Windows and in WSL; `None` if there is no such program.
    pub fn windows_command(&self, words: &[&str]) -> Fact<Option<Output>> {
        let answer = self.command(words);
        if let Ok(Some(_)) = answer {
            return answer;
        }
        if self.is_windows()? {
            return answer;
        }
        if self.interop() == Ok(false) {
            return Err(Unknown::because("WSL cannot start Windows programs: interop is off"));
        }
        // Without the folders of Windows in PATH, the drive still has the program.
        let program = format!("{}/Windows/System32/{}", self.windows_drive(), words[0]);
        let absolute: Vec<&str> =
            std::iter::once(program.as_str()).chain(words[1..].iter().copied()).collect();
        match (self.command(&absolute), answer) {
            (Ok(Some(output)), _) => Ok(Some(output)),
            (_, Err(why)) | (Err(why), Ok(_)) => Err(why),
            (Ok(None), Ok(_)) => Ok(None),
        }
    }

    /// The build of Windows, such as 22631.
    pub fn windows_build(&self) -> Fact<u32> {
        if self.is_windows()? {
            if let Some(build) = self.registry(BUILD).ok().flatten().and_then(|build| build.parse().ok()) {
                return Ok(build);
            }
            if let Some(build) = self.recorded_build() {
                return Ok(build);
            }
            let of_wsl = self.wsl_versions().ok().flatten().flatten().and_then(|versions| versions.windows);
            let system = match (self.system(), of_wsl) {
                (Err(_), Some(windows)) => return Ok(windows.build()),
                (system, _) => system?,
            };
            let texts = [system.kernel, system.name];
            return texts
                .iter()
                .flatten()
                .find_map(|text| {
                    text.split(|letter: char| !letter.is_ascii_digit())
                        .find(|digits| digits.len() == 5)?
                        .parse()
                        .ok()
                })
                .ok_or_else(|| Unknown::because("Windows does not report its build"));
        }
        let versions = self.wsl_versions().map(|found| found.flatten().and_then(|versions| versions.windows));
        match versions {
            Ok(Some(windows)) => Ok(windows.build()),
            // The WSL that is part of an old Windows does not report it.
            Ok(None) => self
                .build_of_windows()
                .ok_or_else(|| Unknown::because("`wsl.exe --version` does not report the build of Windows")),
            Err(why) => self.recorded_build().ok_or(why),
        }
    }

    /// Windows, if it is too old for WSL 2.
    pub fn old_windows(&self) -> Option<OldWindows> {
        OldWindows::of(self.windows_build().ok()?, self.is_windows_server())
    }

    /// Whether this is a Windows Server, or WSL on one. `false` if that is unknown.
    pub fn is_windows_server(&self) -> bool {
        let kind = self.windows_registry(INSTALLATION).ok().flatten();
        kind.is_some_and(|kind| kind.trim().starts_with("Server"))
    }

    /// The build of Windows around WSL, from its registry.
    fn build_of_windows(&self) -> Option<u32> {
        if let Some(build) = self.recorded_build() {
            return Some(build);
        }
        self.windows_registry(BUILD).ok().flatten()?.trim().parse().ok()
    }

    /// `Microsoft Windows [Version 10.0.19041.1165]`, as `ver` says it, or the registry.
    fn recorded_build(&self) -> Option<u32> {
        if !self.is_recorded() {
            return None;
        }
        if let Some(build) = self.registry(BUILD).ok().flatten().and_then(|build| build.trim().parse().ok()) {
            return Some(build);
        }
        let said = self.recorded_texts("/c ver").into_iter().chain(self.recorded_texts("systeminfo"));
        said.collect::<String>().split("10.0.").skip(1).find_map(|rest| {
            let build = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
            (build.len() == 5).then(|| build.parse().ok())?
        })
    }

    /// A registry value: on Windows from the registry, in WSL through `reg.exe`.
    pub fn windows_registry(&self, value: &str) -> Fact<Option<String>> {
        if self.is_windows()? {
            return self.registry(value);
        }
        if let (true, Ok(answer)) = (self.is_recorded(), self.registry(value)) {
            return Ok(answer);
        }
        let Some((key, name)) = value.rsplit_once('\\') else { return Ok(None) };
        let output = self
            .windows_command(&["reg.exe", "query", key, "/v", name])?
            .ok_or_else(|| Unknown::because("reg.exe was not found"))?;
        Ok(registry_answer(&exe_output::decode(&output.stdout)))
    }

    /// Bytes of memory of the Windows PC.
    pub fn windows_memory(&self) -> Fact<u64> {
        if self.is_windows()? {
            return Ok(self.memory()?.total);
        }
        for (words, unit) in [("TotalPhysicalMemory", 1), ("TotalVisibleMemorySize", 1024)] {
            let number = self.recorded_texts(words).iter().find_map(|text| largest_number(text));
            if let Some(number) = number {
                return Ok(number.saturating_mul(unit));
            }
        }
        let texts = self.recorded_texts("systeminfo");
        if let Some(bytes) = texts.iter().find_map(|text| megabytes_of_systeminfo(text)) {
            return Ok(bytes);
        }
        let map = self.windows_registry(MEMORY_MAP)?;
        map.and_then(|hex| memory_of_map(&hex))
            .ok_or_else(|| Unknown::because("Windows does not report its memory to WSL"))
    }

    /// What a path that was written in Windows means on this Linux: a drive where it is mounted, and `images\train` with
    /// the separators of Linux. `None` if it has no other meaning.
    pub(crate) fn path_from_windows(&self, path: &str) -> Option<String> {
        if self.os().is_ok_and(|os| os == "windows") {
            return None;
        }
        if Form::of(path).is_none() {
            return path.contains('\\').then(|| path.replace('\\', "/"));
        }
        let variable = |name: &str| self.env(name).ok().flatten();
        let table = self.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
        Drives::found(variable, &table, variable(WSL_DISTRO_NAME)).read_in_file(path)
    }

    /// The path in WSL of a path as Windows writes it: `C:\Users\mara` is `/mnt/c/Users/mara`.
    pub fn path_of_windows(&self, windows: &str) -> String {
        under(&self.windows_drive(), windows)
    }

    /// The path as Windows writes it, for messages: `/mnt/c/Users/mara` is `C:\Users\mara`.
    pub fn windows_path(&self, path: &str) -> String {
        match path.strip_prefix(&self.windows_drive()) {
            Some(rest) if rest.starts_with('/') => format!("C:{}", rest.replace('/', "\\")),
            _ => path.to_owned(),
        }
    }
}

/// A Windows path below the mounted drive C:, or next to it for another letter.
fn under(drive: &str, windows: &str) -> String {
    let Some((letter, rest)) = windows.split_once(':') else { return windows.to_owned() };
    if letter.eq_ignore_ascii_case("c") {
        return format!("{drive}{}", rest.replace('\\', "/"));
    }
    let root = drive.rsplit_once('/').map_or("", |(root, _)| root);
    format!("{root}/{}{}", letter.to_ascii_lowercase(), rest.replace('\\', "/"))
}

/// The value in the output of `reg query`: `    TdrDelay    REG_DWORD    0x8`. Only the terms of the
/// registry itself are used, since the rest is translated.
fn registry_answer(text: &str) -> Option<String> {
    let (_, rest) = text.lines().find_map(|line| line.split_once("REG_"))?;
    let (kind, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let value = value.trim();
    match (kind, value.strip_prefix("0x")) {
        ("DWORD" | "QWORD", Some(hex)) => u64::from_str_radix(hex, 16).ok().map(|number| number.to_string()),
        _ => Some(value.to_owned()),
    }
}

/// The largest number of a text: `wmic` and PowerShell print sizes below a heading.
fn largest_number(text: &str) -> Option<u64> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).max()
}

/// The first size of `systeminfo`, `32,530 MB`, which is the memory in every language.
fn megabytes_of_systeminfo(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_end().ends_with(" MB"))?;
    let value = line.rsplit(':').next()?;
    let digits: String = value.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().ok()?.checked_mul(1 << 20)
}

/// The bytes of a `REG_RESOURCE_LIST` as hexadecimal digits, summed up. The list is a heading of 20
/// bytes and entries of 20: kind, sharing, flags, start (8 bytes) and length; kind 3 is memory, kind
/// 7 memory so large that the flags say by how many bits its length is shifted (`wdm.h`,
/// `CM_PARTIAL_RESOURCE_DESCRIPTOR`).
fn memory_of_map(hex: &str) -> Option<u64> {
    let bytes: Vec<u8> = hex
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<_>>()?;
    let mut total = 0_u64;
    for entry in bytes.get(20..)?.chunks_exact(20) {
        let flags = u16::from_le_bytes([entry[2], entry[3]]);
        let length = u64::from(u32::from_le_bytes([entry[12], entry[13], entry[14], entry[15]]));
        let shift = match (entry[0], flags & 0x0E00) {
            (3, _) => 0,
            (7, 0x0200) => 8,
            (7, 0x0400) => 16,
            (7, 0x0800) => 32,
            _ => continue,
        };
        total = total.saturating_add(length.saturating_mul(1 << shift));
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn wsl(more: Value) -> Host {
        let mut recording = json!({ "version": 1, "os": "linux", "env": {},
            "files": { "/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n", "/etc/wsl.conf": null } });
        for (section, rows) in more.as_object().unwrap() {
            let place = recording.as_object_mut().unwrap().entry(section).or_insert(json!({}));
            place.as_object_mut().unwrap().extend(rows.as_object().unwrap().clone());
        }
        Host::from_value(recording).unwrap().0
    }

    #[test]
    fn the_windows_users_folder_is_found_in_several_ways() {
        for (facts, folder) in [
            (json!({ "env": { "USERPROFILE": "C:\\Users\\Ada Rossi" } }), "/mnt/c/Users/Ada Rossi"),
            (json!({ "env": { "USERPROFILE": "/mnt/c/Users/ada" } }), "/mnt/c/Users/ada"),
            (
                json!({ "env": { "PATH": "/bin:/mnt/c/Users/ada/AppData/Local/Microsoft/WindowsApps" } }),
                "/mnt/c/Users/ada",
            ),
            (json!({ "files": { "/mnt/c/Users/eva/.wslconfig": "[wsl2]\n" } }), "/mnt/c/Users/eva"),
            (json!({ "folders": { "/mnt/c/Users": ["Default", "Public", "ada"] } }), "/mnt/c/Users/ada"),
            (
                json!({ "folders": { "/mnt/c/Users": ["Ada", "Bob"] }, "env": { "USER": "ada" } }),
                "/mnt/c/Users/Ada",
            ),
            (
                json!({ "files": { "/etc/wsl.conf": "[automount]\nroot = /\n" }, "folders": { "/c/Users": ["ada"] } }),
                "/c/Users/ada",
            ),
        ] {
            assert_eq!(wsl(facts).windows_profile().unwrap(), folder);
        }
        let two = wsl(json!({ "folders": { "/mnt/c/Users": ["ada", "bob"] }, "files": {
            "/mnt/c/Users/ada/.wslconfig": null, "/mnt/c/Users/bob/.wslconfig": null } }));
        assert!(two.windows_profile().unwrap_err().0.contains("2 users"));
    }

    #[test]
    fn the_pcs_memory_is_found_in_several_ways() {
        let command =
            |line: &str, answer: &str| wsl(json!({ "commands": { line: answer } })).windows_memory();
        let powershell =
            "powershell.exe -NoProfile -Command (Get-CimInstance Win32_ComputerSystem).TotalPhysicalMemory";
        assert_eq!(command(powershell, "34190295040\r\n"), Ok(34_190_295_040));
        assert_eq!(
            command("wmic.exe OS get TotalVisibleMemorySize", "TotalVisibleMemorySize\r\n33389000\r\n"),
            Ok(33_389_000 << 10)
        );
        assert_eq!(
            command("systeminfo.exe", "Gesamter physischer Speicher:      32.606 MB\r\n"),
            Ok(32_606 << 20)
        );
    }

    #[test]
    fn the_map_of_memory_is_summed_up() {
        // Two ranges: 0x9F000 bytes at 0x1000, and 0x7DDF0000 bytes at 4 GB, whose length is in 256s.
        let heading = "0100000000000000000000000100010002000000";
        let small = "03010000".to_owned() + "0010000000000000" + "00F00900" + "00000000";
        let large = "07030002".to_owned() + "0000000001000000" + "00DF7D00" + "00000000";
        let map = format!("{heading}{small}{large}");
        assert_eq!(memory_of_map(&map), Some(0x9_F000 + 0x7DDF_0000));
        assert_eq!(memory_of_map("zz"), None);
        assert_eq!(memory_of_map(""), None);
    }

    #[test]
    fn reg_exe_answers_in_any_language() {
        let text = "\n\nHKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers\n    TdrDelay    REG_DWORD    0x3c\n\n";
        assert_eq!(registry_answer(text).as_deref(), Some("60"));
        assert_eq!(registry_answer("FEHLER: Das System hat den Schlüssel nicht gefunden."), None);
    }

    #[test]
    fn without_interop_the_reason_is_reported() {
        let host = wsl(json!({ "files": { "/proc/sys/fs/binfmt_misc/WSLInterop": null,
            "/proc/sys/fs/binfmt_misc/WSLInterop-late": null }, "commands": { "wsl.exe --version": null } }));
        assert!(host.wsl_versions().unwrap_err().0.contains("interop is off"));
    }

    proptest! {
        #[test]
        fn any_answers_are_read(text in "(REG_|DWORD| 0x|[0-9A-Fa-f]{0,60}| MB|:|\\PC|\n){0,12}") {
            let _ = (registry_answer(&text), largest_number(&text), megabytes_of_systeminfo(&text));
            let _ = (memory_of_map(&text), under("/mnt/c", &text));
        }
    }
}
