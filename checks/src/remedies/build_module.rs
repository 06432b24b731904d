//! The commands that build NVIDIA's kernel module for the running kernel, by the way in which it was
//! installed: dkms, Fedora's akmods, Ubuntu's packages for each kernel, openSUSE's packages, or NVIDIA's
//! installer.

use super::kernel_headers::devel_package;
use super::{arch, upgrade};
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// How the kernel module came to this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Built here by dkms.
    Dkms,
    /// Built here by Fedora's akmods.
    Akmods,
    /// A package for each kernel, as Ubuntu has.
    UbuntuPackage,
    /// A package of openSUSE, which several kernels share.
    SusePackage,
    /// A package of Arch for exactly one kernel, which is the one that runs.
    ArchPackage,
    /// The same, but another kernel runs: `linux-zen` instead of `linux`, say.
    ArchOtherKernel,
    /// NVIDIA's own installer, a file that ends in `.run`.
    Installer,
}

/// The finding that the module is missing for `kernel`, with the commands that build it.
pub(crate) fn build(host: &Host, finding: Finding, kernel: &str) -> Finding {
    // An update has removed the running kernel: nothing can be built for it, and nothing has to be.
    if host.exists(&format!("/lib/modules/{kernel}")) == Ok(false) {
        let finding = finding
            .because("an update has replaced the kernel that is running; its modules are no longer there")
            .remedy("restart the machine, which starts the new kernel");
        return super::restart::restart(host, finding);
    }
    if let Some(finding) = failed_build(host, finding.clone(), kernel) {
        return finding;
    }
    let headers = headers(host, kernel);
    let commands = match origin(host, kernel) {
        Origin::Akmods => vec![
            format!("sudo dnf install {}", devel_package(host, kernel, kernel)),
            format!("sudo akmods --force --kernels {kernel}"),
            "sudo modprobe nvidia".to_owned(),
        ],
        Origin::UbuntuPackage => {
            let library = host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next());
            let version = library.and_then(|library| library.version);
            let branch = version.as_deref().and_then(|version| version.split('.').next()).unwrap_or("580");
            vec![
                format!("sudo apt install linux-modules-nvidia-{branch}-open-{kernel}"),
                "sudo modprobe nvidia".to_owned(),
            ]
        }
        Origin::SusePackage => upgrade::packages(host)
            .into_iter()
            .map(ToOwned::to_owned)
            .chain(["sudo modprobe nvidia".to_owned()])
            .collect(),
        Origin::ArchPackage => {
            return super::restart::restart(
                host,
                finding
                    .remedy("update the whole system, so that the kernel and the module fit, and restart")
                    .command("sudo pacman -Syu"),
            );
        }
        Origin::ArchOtherKernel => return arch::for_this_kernel(host, finding, kernel),
        Origin::Installer => {
            return headers.into_iter().fold(
                finding.remedy(
                    "run NVIDIA's installer again, with --dkms so that it follows the next kernel; or \
                     remove it with `sudo nvidia-uninstall` and install your distribution's packages",
                ),
                Finding::command,
            );
        }
        // The upgrade may replace the kernel that runs, for which nothing can be built then.
        Origin::Dkms if host.family() == Some(Family::Arch) => {
            let finding = finding.remedy(
                "update the whole system together with the headers of this kernel, for which dkms then builds the \
                 module, and restart",
            );
            return super::restart::restart(host, headers.into_iter().fold(finding, Finding::command));
        }
        Origin::Dkms => headers
            .into_iter()
            .chain(["sudo dkms autoinstall".to_owned(), "sudo modprobe nvidia".to_owned()])
            .collect(),
    };
    commands.into_iter().fold(finding, Finding::command)
}

/// A build that dkms tried and that ended with an error of the compiler: the kernel is newer than the source of
/// the driver, and headers do not help.
fn failed_build(host: &Host, finding: Finding, kernel: &str) -> Option<Finding> {
    let status = host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text())?;
    let lines: Vec<&str> = status.lines().map(str::trim).filter(|line| line.starts_with("nvidia")).collect();
    let log = lines.iter().find_map(|line| {
        let (name, version) = line.split([',', ':']).next()?.trim().split_once('/')?;
        let file = format!("/var/lib/dkms/{name}/{version}/build/make.log");
        let text = host.text(&file).ok().flatten().filter(|text| text.contains(kernel))?;
        let error = text.lines().find(|line| line.contains(": error: "))?.trim().to_owned();
        Some((file, version.to_owned(), error))
    });
    let (file, version, error) = log?;
    // The kernel before, for which the module was built.
    let installed = lines.iter().find(|line| line.contains("installed"));
    let before = installed.and_then(|line| line.split(',').nth(1)).map(str::trim);
    let other =
        before.map_or("the previous kernel".to_owned(), |kernel| format!("the previous kernel, {kernel}"));
    let finding = finding
        .seen(format!("{file}: {error}"))
        .because(format!("the kernel is newer than the source of driver {version}, so that dkms could not build it"))
        .remedy(format!(
            "update the driver to a newer version, or choose {other} when the machine starts; headers do not help"
        ));
    Some(upgrade::packages(host).into_iter().fold(finding, Finding::command))
}

/// The package with the headers of a kernel, and the program that builds modules.
fn headers(host: &Host, kernel: &str) -> Option<String> {
    Some(match host.family()? {
        Family::Ubuntu | Family::OnUbuntu | Family::Debian => {
            format!("sudo apt install linux-headers-{kernel} dkms")
        }
        Family::Fedora | Family::RedHat | Family::Amazon => {
            format!("sudo dnf install {} dkms", devel_package(host, kernel, kernel))
        }
        Family::Leap | Family::Tumbleweed => "sudo zypper install kernel-default-devel dkms".to_owned(),
        Family::Arch => format!("sudo pacman -Syu {}-headers dkms", arch::package(host, kernel)),
        Family::Void => "sudo xbps-install -S linux-headers dkms".to_owned(),
        Family::NixOs | Family::Alpine | Family::Nvidia => return None,
    })
}

fn origin(host: &Host, kernel: &str) -> Origin {
    let exists = |path: &str| host.exists(path) == Ok(true);
    let by_dkms = host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text());
    if by_dkms.is_some_and(|text| text.lines().any(|line| line.trim().starts_with("nvidia"))) {
        return Origin::Dkms;
    }
    if exists("/usr/bin/nvidia-uninstall") || exists("/var/log/nvidia-installer.log") {
        return Origin::Installer;
    }
    match host.family() {
        Some(Family::Fedora) => Origin::Akmods,
        Some(Family::Ubuntu) => {
            // The folders of other kernels show which packages this system has.
            let others = host.folder("/lib/modules").ok().flatten().unwrap_or_default();
            let has_package = |name: &String| {
                name != kernel
                    && host
                        .folder(&format!("/lib/modules/{name}/kernel"))
                        .ok()
                        .flatten()
                        .is_some_and(|inside| inside.iter().any(|one| one.starts_with("nvidia-")))
            };
            if others.iter().any(has_package) { Origin::UbuntuPackage } else { Origin::Dkms }
        }
        Some(Family::Leap | Family::Tumbleweed) => Origin::SusePackage,
        Some(Family::Arch) if arch::has_module_of_other(host, kernel) => Origin::ArchOtherKernel,
        Some(Family::Arch) if kernel.contains("-arch") => Origin::ArchPackage,
        Some(Family::Arch) => Origin::ArchOtherKernel,
        _ => Origin::Dkms,
    }
}
