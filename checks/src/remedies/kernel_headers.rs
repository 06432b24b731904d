//! The package with the headers of a kernel, which the driver's module is built against. Distributions with
//! several lines of kernels name it after the line.

use crate::facts::{Family, Host};

/// The package for this kernel on Fedora, RHEL and their relatives. `release` may be `$(uname -r)`.
pub(crate) fn devel_package(host: &Host, kernel: &str, release: &str) -> String {
    if matches!(host.family(), Some(Family::Fedora)) && is_of_cachyos(kernel) {
        return of_cachyos(kernel).to_owned();
    }
    let line = match host.family() {
        // Oracle's own line of kernels.
        _ if kernel.contains("uek") => "kernel-uek-devel".to_owned(),
        // Amazon Linux 2023 started with 6.1, and names the packages of later lines after them.
        Some(Family::Amazon) if !kernel.starts_with("6.1.") && kernel.contains("amzn2023") => {
            let line: Vec<&str> = kernel.splitn(3, '.').take(2).collect();
            format!("kernel{}-devel", line.join("."))
        }
        _ => "kernel-devel".to_owned(),
    };
    format!("{line}-{release}")
}

/// The package for exactly this kernel on Debian, Ubuntu and their relatives.
pub(crate) fn of_apt(kernel: &str) -> String {
    if !kernel.ends_with("-pve") {
        return format!("linux-headers-{kernel}");
    }
    // Proxmox renamed its packages with 6.5.
    let mut numbers = kernel.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let name = if version < (6, 5) { "pve" } else { "proxmox" };
    format!("{name}-headers-{kernel}")
}

/// The package of Debian that brings the headers of each new kernel of the line that runs.
pub(super) fn line_of_debian(kernel: &str) -> String {
    if kernel.ends_with("-pve") {
        return "proxmox-default-headers".to_owned();
    }
    format!("linux-headers-{}", name_of_line(kernel))
}

/// The kernel package of the same line, for a kernel whose own headers left Debian's archive, and that of its headers.
pub(super) fn newest_of_debian(kernel: &str) -> Option<(String, String)> {
    let line = name_of_line(kernel);
    (!kernel.ends_with("-pve")).then(|| (format!("linux-image-{line}"), format!("linux-headers-{line}")))
}

/// The end of the names of Debian's packages of a line: `cloud-arm64`.
fn name_of_line(kernel: &str) -> String {
    let arch = if kernel.ends_with("-arm64") { "arm64" } else { "amd64" };
    match () {
        () if kernel.contains("-cloud-") => format!("cloud-{arch}"),
        () if kernel.contains("-rt-") => format!("rt-{arch}"),
        () => arch.to_owned(),
    }
}

/// The kernel of Debian that is not made for real-time work, and its headers.
pub(super) fn ordinary_of_debian(kernel: &str) -> String {
    let line = name_of_line(&kernel.replace("-rt-", "-"));
    format!("linux-image-{line} linux-headers-{line}")
}

/// Whether this is a kernel of CachyOS's repository for Fedora: `6.13.1-cb1.0.fc41.x86_64`.
pub(super) fn is_of_cachyos(kernel: &str) -> bool {
    kernel.contains("cachyos") || kernel.split('-').nth(1).is_some_and(|release| release.starts_with("cb"))
}

/// The package with the headers of a kernel from CachyOS's repository for Fedora, which always fits the newest one.
fn of_cachyos(kernel: &str) -> &'static str {
    match (kernel.contains("lts"), kernel.contains("lto")) {
        (true, true) => "kernel-cachyos-lts-lto-devel-matched",
        (true, false) => "kernel-cachyos-lts-devel-matched",
        (false, true) => "kernel-cachyos-lto-devel-matched",
        (false, false) => "kernel-cachyos-devel-matched",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_line_of_kernels_has_its_package() {
        let package = |id: &str, kernel: &str| {
            let files = json!({ "/etc/os-release": format!("ID={id}\nID_LIKE=fedora\n") });
            let host = Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0;
            devel_package(&host, kernel, kernel)
        };
        let (uek, old, new) =
            ("6.12.0-106.el9uek.x86_64", "6.1.161-1.amzn2023.x86_64", "6.12.66-8.amzn2023.x86_64");
        assert_eq!(package("ol", uek), format!("kernel-uek-devel-{uek}"));
        assert_eq!(package("amzn", old), format!("kernel-devel-{old}"));
        assert_eq!(package("amzn", new), format!("kernel6.12-devel-{new}"));
        assert_eq!(package("fedora", "6.12.0-cb1.0.lto.fc41.x86_64"), "kernel-cachyos-lto-devel-matched");
        assert_eq!(package("nobara", "6.13.1-cb1.0.fc41.x86_64"), "kernel-cachyos-devel-matched");
        assert_eq!(package("fedora", "6.18.9-200.fc43.x86_64"), "kernel-devel-6.18.9-200.fc43.x86_64");
    }
    #[test]
    fn proxmox_and_the_lines_of_debian_have_their_packages() {
        assert_eq!(of_apt("6.14.11-2-pve"), "proxmox-headers-6.14.11-2-pve");
        assert_eq!(of_apt("6.2.16-20-pve"), "pve-headers-6.2.16-20-pve");
        assert_eq!(of_apt("6.8.0-45-generic"), "linux-headers-6.8.0-45-generic");
        assert_eq!(line_of_debian("6.1.0-37-cloud-amd64"), "linux-headers-cloud-amd64");
        assert_eq!(line_of_debian("6.12.43+deb13-rt-amd64"), "linux-headers-rt-amd64");
        assert_eq!(line_of_debian("6.12.43+deb13-cloud-arm64"), "linux-headers-cloud-arm64");
        assert_eq!(ordinary_of_debian("6.12.43+deb13-rt-arm64"), "linux-image-arm64 linux-headers-arm64");
        assert_eq!(line_of_debian("6.12.43+deb13-amd64"), "linux-headers-amd64");
    }
}
