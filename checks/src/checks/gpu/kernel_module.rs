//! Why the NVIDIA kernel module does not run a card that is present: the card is switched off or
//! passed to a virtual machine, another driver controls it, Secure Boot blocks the module, or it was
//! not built for the running kernel. Only the first cause that explains everything is reported.

use super::pci::{cards, driver_of};
use crate::facts::{Family, Host, NvmlState};
use crate::finding::Finding;
use crate::remedies::build_module::build;
use crate::remedies::install_driver::{advice, install};
use crate::remedies::restart::restart;
use crate::remedies::{image, signing_key};

/// Kernel messages when Secure Boot blocks a module.
pub(super) const REFUSED: [&str; 5] = [
    "unsigned module loading is restricted",
    "Key was rejected by service",
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "Required key not available",
];
/// Where dkms, akmods and Ubuntu's packages store the key that signs modules.
const KEYS: [&str; 3] =
    ["/var/lib/dkms/mok.pub", "/etc/pki/akmods/certs/public_key.der", "/var/lib/shim-signed/mok/MOK.der"];
/// The UEFI variable for Secure Boot, whose last byte is 1 if it is on.
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

const ABOUT_NOVA: &str = "the kernel loaded nova_core, its successor to nouveau, which does not support CUDA";
const NOVA_OFF: &str = r"printf 'blacklist nova_core\nblacklist nova_drm\nblacklist nova\n' | sudo tee /etc/modprobe.d/blacklist-nova.conf";
const NOUVEAU_OFF: &str = r"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf";

/// The first of the causes above that applies.
pub(super) fn reason(host: &Host, state: &NvmlState) -> Option<Finding> {
    let is_installed = matches!(state, NvmlState::Failed(_));
    switched_off(host)
        .or_else(|| behind_nouveau(host).filter(|_| is_installed))
        .or_else(|| held_by_nouveau(host, state))
        .or_else(|| {
            let of_driver = || {
                off_the_bus(host)
                    .or_else(|| super::driver_unsuited::find(host))
                    .or_else(|| super::lockdown::find(host))
                    .or_else(|| unsigned(host))
                    .or_else(|| not_built(host))
                    .or_else(|| super::unloadable::find(host))
                    .or_else(|| forbidden_to_load(host))
            };
            is_installed.then(of_driver).flatten()
        })
}

/// Why NVIDIA's module is not there, if nouveau is forbidden and runs all the same: RPM Fusion loads it for a screen to
/// be there, when the other module did not load. To forbid it again does not help.
fn behind_nouveau(host: &Host) -> Option<Finding> {
    if host.has_module("nouveau") != Ok(true) || forbidding(host, "nouveau").is_none() {
        return None;
    }
    super::driver_unsuited::find(host)
        .or_else(|| super::lockdown::find(host))
        .or_else(|| unsigned(host).filter(|_| !host.kernel_lines(&REFUSED).is_empty()))
        .or_else(|| not_built(host))
}

/// A card that a laptop's power profile switched off, or that was passed to a virtual machine.
pub(super) fn switched_off(host: &Host) -> Option<Finding> {
    let profile = host.command(&["prime-select", "query"]).ok().flatten().map(|output| output.text());
    if let Some(profile) = profile.filter(|profile| matches!(profile.trim(), "intel" | "amd")) {
        let title =
            format!("the NVIDIA card is switched off: the prime-select profile is `{}`", profile.trim());
        let finding = Finding::new("gpu.switched-off", title);
        return Some(restart(host, finding.command("sudo prime-select on-demand")));
    }
    let given_away =
        cards(host).into_iter().find(|card| driver_of(host, card) == Some("vfio-pci".to_owned()))?;
    let title = format!("the NVIDIA card {given_away} is reserved for a virtual machine by vfio-pci");
    let remedy = "remove the card's ID from vfio-pci's options (/etc/modprobe.d and the kernel command \
                  line), then restart; or train inside that virtual machine";
    Some(
        Finding::new("gpu.switched-off", title).remedy(remedy).command(format!("lspci -nnk -s {given_away}")),
    )
}

/// A driver that looked for its card when it was loaded, and found none on the PCI bus.
fn off_the_bus(host: &Host) -> Option<Finding> {
    let said = host.kernel_lines(&["NVRM: No NVIDIA GPU found"]);
    if host.guest().is_some() || !super::pci::has_no_card(host) {
        return None;
    }
    if let Some(finding) = super::power_profile::find(host) {
        return Some(finding);
    }
    // Nothing loads the driver for a card that is not on the bus, so that the log may be silent.
    if said.is_empty() && !host.is_laptop() {
        return None;
    }
    let title = "the NVIDIA driver is installed, but there is no NVIDIA card on the PCI bus";
    let finding = Finding::new("gpu.switched-off", title);
    let finding = match host.is_laptop() {
        true => finding
            .because("laptops switch the card off to save power (Eco mode, integrated graphics only), and it does not always come back")
            .remedy(
                "turn the card on in the maker's program or in the firmware (ASUS: supergfxctl -m Hybrid), then rescan the bus; if \
                 the card does not appear, restart; if the laptop has no NVIDIA card, train with --device cpu",
            )
            .command("echo 1 | sudo tee /sys/bus/pci/rescan")
            .command("sudo modprobe nvidia"),
        false => finding
            .because("a card that has no power or is not seated properly, or a slot that is disabled in the firmware, does not appear on the bus")
            .remedy(
                "if the machine has a card, switch it off, check the card's seat and power cables and the slot's setting in the \
                 firmware; if it has none, train with --device cpu",
            ),
    };
    Some(said.into_iter().take(1).fold(finding, Finding::seen))
}

/// A module that is built, and that a setting keeps from being loaded: programs that switch a laptop to its other card
/// leave such a file, and so do guides against nouveau that name too much.
pub(super) fn forbidden_to_load(host: &Host) -> Option<Finding> {
    let (place, remedy) = match forbidding(host, "nvidia")? {
        Forbidding::Option(option) => (
            format!("`{option}` in the kernel command line"),
            "remove that option from the kernel command line, then restart".to_owned(),
        ),
        Forbidding::File(file) => {
            let remedy = format!(
                "if a program such as envycontrol or prime-select wrote {file}, switch the card on with it; otherwise remove the \
                 line for nvidia from the file and rebuild the initramfs, then restart"
            );
            (file, remedy)
        }
    };
    let title = format!("the NVIDIA driver's module is not allowed to load: {place} forbids it");
    Some(
        Finding::new("gpu.switched-off", title)
            .because("the module is installed, and a setting of this system keeps it from being loaded")
            .remedy(remedy),
    )
}

/// What forbids a module to load.
enum Forbidding {
    /// An option of the kernel command line.
    Option(String),
    /// A file of modprobe.
    File(String),
}

fn forbidding(host: &Host, module: &str) -> Option<Forbidding> {
    let line = host.text("/proc/cmdline").ok().flatten().unwrap_or_default();
    let names_it = |list: &str| list.split(',').any(|one| one.trim() == module);
    // `rd.driver.blacklist` is for the initramfs only, which is enough for a module that nothing loads later.
    let option = line.split_whitespace().find(|word| {
        ["modprobe.blacklist=", "module_blacklist=", "rd.driver.blacklist="]
            .iter()
            .filter(|name| module == "nvidia" || !name.starts_with("rd."))
            .any(|name| word.strip_prefix(name).is_some_and(names_it))
    });
    if let Some(option) = option {
        return Some(Forbidding::Option(option.to_owned()));
    }
    let rule = |text: &str| {
        text.lines().map(str::trim).any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["blacklist", module])
                || words.starts_with(&["install", module])
                    && words.last().is_some_and(|last| *last == "/bin/false" || *last == "/bin/true")
                || words.starts_with(&["alias", module, "off"])
        })
    };
    let folders = ["/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d", "/run/modprobe.d"];
    let file = folders.iter().find_map(|folder| {
        let names = host.folder(folder).ok().flatten()?;
        let files =
            names.into_iter().filter(|name| name.ends_with(".conf")).map(|name| format!("{folder}/{name}"));
        files.into_iter().find(|file| host.text(file).ok().flatten().is_some_and(|text| rule(&text)))
    });
    file.map(Forbidding::File)
}

fn held_by_nouveau(host: &Host, state: &NvmlState) -> Option<Finding> {
    // The driver of the module nova_core calls itself NovaCore.
    const OF_KERNEL: [&str; 4] = ["nouveau", "NovaCore", "nova_core", "nova-core"];
    let drivers: Vec<String> = cards(host).into_iter().filter_map(|card| driver_of(host, &card)).collect();
    let of_kernel = drivers.iter().find(|name| OF_KERNEL.contains(&name.as_str()));
    let is_loaded = |name: &str| host.has_module(name).unwrap_or(false);
    let is_nova = match of_kernel {
        Some(name) => name != "nouveau",
        None if is_loaded("nouveau") => false,
        // It may be loaded for a card that has another driver.
        None if drivers.is_empty() && is_loaded("nova_core") => true,
        None => return None,
    };
    let name = if is_nova { "nova_core" } else { "nouveau" };
    if *state == NvmlState::NoLibrary {
        let title = format!(
            "the NVIDIA card uses {name}, which cannot run CUDA, and NVIDIA's driver is not installed"
        );
        let finding = Finding::new("gpu.nouveau", title).remedy(advice(host).map_or_else(
            || format!("install NVIDIA's driver and disable {name}, then restart"),
            str::to_owned,
        ));
        let finding = install(host).into_iter().fold(finding, Finding::command);
        return Some(match is_nova {
            true if advice(host).is_none() => blacklisted(host, finding.because(ABOUT_NOVA), NOVA_OFF),
            true => finding.because(ABOUT_NOVA),
            // NVIDIA's packages disable it.
            false => finding,
        });
    }
    let title = format!("{name} controls the NVIDIA card, so NVIDIA's own module cannot be loaded");
    let finding = Finding::new("gpu.nouveau", title);
    if host.family() == Some(Family::NixOs) {
        let finding = finding.remedy(advice(host).unwrap_or_default());
        return Some(install(host).into_iter().fold(finding, Finding::command));
    }
    Some(if is_nova {
        let finding = finding.because(ABOUT_NOVA).remedy(
            "disable nova_core and restart; to undo this, delete /etc/modprobe.d/blacklist-nova.conf and rebuild the initramfs",
        );
        blacklisted(host, finding, NOVA_OFF)
    } else {
        blacklisted(host, finding, NOUVEAU_OFF)
    })
}

/// The finding with a command that blacklists a module, and those that make it effective.
fn blacklisted(host: &Host, finding: Finding, command: &str) -> Finding {
    // The initramfs has a copy of these files, and loads the driver before the disk is mounted.
    let rebuild =
        ["sudo update-initramfs -u", "sudo dracut --force", "sudo dracut --force", "sudo mkinitcpio -P"];
    let rebuild = host.package_command(rebuild);
    restart(host, rebuild.into_iter().fold(finding.command(command), Finding::command))
}

fn unsigned(host: &Host) -> Option<Finding> {
    let refused = host.kernel_lines(&REFUSED);
    let built = || is_built(host) == Some(true);
    if refused.is_empty() {
        if !(secure_boot(host) && built() && may_refuse(host)) {
            return None;
        }
        // A setting that keeps the module from being loaded explains why the log has no refusal.
        if let Some(finding) = forbidden_to_load(host) {
            return Some(finding);
        }
    }
    let finding = Finding::new("gpu.driver-unsigned", "Secure Boot blocks the NVIDIA driver's kernel module");
    let finding = refused.into_iter().take(2).fold(finding, Finding::seen);
    if image::of(host).is_some() {
        return Some(restart(
            host,
            finding
                .remedy(
                    "enroll the key that signed this image's modules, with the password `universalblue`; at the next start, \
                     select Enroll MOK on the blue screen and enter it; or turn off Secure Boot in the firmware",
                )
                .command(image::ENROLL),
        ));
    }
    let key = key(host).filter(|_| !(host.family() == Some(Family::Fedora) && host.is_image()));
    let Some(key) = key else { return Some(signing_key::without(host, finding)) };
    Some(restart(host, finding.command(format!("sudo mokutil --import {key}"))))
}

/// The key that exists; if that is unknown, the one of the distribution's usual packages. `None` if all
/// are known to be missing.
fn key(host: &Host) -> Option<&'static str> {
    let mut keys = KEYS;
    match host.distribution().ok().map(|distribution| distribution.id).as_deref() {
        Some("ubuntu") => keys.swap(0, 2),
        Some("fedora") => keys.swap(0, 1),
        _ => {}
    }
    let seen = |wanted| keys.into_iter().find(|key| host.exists(key).ok() == wanted);
    seen(Some(true)).or_else(|| seen(None))
}

pub(super) fn secure_boot(host: &Host) -> bool {
    let state = host.command(&["mokutil", "--sb-state"]).ok().flatten().map(|output| output.all_text());
    match state {
        Some(text) if text.contains("SecureBoot") => text.contains("SecureBoot enabled"),
        _ => host.file(SECURE_BOOT).ok().flatten().is_some_and(|bytes| bytes.last() == Some(&1)),
    }
}

/// Whether this kernel may refuse modules, as far as known: Secure Boot alone does not make it, on distributions whose
/// kernels are not locked down then, and the distribution's own signature is accepted.
pub(super) fn may_refuse(host: &Host) -> bool {
    const TRUSTED: [&str; 4] = ["Canonical", "openSUSE", "SUSE Linux", "Red Hat"];
    let text = |path: &str| host.text(path).ok().flatten();
    let is_open = text("/sys/kernel/security/lockdown").is_some_and(|text| text.contains("[none]"));
    let enforces = text("/sys/module/module/parameters/sig_enforce").is_some_and(|text| text.trim() == "Y");
    let signer = host.command(&["modinfo", "-F", "signer", "nvidia"]).ok().flatten();
    let is_trusted = signer.is_some_and(|output| TRUSTED.iter().any(|name| output.text().contains(name)));
    (!is_open || enforces) && !is_trusted
}

fn not_built(host: &Host) -> Option<Finding> {
    if is_built(host)? {
        return None;
    }
    let kernel = host.kernel_release().ok()?;
    let title = format!("the NVIDIA driver's module is not built for the running kernel {kernel}");
    let finding = Finding::new("gpu.driver-not-built", title);
    let finding = module_lines(host).into_iter().fold(finding, Finding::seen);
    Some(build(host, finding, &kernel))
}

/// Whether the module was built for the running kernel; `None` if unknown.
pub(super) fn is_built(host: &Host) -> Option<bool> {
    let kernel = host.kernel_release().ok()?;
    let lines = module_lines(host);
    if !lines.is_empty() {
        let of_kernel = |line: &String| line.split([',', ':']).any(|word| word.trim() == kernel);
        return Some(lines.iter().any(|line| of_kernel(line) && line.contains("installed")));
    }
    if let Ok(Some(found)) = host.command(&["modinfo", "-F", "version", "nvidia"]) {
        return Some(found.succeeded());
    }
    // A recording may have the same question in other words.
    let recorded = host.recorded_outputs("modinfo");
    recorded.iter().find(|(words, _)| words.ends_with(" nvidia")).map(|(_, output)| output.succeeded())
}

/// `nvidia/535.113.01, 6.2.0-34-generic, x86_64: installed`
fn module_lines(host: &Host) -> Vec<String> {
    let status = host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text());
    let status = status.unwrap_or_default();
    status.lines().map(str::trim).filter(|line| line.starts_with("nvidia")).map(ToOwned::to_owned).collect()
}
