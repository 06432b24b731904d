//! Whether the kernel log has errors of a disk that a run reads or writes. Such a disk, its cable or its
//! controller fails: ranks then wait in the kernel, or checkpoints cannot be written. What to do follows from
//! the message of the kernel.

use yolo_base::mounts;

use super::health::{LOOK_AT_HEALTH, has_the_disks, look_at_health};
use crate::checks::{Answer, Check};
use crate::facts::view::data_set::Described;
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::initramfs;
use crate::remedies::restart::restart;

pub(super) static CHECK: Check = Check {
    question: "Does the kernel log have errors of the run's disks?",
    reports: &["disk.failing"],
    preflight: false,
    run,
};

/// What fails, by the message of the kernel; the first kind that occurs decides the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The disk cannot read what it stores.
    Medium,
    /// An NVMe disk that no longer answers at all, mostly because of its power saving.
    Asleep,
    /// A disk of an array was given up.
    Array,
    /// Commands fail on the way between the disk and its controller.
    Link,
    /// The file system contradicts itself.
    FileSystem,
    /// Anything else.
    Other,
}

/// Words of the kernel about a disk that fails, or about its file system.
const WORDS: [(&str, Fault); 27] = [
    ("Medium Error", Fault::Medium),
    ("medium error", Fault::Medium),
    ("Unrecovered read error", Fault::Medium),
    ("controller is down; will reset", Fault::Asleep),
    ("Device not ready; aborting", Fault::Asleep),
    ("Removing after probe failure", Fault::Asleep),
    ("Disabling device after reset failure", Fault::Asleep),
    ("timeout, reset controller", Fault::Other),
    ("timeout, aborting", Fault::Other),
    ("timeout, disable controller", Fault::Other),
    ("Disk failure on", Fault::Array),
    (": failed command: READ", Fault::Link),
    (": failed command: WRITE", Fault::Link),
    (": failed command: FLUSH", Fault::Link),
    (UAS, Fault::Link),
    ("hostbyte=DID_NO_CONNECT", Fault::Link),
    ("rejecting I/O to offline device", Fault::Link),
    ("rejecting I/O to dead device", Fault::Link),
    ("EXT4-fs error", Fault::FileSystem),
    ("csum failed", Fault::FileSystem),
    ("Metadata corruption detected", Fault::FileSystem),
    ("Corruption detected. Unmount", Fault::FileSystem),
    ("etadata I/O error", Fault::Other),
    ("log I/O error", Fault::Other),
    ("BTRFS error", Fault::Other),
    ("critical target error", Fault::Other),
    ("I/O error", Fault::Other),
];
/// A command to a USB disk that did not end, after which the kernel resets the disk: each takes half a minute.
const UAS: &str = "uas_eh_abort_handler";
/// Commands that give space back, which some disks refuse without harm.
const HARMLESS: [&str; 4] = ["DISCARD", "WRITE_ZEROES", "WRITE_SAME", "WRITE SAME"];
/// So many failed commands of a link are no accident of the start.
const REPEATED: usize = 2;

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let data = intent.data.clone().filter(|path| path.starts_with('/'));
    let folders = [
        ("the data set", images(host, intent)),
        ("the data set", data),
        ("the folder of runs", intent.project.clone().or(places.working)),
        ("libtorch, weights and data sets", places.data),
    ];
    for (what, folder) in folders.into_iter().filter_map(|(what, folder)| Some((what, folder?))) {
        // A file system that was made read-only is reported with these lines.
        let space = host.file_system(&folder).ok();
        if space.as_ref().is_some_and(|space| space.options.iter().any(|option| option == "ro")) {
            continue;
        }
        let lines = errors(host, &folder);
        if let Some(disk) = lines.first().and_then(|_| named(&host.disks_of(&folder), &lines)) {
            let title = format!("the disk {disk}, which holds {what}, has errors");
            let fault = lines.iter().filter_map(|line| fault_of(line)).min().unwrap_or(Fault::Other);
            let kind = space.and_then(|space| space.kind).unwrap_or_default();
            let finding = lines.into_iter().take(3).fold(Finding::new("disk.failing", title), Finding::seen);
            if host.is_wsl2().unwrap_or(false) {
                return Ok(vec![of_windows(finding)]);
            }
            if finding.evidence.iter().any(|line| line.contains(UAS)) && has_the_disks(host) {
                return Ok(vec![without_uas(host, finding, &disk)]);
            }
            let is_usb = is_of_usb(host, &folder);
            return Ok(vec![with_remedy(host, finding, fault, is_usb, &kind)]);
        }
        if let Some(finding) = degraded(host, &folder, what).or_else(|| by_smart(host, &folder, what)) {
            return Ok(vec![finding]);
        }
    }
    Ok(Vec::new())
}

/// The disk that the lines name; a volume on several disks is named if they name none of these.
fn named(disks: &[String], lines: &[String]) -> Option<String> {
    let is_named =
        |disk: &&String| lines.iter().any(|line| words_of(line).any(|word| is_part_of(word, disk)));
    disks.iter().find(is_named).or_else(|| disks.first()).cloned()
}

/// The names in a line of the kernel: `nvme0`, `sda2`, `ata1.00`.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    line.split(move |letter: char| !is_word(letter)).map(|word| word.trim_end_matches('.'))
}

/// The finding for users of a machine that others run.
fn of_others(host: &Host, finding: Finding) -> Finding {
    let who = if host.is_virtual_machine() && host.is_own_machine() {
        "to the cloud provider or whoever runs the host"
    } else {
        "to those who run this machine"
    };
    finding.remedy(format!(
        "copy the data to another disk or machine and run from there; send the lines about this disk in the kernel log \
         (`dmesg`) {who}: the disk and its cables are theirs"
    ))
}

/// The folder of the first training images, which may be on another disk than the YAML file.
fn images(host: &Host, intent: &Intent) -> Option<String> {
    let Ok(Described::Yaml(set)) = host.data_set(intent.data.as_deref()?) else { return None };
    let entry = set.entries("train").into_iter().next()?;
    set.place(host, &entry).ok().flatten().filter(|path| path.starts_with('/'))
}

fn fault_of(line: &str) -> Option<Fault> {
    // How the SATA driver reports an uncorrectable sector.
    if line.contains("{ UNC }") {
        return Some(Fault::Medium);
    }
    WORDS.iter().find(|(words, _)| line.contains(words)).map(|(_, fault)| *fault)
}

/// Whether this is a container on a machine that may well be the user's own, so that the advice is for its host.
fn is_on_a_host(host: &Host) -> bool {
    let is_engine = matches!(host.place(), Place::Docker | Place::Podman | Place::Lxc);
    is_engine && host.rental().is_none() && host.job().is_none() && !host.is_virtual_machine()
}

fn with_remedy(host: &Host, finding: Finding, fault: Fault, is_usb: bool, kind: &str) -> Finding {
    // The file system inside a virtual machine is its user's, and its disk is not.
    let is_of_user = has_the_disks(host) || fault == Fault::FileSystem && host.is_own_machine();
    if is_of_user {
        return own_remedy(look_at_health(host), finding, fault, is_usb, kind);
    }
    if !is_on_a_host(host) {
        return of_others(host, finding);
    }
    let mut finding = own_remedy(LOOK_AT_HEALTH, finding, fault, is_usb, kind);
    if let Some(remedy) = &mut finding.remedy {
        remedy.text = format!("on the host: {}", remedy.text);
    }
    finding
}

fn own_remedy(look_at_health: &str, finding: Finding, fault: Fault, is_usb: bool, kind: &str) -> Finding {
    if is_usb && !matches!(fault, Fault::Medium | Fault::FileSystem) {
        return finding
            .because("the connection to a USB disk breaks off; ranks then hang in the kernel, or checkpoints cannot be written")
            .remedy(
                "connect the disk to another port with another cable, without a hub or with one that has its own power supply; \
                 better copy the data set to a disk inside the machine and run from there",
            );
    }
    match fault {
        Fault::Asleep => finding
            .because("the NVMe disk stopped answering: often it does not wake up from a power saving state, sometimes it fails")
            .remedy(
                "restart the machine, with the power off for a minute, and copy what matters to another disk first, because the next \
                 time it may not come back; then turn the power saving of the disk off on the kernel's command line, \
                 `nvme_core.default_ps_max_latency_us=0 pcie_aspm=off pcie_port_pm=off`, and update the firmware of the disk; \
                 if it happens again, replace the disk",
            ),
        Fault::Link => finding.because("commands to the disk fail on their way: usually a bad cable, connector or power supply \
            of the disk").remedy(
            "replace the cable of the disk, use another port, and see that its power supply is strong enough; copy the data to \
             another disk if it happens again, and look at its health (`smartctl -a`)",
        ),
        Fault::FileSystem => finding
            .because("the file system on the disk contradicts itself: files may be damaged, and the kernel may stop writing to it")
            .remedy(match kind {
                "btrfs" => format!(
                    "find the damaged files with `btrfs scrub start -B` on the mount point and restore them; {}; test the memory \
                     (memtest86+)",
                    look_at_health
                ),
                "xfs" => format!(
                    "copy what matters to another disk; unmount the file system and repair it with `xfs_repair`; {}",
                    look_at_health
                ),
                _ => format!(
                    "copy what matters to another disk; check the file system with `fsck -f` while it is not mounted, for the root \
                     file system at the next start with `fsck.mode=force` on the kernel's command line; {}",
                    look_at_health
                ),
            }),
        Fault::Medium | Fault::Array | Fault::Other => finding,
    }
}

/// An array of md that runs without one of its disks: `[U_]` in the lines that follow its name.
fn degraded(host: &Host, folder: &str, what: &str) -> Option<Finding> {
    let array = host.disks_of(folder).into_iter().find(|disk| disk.starts_with("md"))?;
    let table = host.text("/proc/mdstat").ok().flatten()?;
    let line = missing_member(&table, &array)?;
    let title = format!("the array {array}, which holds {what}, runs without one of its disks");
    let finding = Finding::new("disk.failing", title).seen(line).because(
        "when the next disk fails, the array and all that is on it are lost; a rebuild slows reading down",
    );
    Some(if has_the_disks(host) {
        finding.remedy(format!(
            "copy what matters to another disk, find out why the disk was given up (`dmesg`, `smartctl -a`), replace it and \
             add the new one: `mdadm --manage /dev/{array} --add /dev/DISK`"
        ))
    } else {
        of_others(host, finding)
    })
}

/// The lines of an array's entry in /proc/mdstat, if a member is missing.
fn missing_member(table: &str, array: &str) -> Option<String> {
    let mut lines = table.lines();
    let first =
        lines.find(|line| line.strip_prefix(array).is_some_and(|rest| rest.trim_start().starts_with(':')))?;
    let entry: Vec<&str> =
        std::iter::once(first).chain(lines.take_while(|line| line.starts_with(' '))).map(str::trim).collect();
    let is_state = |word: &&str| {
        word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|state| {
            state.contains('_') && state.chars().all(|letter| matches!(letter, 'U' | '_'))
        })
    };
    let is_missing = entry.iter().any(|line| line.split_whitespace().any(|word| is_state(&word)));
    is_missing.then(|| entry.into_iter().take(2).collect::<Vec<_>>().join("; "))
}

/// What `smartctl` said in a recording. On a live machine only root may ask it.
fn by_smart(host: &Host, folder: &str, what: &str) -> Option<Finding> {
    let outputs = host.recorded_outputs("smartctl");
    let disks = host.disks_of(folder);
    let of = |line: &str| {
        disks.iter().find(|disk| line.split('/').any(|word| word.starts_with(disk.as_str()))).cloned()
    };
    let (disk, said) = outputs.iter().find_map(|(line, output)| {
        let text = output.text();
        let is_bad = |line: &&str| {
            line.contains("test result: FAILED")
                || line.contains("Health Status: FAIL")
                || line.split_once("Critical Warning:").is_some_and(|(_, value)| value.trim() != "0x00")
        };
        Some((of(line)?, text.lines().find(is_bad)?.trim().to_owned()))
    })?;
    let title = format!("the disk {disk}, which holds {what}, says itself that it fails");
    Some(Finding::new("disk.failing", title).seen(said))
}

/// In WSL a disk is a file on a drive of Windows, about whose health Linux knows nothing.
fn of_windows(finding: Finding) -> Finding {
    finding
        .because(
            "this disk is a file (ext4.vhdx) on a drive of Windows, which is full, was unplugged, or fails: reads and writes then \
             end with errors, and Linux makes the file system read-only",
        )
        .remedy(
            "copy what matters to another drive; free space on the Windows drive, and shut WSL down; then check that drive in a \
             Windows terminal as administrator (`chkdsk C: /f`, with its letter) and its health; a disk of WSL on an external \
             drive should move to an internal one",
        )
        .command("powershell.exe -Command \"Get-PhysicalDisk | Select-Object FriendlyName,HealthStatus,OperationalStatus\"")
        .command("wsl.exe --shutdown")
}

/// The lines about the disks that hold a folder.
pub(super) fn errors(host: &Host, folder: &str) -> Vec<String> {
    let disks = host.disks_of(folder);
    if disks.is_empty() {
        return Vec::new();
    }
    let volume = volume_of(host, folder);
    let ports: Vec<String> = disks.iter().flat_map(|disk| ports_of(host, disk)).collect();
    let is_of_disk = |word: &str| {
        // A controller's lines name it alone: ata1.00 is a disk at ata1.
        ports.iter().any(|port| word.split('.').next() == Some(port.as_str()))
            || volume.as_deref() == Some(word)
            || disks.iter().any(|disk| is_part_of(word, disk))
    };
    let words: Vec<&str> = WORDS.iter().map(|(words, _)| *words).collect();
    let mut lines = host.kernel_lines(&words);
    lines.retain(|line| {
        let names_disk = words_of(line).any(is_of_disk);
        names_disk && !HARMLESS.iter().any(|word| line.contains(word))
    });
    // One command that failed while the disks were found is not an error of a disk.
    let is_only_link = lines.iter().all(|line| line.contains(": failed command: ") || line.contains(UAS));
    if is_only_link && lines.len() < REPEATED {
        lines.clear();
    }
    lines
}

/// Whether a word names a disk, a partition of it, or its controller: nvme0n1, nvme0n1p2, nvme0; sda, sda2.
fn is_part_of(word: &str, disk: &str) -> bool {
    let rest = word.strip_prefix(disk);
    let is_part =
        rest.is_some_and(|rest| rest.trim_start_matches('p').chars().all(|letter| letter.is_ascii_digit()));
    let is_controller =
        word.starts_with("nvme") && disk.strip_prefix(word).is_some_and(|rest| rest.starts_with('n'));
    is_part || is_controller
}

/// The name under which a file system's own lines have the volume that is mounted: `dm-0`.
fn volume_of(host: &Host, folder: &str) -> Option<String> {
    let table = host.text("/proc/self/mountinfo").ok().flatten()?;
    let source = mounts::source_of(&table, folder)?;
    let link = host.link(&source).ok().flatten();
    let name = link.as_deref().unwrap_or(&source);
    name.rsplit('/').next().map(ToOwned::to_owned)
}

/// Whether one of a folder's disks is connected by USB.
fn is_of_usb(host: &Host, folder: &str) -> bool {
    host.disks_of(folder).iter().any(|disk| path_of(host, disk).is_some_and(|path| path.contains("/usb")))
}

/// The fast way to talk to USB disks, which some enclosures do badly. The slow one is chosen by their number.
fn without_uas(host: &Host, finding: Finding, disk: &str) -> Finding {
    let port = path_of(host, disk).and_then(|path| usb_port(&path).map(ToOwned::to_owned));
    let number = |file: &str| {
        let path = format!("/sys/bus/usb/devices/{}/{file}", port.as_deref()?);
        Some(host.text(&path).ok()??.trim().to_owned())
    };
    let numbers = number("idVendor").zip(number("idProduct"));
    let name = match &numbers {
        Some((vendor, product)) => format!("{vendor}:{product}"),
        None => "VID:PID".to_owned(),
    };
    let which = if numbers.is_some() { "" } else { " (`lsusb` shows its VID:PID)" };
    let finding = finding
        .because(
            "commands to this USB disk do not end, and the kernel resets it, which takes half a minute each time: its enclosure, its \
             cable or its port does badly what UAS, the fast protocol for USB disks, asks for",
        )
        .remedy(format!(
            "connect the disk to another port with another cable, without a hub or with one that has its own power supply; if that \
             does not help, turn UAS off for this enclosure{which}, which is slower but stable, and restart; better copy the data set \
             to a disk inside the machine and run from there"
        ))
        .command(format!(
            "echo 'options usb-storage quirks={name}:u' | sudo tee /etc/modprobe.d/usb-storage-quirks.conf"
        ));
    restart(host, initramfs::rebuild(host).into_iter().fold(finding, Finding::command))
}

/// The port in the kernel's path of a disk: `…/usb2/2-1/2-1.4/2-1.4:1.0/host0/…/block/sda` is at 2-1.4.
fn usb_port(path: &str) -> Option<&str> {
    let is_port = |part: &&str| {
        part.split_once('-').is_some_and(|(bus, port)| {
            let is_number = |text: &str| !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
            is_number(bus) && port.split('.').all(is_number)
        })
    };
    path.split('/').rfind(is_port)
}

/// Where the kernel has a disk: `../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda`.
fn path_of(host: &Host, disk: &str) -> Option<String> {
    host.link(&format!("/sys/block/{disk}")).ok().flatten()
}

/// The port of a disk of SATA, under which the kernel logs failed commands: `ata1`. Without the disk's path, it is
/// known if there is no other disk.
fn ports_of(host: &Host, disk: &str) -> Vec<String> {
    if let Some(path) = path_of(host, disk) {
        let is_port = |part: &&str| part.strip_prefix("ata").is_some_and(|rest| rest.parse::<u32>().is_ok());
        return path.split('/').filter(is_port).map(ToOwned::to_owned).collect();
    }
    let is_alone = || {
        let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
        let mut names = host.folder("/sys/block").ok().flatten().unwrap_or_default();
        names.extend(table.split("/dev/").skip(1).filter_map(|rest| {
            let name =
                rest.split([' ', ',']).next()?.trim_end_matches(|letter: char| letter.is_ascii_digit());
            Some(name.to_owned())
        }));
        names.retain(|name| name.starts_with("sd"));
        names.iter().all(|name| name == disk)
    };
    if !disk.starts_with("sd") || !is_alone() {
        return Vec::new();
    }
    let lines = host.kernel_lines(&[": failed command: "]);
    let mut ports: Vec<String> = lines.iter().filter_map(|line| port_in(line)).collect();
    ports.dedup();
    // Two ports are two devices.
    if ports.len() == 1 { ports } else { Vec::new() }
}

/// `[ 91.1] ata1.00: failed command: …` is of ata1.
fn port_in(line: &str) -> Option<String> {
    let (before, _) = line.split_once(": failed command: ")?;
    let word = before.split_whitespace().next_back()?;
    Some(word.split('.').next()?.to_owned()).filter(|port| port.starts_with("ata"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_member_of_an_array_is_found() {
        let table = "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0](F)\n      976630464 blocks super 1.2 [2/1] [_U]\n\nmd1 : active raid1 sdd1[1] sdc1[0]\n      9 blocks [2/2] [UU]\n";
        assert!(missing_member(table, "md0").unwrap().contains("[_U]"));
        assert_eq!(missing_member(table, "md1"), None);
        assert_eq!(missing_member(table, "md"), None);
    }

    #[test]
    fn the_path_of_a_disk_has_its_usb_port() {
        let path =
            "../devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1.4/2-1.4:1.0/host6/target6:0:0/6:0:0:0/block/sda";
        assert_eq!(usb_port(path), Some("2-1.4"));
        assert_eq!(usb_port("../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda"), None);
    }

    #[test]
    fn lines_of_sata_name_the_port() {
        let line = "[ 91.1] ata1.00: failed command: READ FPDMA QUEUED";
        assert_eq!(port_in(line).as_deref(), Some("ata1"));
        assert_eq!(fault_of(line), Some(Fault::Link));
        assert_eq!(fault_of("[ 91.1] ata1.00: error: { UNC }"), Some(Fault::Medium));
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "(md0|md1| : active |\\[|\\]|_|U|\n| |\\PC){0,40}") {
            let _ = missing_member(&text, "md0");
            let _ = (port_in(&text), usb_port(&text));
        }
    }
}
