//! What can be found out inside WSL: from Linux's own files, from the Windows drive that WSL mounts,
//! and, where interop allows, from one question to PowerShell. All files are read below a root that
//! a test replaces.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

use super::facts::ConfigFacts;
use super::inside::shown;
use super::{WslError, config, exe};
use crate::dirs::YoloDirs;
use crate::fetch;

/// Where WSL mounts the libraries of Windows' driver.
pub(super) const WSL_LIBRARIES: &str = "/usr/lib/wsl/lib";
/// The file by which WSL tells the loader of them.
pub(super) const LOADER_FILE: &str = "/etc/ld.so.conf.d/ld.wsl.conf";
/// How long PowerShell may take; its first start from WSL is slow.
const PATIENCE: Duration = Duration::from_secs(20);
/// What Windows is asked, in numbers that no language changes.
const QUESTION: &str = "$c=Get-CimInstance Win32_ComputerSystem; 'memory='+$c.TotalPhysicalMemory; \
    'processors='+$c.NumberOfLogicalProcessors; 'build='+[Environment]::OSVersion.Version.Build; \
    'profile='+$env:USERPROFILE; 'time='+[DateTimeOffset]::UtcNow.ToUnixTimeSeconds()";
/// Folders of `C:\Users` that are nobody's.
const NOBODY: [&str; 5] = ["public", "default", "default user", "all users", "defaultapppool"];

/// Where and as whom setup looks.
#[derive(Debug)]
pub(super) struct Host {
    /// `/`, or a folder that stands for it.
    pub(super) root: PathBuf,
    /// The variable PATH, in which WSL leaves Windows' folders.
    pub(super) path: String,
    /// What Windows answered to [`QUESTION`].
    pub(super) windows: Option<String>,
    /// Seconds since 1970 when that answer came.
    pub(super) now: i64,
    pub(super) processors: u32,
    /// Folders that a run reads and writes, with what they are.
    pub(super) folders: Vec<(&'static str, PathBuf)>,
    pub(super) is_root: bool,
}

/// What the plan needs.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) pc: Option<Pc>,
    pub(super) vm: Vm,
    pub(super) config: ConfigFacts,
    /// Whether the virtual machine started after `.wslconfig` was last written.
    pub(super) started_since_config: bool,
    /// Free bytes of the Windows drive.
    pub(super) drive_free: Option<u64>,
    /// Whether Windows' driver is mounted.
    pub(super) driver: bool,
    pub(super) loader_knows: bool,
    /// Whether `/etc/wsl.conf` keeps WSL from telling the loader.
    pub(super) loader_forbidden: bool,
    /// Seconds by which this clock is ahead of Windows'.
    pub(super) skew: Option<i64>,
    /// Folders on a Windows drive.
    pub(super) slow: Vec<(&'static str, String)>,
}

impl Host {
    /// The machine that this program runs on.
    pub(super) fn this(places: &YoloDirs) -> Self {
        let mut host = Self {
            root: PathBuf::from("/"),
            path: std::env::var("PATH").unwrap_or_default(),
            windows: None,
            now: 0,
            processors: std::thread::available_parallelism()
                .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
            folders: vec![("yolo's folder of libtorch and data sets", places.data().to_owned())],
            is_root: is_root(),
        };
        host.folders.extend(std::env::current_dir().ok().map(|folder| ("this folder", folder)));
        if let Some(drive) = host.drive() {
            let program = host.under(&drive).join("Windows/System32/WindowsPowerShell/v1.0/powershell.exe");
            let words = ["-NoProfile", "-NonInteractive", "-Command", QUESTION];
            host.windows = exe::question(&program, &words, PATIENCE);
        }
        host.now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
        host
    }

    /// Everything that the plan needs.
    pub(super) fn facts(&self) -> Result<Inside, WslError> {
        let meminfo = self.read("/proc/meminfo");
        let vm = Vm::from_meminfo(&meminfo, self.processors).ok_or_else(|| WslError::File {
            action: "read",
            path: PathBuf::from("/proc/meminfo"),
            source: std::io::Error::other("it does not tell the memory"),
        })?;
        let drive = self.drive().ok_or_else(|| {
            WslError::NoProfile(
                "drive C: is not mounted ([automount] enabled=false in /etc/wsl.conf?)".to_owned(),
            )
        })?;
        let profile = self.profile(&drive)?;
        let config = config::look(&self.under(&profile))?;
        let drive_free = fetch::free_bytes(&self.under(&drive)).ok();
        Ok(Inside {
            pc: self.pc(drive_free),
            vm,
            started_since_config: self.started_since(&config.path),
            config,
            drive_free,
            driver: self.under(Path::new(WSL_LIBRARIES)).join("libcuda.so.1").exists(),
            loader_knows: self.loader_knows(),
            loader_forbidden: self.loader_forbidden(),
            skew: self.answer("time=").and_then(|time| time.parse::<i64>().ok()).map(|time| self.now - time),
            slow: self.slow(),
        })
    }

    /// A path of this machine, as a test has it.
    fn under(&self, path: &Path) -> PathBuf {
        path.strip_prefix("/").map_or_else(|_| path.to_owned(), |path| self.root.join(path))
    }

    fn read(&self, path: &str) -> String {
        let bytes = std::fs::read(self.under(Path::new(path))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn answer(&self, name: &str) -> Option<&str> {
        let lines = self.windows.as_deref()?.lines();
        lines.map(str::trim).find_map(|line| line.strip_prefix(name)).filter(|value| !value.is_empty())
    }

    fn pc(&self, swap_disk_free: Option<u64>) -> Option<Pc> {
        Some(Pc {
            memory: self.answer("memory=")?.parse().ok().filter(|&memory| memory > 0)?,
            processors: self.answer("processors=")?.parse().ok().filter(|&count| count > 0)?,
            windows_build: self.answer("build=").and_then(|build| build.parse().ok()),
            swap_disk_free,
        })
    }

    /// Where drive C: is mounted; `automount.root` moves it.
    fn drive(&self) -> Option<PathBuf> {
        self.windows_mounts().into_iter().find(|(_, letter)| *letter == Some('c')).map(|(mount, _)| mount)
    }

    /// Mount points of Windows drives, with their letter where it can be told.
    fn windows_mounts(&self) -> Vec<(PathBuf, Option<char>)> {
        let table = self.read("/proc/self/mountinfo");
        table
            .lines()
            .filter_map(|line| {
                let (before, after) = line.split_once(" - ")?;
                let mount = before.split(' ').nth(4)?.replace("\\040", " ");
                let mut after = after.split(' ');
                let (kind, source, options) =
                    (after.next()?, after.next()?, after.next().unwrap_or_default());
                let drive = options.contains("aname=drvfs") || source.starts_with("drvfs");
                let known = kind == "drvfs" || (drive && matches!(kind, "9p" | "virtiofs"));
                let letter = |text: &str| {
                    let mut chars = text.chars();
                    let letter = chars.next()?.to_ascii_lowercase();
                    (letter.is_ascii_lowercase() && chars.next() == Some(':')).then_some(letter)
                };
                let from_options = || options.split_once("path=").and_then(|(_, path)| letter(path));
                let from_name = || {
                    let name = Path::new(&mount).file_name()?.to_str()?;
                    (name.len() == 1).then(|| name.chars().next()).flatten()
                };
                known
                    .then(|| (PathBuf::from(&mount), letter(source).or_else(from_options).or_else(from_name)))
            })
            .collect()
    }

    /// The Windows user's folder, as Linux sees it.
    fn profile(&self, drive: &Path) -> Result<PathBuf, WslError> {
        let users = drive.join("Users");
        let there = |path: PathBuf| self.under(&path).is_dir().then_some(path);
        // From Windows itself: `C:\Users\me`.
        let told = self.answer("profile=").and_then(|profile| {
            let rest = profile.strip_prefix(['C', 'c'])?.strip_prefix(":\\")?;
            there(rest.split('\\').fold(drive.to_owned(), |path, part| path.join(part)))
        });
        // From the folders of Windows' own PATH: `…/Users/me/AppData/Local/Microsoft/WindowsApps`.
        let from_path = || {
            self.path.split(':').find_map(|entry| {
                let rest = Path::new(entry).strip_prefix(&users).ok()?;
                let name = rest.components().next()?;
                there(users.join(name))
            })
        };
        if let Some(profile) = told.or_else(from_path) {
            return Ok(profile);
        }
        // The one person who has a folder there.
        let entries = std::fs::read_dir(self.under(&users)).map_err(WslError::file("read", &users))?;
        let mut people: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name())
            .filter(|name| !NOBODY.contains(&name.to_string_lossy().to_ascii_lowercase().as_str()))
            .map(|name| users.join(name))
            .collect();
        match (people.pop(), people.len()) {
            (Some(one), 0) => Ok(one),
            (None, _) => Err(WslError::NoProfile(format!("{} holds no user's folder", shown(&users)))),
            (Some(_), others) => Err(WslError::NoProfile(format!(
                "{} holds {} of them, and interop with Windows, which would tell, is off",
                shown(&users),
                others + 1
            ))),
        }
    }

    /// Whether the virtual machine started after a file was written. A file that is not there was
    /// never written.
    fn started_since(&self, path: &Path) -> bool {
        let stat = self.read("/proc/stat");
        let started = stat
            .lines()
            .find_map(|line| line.strip_prefix("btime "))
            .and_then(|time| time.trim().parse().ok());
        let Some(started) = started.map(|started| UNIX_EPOCH + Duration::from_secs(started)) else {
            return false;
        };
        let written = std::fs::metadata(path).and_then(|data| data.modified());
        written.map_or(true, |written| written < started)
    }

    fn loader_knows(&self) -> bool {
        let folder = self.under(Path::new("/etc/ld.so.conf.d"));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "conf"));
        files
            .chain([self.under(Path::new("/etc/ld.so.conf"))])
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .any(|text| text.lines().any(|line| line.trim().trim_end_matches('/') == WSL_LIBRARIES))
    }

    fn loader_forbidden(&self) -> bool {
        let conf = Document::parse(ConfigFile::WslConf, self.read("/etc/wsl.conf").as_bytes());
        let value = conf.value("automount", "ldconfig");
        value.is_some_and(|value| value == "0" || value.eq_ignore_ascii_case("false"))
    }

    /// The folders of a run that lie on a Windows drive.
    fn slow(&self) -> Vec<(&'static str, String)> {
        let mounts = self.windows_mounts();
        let on_windows = |folder: &Path| mounts.iter().any(|(mount, _)| folder.starts_with(mount));
        self.folders
            .iter()
            .filter(|(_, folder)| on_windows(folder))
            .map(|(what, folder)| (*what, shown(folder)))
            .collect()
    }

    /// Tells the loader where the driver's libraries are, as WSL itself does. Needs root.
    pub(super) fn tell_loader(&self) -> Result<(), WslError> {
        let file = self.under(Path::new(LOADER_FILE));
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(WslError::file("create", folder))?;
        }
        std::fs::write(&file, format!("{WSL_LIBRARIES}\n")).map_err(WslError::file("write", &file))?;
        // It warns of the driver's links, which does no harm.
        let status = std::process::Command::new("ldconfig").arg("-r").arg(&self.root).output();
        status.map(|_| ()).map_err(WslError::file("run ldconfig for", &file))
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
