//! Why the driver could not initialize a card that it found. `RmInitAdapter failed!` says only that it failed; the cause
//! is in the lines before it, and the first of them counts, because later attempts fail for the state that it left.

use crate::facts::{Family, Host, Version, pci_addresses};
use crate::finding::Finding;
use crate::remedies::generation::{Generation, newest};
use crate::remedies::power_cycle::{power_cycle, words};
use crate::remedies::restart::restart;
use crate::remedies::{address_space, image, initramfs, upgrade};

/// What the driver says when a card is not initialized.
pub(super) const FAILED: [&str; 2] = ["RmInitAdapter failed", "rm_init_adapter failed"];

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The firmware of the machine left no room for the card's memory.
    NoAddressSpace,
    PowerCables,
    /// The card's own processor still runs from before.
    NotReset,
    /// The card's own firmware does not start.
    OwnFirmware,
    /// The firmware that the driver loads into the card does not start.
    Gsp,
    /// That firmware is of another version than the module.
    OtherFirmware,
    /// The machine had no memory for that firmware.
    NoMemory,
    /// A virtual machine that was not given the card's ROM.
    NoRom,
}

/// The texts of the log by which each cause is known.
const SIGNS: [(&str, Cause); 10] = [
    ("does not have the necessary power cables connected", Cause::PowerCables),
    ("unexpected WPR2 already up", Cause::NotReset),
    ("failed to wait for GFW_BOOT", Cause::OwnFirmware),
    ("failed to wait for GFW boot complete", Cause::OwnFirmware),
    ("GSP-FMC reported an error while attempting to boot GSP", Cause::NotReset),
    ("FSP command timed out", Cause::NotReset),
    (OTHER_FIRMWARE, Cause::OtherFirmware),
    ("Cannot initialize GSP firmware RM", Cause::Gsp),
    ("Failed to copy vbios to system memory", Cause::NoRom),
    ("did not find valid ROM signature", Cause::NoRom),
];

/// `_kgspFwContainerVerifyVersion: GSP firmware image version mismatch: got version 595.71.05, expected version 595.58.03`
const OTHER_FIRMWARE: &str = "GSP firmware image version mismatch";

/// The result of a start of the GSP for which there was no memory: `RmInitAdapter failed! (0x62:0x51:1858)`.
const NO_MEMORY: &str = "(0x62:0x51:";

/// The finding about cards that were not initialized, with the cause and remedy that the log gives. `known` is the
/// address of the card, if it is one.
pub(super) fn explained(host: &Host, finding: Finding, known: Option<&str>) -> Option<Finding> {
    let (cause, line) = cause(host, known)?;
    let versions = versions_of(&line);
    let finding = if finding.evidence.contains(&line) { finding } else { finding.seen(line) };
    let is_proprietary = || {
        let version = host.text("/proc/driver/nvidia/version").ok().flatten();
        version.is_some_and(|text| text.contains("Kernel Module") && !text.contains("Open Kernel Module"))
    };
    Some(match cause {
        Cause::NoAddressSpace => finding
            .because("the firmware of the machine left no address range for the card's memory, so the driver cannot use it")
            .remedy(address_space::words(host)),
        Cause::PowerCables => finding
            .because("the card says that a power cable is missing")
            .remedy("turn the machine off and connect all of the card's power cables"),
        Cause::NotReset => power_cycle(
            host,
            finding.because("the card still has the state of an earlier start, and is not reset by a restart").remedy(format!(
                "{}; if it fails again in the same way, install another version of the driver and the newest firmware (BIOS) of \
                 the machine",
                words(host)
            )),
        ),
        Cause::OwnFirmware => power_cycle(
            host,
            finding
                .because("the card's own firmware does not start: its power, its slot, or the card itself is at fault")
                .remedy(format!(
                    "{}; if it fails again, check the card's power cables, seat and riser, and try it in another machine: it may \
                     be defective",
                    words(host)
                )),
        ),
        Cause::OtherFirmware => of_other_version(host, finding, versions),
        Cause::NoMemory => no_memory(host, finding),
        // These cards run without GSP, under the proprietary module.
        Cause::Gsp if host.is_own_machine() && newest(host) != Some(Generation::Blackwell) && is_proprietary() => {
            let finding = finding
                .because("the firmware (GSP) that the driver loads into the card does not start; the proprietary module can do without")
                .remedy("turn the card's GSP off, which the proprietary module does not need, and restart; or install a newer driver")
                .command("echo 'options nvidia NVreg_EnableGpuFirmware=0' | sudo tee /etc/modprobe.d/nvidia-gsp.conf");
            restart(host, initramfs::rebuild(host).into_iter().fold(finding, Finding::command))
        }
        Cause::Gsp => {
            let finding = finding
                .because("the firmware (GSP) that the driver loads into the card does not start, often because of the driver's version or the state of the card")
                .remedy(format!(
                    "{}; if it fails again, install another version of the driver, and the newest firmware (BIOS) of the machine",
                    words(host)
                ));
            let packages = upgrade::packages(host).into_iter().filter(|_| host.is_own_machine());
            let finding = packages.fold(finding, Finding::command);
            power_cycle(host, finding)
        }
        Cause::NoRom => finding
            .because("the virtual machine cannot read the card's ROM (VBIOS), which the host's firmware used for its own screen")
            .remedy(
                "give the card's ROM to the virtual machine on its host (libvirt: `<rom file='/usr/share/vgabios/card.rom'/>`, \
                 Proxmox: `romfile=`; it must not be switched off there, as `rombar=0` does), or let the host start with another card \
                 as its first screen; if it fails at some starts only, stop the virtual machine and start it again with the card \
                 attached from the beginning",
            ),
    })
}

/// The versions of the firmware and the module, in the line that says that they differ.
fn versions_of(line: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once("expected version ")?;
    let of = |text: &str| Version::find(text).map(|version| version.to_string());
    Some((of(before.split_once("got version ")?.1)?, of(after)?))
}

/// An update brought the packages of the driver to two versions: the card is in order.
fn of_other_version(host: &Host, finding: Finding, versions: Option<(String, String)>) -> Finding {
    let Some((firmware, module)) = versions else { return finding };
    let finding = finding.because(format!(
        "the driver's packages have two versions: its module is {module}, its firmware (GSP) {firmware}, and one does not start the \
         other; the card itself is fine"
    ));
    if !host.is_own_machine() {
        return restart(host, finding);
    }
    if host.is_image() {
        let finding = finding
            .remedy("go back to the image before the last update, whose module and firmware fit each other, and restart")
            .command(image::ROLL_BACK);
        return restart(host, finding);
    }
    let back = match host.family() {
        Some(Family::Fedora | Family::RedHat) => " (`sudo dnf downgrade '*nvidia*'`)",
        _ => "",
    };
    let finding = finding.remedy(format!(
        "bring all packages of the driver to one version, with the module built for it, and restart; if the newest packages still \
         bring the module {module}, go back to {module} in all of them{back}"
    ));
    let finding = upgrade::packages(host).into_iter().fold(finding, Finding::command);
    let finding = match host.exists(&format!("/usr/src/nvidia-{firmware}")) {
        Ok(true) if !host.is_transactional() => finding
            .command(format!("sudo dkms remove nvidia/{module} --all"))
            .command(format!("sudo dkms install nvidia/{firmware} --force")),
        _ => finding,
    };
    // The update of a snapshot writes its initramfs as well.
    let rebuild = initramfs::rebuild(host).filter(|_| !host.is_transactional());
    restart(host, rebuild.into_iter().fold(finding, Finding::command))
}

/// The driver needs memory in one piece for the firmware, each time that it starts the card for a program.
fn no_memory(host: &Host, finding: Finding) -> Finding {
    let finding = finding
        .because(
            "the machine had no contiguous block of memory for the firmware (GSP) that the driver loads into the card; without \
             nvidia-persistenced it loads it again for each program",
        )
        .remedy(
            "close programs that use much memory, have the kernel compact what is free, and keep the card started with \
             nvidia-persistenced; if that is not enough, restart the machine",
        );
    let has_systemd = host.has_systemd();
    match host.is_own_machine() && has_systemd {
        true => finding
            .command("echo 3 | sudo tee /proc/sys/vm/drop_caches")
            .command("echo 1 | sudo tee /proc/sys/vm/compact_memory")
            .command("sudo systemctl enable nvidia-persistenced")
            .command("sudo systemctl restart nvidia-persistenced"),
        false => restart(host, finding),
    }
}

/// The first sign in the log, with its line. `known` is the address of the card, if it is one.
fn cause(host: &Host, known: Option<&str>) -> Option<(Cause, String)> {
    let log = host.kernel_log().ok()?;
    if !FAILED.iter().any(|text| log.contains(text)) {
        return None;
    }
    let cards: Vec<String> = match known {
        Some(card) => vec![card.to_owned()],
        None => log.lines().filter_map(failed_card).collect(),
    };
    if let Some(line) = without_space(&log, &cards) {
        return Some((Cause::NoAddressSpace, line));
    }
    sign(&log, known, host.is_virtual_machine())
}

/// The first sign of a card, or of any. Most signs do not name their card: then it is the next that failed.
fn sign(log: &str, known: Option<&str>, is_guest: bool) -> Option<(Cause, String)> {
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("NVRM")).collect();
    let is_own = |place: usize, line: &str| {
        let Some(known) = known else { return true };
        match pci_addresses(line).next() {
            Some(card) => card == known,
            None => lines[place..].iter().find_map(|line| failed_card(line)).is_none_or(|card| card == known),
        }
    };
    lines.iter().enumerate().find_map(|(place, line)| {
        let cause = SIGNS.iter().find(|(text, _)| line.contains(text))?.1;
        let cause = match cause {
            Cause::Gsp
                if lines[place..]
                    .iter()
                    .find(|line| failed_card(line).is_some())
                    .is_some_and(|line| line.contains(NO_MEMORY)) =>
            {
                Cause::NoMemory
            }
            cause => cause,
        };
        ((cause != Cause::NoRom || is_guest) && is_own(place, line)).then(|| (cause, line.trim().to_owned()))
    })
}

/// The card of a line such as `NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x62:0x40:1860)`.
pub(super) fn failed_card(line: &str) -> Option<String> {
    let is_failure = FAILED.iter().any(|text| line.contains(text));
    pci_addresses(line).find(|_| is_failure)
}

/// `pci 0000:41:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space`, or in older kernels `BAR 1: no
/// space for [mem size 0x10000000 64bit pref]`, unless a later attempt succeeded.
fn without_space(log: &str, cards: &[String]) -> Option<String> {
    let of_card = |line: &&str| {
        let is_card = pci_addresses(line).any(|card| cards.contains(&card));
        is_card && (line.contains(": BAR 1") || line.contains(": BAR 0") || line.contains(": BAR 3"))
    };
    // The kernel tries again, and the range of one number says nothing about that of another.
    let mut failed: Vec<(String, &str)> = Vec::new();
    for line in log.lines().filter(of_card) {
        let Some(range) = range_of(line) else { continue };
        if line.contains("no space") || line.contains("failed to assign") {
            if failed.iter().all(|(known, _)| *known != range) {
                failed.push((range, line));
            }
        } else if line.contains("assigned") || line.contains("assigning") {
            failed.retain(|(known, _)| *known != range);
        }
    }
    failed.first().map(|(_, line)| line.trim().to_owned())
}

/// The card and the range of a line: `0000:41:00.0: BAR 1`.
fn range_of(line: &str) -> Option<String> {
    let (before, after) = line.split_once(": BAR ")?;
    let card = before.split_whitespace().last()?;
    let number: String = after.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("{card} {number}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_that_is_assigned_later_is_no_fault() {
        let cards = ["0000:01:00".to_owned()];
        let failed =
            "[1.0] pci 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space";
        let assigned = "[1.1] pci 0000:01:00.0: BAR 1 [mem 0x8000000000-0x87ffffffff 64bit pref]: assigned";
        assert_eq!(without_space(failed, &cards).as_deref(), Some(failed));
        assert_eq!(without_space(&format!("{failed}\n{assigned}"), &cards), None);
        assert_eq!(without_space(failed, &["0000:02:00".to_owned()]), None);
        let other = "[1.2] pci 0000:01:00.0: BAR 0 [mem 0xfa000000-0xfaffffff]: assigned";
        assert_eq!(without_space(&format!("{failed}\n{other}"), &cards).as_deref(), Some(failed));
        let old = "[1.0] pci 0000:01:00.0: BAR 1: no space for [mem size 0x10000000 64bit pref]";
        assert_eq!(without_space(old, &cards).as_deref(), Some(old));
    }

    #[test]
    fn a_sign_explains_the_card_that_fails_next() {
        let cables = "NVRM: GPU 0000:17:00.0: GPU does not have the necessary power cables connected.";
        let first = "NVRM: GPU 0000:17:00.0: RmInitAdapter failed! (0x24:0x1c:1507)";
        let sign_of_second =
            "NVRM: _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP";
        let second = "NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x62:0x40:1860)";
        let log = [cables, first, sign_of_second, second].join("\n");
        let of = |known: Option<&str>| sign(&log, known, false).map(|(cause, _)| cause);
        assert_eq!(of(Some("0000:17:00")), Some(Cause::PowerCables));
        assert_eq!(of(Some("0000:65:00")), Some(Cause::NotReset));
        assert_eq!(of(Some("0000:99:00")), None);
        assert_eq!(of(None), Some(Cause::PowerCables));
    }

    #[test]
    fn a_firmware_of_another_version_is_told_from_one_that_fails() {
        let line = "NVRM: GPU0 _kgspFwContainerVerifyVersion: GSP firmware image version mismatch: got version 595.71.05, expected version 595.58.03";
        let log = format!(
            "{line}\nNVRM: GPU 0000:01:00.0: Cannot initialize GSP firmware RM\nNVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:1860)"
        );
        assert_eq!(sign(&log, None, false), Some((Cause::OtherFirmware, line.to_owned())));
        assert_eq!(versions_of(line), Some(("595.71.05".to_owned(), "595.58.03".to_owned())));
    }

    #[test]
    fn a_firmware_without_memory_is_told_from_one_that_fails() {
        let of = |code: &str| {
            let log = format!(
                "NVRM: GPU 0000:01:00.0: Cannot initialize GSP firmware RM\nNVRM: GPU 0000:01:00.0: RmInitAdapter failed! ({code})"
            );
            sign(&log, Some("0000:01:00"), false).map(|(cause, _)| cause)
        };
        assert_eq!(of("0x62:0x51:1858"), Some(Cause::NoMemory));
        assert_eq!(of("0x62:0x40:1858"), Some(Cause::Gsp));
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(NVRM|: |GPU |0000:01:00.0|RmInitAdapter failed|BAR 1|no space|assigned|\\PC|\n){0,40}") {
            let cards: Vec<String> = log.lines().filter_map(failed_card).collect();
            let _ = (versions_of(&log), without_space(&log, &cards), sign(&log, cards.first().map(String::as_str), true));
        }
    }
}
