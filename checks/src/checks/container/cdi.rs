//! Whether the specification by which containers get their GPUs (CDI) fits the driver. It lists files of the
//! driver by full path and device files by number, both of which change: with another driver, after a restart
//! of the machine, or in WSL with every driver of Windows.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState, Version, library_version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::restart::restart_container;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do containers get the files of the driver that is running?",
    reports: &["container.cdi-stale"],
    preflight: true,
    run,
};

/// Where specifications are; the second is written anew at each start.
pub(super) const FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];
const UVM: &str = "/dev/nvidia-uvm";
/// Where WSL shows the packages of Windows drivers.
const WINDOWS_DRIVERS: &str = "/usr/lib/wsl/drivers";

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || intent.cpu {
        return Ok(Vec::new());
    }
    if host.is_container() {
        return Ok(wrong_device(host).into_iter().collect());
    }
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    for folder in FOLDERS {
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        let mut specifications =
            names.iter().filter(|name| name.ends_with(".yaml") || name.ends_with(".json"));
        let stale = specifications.find_map(|name| {
            let file = format!("{folder}/{name}");
            let text = host.text(&file).ok().flatten()?;
            Some((stale(host, &text)?, file))
        });
        if let Some((why, file)) = stale {
            let title = format!("{file}, from which containers get the GPUs, is out of date: {why}");
            // A run outside containers does not read it.
            let finding = Finding::new("container.cdi-stale", title).status(Status::Info);
            let finding = if why.contains("lacks") {
                finding
                    .because(
                        "it was written before the module nvidia-uvm was loaded; in containers nvidia-smi works, and CUDA fails with error 999",
                    )
                    .remedy(
                        "write it again, now that the module is loaded, let the module be loaded whenever the machine starts, and restart the \
                         containers",
                    )
                    .command("echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf")
            } else {
                finding
            };
            return Ok(vec![finding.command(format!("sudo nvidia-ctk cdi generate --output={file}"))]);
        }
    }
    Ok(Vec::new())
}

/// What a specification names that this system does not have.
fn stale(host: &Host, text: &str) -> Option<String> {
    if !text.contains("nvidia.com/gpu") {
        return None;
    }
    if host.is_wsl2().unwrap_or(false) {
        let there = host.folder(WINDOWS_DRIVERS).ok().flatten()?;
        let package =
            |line: &str| Some(line.split_once("/wsl/drivers/")?.1.split(['/', '"']).next()?.to_owned());
        let old = text.lines().filter_map(package).find(|package| !there.contains(package))?;
        return Some(format!("it names the Windows driver {old}, which is no longer there"));
    }
    let running = host.driver_module_version().ok().flatten()?;
    let versions: Vec<Version> = text
        .lines()
        .filter_map(|line| library_version(line.trim().trim_end_matches(['"', ','])))
        .filter_map(|version| Version::find(&version))
        // Libraries of the driver have its version; others have their own.
        .filter(|version| version.major() >= 300)
        .collect();
    if let Some(old) = versions.first().filter(|_| !versions.contains(&running)) {
        return Some(format!("it names files of driver {old}, but {running} is running"));
    }
    if let Some(node) = lost_node(host, text) {
        return Some(format!(
            "it names {node}, which does not exist: the cards are numbered differently now"
        ));
    }
    let given = host.major_of_driver("nvidia-uvm")?;
    // Written before the module was loaded, as at the start of the machine. Libraries alone are for other purposes.
    let has = |path: &str| text.lines().any(|line| line.trim_end_matches(['"', ',', ' ']).ends_with(path));
    if has("/dev/nvidiactl") && !has(UVM) {
        return Some(format!("it lacks CUDA's device file {UVM}"));
    }
    let named = major_in(text)?;
    (named != given)
        .then(|| format!("it gives {UVM} the number {named}, but the kernel gave the driver {given}"))
}

/// A device file of graphics that does not exist. Its number depends on the order in which drivers start; Podman and Docker
/// start no container for a specification that names one.
fn lost_node(host: &Host, text: &str) -> Option<String> {
    let paths = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("- ").trim_end_matches(',');
        let (key, path) = line.split_once(':')?;
        let path = path.trim().trim_matches('"');
        (key.trim_matches('"') == "path" && path.starts_with("/dev/dri/")).then(|| path.to_owned())
    });
    paths.into_iter().find(|path| host.exists(path) == Ok(false))
}

/// `path: /dev/nvidia-uvm`, followed by `major: 510`, or the reverse.
fn major_in(text: &str) -> Option<u32> {
    let lines: Vec<&str> = text.lines().map(|line| line.trim().trim_start_matches("- ")).collect();
    let at = lines.iter().position(|line| line.starts_with("path:") && line.trim_end().ends_with(UVM))?;
    let near = lines.iter().skip(at.saturating_sub(4)).take(9);
    near.filter_map(|line| line.strip_prefix("major:")?.trim().parse().ok()).next()
}

/// A container whose device file leads to another driver: NVML answers without it, and CUDA does not start.
fn wrong_device(host: &Host) -> Option<Finding> {
    let (named, given) = (host.device_major(UVM)?, host.major_of_driver("nvidia-uvm")?);
    if named == given {
        return None;
    }
    let title = format!(
        "{UVM} in this container has the number {named}, but the kernel gave the driver {given}: CUDA does not start"
    );
    let finding = Finding::new("container.cdi-stale", title)
        .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml  # on the host");
    Some(restart_container(host, finding))
}
