//! One function per kind of change. Each backs up what it replaces before it changes anything, and
//! replaces files atomically.
//!
//! Invariant: permissions are changed and files removed only inside yolo's own folders.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_base::exit;
use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::{Change, Edit};

use super::backup::Backup;
use super::plan::{LOADER_CONFIG, can_write};
use super::shell;
#[cfg(unix)]
use super::shell::quote;
use super::variables;
use crate::dirs::YoloDirs;

/// Makes a change and returns what was done, or why it failed.
pub(super) fn apply(change: &Change, dirs: &YoloDirs, backup: &mut Backup) -> Result<String, String> {
    match change {
        Change::Settings { file, of, edits } => settings(Path::new(file), *of, edits, backup),
        Change::Variable { name, value } => variable(name, value.as_deref(), dirs, backup),
        Change::LoaderFolder { folder } => loader_folder(folder, backup),
        Change::MakeFolder { path } => make_folder(Path::new(path), backup),
        Change::Permissions { path, add } => permissions(&own(path, dirs)?, *add, backup),
        Change::Remove { path } => remove(&own(path, dirs)?),
        Change::EndProcess { pid, name } => end_process(*pid, name),
    }
}

fn settings(file: &Path, kind: ConfigFile, edits: &[Edit], backup: &mut Backup) -> Result<String, String> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.to_string()),
    };
    let mut document = Document::parse(kind, &bytes);
    for edit in edits {
        match &edit.value {
            Some(value) => document.set(&edit.section, &edit.key, value),
            None => document.remove(&edit.section, &edit.key).map(|_| ()),
        }
        .map_err(|error| error.to_string())?;
    }
    if edits.is_empty() {
        document.make_plain();
    }
    backup.save(file).and_then(|()| write(file, &document.bytes())).map_err(|error| error.to_string())?;
    let next = match kind {
        ConfigFile::WslConfig => "wsl.exe --shutdown",
        ConfigFile::WslConf => "wsl.exe --terminate of this distribution",
    };
    Ok(format!("wrote {}; it takes effect after `{next}`", file.display()))
}

fn variable(name: &str, value: Option<&str>, dirs: &YoloDirs, backup: &mut Backup) -> Result<String, String> {
    let file = variables::file(dirs);
    let mut change = || {
        let text = if file.exists() { fs::read_to_string(&file)? } else { String::new() };
        backup.save(&file)?;
        fs::create_dir_all(dirs.config())?;
        write(&file, variables::with(&text, name, value).as_bytes())
    };
    change().map_err(|error: std::io::Error| error.to_string())?;
    Ok(match value {
        Some(_) => format!("set {name} in {}", file.display()),
        None => format!("unset {name} in {}", file.display()),
    })
}

fn loader_folder(folder: &str, backup: &mut Backup) -> Result<String, String> {
    let file = Path::new(LOADER_CONFIG);
    let mut change = || {
        let text = if file.exists() { fs::read_to_string(file)? } else { String::new() };
        // Undo commands run in reverse order: first the file is restored, then ldconfig runs.
        backup.add_undo("ldconfig")?;
        backup.save(file)?;
        if !text.lines().any(|line| line.trim() == folder) {
            write(file, format!("{text}{folder}\n").as_bytes())?;
        }
        std::process::Command::new("ldconfig").status()
    };
    match change() {
        Ok(status) if status.success() => Ok(format!("the loader now searches {folder}")),
        Ok(status) => Err(format!("ldconfig failed: {}", exit::describe(status))),
        Err(error) => Err(error.to_string()),
    }
}

fn make_folder(path: &Path, backup: &mut Backup) -> Result<String, String> {
    backup
        .add_undo(&shell::remove_folder(path))
        .and_then(|()| fs::create_dir_all(path))
        .map_err(|error| error.to_string())?;
    Ok(format!("created {}", path.display()))
}

#[cfg(unix)]
fn permissions(path: &Path, add: u32, backup: &mut Backup) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut change = || {
        let mut permissions = fs::metadata(path)?.permissions();
        let before = permissions.mode() & 0o7777;
        permissions.set_mode(before | add);
        // The backup may be in this very folder, so its permissions are changed first.
        fs::set_permissions(path, permissions)?;
        backup.add_undo(&format!("chmod {before:o} {}", quote(path)))?;
        Ok(before | add)
    };
    let now = change().map_err(|error: std::io::Error| error.to_string())?;
    Ok(format!("{} now has permissions {now:o}", path.display()))
}

#[cfg(not(unix))]
fn permissions(_: &Path, _: u32, _: &mut Backup) -> Result<String, String> {
    Err("this change of permissions works on Linux only".to_owned())
}

fn remove(path: &Path) -> Result<String, String> {
    // Without this check, the contents of a folder would be removed, but not the folder itself.
    if let Some(folder) = path.parent().filter(|folder| !can_write(folder)) {
        return Err(format!("cannot remove anything from {}: no write permission", folder.display()));
    }
    let removed =
        if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(|error| error.to_string())?;
    Ok(format!("removed {}", path.display()))
}

/// The path, if it is inside one of yolo's folders and has no `..`.
fn own(path: &str, dirs: &YoloDirs) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    let plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    let inside = [dirs.data(), dirs.config(), dirs.cache()].iter().any(|place| path.starts_with(place));
    if plain && inside { Ok(path) } else { Err(format!("{} is not in a folder of yolo", path.display())) }
}

/// Asks a process to end, and kills it if it is still running after five seconds.
#[cfg(target_os = "linux")]
fn end_process(pid: u32, name: &str) -> Result<String, String> {
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    const GRACE: Duration = Duration::from_secs(5);
    let is_it = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("({name}) ")) && !stat.contains(&format!("({name}) Z"))
    };
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(format!("{pid} is not a process id"));
    };
    for signal in [Signal::TERM, Signal::KILL] {
        if !is_it() {
            break;
        }
        kill_process(number, signal).map_err(|error| error.to_string())?;
        // A stopped process handles the signal only when it continues.
        let _ = kill_process(number, Signal::CONT);
        let sent = Instant::now();
        while is_it() && sent.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    if is_it() {
        Err(format!("process {pid} does not end: it is stuck in the kernel"))
    } else {
        Ok(format!("ended process {pid}"))
    }
}

#[cfg(not(target_os = "linux"))]
fn end_process(_: u32, _: &str) -> Result<String, String> {
    Err("processes can be ended on Linux only".to_owned())
}

/// Replaces a file atomically and keeps its permissions.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let real = if file.is_symlink() { fs::canonicalize(file)? } else { file.to_owned() };
    let mut new = tempfile::NamedTempFile::new_in(real.parent().unwrap_or(folder))?;
    new.write_all(bytes)?;
    match fs::metadata(&real) {
        Ok(data) => fs::set_permissions(new.path(), data.permissions())?,
        Err(_) => readable_by_all(new.path())?,
    }
    new.as_file().sync_all()?;
    new.persist(&real).map_err(|error| error.error)?;
    Ok(())
}

/// Temporary files are readable by the user only; new settings files get the usual permissions.
#[cfg(unix)]
fn readable_by_all(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_all(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        _folder: tempfile::TempDir,
        dirs: YoloDirs,
        root: PathBuf,
    }

    fn home() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let (root, dirs) = (folder.path().to_owned(), YoloDirs::under(folder.path()));
        Home { _folder: folder, dirs, root }
    }

    fn undo(backup: &Backup) {
        assert!(shell::run(&backup.script().unwrap()));
    }

    #[test]
    fn wslconfig_keeps_its_comments_and_can_be_restored() {
        let home = home();
        let file = home.root.join(".wslconfig");
        let before = b"# mine\r\n[wsl2]\r\nmemory=8 # GB\r\n".to_vec();
        fs::write(&file, &before).unwrap();
        let change = Change::Settings {
            file: file.display().to_string(),
            of: ConfigFile::WslConfig,
            edits: vec![Edit::set("wsl2", "memory", "8GB"), Edit::set("wsl2", "swap", "8GB")],
        };
        let mut backup = Backup::of(&home.dirs);
        apply(&change, &home.dirs, &mut backup).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"# mine\r\n[wsl2]\r\nmemory=8GB # GB\r\nswap=8GB\r\n");
        undo(&backup);
        assert_eq!(fs::read(&file).unwrap(), before);
    }

    #[test]
    fn a_wslconfig_in_utf_16_becomes_one_that_wsl_reads() {
        let home = home();
        let file = home.root.join(".wslconfig");
        let text = "\u{feff}[wsl2]\r\nmemory=8GB\r\n";
        fs::write(&file, text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
        let change = Change::Settings {
            file: file.display().to_string(),
            of: ConfigFile::WslConfig,
            edits: Vec::new(),
        };
        apply(&change, &home.dirs, &mut Backup::of(&home.dirs)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"[wsl2]\r\nmemory=8GB\r\n");
    }

    #[test]
    fn variables_go_into_a_file_to_source() {
        let home = home();
        let change = Change::Variable { name: "OMP_NUM_THREADS".into(), value: Some("4".into()) };
        let mut backup = Backup::of(&home.dirs);
        apply(&change, &home.dirs, &mut backup).unwrap();
        let file = home.dirs.config().join("env.sh");
        assert!(fs::read_to_string(&file).unwrap().ends_with("export OMP_NUM_THREADS=\"4\"\n"));
        undo(&backup);
        assert!(!file.exists());
    }

    #[test]
    fn only_files_in_yolos_folders_are_removed() {
        let home = home();
        let (mine, other) = (home.dirs.data().join("libtorch/.incoming-x"), home.root.join("thesis"));
        fs::create_dir_all(mine.join("tree")).unwrap();
        fs::create_dir_all(&other).unwrap();
        let remove = |path: &Path| {
            let change = Change::Remove { path: path.display().to_string() };
            apply(&change, &home.dirs, &mut Backup::of(&home.dirs))
        };
        remove(&mine).unwrap();
        assert!(!mine.exists());
        assert!(remove(&other).unwrap_err().contains("not in a folder of yolo"));
        assert!(remove(&home.dirs.data().join("../../thesis")).is_err());
        assert!(other.exists());
    }

    #[test]
    #[cfg(unix)]
    fn permissions_are_added_and_restored() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = home();
        let data = home.dirs.data();
        fs::create_dir_all(data).unwrap();
        let mode = || fs::metadata(data).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(data, std::fs::Permissions::from_mode(0o555)).unwrap();
        let change = Change::Permissions { path: data.display().to_string(), add: 0o700 };
        let mut backup = Backup::of(&home.dirs);
        apply(&change, &home.dirs, &mut backup).unwrap();
        assert_eq!(mode(), 0o755);
        undo(&backup);
        assert_eq!(mode(), 0o555);
    }

    /// Without root, the undo would fail if a folder were locked before its files are restored.
    #[test]
    #[cfg(unix)]
    fn unlocked_folders_are_locked_again_last() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = home();
        let (config, cache) = (home.dirs.config(), home.dirs.cache());
        for (folder, mode) in [(config, 0o555), (cache, 0o000)] {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut backup = Backup::of(&home.dirs);
        let unlock = |folder: &Path| Change::Permissions { path: folder.display().to_string(), add: 0o700 };
        let unset = Change::Variable { name: "CUDA_LAUNCH_BLOCKING".into(), value: None };
        for change in [unlock(config), unlock(cache), unset] {
            apply(&change, &home.dirs, &mut backup).unwrap();
        }
        let script = fs::read_to_string(backup.script().unwrap()).unwrap();
        let place = |words: &str| script.find(words).unwrap();
        assert!(place("rm -f ") < place("chmod 0 ") && place("chmod 0 ") < place("chmod 555 "), "{script}");
        undo(&backup);
        let mode = |folder: &Path| fs::metadata(folder).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(config), mode(cache)], [0o555, 0]);
        assert!(!config.join("env.sh").exists());
        // So that the folder of this test can be removed.
        fs::set_permissions(config, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_folder_that_contains_the_backup_is_kept() {
        let home = home();
        let made = home.root.join("new");
        let dirs = YoloDirs::under(&made);
        let mut backup = Backup::of(&dirs);
        let change = Change::MakeFolder { path: made.display().to_string() };
        apply(&change, &dirs, &mut backup).unwrap();
        undo(&backup);
        assert!(made.is_dir());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_ended_only_under_its_name() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(end_process(child.id(), "yolo-trainer").is_ok());
        assert!(child.try_wait().unwrap().is_none(), "another name means that the pid was reused");
        // It becomes a zombie that this test reaps.
        end_process(child.id(), "sleep").unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
