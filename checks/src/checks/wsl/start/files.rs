//! Files without which no distribution starts: those of WSL itself, and the disk of the default distribution.

use super::disk;
use super::machine;
use super::setup::msi;
use crate::facts::{Host, PathKind};
use crate::finding::Finding;
use crate::status::Status;
use crate::wsl::exe_output;
use crate::wsl::start_failure::Fault;

/// Where the installer puts WSL.
const FOLDER: &str = r"C:\Program Files\WSL";
/// The finding, if a file is known to be missing.
pub(super) fn missing(host: &Host) -> Option<Finding> {
    let is_file =
        |path: &str| host.stat(path).ok().map(|stat| stat.is_some_and(|stat| stat.kind == PathKind::File));
    let of_wsl = |name: &str| is_file(&format!("{FOLDER}{name}"));
    // Without its service it is not the WSL of the installer.
    if of_wsl(r"\wslservice.exe") == Some(true) {
        for name in [r"\system.vhd", r"\tools\kernel"] {
            if of_wsl(name) == Some(false) {
                return Some(damaged(host, Some(&format!("{FOLDER}{name}"))));
            }
        }
    }
    if let Some(finding) = of_config(host) {
        return Some(finding);
    }
    disk_missing(host, false)
}

/// The default distribution is one of Docker or the like, which does not start; others do.
pub(super) fn of_helper(host: &Host) -> Option<Finding> {
    let finding = disk_missing(host, true)?.status(Status::Warning);
    let list = host.wsl_list().ok().flatten().unwrap_or_default();
    let own = exe_output::distributions(&list).into_iter().find(exe_output::Distribution::is_usable);
    let (finding, name) = match own {
        Some(own) => (finding, own.name),
        None => (finding.command("wsl.exe -l -v"), "NAME".to_owned()),
    };
    Some(
        finding
            .remedy(
                "make the distribution in which you train the default; the program whose distribution this is creates a new disk when it \
                 is reset in its settings (Docker Desktop: Troubleshoot), which removes its containers and images",
            )
            .command(format!("wsl.exe --set-default {name}")),
    )
}

/// The disk of the default distribution does not exist.
fn disk_missing(host: &Host, of_helper: bool) -> Option<Finding> {
    let disk = disk::of_default(host).filter(|disk| disk.is_of_helper() == of_helper)?;
    let is_missing = host.stat(disk.path.as_deref()?) == Ok(None);
    is_missing.then(|| disk::finding(Fault::DiskMissing, &disk))
}

/// A file that `.wslconfig` names.
fn of_config(host: &Host) -> Option<Finding> {
    let config = host.wslconfig().ok()?;
    let (key, value) = ["kernel", "kernelModules", "systemDistro"].into_iter().find_map(|key| {
        let value = config.value(key).map(str::trim).filter(|value| !value.is_empty())?;
        let is_lost = value.get(1..3) == Some(r":\") && host.stat(value) == Ok(None);
        is_lost.then_some((key, value))
    })?;
    Some(machine::custom_kernel(host, key, Some(value)))
}

/// A file of WSL's own installation is missing or damaged.
pub(super) fn damaged(host: &Host, file: Option<&str>) -> Finding {
    let title = match file {
        Some(file) => format!("WSL cannot start: {file}, a file of WSL itself, is missing or damaged"),
        None => r"WSL cannot start: a file of WSL itself is missing, such as C:\Program Files\WSL\system.vhd"
            .to_owned(),
    };
    let config = host.wslconfig().ok();
    let own = ["kernel", "systemDistro", "kernelModules"];
    let own = own.into_iter().find_map(|key| Some((key, config.as_ref()?.value(key)?.to_owned())));
    let installer = msi(host);
    let repair = format!(
        "download {installer} from https://github.com/microsoft/WSL/releases, the installer of exactly the version that is \
         installed, and repair WSL with it (right click, Repair; or the command below in a Windows terminal as \
         administrator), then restart Windows; distributions and their files are kept"
    );
    let finding = Finding::new("wsl.damaged", title)
        .because(
            "an update of WSL was not completed, or another program removed the file; `wsl --status` and `wsl -l -v` do not \
             need it, so they look healthy",
        )
        .remedy(repair.clone());
    let finding = match own.filter(|_| file.is_none()) {
        Some((key, value)) => finding.seen(format!(".wslconfig: {key}={value}")).remedy(format!(
            "remove `{key}=` from .wslconfig if the file that it names does not exist, and shut WSL down; otherwise {repair}"
        )),
        None => finding,
    };
    finding
        .command(format!(r"msiexec.exe /fvamus <folder of the download>\{installer}"))
        .command("shutdown /r /t 0")
}
