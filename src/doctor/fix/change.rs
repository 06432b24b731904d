//! One function per kind of change. Each notes in the journal what it changes, with a copy of what it
//! replaces, before it changes anything, and replaces files atomically.
//!
//! Invariant: permissions are changed and files removed only inside yolo's own folders.

use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_base::exit;
use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::{Change, Edit};

use super::plan::{LOADER_CONFIG, PlannedChange};
use super::variables;
use crate::dirs::YoloDirs;
use crate::undo::{Entry, Journal, Step, can_write, write_file};

/// Makes a change and returns what was done, or why it failed.
pub(super) fn apply(
    planned: &PlannedChange,
    dirs: &YoloDirs,
    journal: &mut Journal,
) -> Result<String, String> {
    let what = &planned.text;
    match &planned.change {
        Change::Settings { file, of, edits } => settings(Path::new(file), *of, edits, what, journal),
        Change::Variable { name, value } => variable(name, value.as_deref(), dirs, journal),
        Change::LoaderFolder { folder } => loader_folder(folder, what, journal),
        Change::MakeFolder { path } => make_folder(Path::new(path), what, journal),
        Change::Permissions { path, add } => permissions(&own(path, dirs)?, *add, what, dirs, journal),
        Change::Remove { path } => remove(&own(path, dirs)?, what, journal),
        Change::EndProcess { pid, name } => {
            let stays = "a process that was ended cannot be continued";
            noted(journal, what, |entry| stay(entry, stays), || end_process(*pid, name))
        }
    }
}

/// Says why a change is never undone.
fn stay(entry: &mut Entry, why: &str) -> std::io::Result<()> {
    entry.stays(why, None);
    Ok(())
}

/// Notes a change in the journal, and makes it.
fn noted<T>(
    journal: &mut Journal,
    what: &str,
    describe: impl FnOnce(&mut Entry) -> std::io::Result<()>,
    make: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let entry = journal.begin(what, describe).map_err(|error| format!("it cannot be noted: {error}"))?;
    let result = make();
    journal.end(entry, result.is_ok()).map_err(|error| format!("it cannot be noted: {error}"))?;
    result
}

fn settings(
    file: &Path,
    kind: ConfigFile,
    edits: &[Edit],
    what: &str,
    journal: &mut Journal,
) -> Result<String, String> {
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
    let new = document.bytes();
    let make = || write_file(file, &new).map_err(|error| error.to_string());
    noted(journal, what, |entry| entry.file(file, Some(&new)), make)?;
    let next = match kind {
        ConfigFile::WslConfig => "wsl.exe --shutdown",
        ConfigFile::WslConf => "wsl.exe --terminate of this distribution",
    };
    Ok(format!("wrote {}; it takes effect after `{next}`", file.display()))
}

fn variable(
    name: &str,
    value: Option<&str>,
    dirs: &YoloDirs,
    journal: &mut Journal,
) -> Result<String, String> {
    let file = variables::file(dirs);
    let what = match value {
        Some(value) => format!("set {name} to {value} in {}", file.display()),
        None => format!("unset {name} in {}", file.display()),
    };
    let text = text_of(&file)?;
    let new = variables::with(&text, name, value);
    let make = || {
        let written = fs::create_dir_all(dirs.config()).and_then(|()| write_file(&file, new.as_bytes()));
        written.map_err(|error| error.to_string())
    };
    noted(journal, &what, |entry| entry.file(&file, Some(new.as_bytes())), make)?;
    Ok(match value {
        Some(_) => format!("set {name} in {}", file.display()),
        None => format!("unset {name} in {}", file.display()),
    })
}

fn loader_folder(folder: &str, what: &str, journal: &mut Journal) -> Result<String, String> {
    let file = Path::new(LOADER_CONFIG);
    let mut text = text_of(file)?;
    if !text.lines().any(|line| line.trim() == folder) {
        text.push_str(&format!("{folder}\n"));
    }
    let describe = |entry: &mut Entry| {
        entry.file(file, Some(text.as_bytes()))?;
        entry.step(Step::Ldconfig);
        Ok(())
    };
    let make = || {
        write_file(file, text.as_bytes()).map_err(|error| error.to_string())?;
        match std::process::Command::new("ldconfig").status() {
            Ok(status) if status.success() => Ok(format!("the loader now searches {folder}")),
            Ok(status) => Err(format!("ldconfig failed: {}", exit::describe(status))),
            Err(error) => Err(error.to_string()),
        }
    };
    noted(journal, what, describe, make)
}

/// The text of a file; empty if there is none.
fn text_of(file: &Path) -> Result<String, String> {
    if file.exists() {
        fs::read_to_string(file).map_err(|error| error.to_string())
    } else {
        Ok(String::new())
    }
}

fn make_folder(path: &Path, what: &str, journal: &mut Journal) -> Result<String, String> {
    // The journal may be in this very folder, so it is found out first what will be new.
    let steps: Vec<Step> = path
        .ancestors()
        .take_while(|folder| !folder.exists())
        .map(|folder| Step::Folder { path: folder.to_owned() })
        .collect();
    let describe = |entry: &mut Entry| {
        steps.into_iter().for_each(|step| entry.step(step));
        Ok(())
    };
    noted(journal, what, describe, || fs::create_dir_all(path).map_err(|error| error.to_string()))?;
    Ok(format!("created {}", path.display()))
}

#[cfg(unix)]
fn permissions(
    path: &Path,
    add: u32,
    what: &str,
    dirs: &YoloDirs,
    journal: &mut Journal,
) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = fs::metadata(path).map_err(|error| error.to_string())?.permissions();
    let before = permissions.mode() & 0o7777;
    permissions.set_mode(before | add);
    let change = || fs::set_permissions(path, permissions.clone()).map_err(|error| error.to_string());
    // The journal may be below this very folder, which then has to be changed first.
    let is_first = dirs.config().starts_with(path);
    if is_first {
        change()?;
    }
    let describe = |entry: &mut Entry| {
        entry.step(Step::Permissions { path: path.to_owned(), before, after: before | add });
        Ok(())
    };
    noted(journal, what, describe, || if is_first { Ok(()) } else { change() })?;
    Ok(format!("{} now has permissions {:o}", path.display(), before | add))
}

#[cfg(not(unix))]
fn permissions(_: &Path, _: u32, _: &str, _: &YoloDirs, _: &mut Journal) -> Result<String, String> {
    Err("this change of permissions works on Linux only".to_owned())
}

fn remove(path: &Path, what: &str, journal: &mut Journal) -> Result<String, String> {
    // Without this check, the contents of a folder would be removed, but not the folder itself.
    if let Some(folder) = path.parent().filter(|folder| !can_write(folder)) {
        return Err(format!("cannot remove anything from {}: no write permission", folder.display()));
    }
    let make = || {
        let removed = if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        removed.map_err(|error| error.to_string())
    };
    let stays =
        "it was a leftover without use, such as an unfinished download, which the next setup begins anew";
    noted(journal, what, |entry| stay(entry, stays), make)?;
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

    fn journal(dirs: &YoloDirs) -> Journal {
        Journal::of(dirs, "yolo doctor --fix")
    }

    /// Makes a change as `--fix` does.
    fn apply(change: &Change, dirs: &YoloDirs, journal: &mut Journal) -> Result<String, String> {
        let (text, undo) = ("a change".to_owned(), String::new());
        let planned = PlannedChange { id: "disk.full", change: change.clone(), text, undo, by_hand: None };
        super::apply(&planned, dirs, journal)
    }

    /// Undoes everything by the script.
    fn undo(journal: &Journal) {
        let script = journal.script().unwrap();
        let mut command = if cfg!(windows) {
            let mut cmd = std::process::Command::new("cmd");
            cmd.arg("/c");
            cmd
        } else {
            std::process::Command::new("sh")
        };
        assert!(command.arg(script).status().unwrap().success());
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
        let mut journal = journal(&home.dirs);
        apply(&change, &home.dirs, &mut journal).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"# mine\r\n[wsl2]\r\nmemory=8GB # GB\r\nswap=8GB\r\n");
        undo(&journal);
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
        apply(&change, &home.dirs, &mut journal(&home.dirs)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"[wsl2]\r\nmemory=8GB\r\n");
    }

    #[test]
    fn variables_go_into_a_file_to_source() {
        let home = home();
        let change = Change::Variable { name: "OMP_NUM_THREADS".into(), value: Some("4".into()) };
        let mut journal = journal(&home.dirs);
        apply(&change, &home.dirs, &mut journal).unwrap();
        let file = home.dirs.config().join("env.sh");
        assert!(fs::read_to_string(&file).unwrap().ends_with("export OMP_NUM_THREADS=\"4\"\n"));
        undo(&journal);
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
            apply(&change, &home.dirs, &mut journal(&home.dirs))
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
        let mut journal = journal(&home.dirs);
        apply(&change, &home.dirs, &mut journal).unwrap();
        assert_eq!(mode(), 0o755);
        undo(&journal);
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
        let mut journal = journal(&home.dirs);
        let unlock = |folder: &Path| Change::Permissions { path: folder.display().to_string(), add: 0o700 };
        let unset = Change::Variable { name: "CUDA_LAUNCH_BLOCKING".into(), value: None };
        for change in [unlock(config), unlock(cache), unset] {
            apply(&change, &home.dirs, &mut journal).unwrap();
        }
        let script = fs::read_to_string(journal.script().unwrap()).unwrap();
        let place = |words: &str| script.find(words).unwrap();
        assert!(place("rm -f ") < place("chmod 0 ") && place("chmod 0 ") < place("chmod 555 "), "{script}");
        undo(&journal);
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
        let mut journal = journal(&dirs);
        let change = Change::MakeFolder { path: made.display().to_string() };
        apply(&change, &dirs, &mut journal).unwrap();
        undo(&journal);
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
