//! Whether NVIDIA Fabric Manager has set up the GPUs where NVSwitch connects them. Without it nvidia-smi shows all
//! GPUs, but CUDA does not start on any (pytorch#35710). From Hopper on each GPU tells how far that is; before, only the
//! service does. In containers and in virtual machines with a part of a board this is the host's responsibility.

use std::collections::BTreeMap;

use crate::checks::{Answer, Check};
use crate::facts::{Fact, Family, Gpu, Host, NvmlState, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::service;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Has Fabric Manager set up the GPUs where NVSwitch connects them?",
    reports: &["gpu.fabric-manager"],
    preflight: true,
    run,
};

const DEVICES: &str = "/sys/bus/pci/devices";
pub(super) const SERVICE: &str = "nvidia-fabricmanager";
/// Where packages install the service.
const UNITS: [&str; 2] = [
    "/usr/lib/systemd/system/nvidia-fabricmanager.service",
    "/lib/systemd/system/nvidia-fabricmanager.service",
];
/// Modules that do not tell the state of a fabric: those before Hopper, and one that is a machine of its own.
const SILENT: [&str; 4] = ["SXM2", "SXM3", "SXM4", "GH200"];
/// Cards whose switches are InfiniBand devices, which a subnet manager has to set up first.
const OVER_INFINIBAND: [&str; 2] = ["B200", "B300"];
/// The state of a card that is set up.
const COMPLETED: &str = "Completed";
/// Seconds that the service needs after the machine was started.
const STARTS: f64 = 180.0;

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || !super::is_native_linux(host) || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    if let Some((gpu, state)) = unready(host, &gpus) {
        return Ok(vec![not_set_up(host, gpu, &state)]);
    }
    if host.is_container()
        // NVSwitch connects the modules of a server board, never a single card.
        || host.gpus()?.len() < 2
        || host.gpus()?.iter().any(|gpu| super::is_of_grace(&gpu.name().unwrap_or_default()))
        || !has_switch(host)?
    {
        return Ok(Vec::new());
    }
    // Without systemd the state is unknown.
    let Some(state) = service_state(host)? else { return Ok(Vec::new()) };
    if !matches!(state.as_str(), "inactive" | "failed" | "unknown") {
        return Ok(Vec::new());
    }
    let title = "NVSwitch connects the GPUs, but NVIDIA Fabric Manager is not running: CUDA will not start";
    let finding =
        Finding::new("gpu.fabric-manager", title).seen(format!("systemctl is-active {SERVICE}: {state}"));
    Ok(vec![with_service(host, finding, &state)])
}

fn service_state(host: &Host) -> Fact<Option<String>> {
    Ok(host.command(&["systemctl", "is-active", SERVICE])?.map(|answer| answer.text().trim().to_owned()))
}

/// The finding with the way to get the service running.
fn with_service(host: &Host, finding: Finding, state: &str) -> Finding {
    if let Some((own, driver)) = other_version(host) {
        let finding = finding.seen(format!("Fabric Manager has version {own}, the driver {driver}"));
        let finding = finding.remedy(format!(
            "install Fabric Manager in exactly the driver's version, {driver}, and keep both from being updated alone"
        ));
        let finding = package_of(host, &driver).into_iter().fold(finding, Finding::command);
        return finding.command(service::restart(host, SERVICE));
    }
    let installed = if matches!(state, "failed" | "active") { Some(true) } else { is_installed(host) };
    let finding = match installed {
        Some(true) => finding,
        Some(false) => package(host).into_iter().fold(
            finding.remedy("install the service in the driver's version, and start it"),
            Finding::command,
        ),
        None => package(host).into_iter().fold(
            finding.remedy("install the service in the driver's version if it is missing, and start it"),
            Finding::command,
        ),
    };
    let finding = match state {
        "active" => finding.command(service::restart(host, SERVICE)),
        _ => finding.command(service::enable(host, SERVICE)),
    };
    match state {
        "failed" | "active" => finding.command(format!("journalctl -b -u {SERVICE}")),
        _ => finding,
    }
}

/// A card that is not set up, and the state that it tells.
fn unready<'a>(host: &Host, gpus: &'a [Gpu]) -> Option<(&'a Gpu, String)> {
    let has_just_started = || {
        let text = host.text("/proc/uptime").ok().flatten().unwrap_or_default();
        text.split_whitespace()
            .next()
            .and_then(|seconds| seconds.parse().ok())
            .is_some_and(|up: f64| up < STARTS)
    };
    let of_command = told(host, gpus);
    let state = |gpu: &Gpu| {
        let state = gpu.text("fabric_state").ok().or_else(|| Some(of_command.get(&gpu.index)?.0.clone()))?;
        let status = gpu.text("fabric_status").ok().or_else(|| Some(of_command.get(&gpu.index)?.1.clone()));
        let status = status.unwrap_or_default();
        is_unready(&state, &status).then(|| match status.as_str() {
            "" | "N/A" | "Success" => state.clone(),
            status => format!("{state}, {status}"),
        })
    };
    let found = gpus.iter().find_map(|gpu| Some((gpu, state(gpu)?)))?;
    (!has_just_started()).then_some(found)
}

/// What nvidia-smi says of a card: cards without NVSwitch have `N/A`.
fn is_unready(state: &str, status: &str) -> bool {
    match state.trim() {
        "In Progress" | "Not Started" => true,
        COMPLETED => !matches!(status.trim(), "" | "N/A" | "[N/A]" | "Success"),
        _ => false,
    }
}

/// Whether a card is one of a rack whose switches are in machines of their own.
fn is_of_rack(name: &str) -> bool {
    ["GB200", "GB300"].iter().any(|kind| name.contains(kind))
}

/// Whether a card is a module of a board whose switches add up for NCCL, by its name: Hopper and later.
pub(super) fn is_on_switches(gpu: &Gpu) -> bool {
    let is_silent = gpu.name().is_ok_and(|name| SILENT.iter().any(|word| name.contains(word)));
    gpu.is_module() && !is_silent
}

/// States and statuses by the numbers of cards. NVML's library for this program does not have the call, so that
/// nvidia-smi is asked, on servers with such cards alone.
fn told(host: &Host, gpus: &[Gpu]) -> BTreeMap<usize, (String, String)> {
    if host.is_recorded() {
        return host
            .recorded_texts("nvidia-smi")
            .iter()
            .filter_map(|text| under_heading(text))
            .take(1)
            .map(|told| (0, told))
            .collect();
    }
    let numbers: Vec<usize> = gpus.iter().filter(|gpu| is_on_switches(gpu)).map(|gpu| gpu.index).collect();
    if numbers.is_empty() {
        return BTreeMap::new();
    }
    // A service that does not run beside its switches is a finding without this question.
    let is_off = || matches!(service_state(host).ok().flatten().as_deref(), Some("inactive" | "failed"));
    if !host.is_container() && has_switch(host).unwrap_or(false) && is_off() {
        return BTreeMap::new();
    }
    // A board is set up as a whole, but one card alone can fail, or wait after a reset. Servers with such cards keep the
    // driver loaded; where it is not, the first card's second is enough.
    let is_loaded = gpus.iter().any(|gpu| gpu.flag("persistence") == Ok(true));
    let asked = if is_loaded { &numbers[..] } else { &numbers[..1] };
    let list = asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let query =
        ["nvidia-smi", "-i", &list, "--query-gpu=fabric.state,fabric.status", "--format=csv,noheader"];
    let text = host.command(&query).ok().flatten().map(|output| output.text()).unwrap_or_default();
    // An error has a line of its own, in the place of that card.
    let answers = asked.iter().copied().zip(text.lines().map(pair));
    answers.filter_map(|(index, answer)| Some((index, answer?))).collect()
}

/// The part of `nvidia-smi -q` below `Fabric`, as people cut it out with grep.
fn under_heading(text: &str) -> Option<(String, String)> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "Fabric").skip(1).take(4);
    let value =
        |line: &str, name: &str| Some(line.strip_prefix(name)?.trim().strip_prefix(':')?.trim().to_owned());
    let state = lines.find_map(|line| value(line, "State"))?;
    Some((state, lines.find_map(|line| value(line, "Status")).unwrap_or_default()))
}

/// `In Progress, N/A`
fn pair(line: &str) -> Option<(String, String)> {
    let (state, status) = line.split_once(',')?;
    Some((state.trim().to_owned(), status.trim().to_owned()))
}

/// A card on which CUDA does not start, whatever the service says.
fn not_set_up(host: &Host, gpu: &Gpu, state: &str) -> Finding {
    let label = super::label(gpu);
    let title = format!("{label} is not set up by NVIDIA Fabric Manager: CUDA will not start on it");
    if state.starts_with(COMPLETED) {
        return refused(host, gpu, state);
    }
    let finding = Finding::new("gpu.fabric-manager", title).seen(format!("Fabric State: {state}"));
    if is_of_rack(&gpu.name().unwrap_or_default()) {
        return finding
            .because("the GPUs of such a rack are set up by Fabric Manager on its switch trays, not on the machine itself")
            .remedy(
                "tell the administrator of the rack: Fabric Manager there (NMX-C) has to set up this GPU, and the service \
                 nvidia-imex has to run on each of its machines",
            );
    }
    if host.is_container() || host.job().is_some() {
        return finding.remedy(
            "tell the administrator of the machine: its Fabric Manager has to run in the driver's version and set up this GPU \
             (`nvidia-smi -q` shows `Fabric State: Completed` then); meanwhile, start the run on another node",
        );
    }
    let has_switch = has_switch(host).unwrap_or(false);
    if host.is_virtual_machine() && !has_switch {
        let single = host.gpus().is_ok_and(|gpus| gpus.len() == 1);
        let finding = finding.because(
            "this virtual machine has a part of a server board, whose switches stay with the host; until the host's Fabric \
             Manager has set up the part, every CUDA program fails with `system not yet initialized` (error 802)",
        );
        let text = "tell the provider or the administrator of the host: Fabric Manager there has to run in shared NVSwitch \
                    mode (FABRIC_MODE=1) and activate the partition with these GPUs before the virtual machine starts; \
                    meanwhile, stop this one and start it on another host";
        return if single {
            finding
                .remedy(format!("{text}. A single GPU also works alone, without NVLink: set the driver's option and restart"))
                .command(
                    "echo 'options nvidia NVreg_NvLinkDisable=1' | sudo tee /etc/modprobe.d/nvidia-nvlink.conf",
                )
                .command("sudo reboot")
        } else {
            finding.remedy(text)
        };
    }
    let name = gpu.name().unwrap_or_default();
    if OVER_INFINIBAND.iter().any(|word| name.contains(word)) && other_version(host).is_none() {
        return over_infiniband(host, finding);
    }
    let state = service_state(host).ok().flatten().unwrap_or_default();
    let finding = match state.as_str() {
        "" => finding,
        state => finding.seen(format!("systemctl is-active {SERVICE}: {state}")),
    };
    if state == "active" {
        return with_service(host, finding, &state).remedy(
            "restart the service, whose version must be the driver's, and look at its log; if the state stays as it is, restart the \
             machine",
        );
    }
    with_service(host, finding, &state)
}

/// A card that took part in the setup, but got no way to the others: CUDA starts, and traffic between GPUs is slow or fails.
fn refused(host: &Host, gpu: &Gpu, state: &str) -> Finding {
    let title = format!("NVLink's fabric does not serve {}: {state}", super::label(gpu));
    let finding = Finding::new("gpu.fabric-manager", title).status(Status::Warning).because(
        "Fabric Manager has registered this GPU, but not connected it with the others: traffic between GPUs takes the PCIe bus, many \
         times slower, or NCCL fails",
    );
    if host.is_container() || host.job().is_some() || host.is_virtual_machine() {
        return finding.remedy(
            "tell the administrator of the machine, who can reset its GPUs or restart it; meanwhile, start the run on another node",
        );
    }
    finding
        .remedy("stop the programs on all GPUs and restart the machine, so that Fabric Manager sets up all of them anew")
        .command("sudo reboot")
}

/// The switches of these boards are InfiniBand devices: NVLink's subnet manager has to run as well.
fn over_infiniband(host: &Host, finding: Finding) -> Finding {
    let finding = finding.remedy(
        "install Fabric Manager in the driver's version together with NVLink's subnet manager (nvlsm), load the kernel modules \
         with which it reaches the switches, and restart the service; Ubuntu's kernels for clouds have these modules in \
         linux-modules-extra",
    );
    let kernel = host.kernel_release().unwrap_or_default();
    let branch = host.driver_version().map_or(0, |version| version.major());
    let is_ubuntu = matches!(host.family(), Some(Family::Ubuntu | Family::OnUbuntu));
    let extra = match is_ubuntu && !kernel.is_empty() {
        true => format!(" linux-modules-extra-{kernel}"),
        false => String::new(),
    };
    let package = host.package_command([
        &format!("sudo apt install nvidia-fabricmanager-{branch} nvlsm{extra}"),
        "sudo dnf install nvidia-fabric-manager nvlsm",
        "sudo zypper install nvidia-fabric-manager nvlsm",
        "",
    ]);
    let finding = package.into_iter().filter(|command| !command.is_empty()).fold(finding, Finding::command);
    finding
        .command("sudo modprobe -a ib_umad mlx5_ib")
        .command("echo ib_umad | sudo tee /etc/modules-load.d/ib_umad.conf")
        .command(service::restart(host, SERVICE))
        .command(format!("journalctl -b -u {SERVICE}"))
}

/// The versions of Fabric Manager and of the driver's module, if they differ.
fn other_version(host: &Host) -> Option<(Version, Version)> {
    let driver = host.driver_module_version().ok().flatten().or_else(|| host.driver_version().ok())?;
    let own = fabric_manager_version(host)?;
    // NVML's version may lack the last of the numbers.
    (!own.to_string().starts_with(&driver.to_string())).then_some((own, driver))
}

fn fabric_manager_version(host: &Host) -> Option<Version> {
    let of_program = host.command(&["nv-fabricmanager", "--version"]).ok().flatten();
    if let Some(version) = of_program.and_then(|output| Version::find(&output.text())) {
        return Some(version);
    }
    let of_packages = ["dpkg", "rpm", "apt", "dnf"].iter().flat_map(|program| host.recorded_outputs(program));
    let of_log = host.recorded_outputs("journalctl").into_iter().chain(host.recorded_outputs("systemctl"));
    of_packages.chain(of_log).find_map(|(_, output)| output.text().lines().find_map(of_line))
}

/// `ii  nvidia-fabricmanager-535  535.183.01-1  amd64`, `nvidia-fabric-manager-535.183.01-1.x86_64`, or the log of the
/// service: `fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version 535.216.03`.
fn of_line(line: &str) -> Option<Version> {
    if let Some((_, rest)) = line.split_once("driver interface version ") {
        return Version::find(rest.split_whitespace().next()?);
    }
    let is_removed = line.starts_with("rc ") || line.starts_with("un ");
    let at = ["nvidia-fabricmanager", "nvidia-fabric-manager"].iter().find_map(|name| {
        let (_, rest) = line.split_once(name)?;
        Some(rest)
    })?;
    // The number of the branch is a part of the name.
    let words = at.split(|letter: char| letter.is_whitespace() || letter == '-' || letter == '/');
    let mut versions =
        words.filter(|word| word.matches('.').count() >= 1 && word.starts_with(|c: char| c.is_ascii_digit()));
    versions.next().filter(|_| !is_removed).and_then(Version::find)
}

/// Whether NVSwitch devices exist, by the driver's device file or by their PCI class: an NVIDIA bridge
/// of class 0680 (other).
pub(super) fn has_switch(host: &Host) -> Fact<bool> {
    if host.exists("/dev/nvidia-nvswitch0") == Ok(true)
        || host.exists("/dev/nvidia-nvswitchctl") == Ok(true)
        || !host.kernel_lines(&["nvidia-nvswitch"]).is_empty()
    {
        return Ok(true);
    }
    let devices = match host.folder(DEVICES) {
        Ok(devices) => devices.unwrap_or_default(),
        // If the bus is unknown, the names of the cards show that there are none.
        Err(why) => return if may_have_switch(host)? { Err(why) } else { Ok(false) },
    };
    let file = |device: &str, name: &str| {
        host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten().unwrap_or_default()
    };
    Ok(devices.iter().any(|device| {
        file(device, "vendor").trim() == "0x10de" && file(device, "class").trim().starts_with("0x0680")
    }))
}

/// GPU models on boards with NVSwitch.
fn may_have_switch(host: &Host) -> Fact<bool> {
    let gpus = host.gpus()?;
    Ok(gpus.len() >= 8 && gpus.iter().all(Gpu::is_module))
}

fn is_installed(host: &Host) -> Option<bool> {
    let found: Vec<bool> = UNITS.iter().filter_map(|unit| host.exists(unit).ok()).collect();
    (!found.is_empty()).then(|| found.contains(&true))
}

/// The command that installs it: on Ubuntu and Debian the package name contains the driver branch.
fn package(host: &Host) -> Option<String> {
    let branch = host.driver_version().ok()?.major();
    host.package_command([
        &format!("sudo apt install nvidia-fabricmanager-{branch}"),
        "sudo dnf install nvidia-fabric-manager",
        "sudo zypper install nvidia-fabric-manager",
        "",
    ])
    .filter(|command| !command.is_empty())
}

/// The command that installs it in one version.
fn package_of(host: &Host, version: &Version) -> Option<String> {
    let branch = version.major();
    host.package_command([
        &format!("sudo apt install --allow-downgrades 'nvidia-fabricmanager-{branch}={version}-*'"),
        &format!("sudo dnf install nvidia-fabric-manager-{version}"),
        &format!("sudo zypper install --oldpackage nvidia-fabric-manager={version}"),
        "",
    ])
    .filter(|command| !command.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_states_of_cards_without_switches_are_no_problem() {
        assert!(is_unready("In Progress", "N/A") && is_unready("Not Started", ""));
        assert!(is_unready("Completed", "Insufficient Permissions"));
        assert!(
            !is_unready("Completed", "Success") && !is_unready("N/A", "N/A") && !is_unready("Completed", "")
        );
        let part = "    Fabric\n        State                    : In Progress\n        Status                   : N/A\n";
        assert_eq!(under_heading(part), Some(("In Progress".to_owned(), "N/A".to_owned())));
        assert_eq!(pair("In Progress, N/A"), Some(("In Progress".to_owned(), "N/A".to_owned())));
    }

    #[test]
    fn packages_and_the_log_tell_the_version() {
        let version = |line: &str| of_line(line).map(|version| version.to_string());
        for line in [
            "ii  nvidia-fabricmanager-535  535.183.01-0ubuntu1  amd64  Fabric Manager",
            "nvidia-fabric-manager-535.183.01-1.x86_64",
            "nv-fabricmanager[1]: fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver \
             version 535.216.03. Please update with matching NVIDIA driver package.",
        ] {
            assert_eq!(version(line).as_deref(), Some("535.183.01"), "{line}");
        }
        assert_eq!(version("rc  nvidia-fabricmanager-535  535.183.01-0ubuntu1  amd64"), None);
        assert_eq!(version("ii  nvidia-driver-535  535.183.01-0ubuntu1  amd64"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(nvidia-fabric|manager|-|535|\\.|driver interface version |, |\\PC){0,12}") {
            let _ = (of_line(&line), pair(&line), under_heading(&line));
        }
    }
}
