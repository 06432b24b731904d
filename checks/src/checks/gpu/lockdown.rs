//! Whether the kernel refuses NVIDIA's module although Secure Boot is off: it is locked down or accepts signed modules
//! only by an option, or loads no module any more.

use super::module_loading::{REFUSED, forbidden_to_load, is_built, may_refuse, secure_boot};
use crate::facts::Host;
use crate::finding::Finding;
use crate::remedies::kernel_option::{options, place, remove};
use crate::remedies::restart::restart;

/// The finding, if the module is there and this is why it is not loaded.
pub(super) fn find(host: &Host) -> Option<Finding> {
    if is_built(host) == Some(false) {
        return None;
    }
    let text = |path: &str| host.text(path).ok().flatten().unwrap_or_default();
    if text("/proc/sys/kernel/modules_disabled").trim() == "1" {
        return Some(without_modules(host));
    }
    if secure_boot(host) {
        return None;
    }
    let said = host.kernel_lines(&REFUSED);
    let asked = options(host, is_strict);
    let is_locked = || {
        text("/sys/kernel/security/lockdown").split('[').nth(1).is_some_and(|mode| !mode.starts_with("none"))
    };
    // Without a log, an option that makes the kernel strict has to be there.
    let may_be = || !asked.is_empty() && is_built(host) == Some(true) && may_refuse(host);
    if said.is_empty() && (!may_be() || forbidden_to_load(host).is_some()) {
        return None;
    }
    let why = match (&asked[..], is_locked()) {
        ([], true) => "it is locked down".to_owned(),
        // Secure Boot that is unknown here, and not off.
        ([], false) => return None,
        (options, _) => format!("`{}` in its command line forbids it", options.join(" ")),
    };
    let title = format!("the kernel refuses the NVIDIA driver's module, although Secure Boot is off: {why}");
    let finding = said.into_iter().take(2).fold(Finding::new("gpu.driver-unsigned", title), Finding::seen);
    let finding = finding.because(
        "the kernel loads only modules with a signature that it trusts, which the driver's module does not have; enrolling a \
         key with mokutil helps only with Secure Boot on",
    );
    let is_bottlerocket = host.distribution().is_ok_and(|distribution| distribution.id == "bottlerocket");
    Some(match &asked[..] {
        _ if is_bottlerocket => finding
            .remedy("set `kernel.lockdown` to `none`, or start the variant of Bottlerocket with NVIDIA's driver, whose modules are signed")
            .command("apiclient set kernel.lockdown=none")
            .command("apiclient reboot"),
        [] => restart(
            host,
            finding.remedy(
                "start a kernel that is not locked down: find the service that writes to /sys/kernel/security/lockdown, or choose the \
                 distribution's ordinary kernel when the machine starts; or sign the module with a key that this kernel trusts",
            ),
        ),
        options => {
            let finding = finding.remedy(format!(
                "remove `{}` from the kernel command line{}, and restart; or install a driver whose modules the distribution \
                 has signed, if an administrator set the option to protect the machine",
                options.join(" "),
                place(host)
            ));
            remove(host, finding, options)
        }
    })
}

/// Options by which the kernel takes signed modules only.
fn is_strict(word: &str) -> bool {
    match word.split_once('=') {
        Some(("lockdown", mode)) => mode != "none",
        Some(("module.sig_enforce", value)) => !matches!(value, "0" | "n" | "N" | "off"),
        Some(_) => false,
        None => word == "module.sig_enforce",
    }
}

/// A system that was hardened against new modules before the driver's were loaded.
fn without_modules(host: &Host) -> Finding {
    let title = "the NVIDIA driver's module cannot be loaded: `kernel.modules_disabled` is set, until the machine is restarted";
    restart(
        host,
        Finding::new("gpu.driver-unsigned", title)
            .seen("/proc/sys/kernel/modules_disabled: 1")
            .because("a service or a file of /etc/sysctl.d has forbidden loading modules, which cannot be allowed again before \
                      a restart")
            .remedy(
                "have the driver's modules loaded early, at boot, and restart; if they are still refused, remove \
                 `kernel.modules_disabled` from /etc/sysctl.conf and /etc/sysctl.d",
            )
            .command(r"printf 'nvidia\nnvidia_uvm\n' | sudo tee /etc/modules-load.d/nvidia.conf"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_ask_for_signatures_are_strict() {
        for word in
            ["lockdown=integrity", "lockdown=confidentiality", "module.sig_enforce=1", "module.sig_enforce"]
        {
            assert!(is_strict(word), "{word}");
        }
        for word in ["lockdown=none", "module.sig_enforce=0", "lockdown", "quiet", "nvidia.sig_enforce=1"] {
            assert!(!is_strict(word), "{word}");
        }
    }
}
