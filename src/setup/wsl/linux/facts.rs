//! What the plan inside WSL is computed from: Linux's own files, the Windows drive that WSL mounts
//! and, where interop allows it, one question to PowerShell.

use yolo_checks::Host;
use yolo_checks::facts::{Unknown, WindowsReport, WslConfig};
use yolo_checks::wsl::DRIVER_LIBRARIES;
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

use crate::setup::wsl::error::WslError;

/// A Linux inside WSL. `None` means unknown.
#[derive(Debug)]
pub(super) struct LinuxFacts {
    pub(super) pc: Option<Pc>,
    pub(super) vm: Vm,
    pub(super) config: WslConfig,
    /// Files that were probably meant to be `.wslconfig`.
    pub(super) misnamed: Vec<String>,
    /// Whether the virtual machine started after `.wslconfig` was last written.
    pub(super) started_since_config: bool,
    /// Free bytes of the Windows drive.
    pub(super) drive_free: Option<u64>,
    /// Whether the Windows driver is mounted.
    pub(super) has_driver: bool,
    /// Whether the loader finds the driver's libcuda.
    pub(super) loader_finds_driver: bool,
    /// Whether `/etc/wsl.conf` keeps WSL from configuring the loader.
    pub(super) is_ldconfig_off: bool,
    /// Seconds by which this clock is ahead of that of Windows.
    pub(super) skew: Option<i64>,
    /// Folders of a run that are on a Windows drive, with what they are.
    pub(super) slow_folders: Vec<(&'static str, String)>,
    pub(super) is_root: bool,
}

impl LinuxFacts {
    pub(super) fn of(host: &Host) -> Result<Self, WslError> {
        // Asked first, so that the clocks are compared right after PowerShell has answered.
        let report = host.windows_report().unwrap_or_default();
        let time = host.time().ok().and_then(|time| i64::try_from(time).ok());
        let windows_time = host.windows_time().ok().flatten().map(|(time, _)| time).or(report.time);
        let profile = profile(host, &report)?;
        let config = host.wslconfig_in(&profile).map_err(WslError::Unknown)?;
        let found = host.library("libcuda.so.1");
        Ok(Self {
            pc: host.windows_pc().ok(),
            vm: host.wsl_vm().map_err(WslError::Unknown)?,
            misnamed: host.misnamed_wslconfigs(&profile),
            started_since_config: host
                .boot_time()
                .is_ok_and(|started| config.modified.is_none_or(|written| written < started)),
            config,
            drive_free: host.file_system(&host.windows_drive()).ok().and_then(|disk| disk.available),
            has_driver: host.exists(&format!("{DRIVER_LIBRARIES}/libcuda.so.1")).unwrap_or(false),
            loader_finds_driver: found.map_or(true, |found| !found.is_empty()),
            is_ldconfig_off: host.wsl_conf_flag("automount", "ldconfig") == Some(false),
            skew: time.zip(windows_time).map(|(here, windows)| here - windows),
            slow_folders: slow_folders(host),
            is_root: host.user().is_ok_and(|user| user.uid == Some(0)),
        })
    }
}

/// The Windows user's folder as Linux sees it: by PowerShell's report, or as the doctor finds it.
fn profile(host: &Host, report: &WindowsReport) -> Result<String, WslError> {
    let reported = report.profile.as_deref().map(|folder| host.path_of_windows(folder));
    if let Some(folder) = reported.filter(|folder| host.exists(folder) == Ok(true)) {
        return Ok(folder);
    }
    let folder = host.windows_profile().map_err(WslError::NoProfile)?;
    if host.exists(&folder) == Ok(false) {
        let why = "is drive C: not mounted ([automount] enabled=false in /etc/wsl.conf)?";
        return Err(WslError::NoProfile(Unknown(format!("{folder} does not exist: {why}"))));
    }
    Ok(folder)
}

fn slow_folders(host: &Host) -> Vec<(&'static str, String)> {
    let places = host.places().unwrap_or_default();
    let folders =
        [("the folder of libtorch and data sets", places.data), ("the current folder", places.working)];
    let is_slow = |folder: &str| host.file_system(folder).is_ok_and(|system| system.is_windows_drive());
    folders
        .into_iter()
        .filter_map(|(what, folder)| Some((what, folder?)))
        .filter(|(_, folder)| is_slow(folder))
        .collect()
}
