//! Setting up from inside WSL: `.wslconfig` through the Windows drive, the loader's path to the
//! driver's libraries, the clock, data on the Linux disk, and whether the running virtual machine has
//! the values of the file. What needs root is done as root, and otherwise left to the user.

mod facts;
pub(super) mod plan;

use std::path::Path;

use yolo_checks::Host;
use yolo_checks::wsl::{DRIVER_LIBRARIES, LOADER_FILE};

pub(crate) use plan::{LinuxPlan, LinuxStep};

use super::error::WslError;
use super::noted::noted;
use super::observer::{Observer, Progress};
use super::{WslRequest, config};
use crate::undo::{Entry, Journal, Step, write_file};
use facts::LinuxFacts;
use plan::plan;

/// Takes the steps that are possible from inside, and reports the others.
pub(super) fn set_up(
    host: &Host,
    request: &WslRequest,
    observer: &dyn Observer,
    journal: &mut Journal,
) -> Result<(), WslError> {
    let facts = LinuxFacts::of(host)?;
    let plan = plan(&facts, &request.training);
    observer.report(&Progress::LinuxPlan(&plan));
    for step in &plan.steps {
        match step {
            LinuxStep::WriteConfig(values) => {
                observer.report(&Progress::LinuxStep(step));
                if !request.dry_run {
                    let written = config::write(&facts.config, values, journal)?;
                    observer.report(&Progress::ConfigWritten(&written));
                }
            }
            LinuxStep::Loader if facts.is_root && !request.dry_run => {
                extend_loader_path(journal)?;
                observer.report(&Progress::LoaderPathAdded);
            }
            _ => observer.report(&Progress::LinuxStep(step)),
        }
    }
    let waits = |step: &LinuxStep| matches!(step, LinuxStep::Shutdown(_) | LinuxStep::NotTaken(_));
    if !plan.steps.iter().any(waits) {
        observer.report(&Progress::InEffect(&facts.vm));
    }
    Ok(())
}

/// Lets the loader search the folder of the driver's libraries, as WSL itself does. Needs root.
fn extend_loader_path(journal: &mut Journal) -> Result<(), WslError> {
    let file = Path::new(LOADER_FILE);
    let text = format!("{DRIVER_LIBRARIES}\n");
    let describe = |entry: &mut Entry| {
        entry.file(file, Some(text.as_bytes()))?;
        entry.step(Step::Ldconfig);
        Ok(())
    };
    let what = format!("added {DRIVER_LIBRARIES} to the folders that the loader searches, in {LOADER_FILE}");
    noted(journal, &what, describe, || {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(WslError::file("create", folder))?;
        }
        write_file(file, text.as_bytes()).map_err(WslError::file("write", file))?;
        // It warns about the links of the driver, which is harmless.
        let run = std::process::Command::new("ldconfig").output();
        run.map(|_| ()).map_err(WslError::file("run ldconfig for", file))
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::cell::RefCell;

    use serde_json::{Value, json};
    use yolo_checks::facts::command_line;
    use yolo_checks::wsl::sizing::Training;

    use super::*;
    use crate::dirs::YoloDirs;

    const NOW: i64 = 1_800_000_000;
    const MOUNTS: &str = "70 62 8:32 / / rw,relatime - ext4 /dev/sdc rw\n\
        110 70 0:54 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\;uid=1000,mmap,trans=fd\n";
    const PROFILE: &str = "/mnt/c/Users/Ada Rossi";
    const CONFIG: &str = "[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n";

    /// A recording of a WSL of 8 GB, half of the PC, in which nothing is wrong.
    fn healthy() -> Value {
        json!({
            "version": 1,
            "os": "linux",
            "time": NOW,
            "user": { "uid": 1000 },
            "env": { "PATH": format!("/usr/bin:/mnt/c/Windows/System32:{PROFILE}/AppData/Local/Microsoft/WindowsApps") },
            "system": { "cores": 8 },
            "places": { "data": "/home/ada/yolo", "working": "/home/ada/runs" },
            "files": {
                "/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n",
                "/proc/meminfo": "MemTotal:        8118712 kB\nSwapTotal:       2097152 kB\n",
                "/proc/self/mountinfo": MOUNTS,
                "/proc/stat": "cpu 1 2 3\nbtime 1700000000\n",
                "/etc/wsl.conf": null,
                "/sys/class/rtc/rtc0/since_epoch": format!("{NOW}\n"),
                "/proc/sys/fs/binfmt_misc/WSLInterop": "enabled\n",
                (format!("{PROFILE}/.wslconfig")): CONFIG,
            },
            "folders": { PROFILE: [".wslconfig"] },
            "stats": {
                "/usr/lib/wsl/lib/libcuda.so.1": { "kind": "file" },
                (format!("{PROFILE}/.wslconfig")): { "kind": "file", "modified": 1_600_000_000 },
            },
            "libraries": { "libcuda.so.1": "/usr/lib/wsl/lib/libcuda.so.1" },
            "commands": { (powershell("/mnt/c")): format!(
                "memory=17179869184\r\nprocessors=8\r\nbuild=26100\r\nprofile=C:\\Users\\Ada Rossi\r\ntime={NOW}\r\n"
            ) },
        })
    }

    /// The line of the question to PowerShell.
    fn powershell(drive: &str) -> String {
        let program = format!("{drive}/Windows/System32/WindowsPowerShell/v1.0/powershell.exe");
        let script = yolo_checks::facts::WINDOWS_REPORT;
        command_line(&[&program, "-NoProfile", "-NonInteractive", "-Command", script])
    }

    fn without_powershell(recording: &mut Value) {
        recording["commands"] = json!({ (powershell("/mnt/c")): null });
    }

    fn planned(recording: &Value) -> LinuxPlan {
        plan(&facts(recording).unwrap(), &Training::default())
    }

    fn facts(recording: &Value) -> Result<LinuxFacts, WslError> {
        LinuxFacts::of(&Host::from_value(recording.clone()).unwrap().0)
    }

    fn steps(recording: &Value) -> Vec<&'static str> {
        planned(recording).steps.iter().map(LinuxStep::id).collect()
    }

    #[test]
    fn a_healthy_wsl_needs_nothing() {
        assert_eq!(planned(&healthy()), LinuxPlan::default());
    }

    /// Collects the reports.
    #[derive(Default)]
    struct Log(RefCell<Vec<String>>);

    impl Observer for Log {
        fn report(&self, progress: &Progress<'_>) {
            self.0.borrow_mut().push(match progress {
                Progress::LinuxStep(step) => step.id().to_owned(),
                Progress::ConfigWritten(_) => "written".to_owned(),
                Progress::InEffect(_) => "in effect".to_owned(),
                _ => return,
            });
        }

        fn confirm(&self) -> Option<bool> {
            None
        }
    }

    #[test]
    fn the_file_is_changed_through_the_windows_drive_before_a_restart() {
        let drive = tempfile::tempdir().unwrap();
        let root = drive.path().to_str().unwrap();
        let folder = drive.path().join("Users/Ada Rossi");
        std::fs::create_dir_all(&folder).unwrap();
        let before = "# mio\r\n[wsl2]\r\nmemory = 2GB\t# poco\r\nswap=2GB\r\nprocessors=8\r\n";
        std::fs::write(folder.join(".wslconfig"), before).unwrap();
        let mut recording = healthy();
        recording["files"]["/proc/self/mountinfo"] = MOUNTS.replace("/mnt/c", root).into();
        recording["files"][format!("{root}/Users/Ada Rossi/.wslconfig")] = before.into();
        recording["folders"] = json!({ (format!("{root}/Users/Ada Rossi")): [".wslconfig"] });
        let answer = recording["commands"][powershell("/mnt/c")].take();
        recording["commands"] = json!({ (powershell(root)): answer });
        let host = Host::from_value(recording).unwrap().0;

        let log = Log::default();
        let dry = WslRequest { dry_run: true, ..WslRequest::default() };
        let home = tempfile::tempdir().unwrap();
        let mut journal = Journal::of(&YoloDirs::under(home.path()), "yolo setup --wsl");
        set_up(&host, &dry, &log, &mut journal).unwrap();
        assert_eq!(log.0.take(), ["write-config", "shutdown-wsl"]);
        assert_eq!(std::fs::read_to_string(folder.join(".wslconfig")).unwrap(), before);

        set_up(&host, &WslRequest::default(), &log, &mut journal).unwrap();
        assert_eq!(log.0.take(), ["write-config", "written", "shutdown-wsl"]);
        let after = std::fs::read_to_string(folder.join(".wslconfig")).unwrap();
        assert_eq!(after, before.replace("memory = 2GB", "memory = 8GB"));
        assert_eq!(std::fs::read_to_string(folder.join(".wslconfig.before-yolo")).unwrap(), before);
    }

    #[test]
    fn a_virtual_machine_from_before_or_after_the_change_is_told_apart() {
        let mut recording = healthy();
        recording["files"]["/proc/meminfo"] =
            "MemTotal:        4000000 kB\nSwapTotal:       2097152 kB\n".into();
        assert_eq!(steps(&recording), ["not-taken"]);
        recording["files"]["/proc/stat"] = "btime 1500000000\n".into();
        assert_eq!(steps(&recording), ["shutdown-wsl"]);
    }

    #[test]
    fn the_loader_the_clock_and_slow_folders_are_checked() {
        let mut recording = healthy();
        recording["libraries"]["libcuda.so.1"] = json!([]);
        recording["time"] = json!(NOW - 600);
        recording["places"]["working"] = format!("{PROFILE}/data").into();
        assert_eq!(steps(&recording), ["loader-path", "clock", "slow-folder"]);
        recording["files"]["/etc/wsl.conf"] = "[automount]\nldconfig = false\n".into();
        assert_eq!(steps(&recording), ["loader-forbidden", "clock", "slow-folder"]);
    }

    #[test]
    fn without_interop_the_user_comes_from_path_and_the_pc_from_the_virtual_machine() {
        let mut recording = healthy();
        without_powershell(&mut recording);
        // Limited by the file, the virtual machine does not show the size of the PC.
        let planned = planned(&recording);
        assert!(
            planned.steps.is_empty() && planned.notes[0].contains("interop with Windows is off"),
            "{planned:?}"
        );
        recording["files"][format!("{PROFILE}/.wslconfig")] = "".into();
        let facts = facts(&recording).unwrap();
        let estimate = plan::pc_or_estimate(&facts, &facts.config.document);
        assert_eq!(estimate.unwrap().memory, 2 * 8_118_712 * 1024);
    }

    #[test]
    fn the_drive_and_the_user_may_be_elsewhere() {
        let mut recording = healthy();
        without_powershell(&mut recording);
        recording["env"] = json!({});
        recording["folders"]["/mnt/c/Users"] = json!(["Ada Rossi", "Public"]);
        assert!(facts(&recording).unwrap().config.path.ends_with("Ada Rossi/.wslconfig"));
        // Another root of the drives, as virtiofs shows it.
        recording["files"]["/proc/self/mountinfo"] =
            "9 1 0:5 / /c rw - virtiofs drvfsC rw,aname=drvfs;path=C:\\\n".into();
        recording["files"]["/c/Users/Eva/.wslconfig"] = "[wsl2]\n".into();
        recording["folders"] = json!({ "/c/Users": ["Eva"], "/c/Users/Eva": [".wslconfig"] });
        assert!(facts(&recording).unwrap().config.path.ends_with("c/Users/Eva/.wslconfig"));
        recording["folders"] = json!({ "/c/Users": ["Bob", "Eva"] });
        recording["files"]["/c/Users/Eva/.wslconfig"] = Value::Null;
        recording["files"][format!("{PROFILE}/.wslconfig")] = Value::Null;
        assert!(facts(&recording).unwrap_err().to_string().contains("2 users"));
        recording["folders"] = json!({ "/c": [] });
        let why = facts(&recording).unwrap_err().to_string();
        assert!(why.contains("does not mount the Windows drive"), "{why}");
    }
}
