//! The commands that install or replace NVIDIA's driver on each family of distributions: in the kind of
//! kernel module that the card needs. Cards before Turing need the proprietary module and branch 580,
//! Blackwell needs the open one, and the cards between run with either, for which NVIDIA recommends the
//! open one (driver installation guide, release 580).

use super::generation::{Generation, newest};
use super::kernel_headers::devel_package;
use super::nvidia_repository::REPOSITORIES;
use super::old_card::rpm_fusion;
use super::{appliance, arch, image, of_debian, old_card};
use crate::facts::{Distribution, Family, Host, Output};

/// RPM Fusion's packages on Silverblue and Kinoite, layered into the image.
const IMMUTABLE_FEDORA: [&str; 2] =
    ["sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda", image::WITHOUT_NOUVEAU];

/// The commands for this host's distribution, if it is a common one; they need a restart afterwards.
/// Inside a container there are none: the driver is the host's.
pub(crate) fn install(host: &Host) -> Vec<String> {
    install_for(host, newest(host))
}

/// The commands that install the newest driver for this host's cards, on distributions whose own package is too old for
/// libtorch's newest build too.
pub(crate) fn install_newest(host: &Host) -> Vec<String> {
    match host.family() {
        Some(Family::Debian) if !host.is_container() && appliance::advice(host).is_none() => {
            of_debian::of_nvidia(host, newest(host))
        }
        _ => install(host),
    }
}

/// The same for a card whose generation is known from elsewhere.
pub(crate) fn install_for(host: &Host, card: Option<Generation>) -> Vec<String> {
    let (Some(family), Ok(distribution)) = (host.family(), host.distribution()) else { return Vec::new() };
    if host.is_container() || appliance::advice(host).is_some() {
        return Vec::new();
    }
    let old = card == Some(Generation::BeforeTuring);
    if let Some(commands) = old_card::install(host, family, &distribution).filter(|_| old) {
        return commands;
    }
    // An immutable Fedora takes packages into its image only.
    if family == Family::Fedora && host.is_image() {
        return match image::of(host) {
            Some(image) if image.has_driver() == Some(false) => image.commands_with_driver(),
            // The image has a driver, which an update broke.
            Some(_) => vec![image::ROLL_BACK.to_owned()],
            None => {
                let packages = IMMUTABLE_FEDORA.iter().map(|&command| command.to_owned());
                rpm_fusion("sudo rpm-ostree install").into_iter().chain(packages).collect()
            }
        };
    }
    let commands: &[&str] = match family {
        Family::Ubuntu => &["sudo ubuntu-drivers install"],
        Family::OnUbuntu if distribution.id == "pop" => {
            &["sudo apt update", "sudo apt install system76-driver-nvidia"]
        }
        // Mint and others lack Ubuntu's tool, and have its packages.
        Family::OnUbuntu => &["sudo apt update", "sudo apt install nvidia-driver-580-open"],
        Family::Debian => return of_debian::install(host, card),
        Family::Fedora if distribution.id == "fedora" => {
            let packages = "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda".to_owned();
            return rpm_fusion("sudo dnf install").into_iter().chain([packages]).collect();
        }
        Family::Fedora => &["sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda"],
        Family::RedHat | Family::Amazon => return of_red_hat(host, family, old),
        Family::Tumbleweed | Family::Leap => return of_suse(&distribution, family, old),
        Family::Arch if distribution.id == "manjaro" => &["sudo mhwd -a pci nonfree 0300"],
        Family::Arch if !old => return of_arch(host),
        Family::Void => &["sudo xbps-install -Su void-repo-nonfree", "sudo xbps-install -S nvidia"],
        Family::NixOs => &["sudo nixos-rebuild switch"],
        // Arch has packages for cards before Turing in the AUR only; the others bring no driver, or their own.
        Family::Arch | Family::Alpine | Family::Nvidia => &[],
    };
    commands.iter().map(|&command| command.to_owned()).collect()
}

/// What to write before [`install_newest`], where a driver is installed already.
pub(crate) fn advice_newest(host: &Host) -> Option<&'static str> {
    if let Some(advice) = appliance::advice(host) {
        return Some(advice);
    }
    let is_old = newest(host) == Some(Generation::BeforeTuring);
    match host.family() {
        Some(Family::NixOs) if !is_old => Some(
            "set `hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.latest;` in configuration.nix, in place of an \
             older package (if the channel has no newer one, change to a newer channel), apply it, and restart",
        ),
        Some(Family::Debian) if install_newest(host).is_empty() => Some(of_debian::advice(host)),
        Some(Family::Debian) => Some(
            "install the newest driver from NVIDIA's repository, because Debian's own package stays in its branch, and restart; if apt \
             holds packages back or names conflicts, remove Debian's first (`sudo apt purge '^nvidia-.*' '^libnvidia-.*'`), after \
             which the screen may stay dark until the restart",
        ),
        _ => advice(host),
    }
}

/// What to write before the commands, on a distribution where they are not the whole remedy.
pub(crate) fn advice(host: &Host) -> Option<&'static str> {
    if let Some(advice) = appliance::advice(host) {
        return Some(advice);
    }
    if let Some(advice) = old_card::advice(host).filter(|_| newest(host) == Some(Generation::BeforeTuring)) {
        return Some(advice);
    }
    let Some(family) = host.family() else { return without_packages(host) };
    match family {
        Family::Debian if newest(host) == Some(Generation::Blackwell) && install(host).is_empty() => {
            Some(of_debian::advice(host))
        }
        Family::RedHat if install(host).is_empty() => Some(
            "install NVIDIA's driver as this distribution's own documentation says, and restart: NVIDIA's repositories are named after \
             releases of RHEL, which this distribution does not tell",
        ),
        Family::Fedora => match image::of(host)?.has_driver() {
            Some(false) => Some("change to the variant of this image that has NVIDIA's driver, and restart"),
            _ => Some(
                "the driver is a part of this image: go back to the one before the last update, restart, and update again later",
            ),
        },
        Family::NixOs => Some(
            "add `nixpkgs.config.allowUnfree = true;`, `hardware.graphics.enable = true;`, \
             `hardware.nvidia.open = true;` and `services.xserver.videoDrivers = [ \"nvidia\" ];` to configuration.nix, apply it, \
             and restart",
        ),
        Family::Nvidia => Some(
            "the driver is a part of this system: install its updates from NVIDIA, or flash the board again",
        ),
        Family::Alpine => {
            Some("NVIDIA's driver needs glibc, which Alpine does not have: train on another distribution")
        }
        _ => None,
    }
}

/// What to do where no package manager installs a driver.
fn without_packages(host: &Host) -> Option<&'static str> {
    let distribution = host.distribution().ok().filter(|_| !host.is_container())?;
    Some(match distribution.id.as_str() {
        "amzn" if distribution.is_outdated() => {
            "move to Amazon Linux 2023: NVIDIA's drivers of today and libtorch need a newer glibc than this release has"
        }
        _ if distribution.is_outdated() => {
            "move to a newer release of this distribution: NVIDIA's drivers of today and libtorch need a newer glibc than this one has"
        }
        "steamos" => {
            "train on another Linux, such as Ubuntu, or Bazzite's image with NVIDIA's driver: SteamOS is an image for AMD's cards, \
             and its updates undo what is installed into it"
        }
        _ if distribution.is_sealed() => {
            "change to an image of this distribution that has NVIDIA's driver, if there is one, or train on another Linux: packages \
             cannot be installed into this one"
        }
        _ => return None,
    })
}

/// The package with the module for Arch's own kernel, or the one that builds it for the others.
fn of_arch(host: &Host) -> Vec<String> {
    let kernel = host.kernel_release().unwrap_or_default();
    let package = arch::package(host, &kernel);
    vec![match package.as_str() {
        "linux" => "sudo pacman -Syu nvidia-open nvidia-utils".to_owned(),
        _ => format!("sudo pacman -Syu nvidia-open-dkms nvidia-utils {package}-headers"),
    }]
}

/// NVIDIA's own repository, named after the release; none for a relative that counts in its own way.
fn of_red_hat(host: &Host, family: Family, old: bool) -> Vec<String> {
    let release = match host.rhel_release() {
        _ if family == Family::Amazon => "amzn2023".to_owned(),
        Some(release) => format!("rhel{release}"),
        None => return Vec::new(),
    };
    let kernel = host.kernel_release().unwrap_or_default();
    // The module is built by dkms, which RHEL and its relatives have in EPEL only.
    let epel = (family == Family::RedHat).then(|| {
        let number = release.trim_start_matches("rhel");
        format!(
            "sudo dnf install https://dl.fedoraproject.org/pub/epel/epel-release-latest-{number}.noarch.rpm"
        )
    });
    let commands = [
        format!("sudo dnf config-manager --add-repo {REPOSITORIES}/{release}/x86_64/cuda-{release}.repo"),
        match family {
            // What the module needs of the kernel is in a package of its own there.
            Family::Amazon => {
                let devel = devel_package(host, &kernel, "$(uname -r)");
                format!("sudo dnf install {devel} {} dkms", devel.replacen("-devel-", "-modules-extra-", 1))
            }
            _ => format!("sudo dnf install {}", devel_package(host, &kernel, "$(uname -r)")),
        },
    ];
    epel.into_iter().chain(commands).chain(of_nvidia(host, &release, old)).collect()
}

/// The driver from NVIDIA's repository, whose newest branch has dropped the old cards. It has branches as streams of a
/// module, which EL 10 no longer has, unless an enabled stream hides the packages.
fn of_nvidia(host: &Host, release: &str, old: bool) -> Vec<String> {
    let is_hidden =
        |(_, output): &(String, Output)| output.all_text().contains("filtered out by modular filtering");
    let commands: &[&str] = match old {
        false if release.contains("10") && host.recorded_outputs("dnf").iter().any(is_hidden) => {
            &["sudo dnf module reset nvidia-driver", "sudo dnf install nvidia-open"]
        }
        false if host.recorded_outputs("dnf").iter().any(is_hidden) => &[
            "sudo dnf module reset nvidia-driver",
            "sudo dnf module enable nvidia-driver:open-dkms",
            "sudo dnf install nvidia-open",
        ],
        false if release.contains("10") => &["sudo dnf install nvidia-open"],
        // The stream decides which kind of module the packages bring.
        false => &["sudo dnf module enable nvidia-driver:open-dkms", "sudo dnf install nvidia-open"],
        true if release.contains("10") => &[
            "sudo dnf install python3-dnf-plugin-versionlock",
            "sudo dnf versionlock '*nvidia*580*'",
            "sudo dnf install cuda-drivers",
        ],
        true => &[
            "sudo dnf module reset nvidia-driver",
            "sudo dnf module enable nvidia-driver:580-dkms",
            "sudo dnf install --allowerasing cuda-drivers",
        ],
    };
    commands.iter().map(|&command| command.to_owned()).collect()
}

/// SUSE signs the open module; the libraries come from NVIDIA's repository.
fn of_suse(distribution: &Distribution, family: Family, old: bool) -> Vec<String> {
    let place = match family {
        Family::Tumbleweed => "https://download.nvidia.com/opensuse/tumbleweed".to_owned(),
        _ if distribution.id.starts_with("sle") => {
            let release = distribution.version.as_ref().map_or(15, |version| version.major());
            format!("{REPOSITORIES}/sles{release}/x86_64/")
        }
        _ => "'https://download.nvidia.com/opensuse/leap/$releasever'".to_owned(),
    };
    let module =
        if old { "nvidia-driver-G06-kmp-default" } else { "nvidia-open-driver-G06-signed-kmp-default" };
    // The two come from different repositories, whose newest versions may differ.
    // The module stays installed for older kernels, so there may be several.
    let version =
        format!("$(rpm -q --queryformat '%{{VERSION}}\\n' {module} | cut -d_ -f1 | sort -V | tail -n 1)");
    vec![
        format!("sudo zypper addrepo --refresh {place} NVIDIA"),
        format!("sudo zypper install {module}"),
        format!("sudo zypper install nvidia-compute-utils-G06={version}"),
    ]
}
