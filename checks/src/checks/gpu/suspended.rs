//! What a machine needs that has been asleep, and how the driver saves the cards' memory the next time. Drivers before 595 do
//! it by services; newer ones with the open module are told by the kernel, and may come without these services.

use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::remedies::fit::is_without_rights;
use crate::remedies::initramfs;

/// Where a package or an administrator puts the service.
const UNITS: [&str; 3] = [
    "/usr/lib/systemd/system/nvidia-suspend.service",
    "/lib/systemd/system/nvidia-suspend.service",
    "/etc/systemd/system/nvidia-suspend.service",
];
const PARAMS: &str = "/proc/driver/nvidia/params";
/// What the driver logs when it is to save memory and its services have not told it to.
const WITHOUT_SERVICES: &str = "System Power Management attempted without driver procfs suspend interface";
const RELOAD: &str = "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm";
const PRESERVE: &str = "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1 NVreg_TemporaryFilePath=/var/tmp' | sudo tee /etc/modprobe.d/nvidia-suspend.conf";
const NOTIFIERS: &str =
    "echo 'options nvidia NVreg_UseKernelSuspendNotifiers=1' | sudo tee /etc/modprobe.d/nvidia-suspend.conf";
/// The branch of the driver since which the kernel tells it.
const SINCE: u32 = 595;

/// Who saves the cards' memory.
enum Saver {
    /// The driver, as it is set.
    Driver,
    /// The driver, if an option says so.
    Option,
    /// The services of the driver, which are there or not known.
    Services,
    /// The services, which no package has installed.
    MissingServices,
}

/// The finding that the machine slept, with the line that says so.
pub(super) fn finding(host: &Host, line: &str) -> Finding {
    let title = "this machine has been suspended since it started, which can break CUDA although \
                 nvidia-smi works";
    let finding = Finding::new("gpu.suspended", title).seen(line);
    let params = host.text(PARAMS).ok().flatten().unwrap_or_default();
    let is = |line: &str| params.lines().any(|found| found.trim() == line);
    let saver = saver(host, is("UseKernelSuspendNotifiers: 1"));
    // When an image of hibernation is restored, the services cannot have run yet.
    let unasked = host.kernel_lines(&[WITHOUT_SERVICES]).pop();
    let unasked = unasked.filter(|_| host.kernel_lines(&["nv_pmops_freeze"]).is_empty());
    let denied = denied(host);
    let finding = unasked.iter().chain(&denied).cloned().fold(finding, Finding::seen);
    let finding = with_words(host, finding, &words(host, &saver, denied.as_deref())).command(RELOAD);
    if let Some(denied) = denied {
        return allowed(host, finding, &denied);
    }
    if host.family() == Some(Family::NixOs) && !matches!(saver, Saver::Driver) {
        return finding
            .remedy(format!(
                "nothing while CUDA works; {}; so that it does not happen again, set `hardware.nvidia.powerManagement.enable = true;` in \
                 configuration.nix, which saves the GPU memory before suspend",
                reloading(host)
            ))
            .command("sudo nixos-rebuild boot");
    }
    match saver {
        Saver::Driver => finding,
        Saver::Option => {
            let finding = finding.command(NOTIFIERS);
            initramfs::rebuild(host).into_iter().fold(finding, Finding::command)
        }
        Saver::Services | Saver::MissingServices => {
            // Without this option, the services have nothing to save.
            let finding = match is("PreserveVideoMemoryAllocations: 0") {
                true => finding.command(PRESERVE),
                false => finding,
            };
            // NVIDIA brings the services that save and restore the cards' memory for systemd only.
            if !host.has_systemd() {
                return finding;
            }
            let package = package(host).filter(|_| matches!(saver, Saver::MissingServices));
            let finding = package.into_iter().fold(finding, Finding::command);
            let finding = match unasked.is_some() {
                true => {
                    finding.command("sudo systemctl unmask nvidia-suspend nvidia-resume nvidia-hibernate")
                }
                false => finding,
            };
            finding.command("sudo systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate")
        }
    }
}

fn saver(host: &Host, is_told: bool) -> Saver {
    if is_told {
        return Saver::Driver;
    }
    if host.is_container() || !UNITS.iter().all(|unit| host.exists(unit) == Ok(false)) {
        return Saver::Services;
    }
    let is_new = host.driver_version().is_ok_and(|version| version.major() >= SINCE);
    let module = host.text("/proc/driver/nvidia/version").ok().flatten().unwrap_or_default();
    if is_new && module.contains("Open Kernel Module") { Saver::Option } else { Saver::MissingServices }
}

fn words(host: &Host, saver: &Saver, denied: Option<&str>) -> String {
    let reload = reloading(host);
    match (denied, saver) {
        (Some(_), _) => format!(
            "{reload}; SELinux forbids the driver to save the GPU memory before suspend, so update its policy and the driver; until \
             then, allow it"
        ),
        (None, Saver::Driver) => format!(
            "{reload}, or restart the machine; this driver saves the GPU memory itself (UseKernelSuspendNotifiers), so there is no \
             service to switch on; keep the machine awake while a run goes on"
        ),
        (None, Saver::Option) => format!(
            "{reload}; so that it does not happen again, let this driver save the GPU memory itself, as it can without services since \
             branch 595: the option NVreg_UseKernelSuspendNotifiers=1 does this from the next start on"
        ),
        (None, Saver::Services | Saver::MissingServices) => format!(
            "{reload}; so that it does not happen again, save the GPU memory before suspend and restore it afterwards: the driver's \
             option PreserveVideoMemoryAllocations together with NVIDIA's services for suspend, resume and hibernation does this from \
             the next start on (in /var/tmp, which needs as much room as the cards have memory)"
        ),
    }
}

fn reloading(host: &Host) -> String {
    let place = if host.is_container() && !is_without_rights(host) { "on the host " } else { "" };
    format!(
        "if CUDA reports `CUDA unknown error`, {place}stop the programs and containers that use the GPU (`sudo fuser -v \
         /dev/nvidia-uvm` shows them) and reload the module"
    )
}

fn with_words(host: &Host, finding: Finding, then: &str) -> Finding {
    if is_without_rights(host) {
        finding.remedy("nothing while CUDA works").machine_remedy(then)
    } else {
        finding.remedy(format!("nothing while CUDA works; {then}"))
    }
}

/// The package with the services, if it is not that of the driver.
fn package(host: &Host) -> Option<String> {
    match host.family()? {
        _ if host.is_image() => None,
        Family::Fedora => Some("sudo dnf install xorg-x11-drv-nvidia-power".to_owned()),
        Family::Debian => Some("sudo apt install nvidia-suspend-common".to_owned()),
        Family::Ubuntu | Family::OnUbuntu => {
            let branch = host.driver_version().ok()?.major();
            Some(format!("sudo apt install nvidia-kernel-common-{branch}"))
        }
        _ => None,
    }
}

/// `AVC avc:  denied  { write open } for  pid=… comm="systemd-sleep" path=… tcontext=system_u:object_r:tmpfs_t:s0`. A denial of
/// anything but writing is harmless.
fn denied(host: &Host) -> Option<String> {
    let mut lines = host.kernel_lines(&["avc:  denied", "avc: denied"]);
    lines.extend(host.recorded_texts("ausearch").iter().flat_map(|text| {
        text.lines()
            .filter(|line| line.contains("denied"))
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    }));
    let is_of_sleep =
        |line: &String| {
            ["comm=\"systemd-sleep\"", "comm=\"nvidia-sleep"].iter().any(|words| line.contains(words))
                && line.split('{').nth(1).and_then(|rest| rest.split('}').next()).is_some_and(|what| {
                    what.split_whitespace().any(|word| matches!(word, "write" | "create"))
                })
        };
    lines.into_iter().rfind(is_of_sleep)
}

/// A driver of 615 saves to a file in memory, which the policies know less than one in /var/tmp.
fn allowed(host: &Host, finding: Finding, denied: &str) -> Finding {
    let finding = match host.family() {
        Some(Family::Fedora | Family::RedHat) if !host.is_image() => {
            finding.command("sudo dnf upgrade --refresh 'selinux-policy*' '*nvidia*'")
        }
        _ => finding,
    };
    if denied.contains("tmpfs_t") {
        return finding.command("echo 'options nvidia NVreg_TemporaryFilePath=/var/tmp' | sudo tee /etc/modprobe.d/nvidia-suspend.conf");
    }
    finding.command(
        "sudo ausearch -m avc -c systemd-sleep --raw | audit2allow -M nvidia-sleep && sudo semodule -i nvidia-sleep.pp",
    )
}
