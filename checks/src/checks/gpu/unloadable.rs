//! Whether the kernel refuses a module of the driver that is built, because of other modules: it needs functions that are
//! not there, or it was built for another build of the kernel.

use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::remedies::kernel_headers::{devel_package, of_apt};
use crate::remedies::restart::restart;
use crate::remedies::{arch, upgrade};

/// What is wrong with the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Another module that it calls is not installed.
    Needs,
    /// It was built for another kernel.
    Built,
}

/// The finding about a module that the kernel refused.
pub(super) fn find(host: &Host) -> Option<Finding> {
    let log = host.kernel_log().ok()?;
    let faults: Vec<(Fault, &str)> =
        log.lines().filter_map(|line| Some((fault(line)?, line.trim()))).collect();
    // A symbol of another version is an unknown one as well.
    let is_built = faults.iter().any(|(fault, _)| *fault == Fault::Built);
    let kind = if is_built { Fault::Built } else { faults.first()?.0 };
    let lines = faults.into_iter().filter(|(fault, _)| *fault == kind).map(|(_, line)| line.to_owned());
    let title = match kind {
        Fault::Needs => {
            "the kernel does not load the NVIDIA driver's module, which calls modules that are not installed"
        }
        Fault::Built => {
            "the kernel does not load the NVIDIA driver's module, which was built for another kernel"
        }
    };
    let finding = lines.take(2).fold(Finding::new("gpu.driver-not-loaded", title), Finding::seen);
    Some(match kind {
        Fault::Needs => with_others(host, finding),
        Fault::Built => built_again(host, finding),
    })
}

/// `nvidia: Unknown symbol drm_gem_object_free (err -2)`, `nvidia: disagrees about version of symbol module_layout`, `nvidia:
/// version magic '6.1.0 …' should be '6.8.0 …'`, or what modprobe prints for the same errors.
fn fault(line: &str) -> Option<Fault> {
    if line.contains("could not insert 'nvidia'") || line.contains("could not insert 'nvidia_current'") {
        return match () {
            () if line.contains("Unknown symbol in module") => Some(Fault::Needs),
            () if line.contains("Exec format error") => Some(Fault::Built),
            () => None,
        };
    }
    let (before, after) = line.split_once("nvidia: ")?;
    // After the time, the name of the machine, or nothing.
    if !before.is_empty() && !before.ends_with(' ') {
        return None;
    }
    match () {
        () if after.starts_with("Unknown symbol ") => Some(Fault::Needs),
        () if after.starts_with("disagrees about version of symbol ") => Some(Fault::Built),
        () if after.starts_with("version magic ") => Some(Fault::Built),
        () => None,
    }
}

/// Small kernels, for clouds and minimal installations, have graphics and other modules in packages of their own.
fn with_others(host: &Host, finding: Finding) -> Finding {
    let kernel = host.kernel_release().unwrap_or_default();
    let is_of_cloud = kernel.contains("-cloud-");
    let finding = finding.because(
        "the module calls others of the kernel (drm, video, ipmi, …), which this system does not have: minimal systems and kernels \
         for clouds leave them out",
    );
    let package = match host.family() {
        Some(Family::Debian) if is_of_cloud => {
            let arch = if kernel.ends_with("arm64") { "arm64" } else { "amd64" };
            let finding = finding
                .remedy(
                    "install Debian's ordinary kernel, remove those for clouds, which GRUB would start again (answer No when asked \
                     whether to abort the removal), and restart",
                )
                .command(format!("sudo apt install linux-image-{arch} linux-headers-{arch}"))
                .command(format!(
                    "sudo apt purge linux-image-cloud-{arch} 'linux-image-*-cloud-{arch}'"
                ));
            return restart(host, finding);
        }
        Some(Family::Ubuntu | Family::OnUbuntu) => format!("sudo apt install linux-modules-extra-{kernel}"),
        Some(Family::Fedora | Family::RedHat | Family::Amazon) if !host.is_image() => {
            let extra = devel_package(host, &kernel, &kernel).replace("-devel-", "-modules-extra-");
            match host.family() {
                Some(Family::Amazon) => format!("sudo dnf install {extra}"),
                _ => format!("sudo dnf install {} {extra}", extra.replace("-modules-extra-", "-modules-")),
            }
        }
        Some(Family::Arch) => {
            let package = arch::package(host, &kernel);
            let finding = finding
                .remedy("install the package of this kernel again, which has all of its modules, and restart")
                .command(format!("sudo pacman -Syu {package}"));
            return restart(host, finding);
        }
        _ => {
            return finding.remedy(
                "install the package of this kernel with all of its modules (drm and video are among them), run `sudo depmod -a`, and load \
                 the module again",
            );
        }
    };
    finding
        .remedy("install the rest of this kernel's modules, and load the driver's module again")
        .command(package)
        .command("sudo depmod -a")
        .command("sudo modprobe nvidia")
}

/// The command that installs the headers of this kernel, also if others are there under its name.
fn headers(host: &Host, kernel: &str) -> Option<String> {
    Some(match host.family()? {
        Family::Ubuntu | Family::OnUbuntu | Family::Debian => {
            format!("sudo apt install --reinstall {}", of_apt(kernel))
        }
        Family::Fedora | Family::RedHat | Family::Amazon if !host.is_image() => {
            format!("sudo dnf install {}", devel_package(host, kernel, kernel))
        }
        _ => return None,
    })
}

fn built_again(host: &Host, finding: Finding) -> Finding {
    let kernel = host.kernel_release().unwrap_or_default();
    let finding = finding.because(
        "the headers that it was built with are of another build of the kernel than the one that runs, or its package is for another kernel",
    );
    let status =
        host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text()).unwrap_or_default();
    let module = status.lines().find_map(|line| {
        let (name, version) = line.trim().split([',', ':']).next()?.trim().split_once('/')?;
        name.starts_with("nvidia").then(|| format!("{name}/{version}"))
    });
    match module {
        Some(module) => headers(host, &kernel)
            .into_iter()
            .fold(finding, Finding::command)
            .remedy("install the headers of the kernel that runs, build the module again for it, and load it")
            .command(format!("sudo dkms build --force {module} -k {kernel}"))
            .command(format!("sudo dkms install --force {module} -k {kernel}"))
            .command("sudo modprobe nvidia"),
        None => {
            let finding = finding.remedy(
                "update the kernel and the driver's packages together, so that they fit, and restart",
            );
            let finding = upgrade::packages(host).into_iter().fold(finding, Finding::command);
            restart(host, finding)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_refused_module_is_known_by_its_line() {
        for (line, expected) in [
            ("[    5.1] nvidia: Unknown symbol drm_gem_object_free (err -2)", Some(Fault::Needs)),
            ("nvidia: disagrees about version of symbol module_layout", Some(Fault::Built)),
            (
                "Nov 26 08:10:58 host kernel: nvidia: version magic '6.1.0 SMP' should be '6.8.0 SMP'",
                Some(Fault::Built),
            ),
            (
                "modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module, or unknown parameter (see dmesg)",
                Some(Fault::Needs),
            ),
            ("modprobe: ERROR: could not insert 'nvidia': Exec format error", Some(Fault::Built)),
            ("modprobe: ERROR: could not insert 'nvidia': No such device", None),
            ("[ 5.1] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)", None),
            ("[ 5.1] nvidia_fs: disagrees about version of symbol nvidia_p2p_get_pages", None),
            ("[ 5.1] nvidia: module license 'NVIDIA' taints kernel.", None),
        ] {
            assert_eq!(fault(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(nvidia: | |Unknown symbol |version magic |could not insert 'nvidia'|Exec format error|\\PC){0,12}") {
            let _ = fault(&line);
        }
    }
}
