//! Modules that a package brings ready for one kernel of RHEL or its relatives: those of NVIDIA's, ELRepo's and AlmaLinux's
//! repositories. Later kernels of a release get links to it, in the folder weak-updates.

use super::restart::restart;
use crate::facts::Host;
use crate::finding::Finding;

/// The numbers of a kernel's name, by which `5.14.0-427.el9` comes after `5.14.0-70.el9`.
pub(super) fn numbers(kernel: &str) -> Vec<u64> {
    kernel.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Another installed kernel that has a module from a package, newest last.
pub(super) fn other_kernel(host: &Host, kernel: &str) -> Option<String> {
    let mut kernels = host.folder("/lib/modules").ok().flatten()?;
    kernels.sort_by_key(|name| numbers(name));
    let has_module = |name: &String| {
        ["extra", "extra/drivers/video", "weak-updates"].iter().any(|folder| {
            let inside =
                host.folder(&format!("/lib/modules/{name}/{folder}")).ok().flatten().unwrap_or_default();
            inside.iter().any(|name| is_module(name))
        })
    };
    // A kernel that was removed leaves its folder if something else has put files there.
    let is_there = |name: &String| host.exists(&format!("/boot/vmlinuz-{name}")) != Ok(false);
    kernels.into_iter().rfind(|name| name != kernel && is_there(name) && has_module(name))
}

/// The folder of the module, or the module itself.
fn is_module(name: &str) -> bool {
    name == "nvidia" || name.starts_with("nvidia-open") || name.starts_with("nvidia.ko")
}

/// The finding with the other kernel that has the module.
pub(super) fn start_other(host: &Host, finding: Finding, kernel: &str) -> Finding {
    let other = other_kernel(host, kernel).unwrap_or_default();
    let finding = finding
        .because(format!("the installed package has a prebuilt module for the kernel {other} only"))
        .remedy(format!(
            "start the kernel {other}, until there is a package for {kernel}; or change to the module that is built here for \
             each kernel (`sudo dnf install --allowerasing kmod-nvidia-open-dkms`, on RHEL 8 and 9 after `sudo dnf module \
             switch-to nvidia-driver:open-dkms`)"
        ))
        .command(format!("sudo grubby --set-default=/boot/vmlinuz-{other}"));
    restart(host, finding)
}

/// A link of this kernel to a module that is not there: the folder of its kernel was never made, or was removed.
pub(super) fn dangling(host: &Host, kernel: &str) -> Option<(String, String)> {
    let folder = format!("/lib/modules/{kernel}/weak-updates");
    let names = host.folder(&folder).ok().flatten()?;
    names.iter().filter(|name| is_module(name)).find_map(|name| {
        let path = format!("{folder}/{name}");
        let inside = host.folder(&path).ok().flatten().unwrap_or_default();
        let files = inside.iter().filter(|name| is_module(name)).map(|name| format!("{path}/{name}"));
        [path.clone()].into_iter().chain(files).find_map(|link| {
            let target = host.link(&link).ok().flatten()?;
            (target.starts_with("/lib/modules/") && host.exists(&target) == Ok(false))
                .then_some((link, target))
        })
    })
}

/// The finding about such a link: the package puts the module there again.
pub(super) fn repair(finding: Finding, (link, target): (String, String)) -> Finding {
    finding
        .seen(format!("{link} leads to {target}, which does not exist"))
        .because("this kernel has only a link to the module that was built for another kernel, and that file is gone")
        .remedy(
            "update the package of the module, in case there is one for this kernel now; otherwise install it again, which brings the \
             file back, and load the module",
        )
        .command("sudo dnf upgrade --refresh 'kmod-nvidia*'")
        .command("sudo dnf reinstall 'kmod-nvidia*'")
        .command("sudo depmod -a")
        .command("sudo modprobe nvidia")
}
