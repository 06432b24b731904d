//! The commands that build NVIDIA's kernel module for the running kernel, by the way in which it was
//! installed: dkms, Fedora's akmods, Ubuntu's packages for each kernel, openSUSE's packages, or NVIDIA's
//! installer.

use super::failed_build::failed_build;
use super::kernel_headers::{devel_package, is_of_cachyos, newest_of_debian, of_apt};
use super::{arch, broken_tree, of_two_sources, precompiled, upgrade};
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
    /// A package of NVIDIA's or ELRepo's repository for exactly one kernel of RHEL.
    Precompiled,
    /// NVIDIA's own installer, a file that ends in `.run`.
    Installer,
}

/// The finding that the module is missing for `kernel`, with the commands that build it.
pub(crate) fn build(host: &Host, finding: Finding, kernel: &str) -> Finding {
    // An update has removed the running kernel: nothing can be built for it, and nothing has to be.
    if host.exists(&format!("/lib/modules/{kernel}")) == Ok(false) {
        let finding = finding
            .because("an update has replaced the kernel that is running; its modules are no longer there");
        return super::removed_kernel::start_new(host, finding);
    }
    if host.family() == Some(Family::NixOs) {
        let remedy = "build the system again, which builds the module for its kernel, and restart";
        return super::restart::restart(host, finding.remedy(remedy).command("sudo nixos-rebuild switch"));
    }
    if host.family() == Some(Family::Fedora) && host.is_image() {
        let finding = finding.remedy(super::image::WITHOUT_MODULE);
        return super::restart::restart(host, finding.command(super::image::ROLL_BACK));
    }
    if let Some(finding) = failed_build(host, finding.clone(), kernel) {
        return finding;
    }
    if let Some(finding) = of_two_sources::repair(host, finding.clone()) {
        return finding;
    }
    if let Some(finding) = broken_tree::repair(host, finding.clone()) {
        return finding;
    }
    if let Some(link) = precompiled::dangling(host, kernel).filter(|_| host.family() == Some(Family::RedHat))
    {
        return precompiled::repair(finding, link);
    }
    let headers = headers(host, kernel);
    let finding = match host.family() {
        Some(Family::Fedora) if is_of_cachyos(kernel) => finding
            .because(format!("{kernel} is a kernel of CachyOS's repository, whose headers are in a package of their own"))
            .remedy(
                "install the headers of this kernel, then build and load the module; if there are none or the build fails, choose \
                 Fedora's own kernel when the machine starts",
            ),
        _ => finding,
    };
    let commands = match origin(host, kernel) {
        Origin::Akmods => vec![
            format!("sudo dnf install {}", devel_package(host, kernel, kernel)),
            format!("sudo akmods --force --kernels {kernel}"),
            LOAD.to_owned(),
        ],
        Origin::UbuntuPackage => {
            let name = flavor_of_ubuntu(host, kernel);
            let package = |end: &str| format!("linux-modules-nvidia-{name}-{end}");
            // In a cloud, the package for the line of kernels brings the module for the next one too.
            let line = kernel.rsplit('-').next().filter(|line| CLOUDS.contains(line)).map(package);
            let packages: Vec<String> = [package(kernel)].into_iter().chain(line).collect();
            return finding
                .because("Ubuntu has the module in a package for each kernel, and the one for this kernel is not installed")
                .remedy("install the package that has the module for this kernel, and load it; nothing has to be built")
                .command(format!("sudo apt install {}", packages.join(" ")))
                .command(LOAD);
        }
        // The upgrade may bring a newer kernel, which starts with the module.
        Origin::SusePackage => {
            let finding =
                finding.remedy("update the whole system, so that the kernel and the module fit, and restart");
            return super::restart::restart(
                host,
                upgrade::packages(host).into_iter().fold(finding, Finding::command),
            );
        }
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
            let version =
                host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next()?.version);
            let file = format!("NVIDIA-Linux-x86_64-{}.run", version.as_deref().unwrap_or("<version>"));
            let finding = finding.remedy(
                "install the headers of the running kernel, run NVIDIA's installer again, with --dkms so that it follows the next \
                 kernel, and restart; or remove it with `sudo nvidia-uninstall` and install your distribution's packages",
            );
            let finding = headers.into_iter().fold(finding, Finding::command);
            return super::restart::restart(host, finding.command(format!("sudo sh {file} --dkms")));
        }
        Origin::Precompiled => return precompiled::start_other(host, finding, kernel),
        // The upgrade may replace the kernel that runs, for which nothing can be built then.
        Origin::Dkms if host.family() == Some(Family::Arch) => {
            let finding = finding.remedy(
                "update the whole system together with the headers of this kernel, for which dkms then builds the \
                 module, and restart",
            );
            return super::restart::restart(host, headers.into_iter().fold(finding, Finding::command));
        }
        // Debian keeps the headers of its newest kernel only.
        Origin::Dkms if host.family() == Some(Family::Debian) && newest_of_debian(kernel).is_some() => {
            let (image, line) = newest_of_debian(kernel).unwrap_or_default();
            let finding = finding.remedy(format!(
                "install the headers of the running kernel, then build and load the module; if the archive no longer has them, \
                 install the newest kernel with its headers (`sudo apt install {image} {line}`) and restart"
            ));
            let commands = headers.into_iter().chain(["sudo dkms autoinstall".to_owned(), LOAD.to_owned()]);
            return load(host, finding, commands.collect());
        }
        Origin::Dkms if host.family().is_none() && !has_dkms(host) => {
            let is_gentoo = host.distribution().is_ok_and(|distribution| distribution.id == "gentoo");
            let build = if is_gentoo { "sudo emerge --ask @module-rebuild" } else { "" };
            let commands = [build, LOAD].into_iter().filter(|_| is_gentoo);
            return commands.fold(
                finding.remedy(
                    "build the module for this kernel in the way of your distribution: install its package of the driver again, with \
                     the headers or sources of the kernel, then load the module",
                ),
                Finding::command,
            );
        }
        Origin::Dkms => {
            headers.into_iter().chain(["sudo dkms autoinstall".to_owned(), LOAD.to_owned()]).collect()
        }
    };
    load(host, finding, commands)
}

const LOAD: &str = "sudo modprobe nvidia";

/// Whether dkms is installed.
fn has_dkms(host: &Host) -> bool {
    host.command(&["dkms", "status"]).is_ok_and(|output| output.is_some())
}

/// The finding with these commands. Loading the module fails while one of the kernel's own drivers holds the card.
fn load(host: &Host, finding: Finding, mut commands: Vec<String>) -> Finding {
    let holds = |name: &&&str| host.has_module(name) == Ok(true);
    let Some(holder) = ["nouveau", "nova_core"].iter().find(holds) else {
        return commands.into_iter().fold(finding, Finding::command);
    };
    commands.retain(|command| command != LOAD);
    let text = finding.remedy.as_ref().map_or_else(String::new, |remedy| remedy.text.clone());
    let finding = finding.remedy(text.replace(
        ", then build and load the module",
        &format!(", build the module, and restart, because {holder} holds the card until then"),
    ));
    super::restart::restart(host, commands.into_iter().fold(finding, Finding::command))
}

/// The package with the headers of a kernel, and the program that builds modules.
fn headers(host: &Host, kernel: &str) -> Option<String> {
    Some(match host.family()? {
        Family::Ubuntu | Family::OnUbuntu | Family::Debian => {
            format!("sudo apt install {} dkms", of_apt(kernel))
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

/// The lines of Ubuntu's kernels for clouds.
const CLOUDS: [&str; 6] = ["aws", "azure", "gcp", "oracle", "ibm", "gke"];

/// Ubuntu's packages of the module for other kernels, by the folders that they have there: `nvidia-570srv-open` is of
/// `linux-modules-nvidia-570-server-open-…`.
fn flavors(host: &Host, kernel: &str) -> Vec<String> {
    let mut kernels = host.folder("/lib/modules").ok().flatten().unwrap_or_default();
    kernels.sort_by_key(|name| precompiled::numbers(name));
    let inside = |name: &String| {
        host.folder(&format!("/lib/modules/{name}/kernel")).ok().flatten().unwrap_or_default()
    };
    let folders = kernels.iter().filter(|name| *name != kernel).flat_map(inside);
    let names = folders.filter_map(|folder| folder.strip_prefix("nvidia-").map(ToOwned::to_owned));
    names
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .map(|name| name.replace("srv", "-server"))
        .collect()
}

/// The one of the installed libraries' branch: the open module and the other do not replace each other.
fn flavor_of_ubuntu(host: &Host, kernel: &str) -> String {
    let library = host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next());
    let version = library.and_then(|library| library.version);
    let branch = version.as_deref().and_then(|version| version.split('.').next()).unwrap_or("580");
    let of_branch = |name: &String| name.split('-').next() == Some(branch);
    flavors(host, kernel).into_iter().rfind(of_branch).unwrap_or_else(|| format!("{branch}-open"))
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
        Some(Family::Ubuntu | Family::OnUbuntu) => {
            if flavors(host, kernel).is_empty() {
                Origin::Dkms
            } else {
                Origin::UbuntuPackage
            }
        }
        Some(Family::RedHat) if precompiled::other_kernel(host, kernel).is_some() => Origin::Precompiled,
        Some(Family::Leap | Family::Tumbleweed) => Origin::SusePackage,
        Some(Family::Arch) if arch::has_module_of_other(host, kernel) => Origin::ArchOtherKernel,
        Some(Family::Arch) if kernel.contains("-arch") => Origin::ArchPackage,
        Some(Family::Arch) => Origin::ArchOtherKernel,
        _ => Origin::Dkms,
    }
}
