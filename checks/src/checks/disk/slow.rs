//! Whether the data set is on a slow disk and too large to stay in memory. Linux keeps files in free memory after the first
//! epoch, so that the disk matters only for data sets that are larger.

use yolo_base::{format, mounts};

use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{Described, parent, sample};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check =
    Check { question: "Is the data set on a fast disk?", reports: &["disk.slow"], preflight: false, run };

/// Mbit/s of a port of USB 2, which is slower than any disk.
const USB_2: u32 = 480;
/// An array of more disks reads at the same time from all.
const MOST_DISKS: usize = 2;
/// Who makes disks, or `ATA` for all that are at a port of SATA. Behind a controller of a RAID, and on a server of disks
/// (iSCSI, Fibre Channel), an SSD is said to turn as well. Disks of SAS that servers rename (DELL, HP, IBM, LENOVO, NETAPP) are
/// missing, because controllers have these names too.
const MAKERS: [&str; 8] = ["ATA", "SEAGATE", "WDC", "WD", "HGST", "HITACHI", "TOSHIBA", "FUJITSU"];

fn run(host: &Host, intent: &Intent) -> Answer {
    // The disk of a virtual machine says nothing about what is behind it.
    let is_machine = host.place() == Place::Machine && !host.is_virtual_machine();
    let is_kept = intent.cache.as_deref().is_some_and(|cache| cache != "disk");
    let Some(name) = intent.data.as_deref() else { return Ok(Vec::new()) };
    if host.os()? != "linux" || !is_machine || is_kept {
        return Ok(Vec::new());
    }
    let Ok(Described::Yaml(set)) = host.data_set(name) else { return Ok(Vec::new()) };
    let Ok(images) = set.images(host, "train") else { return Ok(Vec::new()) };
    let Some(folder) = images.paths.first().and_then(|path| parent(path)) else { return Ok(Vec::new()) };
    let Some(speed) = speed(host, &folder) else { return Ok(Vec::new()) };
    // Without the sizes of the images nothing is certain.
    let Some(size) = size(host, &images.paths) else { return Ok(Vec::new()) };
    let Some(memory) = host.memory().ok().map(|memory| memory.available) else { return Ok(Vec::new()) };
    if size < memory {
        return Ok(Vec::new());
    }
    let title = format!(
        "the data set ({}) is on {}, and is larger than the free memory ({})",
        format::memory(size),
        speed.words(),
        format::memory(memory)
    );
    let status = if speed.is_usb_2 { Status::Warning } else { Status::Info };
    let finding =
        Finding::new("disk.slow", title).status(status).seen(format!("{folder} is on {}", speed.disk));
    Ok(vec![if speed.is_usb_2 {
        let finding = finding.because(
            "USB 2 carries about 40 MB/s, and each epoch reads every image again, because they do not all fit into memory",
        );
        // A device of USB 2 is as slow at any port.
        finding.remedy(if speed.could_be_faster {
            "connect the disk to a USB 3 port (blue, or marked SS) with its own cable, or copy the data set to an internal SSD"
        } else {
            "copy the data set to an internal SSD, or to a USB 3 disk on a USB 3 port (blue, or marked SS)"
        })
    } else {
        finding
    }])
}

/// What is slow about a disk.
struct Slow {
    disk: String,
    /// Whether its port of USB is slow.
    is_usb_2: bool,
    /// Whether it has USB 3 itself.
    could_be_faster: bool,
}

impl Slow {
    fn words(&self) -> &'static str {
        if self.is_usb_2 { "a disk on a USB 2 port" } else { "a hard disk" }
    }
}

/// The disk of a folder, if it is slow: all that it consists of turn, or it is at a slow port.
fn speed(host: &Host, folder: &str) -> Option<Slow> {
    let disks: Vec<String> = host.disks_of(folder).into_iter().filter(|disk| is_disk(disk)).collect();
    if disks.is_empty() || disks.len() > MOST_DISKS || may_have_more_disks(host, folder) {
        return None;
    }
    let usb = disks.iter().find_map(|disk| Some((disk.clone(), usb_port(host, disk)?)));
    let Some((disk, port)) = usb else {
        let turns = |disk: &String| is_of_a_maker(host, disk) && turns(host, disk) == Some(true);
        return disks.iter().all(turns).then(|| Slow {
            disk: disks[0].clone(),
            is_usb_2: false,
            could_be_faster: false,
        });
    };
    // Adapters of USB often say that an SSD turns, so that only their ports count.
    let of_port = |name: &str| {
        let file = host.text(&format!("/sys/bus/usb/devices/{port}/{name}")).ok()??;
        Some(file.trim().to_owned())
    };
    let speed: u32 = of_port("speed")?.parse().ok()?;
    // A device that has USB 3 says 2.10 at a port of USB 2.
    let could_be_faster = of_port("version").is_none_or(|version| version != "2.00" && version != "1.10");
    (speed <= USB_2).then_some(Slow { disk, is_usb_2: true, could_be_faster })
}

/// Whether a file system is one that can be on several disks, of which the table of mounts names one.
fn may_have_more_disks(host: &Host, folder: &str) -> bool {
    let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
    if mounts::holding(&table, folder).is_none_or(|mount| mount.kind != "btrfs") {
        return false;
    }
    let Some(source) = mounts::source_of(&table, folder) else { return true };
    // A volume of device mapper, such as an encrypted disk, is a link to `dm-0`, by which name the kernel lists it.
    let real = host.link(&source).ok().flatten().unwrap_or_else(|| source.clone());
    let name = real.rsplit('/').next().unwrap_or_default().to_owned();
    let all = host.folder("/sys/fs/btrfs").ok().flatten().unwrap_or_default();
    let mut devices = all.iter().filter_map(|id| host.folder(&format!("/sys/fs/btrfs/{id}/devices")).ok()?);
    !devices.any(|devices| devices.len() == 1 && devices.contains(&name))
}

/// Whether a disk is one itself, and not what a controller makes of several.
fn is_of_a_maker(host: &Host, disk: &str) -> bool {
    let vendor = host.text(&format!("/sys/block/{disk}/device/vendor")).ok().flatten().unwrap_or_default();
    MAKERS.iter().any(|maker| vendor.trim().eq_ignore_ascii_case(maker))
}

/// Whether a name is that of a disk itself, and not of a volume or an array made of disks.
fn is_disk(name: &str) -> bool {
    ["sd", "nvme", "hd", "mmcblk"].iter().any(|start| name.starts_with(start))
}

fn turns(host: &Host, disk: &str) -> Option<bool> {
    let file = host.text(&format!("/sys/block/{disk}/queue/rotational")).ok().flatten();
    file.map(|text| text.trim() == "1").or_else(|| {
        let tables = host.recorded_outputs("lsblk");
        tables.iter().find_map(|(_, output)| turns_in(&output.text(), disk))
    })
}

/// The column ROTA in an output of `lsblk -d -o NAME,ROTA,SIZE`.
fn turns_in(table: &str, disk: &str) -> Option<bool> {
    let mut lines = table.lines();
    let column = lines.next()?.split_whitespace().position(|word| word == "ROTA")?;
    let row = lines.find(|line| line.split_whitespace().next() == Some(disk))?;
    match row.split_whitespace().nth(column)? {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// The port of USB that a disk is at: `../devices/pci0000:00/…/usb2/2-1/2-1:1.0/host6/…` is at 2-1.
fn usb_port(host: &Host, disk: &str) -> Option<String> {
    let link = host.link(&format!("/sys/block/{disk}")).ok()??;
    let (_, rest) = link.split_once("/usb")?;
    rest.split('/').skip(1).take_while(|part| !part.contains(':')).last().map(ToOwned::to_owned)
}

/// The bytes of all images, by the sizes of a sample.
fn size(host: &Host, images: &[String]) -> Option<u64> {
    let sizes: Vec<u64> = sample(images).filter_map(|path| host.stat(path).ok()??.size).collect();
    let mean = sizes.iter().sum::<u64>().checked_div(sizes.len() as u64)?;
    mean.checked_mul(images.len() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::turns_in;

    #[test]
    fn the_column_of_turning_disks_is_read() {
        let table = "NAME    ROTA   SIZE\nsda        1   3.6T\nnvme0n1    0 931.5G\n";
        assert_eq!((turns_in(table, "sda"), turns_in(table, "nvme0n1")), (Some(true), Some(false)));
        assert_eq!(turns_in("NAME SIZE\nsda 1\n", "sda"), None);
    }

    proptest! {
        #[test]
        fn any_table_is_read(table in "(NAME|ROTA|sda|[ 01\n]|\\PC){0,30}") {
            let _ = turns_in(&table, "sda");
        }
    }
}
