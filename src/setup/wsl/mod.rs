//! `yolo setup --wsl`: brings a Windows PC to where `yolo train` starts inside WSL. On Windows it
//! installs what is missing, writes `.wslconfig`, copies the Linux program into a distribution and
//! runs `yolo setup` there. Inside WSL it takes care of the same file and of what the virtual
//! machine needs besides. The steps are computed from facts alone, again after every step, so a
//! restart, Ctrl-C or a second run continues from the current state.

mod archive;
mod chosen;
mod config;
mod error;
mod exe;
mod linux;
mod noted;
mod observer;
mod request;
mod windows;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use yolo_checks::Host;
use yolo_checks::facts::Wsl;
use yolo_checks::wsl::exe_output::Trouble;

use crate::dirs::YoloDirs;
use crate::undo::Journal;
pub(crate) use chosen::prepared_distribution;
pub(crate) use config::WrittenConfig;
pub use error::WslError;
pub(crate) use exe::{PROGRAM, WslExe};
pub(crate) use linux::{LinuxPlan, LinuxStep};
pub(crate) use observer::{Observer, Progress};
pub(crate) use request::WslRequest;
pub(crate) use windows::{Needs, WindowsFacts, WindowsPlan, WindowsStep};

/// How long `wsl.exe` may take to answer: some questions start the virtual machine.
const WSL_BUDGET: Duration = Duration::from_secs(60);

/// Removes what the step "put-program" has put into a distribution. The link is removed if it leads nowhere.
// Invariant: no double quotes and no backslashes, which the command lines of Windows would change.
const REMOVE: &str = "set -e; rm -rf /opt/yolo /opt/.yolo-new /opt/.yolo-old; \
    if [ ! -e /usr/local/bin/yolo ]; then rm -f /usr/local/bin/yolo; fi";

/// `yolo setup --wsl`, on Windows or inside WSL.
pub(crate) fn set_up(request: &WslRequest, dirs: &YoloDirs, observer: &dyn Observer) -> Result<(), WslError> {
    let exe = WslExe::of_this_pc();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let places = yolo_checks::KnownPaths {
        data: Some(text(dirs.data().to_owned())),
        working: std::env::current_dir().ok().map(text),
        ..yolo_checks::KnownPaths::default()
    };
    let fresh_host = || Host::of_this_machine(&places).with_wsl_exe(exe.program(), WSL_BUDGET);
    let mut journal = Journal::of(dirs, "yolo setup --wsl");
    if cfg!(windows) {
        return windows::Setup {
            fresh_host: &fresh_host,
            exe: &exe,
            yolo: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("yolo.exe")),
            restart: windows::RestartNote::new(dirs.data()),
            settings: dirs.config().to_owned(),
            observer,
            journal: journal.into(),
        }
        .run(request);
    }
    let host = fresh_host();
    match host.wsl() {
        Ok(Some(Wsl::Two)) => linux::set_up(&host, request, observer, &mut journal),
        Ok(Some(Wsl::One)) => Err(WslError::VersionOne),
        Ok(None) | Err(_) => {
            let name = host.system().ok().and_then(|system| system.name);
            Err(WslError::Elsewhere(name.unwrap_or_else(|| std::env::consts::OS.to_owned())))
        }
    }
}

/// Removes the Linux program from a distribution, and nothing else: data sets, runs and the distribution stay. False if
/// the distribution is gone, and the program with it.
pub(crate) fn remove_program(distribution: &str) -> Result<bool, WslError> {
    let words = ["-d", distribution, "-u", "root", "--exec", "sh", "-c", REMOVE];
    match WslExe::of_this_pc().run_captured(&words, Stdio::null()) {
        Ok(()) => Ok(true),
        Err(WslError::Failed { trouble: Some(Trouble::NoDistribution), .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_has_nothing_that_a_command_line_of_windows_changes() {
        assert!(!REMOVE.contains(['"', '\\', '$', '%']));
    }
}
