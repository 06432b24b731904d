//! What to do about a driver whose source is older than the kernel. An upgrade of all packages brings a newer one on some
//! distributions; Debian, Ubuntu and their relatives stay in a branch, for which newer kernels come from elsewhere.

use super::generation::{Generation, newest, numbers};
use super::install_driver::install_for;
use super::restart::restart;
use super::upgrade;
use crate::facts::{Distribution, Family, Host, Version};
use crate::finding::Finding;

/// The branch that Ubuntu and its relatives have for all releases that they support.
const OF_UBUNTU: u32 = 580;
/// The last branch for cards before Maxwell.
const LEGACY: u32 = 470;

/// The finding with a newer driver for this kernel, or an older kernel for this driver. `before` is a kernel for which the
/// driver was built.
pub(super) fn instead(
    host: &Host,
    finding: Finding,
    version: &str,
    kernel: &str,
    before: Option<&str>,
) -> Finding {
    let other =
        before.map_or("the previous kernel".to_owned(), |kernel| format!("the previous kernel ({kernel})"));
    let branch = Version::find(version).map_or(0, |version| version.major());
    let cards = numbers(host);
    let is_legacy =
        branch != 0 && branch <= LEGACY && !cards.is_empty() && cards.iter().all(|&number| number < 0x1340);
    let is_pop = host.distribution().is_ok_and(|distribution| distribution.id == "pop");
    if is_legacy {
        return finding
            .remedy(format!(
                "train on the CPU or on a newer card: no build of libtorch runs on driver branch {branch}, the last for this card"
            ))
            .command("yolo train --device cpu …");
    }
    match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) if !is_pop => {
            of_ubuntu(host, finding, branch, kernel, &other)
        }
        Some(Family::Debian) => of_debian(host, finding, branch, kernel, before, &other),
        _ => {
            let way = match (before, host.family()) {
                (Some(before), Some(Family::Fedora | Family::RedHat | Family::Amazon))
                    if !host.is_image() =>
                {
                    format!(", which `sudo grubby --set-default=/boot/vmlinuz-{before}` chooses")
                }
                _ => ", which you choose when the machine starts".to_owned(),
            };
            let stream = stream_of_red_hat(host);
            let finding = finding.remedy(format!(
                "update the driver to a newer version{stream}, and restart; or stay with {other}{way}; headers do not help"
            ));
            restart(host, upgrade::packages(host).into_iter().fold(finding, Finding::command))
        }
    }
}

/// How a driver of RHEL's relatives leaves its branch, which a stream of NVIDIA's repository may hold. EL 10 has none.
fn stream_of_red_hat(host: &Host) -> String {
    let has_streams = |distribution: Distribution| {
        distribution.version.is_some_and(|version| (8..10).contains(&version.major()))
    };
    if host.family() != Some(Family::RedHat) || !host.distribution().is_ok_and(has_streams) {
        return String::new();
    }
    let stream = if newest(host) == Some(Generation::BeforeTuring) { "580-dkms" } else { "open-dkms" };
    format!(
        " (if `dnf module list nvidia-driver` shows an enabled stream of its branch, first `sudo dnf module switch-to \
         nvidia-driver:{stream}`)"
    )
}

fn of_ubuntu(host: &Host, finding: Finding, branch: u32, kernel: &str, other: &str) -> Finding {
    let back = if is_of_ubuntu(kernel) {
        format!("choose {other} when the machine starts (\"Advanced options\" in GRUB's menu)")
    } else {
        format!(
            "go back to Ubuntu's own kernel (`sudo apt install linux-generic`, choose it when the machine starts, and remove the \
             packages of {kernel})"
        )
    };
    let end = if newest(host) == Some(Generation::BeforeTuring) { "" } else { "-open" };
    if branch < OF_UBUNTU {
        let finding = finding
            .remedy(format!(
                "install a driver of a newer branch and restart: an upgrade of all packages stays in branch {branch}, and headers do \
                 not help; or {back}"
            ))
            .command("sudo apt update")
            .command(format!("sudo apt install nvidia-driver-{OF_UBUNTU}{end}"));
        return restart(host, finding);
    }
    let finding = finding.remedy(format!(
        "update the driver and restart; if Ubuntu has no newer one yet, take it from the repository of its graphics drivers (`sudo \
         add-apt-repository ppa:graphics-drivers/ppa`) and upgrade again; or {back}; headers do not help"
    ));
    restart(host, finding.command("sudo apt update && sudo apt full-upgrade"))
}

/// Ubuntu's own kernels; those of its archive of upstream kernels have six digits: `6.15.4-061504-generic`.
fn is_of_ubuntu(kernel: &str) -> bool {
    const LINES: [&str; 9] =
        ["generic", "lowlatency", "aws", "azure", "gcp", "oracle", "oem", "nvidia", "kvm"];
    let mut words = kernel.split('-').skip(1);
    let number = words.next().unwrap_or_default();
    number.len() < 6
        && number.chars().all(|letter| letter.is_ascii_digit())
        && words.next().is_some_and(|line| LINES.contains(&line))
}

fn of_debian(
    host: &Host,
    finding: Finding,
    branch: u32,
    kernel: &str,
    before: Option<&str>,
    other: &str,
) -> Finding {
    if kernel.ends_with("-pve") {
        let finding = finding.remedy(format!(
            "start {other} and stay with it; or install a newer driver from NVIDIA: Debian stays in branch {branch}, and headers do \
             not help"
        ));
        let kernel = before.unwrap_or("KERNEL");
        return restart(host, finding.command(format!("sudo proxmox-boot-tool kernel pin {kernel}")));
    }
    let line = super::kernel_headers::ordinary_of_debian(kernel);
    let back = match kernel.contains("bpo") || !kernel.ends_with("-amd64") && !kernel.ends_with("-arm64") {
        true => format!(
            "go back to Debian's own kernel (`sudo apt install {line}`, choose it when the machine starts, and remove the packages of \
             {kernel})"
        ),
        false => format!("choose {other} when the machine starts (\"Advanced options\" in GRUB's menu)"),
    };
    // NVIDIA's newest branch has dropped these cards.
    if newest(host) == Some(Generation::BeforeTuring) {
        return finding.remedy(format!(
            "{back}; or install the newest driver of branch 580 from NVIDIA's repository: Debian stays in branch {branch}, and headers \
             do not help"
        ));
    }
    let finding = finding.remedy(format!(
        "install a newer driver from NVIDIA's repository and restart: an upgrade of all packages stays in branch {branch} of Debian, \
         and headers do not help; or {back}"
    ));
    restart(host, install_for(host, Some(Generation::Blackwell)).into_iter().fold(finding, Finding::command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_ubuntu_are_told_from_others() {
        for kernel in ["6.8.0-45-generic", "6.14.0-1012-aws", "6.11.0-1027-oem", "6.8.0-45-lowlatency"] {
            assert!(is_of_ubuntu(kernel), "{kernel}");
        }
        for kernel in [
            "6.15.4-061504-generic",
            "6.15.0-4-liquorix-amd64",
            "6.15.3-x64v3-xanmod1",
            "6.15.3-surface-1",
            "6.12.43+deb13-amd64",
        ] {
            assert!(!is_of_ubuntu(kernel), "{kernel}");
        }
    }
}
