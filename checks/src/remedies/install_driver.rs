//! The commands that install or replace NVIDIA's driver on each family of distributions: in the kind of
//! kernel module that the card needs. Cards before Turing need the proprietary module and branch 580,
//! Blackwell needs the open one, and the cards between run with either, for which NVIDIA recommends the
//! open one (driver installation guide, release 580).

use super::generation::{Generation, newest};
use super::kernel_headers::{devel_package, line_of_debian};
use super::old_card::rpm_fusion;
use super::{arch, image, old_card};
use crate::facts::{Distribution, Family, Host, Output};

/// NVIDIA's repositories for distributions that package no driver, or an old one.
const REPOSITORIES: &str = "https://developer.download.nvidia.com/compute/cuda/repos";

/// RPM Fusion's packages on Silverblue and Kinoite, layered into the image.
const IMMUTABLE_FEDORA: [&str; 2] = [
    "sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda",
    "sudo rpm-ostree kargs --append=rd.driver.blacklist=nouveau,nova_core \
     --append=modprobe.blacklist=nouveau,nova_core",
];

/// The commands for this host's distribution, if it is a common one; they need a restart afterwards.
/// Inside a container there are none: the driver is the host's.
pub(crate) fn install(host: &Host) -> Vec<String> {
    install_for(host, newest(host))
}

/// The same for a card whose generation is known from elsewhere.
pub(crate) fn install_for(host: &Host, card: Option<Generation>) -> Vec<String> {
    let (Some(family), Ok(distribution)) = (host.family(), host.distribution()) else { return Vec::new() };
    if host.is_container() {
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
    let headers = line_of_debian(&host.kernel_release().unwrap_or_default());
    let of_line = &format!("sudo apt install {headers} nvidia-driver");
    let commands: &[&str] = match family {
        Family::Ubuntu => &["sudo ubuntu-drivers install"],
        Family::OnUbuntu if distribution.id == "pop" => {
            &["sudo apt update", "sudo apt install system76-driver-nvidia"]
        }
        // Mint and others lack Ubuntu's tool, and have its packages.
        Family::OnUbuntu => &["sudo apt update", "sudo apt install nvidia-driver-580-open"],
        Family::Debian if card != Some(Generation::Blackwell) && is_bullseye(&distribution) => &[
            "sudo sed -i -E '/^deb/s/ main.*/ main contrib non-free/' /etc/apt/sources.list",
            "sudo apt update",
            of_line,
        ],
        Family::Debian if card != Some(Generation::Blackwell) => &[
            // One of the two files exists, in the old format or the new one.
            "sudo sed -i -E '/^(deb|Components)/s/ main.*/ main contrib non-free non-free-firmware/' \
             $(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null)",
            "sudo apt update",
            of_line,
        ],
        Family::Debian => return of_debian(&distribution, &headers),
        Family::Fedora if distribution.id == "fedora" => {
            let packages = "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda".to_owned();
            return rpm_fusion("sudo dnf install").into_iter().chain([packages]).collect();
        }
        Family::Fedora => &["sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda"],
        Family::RedHat | Family::Amazon => return of_red_hat(host, &distribution, family, old),
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

/// What to write before the commands, on a distribution where they are not the whole remedy.
pub(crate) fn advice(host: &Host) -> Option<&'static str> {
    if let Some(advice) = old_card::advice(host).filter(|_| newest(host) == Some(Generation::BeforeTuring)) {
        return Some(advice);
    }
    match host.family()? {
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

/// Debian 11, which has no component for firmware.
fn is_bullseye(distribution: &Distribution) -> bool {
    distribution.version.as_ref().is_some_and(|version| version.major() <= 11)
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

/// Debian's own packages are too old for Blackwell, so the open module comes from NVIDIA.
fn of_debian(distribution: &Distribution, headers: &str) -> Vec<String> {
    let release = distribution.version.as_ref().map_or(12, |version| version.major().clamp(12, 13));
    vec![
        format!("wget {REPOSITORIES}/debian{release}/x86_64/cuda-keyring_1.1-1_all.deb"),
        "sudo dpkg -i cuda-keyring_1.1-1_all.deb".to_owned(),
        "sudo apt update".to_owned(),
        format!("sudo apt install {headers} nvidia-open"),
    ]
}

/// NVIDIA's own repository, named after the release.
fn of_red_hat(host: &Host, distribution: &Distribution, family: Family, old: bool) -> Vec<String> {
    let release = match (family, &distribution.version) {
        (Family::Amazon, _) => "amzn2023".to_owned(),
        (_, Some(version)) => format!("rhel{}", version.major()),
        (_, None) => "rhel$(rpm -E %rhel)".to_owned(),
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
        format!("sudo dnf install {}", devel_package(host, &kernel, "$(uname -r)")),
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
