//! Why the NVIDIA kernel module does not run a card that is present: the card is switched off or
//! passed to a virtual machine, another driver controls it, Secure Boot blocks the module, or it was
//! not built for the running kernel. Only the first cause that explains everything is reported.

use super::module_loading::{
    REFUSED, forbidden_to_load, forbidding, is_built, may_refuse, module_lines, secure_boot,
};
use super::pci::{cards, driver_of};
use crate::facts::{Family, Host, NvmlState};
use crate::finding::Finding;
use crate::remedies::build_module::build;
use crate::remedies::install_driver::{advice, install};
use crate::remedies::restart::restart;
use crate::remedies::{image, initramfs, signing_key};

/// Where dkms, akmods and Ubuntu's packages store the key that signs modules.
const KEYS: [&str; 3] =
    ["/var/lib/dkms/mok.pub", "/etc/pki/akmods/certs/public_key.der", "/var/lib/shim-signed/mok/MOK.der"];
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
    if let Some(finding) = super::power_profile::by_bbswitch(host) {
        return Some(finding);
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
            || match is_nova {
                true => format!("install NVIDIA's driver and disable {name}, then restart"),
                false => {
                    "install NVIDIA's driver, whose packages also disable nouveau, and restart".to_owned()
                }
            },
            str::to_owned,
        ));
        let commands = install(host);
        let is_whole = !commands.is_empty();
        let finding = commands.into_iter().fold(finding, Finding::command);
        return Some(match is_nova {
            true if advice(host).is_none() => blacklisted(host, finding.because(ABOUT_NOVA), NOVA_OFF),
            true => restart(host, finding.because(ABOUT_NOVA)),
            false if is_whole => restart(host, finding),
            false => finding,
        });
    }
    let title = format!("{name} controls the NVIDIA card, so NVIDIA's own module cannot be loaded");
    let finding = Finding::new("gpu.nouveau", title);
    if host.family() == Some(Family::NixOs) {
        let finding = finding.remedy(advice(host).unwrap_or_default());
        return Some(restart(host, install(host).into_iter().fold(finding, Finding::command)));
    }
    Some(if is_nova {
        let undo = match host.is_image() {
            true => "",
            false => "; to undo this, delete /etc/modprobe.d/blacklist-nova.conf and rebuild the initramfs",
        };
        let finding = finding.because(ABOUT_NOVA).remedy(format!("disable nova_core and restart{undo}"));
        blacklisted(host, finding, NOVA_OFF)
    } else {
        blacklisted(host, finding, NOUVEAU_OFF)
    })
}

/// The finding with a command that blacklists a module, and those that make it effective.
fn blacklisted(host: &Host, finding: Finding, command: &str) -> Finding {
    if host.is_image() {
        return restart(host, finding.command(image::WITHOUT_NOUVEAU));
    }
    // The initramfs has a copy of these files, and loads the driver before the disk is mounted.
    let rebuild = initramfs::rebuild(host);
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
    let is_elsewhere = match host.family() {
        Some(Family::Fedora) => host.is_image(),
        family => family == Some(Family::NixOs),
    };
    let key = key(host).filter(|_| !is_elsewhere);
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
