//! Paths as Windows writes them, on a Linux that runs inside Windows (WSL): `C:\data` is `/mnt/c/data`, and
//! `\\wsl.localhost\Ubuntu\home\ada` is `/home/ada`; and the reverse, for paths that a person opens in Explorer. People
//! write such paths into data YAMLs and lists, and at a Windows prompt. Where the drives are is known from `yolo.exe`,
//! which lets WSL translate them, or else from the table of mounts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use crate::env::{WSL_DISTRO_NAME, YOLO_DRIVE_C, YOLO_FROM_WINDOWS};
use crate::mounts;

/// The forms of a Windows path. The rest has the separators of Linux, and none at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// `C:\data`
    Drive(char, String),
    /// `C:data`: relative to the current folder of that drive.
    OfDrive(char, String),
    /// `\data`: on the drive of the working folder.
    Rooted(String),
    /// `\\server\share\data`
    Share {
        /// The computer, or `wsl.localhost`.
        server: String,
        /// The shared folder, or the distribution.
        share: String,
        /// The path in it.
        rest: String,
    },
}

impl Form {
    /// The form of this text; `None` if it is no path that only Windows writes.
    pub fn of(text: &str) -> Option<Self> {
        let slashes = text.replace('\\', "/");
        // Long paths, and the form in which some programs name files.
        let plain = match slashes.strip_prefix("//?/").or_else(|| slashes.strip_prefix("//./")) {
            Some(rest) if rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("UNC/")) => {
                format!("//{}", &rest[4..])
            }
            Some(rest) => rest.to_owned(),
            None => slashes,
        };
        // Such a computer is no folder of Linux, so that people may write it with either separator.
        let is_share = text.starts_with(r"\\") || is_below_wsl(&plain);
        if is_share {
            let mut parts = plain.strip_prefix("//").unwrap_or(&plain).splitn(3, '/');
            if plain.starts_with("//") {
                let mut next = || parts.next().unwrap_or_default().to_owned();
                return Some(Self::Share { server: next(), share: next(), rest: trimmed(&next()) });
            }
        } else if text.starts_with('\\') {
            return Some(Self::Rooted(trimmed(&plain)));
        }
        let mut letters = plain.chars();
        let letter = letters.next().filter(char::is_ascii_alphabetic)?.to_ascii_uppercase();
        let rest = letters.as_str().strip_prefix(':')?;
        match rest.strip_prefix('/') {
            // `s3://bucket` is an address, and `a:` alone the current folder of a drive.
            Some(rest) => Some(Self::Drive(letter, trimmed(rest))),
            None => Some(Self::OfDrive(letter, rest.to_owned())),
        }
    }

    /// The form of what was typed at a Windows prompt, where `//server/share` is on another computer.
    pub fn at_prompt(text: &str) -> Option<Self> {
        Self::of(text).or_else(|| Self::of(&with_backslashes(text)?))
    }

    /// Whether the path says completely where the file is.
    pub fn is_absolute(&self) -> bool {
        matches!(self, Self::Drive(..) | Self::Share { .. })
    }
}

/// `//server/share` as `\\server\share`; `None` for other texts.
pub fn with_backslashes(text: &str) -> Option<String> {
    let rest = text.strip_prefix("//")?;
    (!rest.starts_with('/') && rest.contains('/')).then(|| text.replace('/', "\\"))
}

fn is_below_wsl(slashes: &str) -> bool {
    let server = slashes.strip_prefix("//").and_then(|rest| rest.split('/').next());
    server.is_some_and(is_wsl)
}

fn trimmed(rest: &str) -> String {
    rest.trim_start_matches('/').to_owned()
}

/// Why a Windows path leads nowhere on this Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotHere {
    /// The drive is not mounted.
    NotMounted {
        /// The drive.
        letter: char,
        /// The commands that mount it.
        mount: Vec<String>,
    },
    /// The path is relative to a drive that is not the one of the working folder.
    OtherDrive(char, String),
    /// The file is in another distribution.
    OtherDistribution {
        /// Where it is.
        theirs: String,
        /// Where this program runs.
        ours: String,
    },
    /// The file is on another computer.
    Network {
        /// `\\server\share`
        share: String,
        /// The commands that mount it.
        mount: Vec<String>,
    },
    /// The path has a quotation mark.
    Quote,
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted { letter, mount } => write!(
                f,
                "drive {letter}: is not mounted in WSL; copy the files to a drive of this PC, or mount it with {}",
                in_order(mount)
            ),
            Self::OtherDrive(letter, rest) => {
                write!(
                    f,
                    "it is relative to the current folder of drive {letter}:; write the complete path, such as \
                     {letter}:\\{}",
                    rest.replace('/', "\\")
                )
            }
            Self::OtherDistribution { theirs, ours } => write!(
                f,
                "it is in the WSL distribution {theirs}, and this command runs in {ours}; copy the files, or pass \
                 `--distribution {theirs}`"
            ),
            Self::Network { share, mount } => write!(
                f,
                "{share} is on the network, which WSL does not see; copy the files to a drive of this PC, or mount the \
                 share in WSL with {} and write {SHARE}",
                in_order(mount)
            ),
            Self::Quote => f.write_str(
                "it has a quotation mark: at a Windows prompt, a backslash right before a closing quotation mark \
                 keeps it open, so omit the last backslash of a folder in quotation marks",
            ),
        }
    }
}

impl std::error::Error for NotHere {}

fn in_order(commands: &[String]) -> String {
    format!("`{}`", commands.join("` and then `"))
}

/// Where messages mount a shared folder.
const SHARE: &str = "/mnt/share";

/// Where Windows' drives are mounted, and how Windows calls this distribution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drives {
    /// The mount points by letter, without a slash at the end.
    points: BTreeMap<char, String>,
    /// The distribution.
    distribution: Option<String>,
    /// Whether the command was typed at a Windows prompt.
    at_prompt: bool,
}

impl Drives {
    /// Those of this system; none outside WSL.
    pub fn of_this_system() -> &'static Self {
        static HERE: LazyLock<Drives> = LazyLock::new(|| {
            let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            let distribution = std::env::var(WSL_DISTRO_NAME).ok().filter(|name| !name.is_empty());
            Drives::found(|name| std::env::var(name).ok(), &table, distribution)
        });
        &HERE
    }

    /// From variables, a table of mounts and the name of the distribution.
    pub fn found(
        variable: impl Fn(&str) -> Option<String>,
        mountinfo: &str,
        distribution: Option<String>,
    ) -> Self {
        let prefix = YOLO_DRIVE_C.trim_end_matches('C');
        let point = |letter: char| {
            let told = variable(&format!("{prefix}{letter}")).filter(|path| path.starts_with('/'));
            told.or_else(|| mounts::of_windows_drive(mountinfo, letter))
        };
        let points = ('A'..='Z').filter_map(|letter| Some((letter, trimmed_end(&point(letter)?))));
        Self { points: points.collect(), distribution, at_prompt: variable(YOLO_FROM_WINDOWS).is_some() }
    }

    /// The commands that mount a drive or a shared folder, where the user is. At a Windows prompt, they have only what cmd
    /// and PowerShell read alike; without `-d`, they would mount in WSL's default distribution.
    fn mount(&self, what: &str, point: &str) -> Vec<String> {
        let is_drive = what.len() == 2;
        if !self.at_prompt {
            let what = if is_drive { what.to_owned() } else { format!("'{}'", what.replace('\'', r"'\''")) };
            return vec![format!("sudo mkdir -p {point} && sudo mount -t drvfs {what} {point}")];
        }
        let chosen = self.distribution.as_ref().map(|name| format!(" -d {name}")).unwrap_or_default();
        let as_root = |command: &str| format!("wsl.exe{chosen} -u root --exec {command}");
        if is_drive {
            return vec![as_root(&format!("sh -c \"mkdir -p {point} && mount -t drvfs {what} {point}\""))];
        }
        // No shell reads its backslashes.
        vec![as_root(&format!("mkdir -p {point}")), as_root(&format!("mount -t drvfs \"{what}\" {point}"))]
    }

    fn not_mounted(&self, letter: char) -> NotHere {
        let point = format!("/mnt/{}", letter.to_ascii_lowercase());
        NotHere::NotMounted { letter, mount: self.mount(&format!("{letter}:"), &point) }
    }

    /// Whether no drive is mounted, as outside WSL.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Where they are mounted.
    pub fn points(&self) -> impl Iterator<Item = &str> {
        self.points.values().map(String::as_str)
    }

    /// Whether a path is on a Windows drive.
    pub fn holds(&self, path: &Path) -> bool {
        let below = |point: &String| path.to_str().and_then(|text| text.strip_prefix(point.as_str()));
        self.points.values().filter_map(below).any(|rest| rest.starts_with('/'))
    }

    /// The path here of a Windows path; a relative one is read from `folder`, a Windows path. `None` if the text is no
    /// path that only Windows writes.
    ///
    /// # Errors
    /// If it leads nowhere.
    pub fn read(&self, text: &str, folder: Option<&str>) -> Option<Result<String, NotHere>> {
        let form = Form::of(text)?;
        let on_drive = |letter: char, rest: &str| {
            let point = self.points.get(&letter).ok_or_else(|| self.not_mounted(letter))?;
            Ok(if rest.is_empty() && !point.is_empty() { point.clone() } else { format!("{point}/{rest}") })
        };
        let folder = folder.and_then(Form::of);
        Some(match form {
            Form::Drive(letter, rest) => on_drive(letter, &rest),
            Form::OfDrive(letter, rest) => match folder {
                Some(Form::Drive(current, _)) if current == letter && rest.is_empty() => Ok(".".to_owned()),
                Some(Form::Drive(current, _)) if current == letter => Ok(rest),
                _ => Err(NotHere::OtherDrive(letter, rest)),
            },
            Form::Rooted(rest) => match folder {
                Some(Form::Drive(letter, _)) => on_drive(letter, &rest),
                _ => Ok(format!("/{rest}")),
            },
            Form::Share { server, share, rest } if is_wsl(&server) => match &self.distribution {
                Some(ours) if !ours.eq_ignore_ascii_case(&share) => {
                    Err(NotHere::OtherDistribution { theirs: share, ours: ours.clone() })
                }
                _ => Ok(format!("/{rest}")),
            },
            Form::Share { server, share, .. } => {
                let share = format!(r"\\{server}\{share}");
                Err(NotHere::Network { mount: self.mount(&share, SHARE), share })
            }
        })
    }

    /// A path that a person wrote somewhere in a file: if only Windows writes it so and it leads somewhere here, where
    /// that is.
    pub fn read_in_file(&self, text: &str) -> Option<String> {
        Form::of(text).filter(Form::is_absolute)?;
        self.read(text, None)?.ok()
    }

    /// The path as Windows opens it; `None` if it is relative, or this is no WSL.
    pub fn write(&self, path: &Path) -> Option<String> {
        let text = path.to_str().filter(|text| text.starts_with('/'))?;
        let below = |(letter, point): (&char, &String)| {
            let rest = text.strip_prefix(point.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((point.len(), *letter, rest))
        };
        if let Some((_, letter, rest)) = self.points.iter().filter_map(below).max() {
            let rest = if rest.is_empty() { "/" } else { rest };
            return Some(format!("{letter}:{}", rest.replace('/', "\\")));
        }
        let distribution = self.distribution.as_ref()?;
        Some(format!(r"\\wsl.localhost\{distribution}{}", text.replace('/', "\\")))
    }
}

/// What a path that someone wrote into a file means here, if nothing has that very name: `C:\data` where the drive is
/// mounted, and `images\train` with the separators of Linux. `None` if there is no other meaning.
pub fn in_file(text: &str) -> Option<String> {
    if cfg!(windows) {
        return None;
    }
    match Form::of(text) {
        Some(_) => Drives::of_this_system().read_in_file(text),
        None => text.contains('\\').then(|| text.replace('\\', "/")),
    }
}

/// Why a path that someone wrote into a file, and that only Windows writes so, leads nowhere in this WSL. `None` if it
/// leads somewhere, or this is no WSL.
pub fn why_not_here(text: &str) -> Option<NotHere> {
    let drives = Drives::of_this_system();
    if drives.is_empty() && drives.distribution.is_none() {
        return None;
    }
    Form::of(text).filter(Form::is_absolute)?;
    drives.read(text, None)?.err()
}

/// Whether this computer name stands for the files of WSL.
pub fn is_wsl(server: &str) -> bool {
    ["wsl.localhost", "wsl$"].iter().any(|name| server.eq_ignore_ascii_case(name))
}

fn trimmed_end(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sdd rw,discard
90 22 0:60 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\;uid=1000;metadata,cache=5
91 22 0:61 / /data/my\\040disk rw - drvfs E: rw
";

    fn drives() -> Drives {
        let told = |name: &str| (name == "YOLO_DRIVE_D").then(|| "/mnt/d/".to_owned());
        Drives::found(told, TABLE, Some("Ubuntu".to_owned()))
    }

    fn read(text: &str) -> Option<Result<String, NotHere>> {
        drives().read(text, Some(r"C:\Users\Zoë Müller"))
    }

    #[test]
    fn paths_of_drives_are_read() {
        for (windows, here) in [
            (r"C:\data\x.yaml", "/mnt/c/data/x.yaml"),
            ("c:/data/x.yaml", "/mnt/c/data/x.yaml"),
            (r"C:\Users\Zoë Müller\数据", "/mnt/c/Users/Zoë Müller/数据"),
            (r"D:\", "/mnt/d"),
            (r"e:\a b\*.jpg", "/data/my disk/a b/*.jpg"),
            (r"\\?\C:\long\path", "/mnt/c/long/path"),
            (r"\data", "/mnt/c/data"),
            (r"C:data\x.yaml", "data/x.yaml"),
            ("C:", "."),
            (r"\\wsl.localhost\Ubuntu\home\ada\x.yaml", "/home/ada/x.yaml"),
            (r"\\wsl$\ubuntu\home\ada", "/home/ada"),
            (r"\\?\UNC\wsl.localhost\Ubuntu\home", "/home"),
            (r"\\WSL.LOCALHOST\Ubuntu", "/"),
            ("//wsl.localhost/Ubuntu/home/ada/x.yaml", "/home/ada/x.yaml"),
            ("//wsl$/Ubuntu", "/"),
        ] {
            assert_eq!(read(windows), Some(Ok(here.to_owned())), "{windows}");
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in [
            "yolov5n",
            "data/x.yaml",
            r"data\x.yaml",
            "/home/ada",
            "//nas/x",
            "https://host/x",
            "~/data",
            "",
            "0",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn paths_that_lead_nowhere_say_what_to_do() {
        for (windows, part) in [
            (r"Z:\data", "drive Z: is not mounted in WSL; copy"),
            (r"D:data\x", r"such as D:\data\x"),
            (r"\\wsl.localhost\Debian\home", "`--distribution Debian`"),
            (r"\\server\share\data", r"\\server\share is on the network"),
        ] {
            let why = read(windows).unwrap().unwrap_err().to_string();
            assert!(why.contains(part), "{windows}: {why}");
        }
    }

    #[test]
    fn at_a_prompt_a_share_may_have_slashes() {
        let share = Form::Share { server: "nas".into(), share: "s".into(), rest: "x.yaml".into() };
        assert_eq!(Form::at_prompt("//nas/s/x.yaml"), Some(share));
        for text in ["//nas", "///nas/s", "/nas/s", "https://host/x", "data/x"] {
            assert_eq!(Form::at_prompt(text), None, "{text}");
        }
    }

    #[test]
    fn mount_commands_are_for_the_shell_of_the_user() {
        let why = |text: &str, drives: &Drives| drives.read(text, None).unwrap().unwrap_err().to_string();
        let told = |name: &str| (name == "YOLO_FROM_WINDOWS").then(|| "{}".to_owned());
        let prompt = Drives::found(told, "", Some("Ubuntu".to_owned()));
        for (text, drives, commands) in [
            (
                r"E:\set",
                &prompt,
                "`wsl.exe -d Ubuntu -u root --exec sh -c \"mkdir -p /mnt/e && mount -t drvfs E: /mnt/e\"`",
            ),
            (
                r"\\nas\my set\x",
                &prompt,
                "`wsl.exe -d Ubuntu -u root --exec mkdir -p /mnt/share` and then \
                 `wsl.exe -d Ubuntu -u root --exec mount -t drvfs \"\\\\nas\\my set\" /mnt/share` and write /mnt/share",
            ),
            (r"Z:\set", &drives(), "`sudo mkdir -p /mnt/z && sudo mount -t drvfs Z: /mnt/z`"),
            (
                r"\\nas\s",
                &drives(),
                r"`sudo mkdir -p /mnt/share && sudo mount -t drvfs '\\nas\s' /mnt/share`",
            ),
        ] {
            let why = why(text, drives);
            assert!(why.contains(commands), "{why}");
        }
    }

    #[test]
    fn paths_are_written_as_explorer_opens_them() {
        for (here, windows) in [
            ("/mnt/c/Users/Zoë Müller/runs", r"C:\Users\Zoë Müller\runs"),
            ("/mnt/c", r"C:\"),
            ("/mnt/cargo/x", r"\\wsl.localhost\Ubuntu\mnt\cargo\x"),
            ("/home/ada/best.pt", r"\\wsl.localhost\Ubuntu\home\ada\best.pt"),
            ("/data/my disk/x", r"E:\x"),
        ] {
            assert_eq!(drives().write(Path::new(here)).as_deref(), Some(windows));
        }
        assert_eq!(drives().write(Path::new("runs/x")), None);
        assert_eq!(Drives::default().write(Path::new("/home")), None);
    }

    #[test]
    fn a_drive_at_the_root_holds_everything() {
        let told = |name: &str| (name == "YOLO_DRIVE_Z").then(|| "/".to_owned());
        let wine = Drives::found(told, "", None);
        assert_eq!(wine.write(Path::new("/tmp/x")).as_deref(), Some(r"Z:\tmp\x"));
        assert_eq!(wine.read(r"Z:\tmp\x", None), Some(Ok("/tmp/x".to_owned())));
        assert_eq!(wine.read(r"Z:\", None), Some(Ok("/".to_owned())));
        assert!(wine.holds(Path::new("/tmp/x")));
        assert!(drives().holds(Path::new("/mnt/c/x")) && !drives().holds(Path::new("/home/ada")));
    }

    #[test]
    fn only_complete_paths_in_files_are_read() {
        assert_eq!(drives().read_in_file(r"C:\data").as_deref(), Some("/mnt/c/data"));
        for text in [r"C:data", r"\data", r"images\train", r"Z:\x"] {
            assert_eq!(drives().read_in_file(text), None);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(path in "(/[a-zA-Zé ._-]{1,9}){1,4}") {
            let written = drives().write(Path::new(&path)).unwrap();
            prop_assert_eq!(read(&written), Some(Ok(path)));
        }

        #[test]
        fn any_text_is_read(text in "([a-zC:/?.*$~\"]|\\\\|é| ){0,20}") {
            let _ = read(&text);
            let _ = drives().read_in_file(&text);
            let _ = Form::at_prompt(&text);
        }
    }
}
