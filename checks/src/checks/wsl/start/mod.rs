//! Errors of WSL while it starts or is installed. `wsl --status` and `wsl -l -v` start nothing and look healthy on a PC on
//! which no distribution starts. A recording may hold the output of any command that starts one; a live PC is asked
//! for files without which none can start.

mod disk;
mod files;
mod machine;
mod network;
mod program;
mod said;
mod setup;
mod shell;
mod virtual_disks;
mod windows;

use std::time::Duration;

pub(super) use program::{no_program, without_program};
pub(super) use said::Said;
pub(super) use setup::{failed_install, with_store};

use super::SHUTDOWN;
use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::status::Status;
use crate::wsl::exe_output::{self, Trouble};
use crate::wsl::start_failure::{Failure, Fault, failure};

/// A command that was not asked before, and how long it may take: the first one after the start of Windows needs some seconds.
const PATIENT: &str = "wsl.exe --list --quiet";
const PATIENCE: Duration = Duration::from_secs(15);
/// Options that start no distribution: their errors are about what the user asked for.
const OTHER: [&str; 12] = [
    "--mount",
    "--unmount",
    "--export",
    "--import",
    "--import-in-place",
    "--unregister",
    "--manage",
    "--set-version",
    "--shutdown",
    "--terminate",
    "--debug-shell",
    "--uninstall",
];
/// Programs that start a distribution, without the version in their names.
const LAUNCHERS: [&str; 12] = [
    "wsl",
    "wslg",
    "wslconfig",
    "bash",
    "ubuntu",
    "debian",
    "kali",
    "opensuse",
    "sles",
    "fedora",
    "oraclelinux",
    "almalinux",
];

/// Recorded outputs of programs of WSL, and of others in which an error of WSL is.
pub(super) fn recorded(host: &Host) -> Vec<Said> {
    let commands = host.recorded_commands().into_iter();
    let of_wsl = commands.filter_map(|(command, output)| {
        let program = command.split_whitespace().next().unwrap_or_default();
        let program = program.rsplit(['\\', '/']).next().unwrap_or_default().to_ascii_lowercase();
        let program =
            program.trim_end_matches(".exe").trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let text = format!("{}\n{}", output.text(), output.error_text());
        let is_launcher = LAUNCHERS.contains(&program.trim_end_matches("-linux"));
        let has_error = text.contains("Wsl/") || text.contains("WslRegisterDistribution failed");
        // A program inside WSL may print numbers and end well.
        let is_relevant = has_error || is_launcher && !output.succeeded() || text.contains("wsl: ");
        let said = Said::new(&command, &text);
        // An import or a change of the version starts the virtual machine, which then fails as for every start.
        let has_machine =
            exe_output::codes(&text).any(|code| code.to_ascii_lowercase().contains("/createvm/"));
        let lower = text.to_ascii_lowercase();
        let is_of_drive =
            [disk::NO_FILE, virtual_disks::NO_PROVIDER].iter().any(|error| lower.contains(error));
        let is_other = !has_machine && !is_of_drive && OTHER.iter().any(|option| said.has(option));
        (is_relevant && !is_other).then_some(said)
    });
    of_wsl.collect()
}

/// Why no distribution starts. Troubles of the whole PC, such as virtualization, have their own words.
pub(super) fn failed(host: &Host, said: &[Said]) -> Option<Finding> {
    let list = host.wsl_list().ok().flatten().unwrap_or_default();
    let has_distribution = exe_output::distributions(&list).iter().any(exe_output::Distribution::is_usable);
    if !has_distribution && let Some(finding) = setup::system_account(host) {
        return Some(finding);
    }
    let of_start = said.iter().find_map(|said| {
        let failure = failure(&said.text, said.is_setup)?;
        let is_start = !matches!(failure.fault, Fault::Download | Fault::Installer);
        is_start.then_some((said, failure))
    });
    match of_start {
        Some((said, failure)) => Some(finding(host, said, &failure)),
        None => shell::failed(host, said)
            .or_else(|| said.iter().find_map(unexplained))
            .or_else(|| files::missing(host)),
    }
}

/// A plain start that fails with a number of Windows which nothing else explains. One with more words may have a mistake
/// in them, and so may one with a number that the user can cause.
fn unexplained(said: &Said) -> Option<Finding> {
    // Files and folders that do not exist, rights, parameters, and what the user has cancelled.
    const OF_USER: [&str; 7] =
        ["80070002", "80070003", "80070005", "80070057", "8007010b", "800704c7", "80004002"];
    if !said.is_plain_start() || exe_output::trouble(&said.text).is_some() {
        return None;
    }
    let code = exe_output::code(&said.text)?;
    let (steps, error) = code.rsplit_once('/').unwrap_or(("", code));
    let error = error.to_ascii_lowercase();
    let is_general = matches!(steps.to_ascii_lowercase().as_str(), "wsl" | "wsl/service");
    let is_of_windows = match error.strip_prefix("0x") {
        Some(number) => number.starts_with('8') && !OF_USER.contains(&number),
        // Of remote calls, sockets and COM; other names may be of what the user asked for.
        None => ["rpc_", "wsae", "co_e_"].iter().any(|start| error.starts_with(start)),
    };
    (is_general && is_of_windows).then(|| windows::launcher(code))
}

/// What keeps only the distribution of another program, such as Docker, from starting.
pub(super) fn failed_of_helper(host: &Host) -> Option<Finding> {
    files::of_helper(host)
}

/// What happened to the virtual machine in which this program runs now: WSL starts, but without a network, or it crashed before.
pub(super) fn failed_since(host: &Host, said: &[Said]) -> Option<Finding> {
    let of_run = |said: &Said| {
        let found = failure(&said.text, said.is_setup)?;
        let finding = finding(host, said, &found);
        let is_of_run = found.fault == Fault::Crashed
            || finding.id == "wsl.network-broken" && finding.status != Status::Error;
        is_of_run.then_some(finding)
    };
    said.iter().find_map(of_run)
}

/// WSL answers to nothing, although it got time. Nothing is said if the answer came late, as after Windows has started.
pub(super) fn silent(host: &Host) -> Option<Finding> {
    let is_late =
        |answer: Result<Option<String>, Unknown>| answer.is_err_and(|why| why.0.contains("no answer within"));
    if !is_late(host.wsl_status()) || !is_late(host.wsl_list()) {
        return None;
    }
    let words: Vec<&str> = PATIENT.split(' ').collect();
    if !host.is_recorded() && host.command_within(&words, PATIENCE).is_ok() {
        return None;
    }
    let finding = Finding::new("wsl.no-answer", "WSL does not answer: wsl.exe hangs");
    Some(finding.command("taskkill.exe /f /im wslservice.exe").command(SHUTDOWN))
}

/// What WSL says of the PC only when it starts.
pub(super) fn trouble(said: &[Said]) -> Option<&str> {
    let of_pc = |said: &&Said| {
        use Trouble::{
            FeatureOff, Forbidden, KernelMissing, NeedsRestart, ServiceDisabled, VirtualizationOff,
        };
        let all = [FeatureOff, Forbidden, KernelMissing, NeedsRestart, ServiceDisabled, VirtualizationOff];
        exe_output::trouble(&said.text).is_some_and(|trouble| all.contains(&trouble))
    };
    said.iter().find(of_pc).map(|said| said.text.as_str())
}

/// The installation or update of WSL that failed; only a warning if there is a distribution.
pub(super) fn setup_failed(host: &Host, said: &[Said], has_distribution: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for fault in [Fault::Download, Fault::Installer] {
        let found = said.iter().find_map(|said| {
            failure(&said.text, said.is_setup).filter(|found| found.fault == fault).map(|found| (said, found))
        });
        let Some((said, failure)) = found else { continue };
        let status = match has_distribution {
            true if said.is_list() => Status::Info,
            true => Status::Warning,
            false => Status::Error,
        };
        findings.push(seen(finding(host, said, &failure).status(status), &failure));
    }
    findings
}

/// What keeps this PC from downloading from Microsoft's servers, so that a command needs `--web-download`.
pub(super) fn needs_web_download(host: &Host, said: &[Said]) -> bool {
    let is_download =
        |said: &Said| failure(&said.text, said.is_setup).is_some_and(|found| found.fault == Fault::Download);
    said.iter().any(is_download) || setup::policy(host).is_some()
}

fn finding(host: &Host, said: &Said, failure: &Failure<'_>) -> Finding {
    let disk = disk::Disk::of(host, said, failure);
    let finding = match failure.fault {
        Fault::DiskUnsupported if said.folder().is_some() => {
            disk::not_made(host, said.folder().unwrap_or_default())
        }
        Fault::DiskMissing
        | Fault::DiskDamaged
        | Fault::DiskUnreadable
        | Fault::DiskReadOnly
        | Fault::DiskCompressed
        | Fault::DiskEncrypted
        | Fault::DiskOfMovedApp
        | Fault::DiskInUse
        | Fault::DiskMisplaced
        | Fault::DiskUnsupported => disk::finding(failure.fault, &disk),
        Fault::NoVirtualDisks => virtual_disks::finding(host),
        Fault::Plugin => windows::plugin(&said.text, failure.code),
        Fault::AccessDenied => disk::access_denied(host, &disk, failure),
        Fault::FileOfWsl => files::damaged(host, failure.file),
        Fault::Download => return setup::download(host, &said.text, said.is_list()),
        Fault::Installer => return setup::installer(host, &said.text),
        Fault::ServiceMissing => setup::service_missing(host),
        Fault::SystemAccount => setup::other_account("the account SYSTEM"),
        Fault::Network => network::finding(host, &said.text, failure.code),
        Fault::Timeout => machine::timeout(host, failure.code, &disk),
        Fault::Gpu
        | Fault::Stuck
        | Fault::Crashed
        | Fault::Memory
        | Fault::CustomKernel
        | Fault::Logon
        | Fault::Unsigned
        | Fault::Refused
        | Fault::ServiceSilent
        | Fault::ServiceCrashes
        | Fault::Winsock
        | Fault::Nested
        | Fault::Launcher
        | Fault::Other => machine::finding(host, failure),
    };
    seen(finding, failure)
}

fn seen(finding: Finding, failure: &Failure<'_>) -> Finding {
    match failure.code {
        "" => finding,
        code if finding.evidence.iter().any(|line| line.contains(code)) => finding,
        code => finding.seen(format!("wsl.exe reports {code}")),
    }
}
