//! The kernels of Arch and its relatives. Each is a package, such as `linux-zen`, and NVIDIA's modules come in
//! packages for one kernel or, built by dkms, for all whose headers are installed.

use super::generation::{Generation, newest};
use super::restart::restart;
use crate::facts::Host;
use crate::finding::Finding;

/// The package of a kernel: the system says it, and otherwise it follows from the release: `6.12.9-1-lts` is of
/// `linux-lts`, `6.13.1-zen1-1-zen` of `linux-zen`, `6.13.1-arch1-1` of `linux`, `6.17.8-2-cachyos-lts` of
/// `linux-cachyos-lts`, and `6.12.48-1-MANJARO` of `linux612`.
pub(crate) fn package(host: &Host, kernel: &str) -> String {
    let named = host.text(&format!("/usr/lib/modules/{kernel}/pkgbase")).ok().flatten();
    if let Some(name) = named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) {
        return name;
    }
    if kernel.ends_with("-MANJARO") {
        let numbers: String = kernel.split('.').take(2).collect();
        return format!("linux{numbers}");
    }
    const LINES: [&str; 6] = ["lts", "zen", "hardened", "rt", "cachyos", "xanmod"];
    let words = kernel.split('-').skip_while(|word| !LINES.contains(word));
    words
        .filter(|word| !word.chars().all(|letter| letter.is_ascii_digit()))
        .fold("linux".to_owned(), |name, word| name + "-" + word)
}

/// Another installed kernel that has NVIDIA's module.
fn other_with_module(host: &Host, kernel: &str) -> Option<String> {
    const FOLDERS: [&str; 4] = ["extramodules", "updates/dkms", "kernel/drivers/video", "extra"];
    let kernels = host.folder("/usr/lib/modules").ok().flatten()?;
    let has_module = |name: &String| {
        FOLDERS.iter().any(|folder| {
            let names =
                [format!("/usr/lib/modules/{name}/{folder}"), format!("/lib/modules/{name}/{folder}")];
            let names =
                names.iter().find_map(|folder| host.folder(folder).ok().flatten()).unwrap_or_default();
            names.iter().any(|name| name == "nvidia.ko" || name.starts_with("nvidia.ko."))
        })
    };
    kernels.into_iter().find(|name| name != kernel && has_module(name))
}

/// Whether another kernel than the one that runs has NVIDIA's module.
pub(super) fn has_module_of_other(host: &Host, kernel: &str) -> bool {
    other_with_module(host, kernel).is_some()
}

/// The finding, with the package that has the module for the kernel that runs.
pub(super) fn for_this_kernel(host: &Host, finding: Finding, kernel: &str) -> Finding {
    let package = package(host, kernel);
    let (finding, other) = match other_with_module(host, kernel) {
        Some(other) => {
            let finding = finding.because(format!(
                "the installed driver has its module for the kernel {other}, and {kernel} ({package}) is running"
            ));
            (finding, format!(", or choose the kernel {other} when the machine starts"))
        }
        None => (finding, String::new()),
    };
    // Manjaro and CachyOS have a package with the module for each of their kernels.
    let has_own = package.starts_with("linux-cachyos") || kernel.ends_with("-MANJARO");
    let (what, command) = match newest(host) {
        Some(Generation::BeforeTuring) => {
            let text = "install the driver for this generation of cards, which builds its module for every kernel \
                        (nvidia-580xx-dkms of the AUR), with the headers of this kernel";
            (text, format!("sudo pacman -Syu {package}-headers"))
        }
        _ if has_own => {
            let module = if package.starts_with("linux-cachyos") { "nvidia-open" } else { "nvidia" };
            (
                "install the package that has the module for this kernel",
                format!("sudo pacman -Syu {package}-{module}"),
            )
        }
        _ => (
            "install the package that builds the module for every kernel, in place of the one for another kernel",
            format!("sudo pacman -Syu nvidia-open-dkms {package}-headers"),
        ),
    };
    restart(host, finding.remedy(format!("{what}, and restart{other}")).command(command))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kernel_is_a_package() {
        let (host, _) = Host::from_value(json!({
            "version": 1,
            "files": { "/usr/lib/modules/6.1.1-1-custom/pkgbase": "linux-of-mara\n" },
        }))
        .unwrap();
        for (kernel, name) in [
            ("6.13.1-arch1-1", "linux"),
            ("6.12.9-1-lts", "linux-lts"),
            ("6.13.1-zen1-1-zen", "linux-zen"),
            ("6.17.9-hardened1-1-hardened", "linux-hardened"),
            ("6.17.8-2-cachyos", "linux-cachyos"),
            ("6.12.60-2-cachyos-lts", "linux-cachyos-lts"),
            ("6.12.48-1-MANJARO", "linux612"),
            ("6.1.1-1-custom", "linux-of-mara"),
        ] {
            assert_eq!(package(&host, kernel), name, "{kernel}");
        }
    }
}
