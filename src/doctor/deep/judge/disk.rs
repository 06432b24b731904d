//! The disk of the images: a network file system that is slower than such a one should be, and than the run needs.

use yolo_plan::event::Measure;

use super::conclusion::Conclusion;
use super::expectation::{Expectation, Part, sum};
use crate::doctor::deep::observed::Observed;

/// File systems over a network, and what a rank that reads alone can expect of them in MB/s: a gigabit for NFS and
/// the like, much more for those that stripe files over servers.
const NETWORK: [(&str, f64); 10] = [
    ("nfs", 100.0),
    ("nfs4", 100.0),
    ("cifs", 100.0),
    ("smb3", 100.0),
    ("fuse.sshfs", 50.0),
    ("9p", 100.0),
    ("lustre", 500.0),
    ("gpfs", 500.0),
    ("beegfs", 500.0),
    ("wekafs", 500.0),
];

/// A network file system that is slower than such a one should be, and than the run needs.
pub(super) fn slow(seen: &Observed, expected: &Expectation) -> Option<Conclusion> {
    let rate = sum(seen, Measure::DiskRead)?;
    let kind = seen.host.file_system.as_deref()?;
    let (_, usual) = NETWORK.iter().find(|(name, _)| *name == kind)?;
    let disk = expected.bounds.iter().find(|bound| bound.part == Part::Disk)?;
    let others = expected.bounds.iter().filter(|bound| bound.part != Part::Disk);
    let is_needed = others.map(|bound| bound.images_per_second).fold(f64::INFINITY, f64::min);
    if rate >= *usual || disk.images_per_second >= is_needed {
        return None;
    }
    let mount = seen.host.mount.as_deref().map_or_else(String::new, |mount| format!(" ({mount})"));
    let text = format!(
        "images are read from {kind}{mount} at {rate:.0} MB/s; such a file system usually gives {usual:.0} MB/s or more, \
         and this run could use up to {:.0} MB/s",
        rate * is_needed / disk.images_per_second
    );
    let hint = if disk.first_epoch_only {
        "only the first epoch waits for it, since --cache keeps the images"
    } else {
        "`--cache ram` reads each image once, if they fit in memory; otherwise copy the images to a disk of this machine"
    };
    Some(Conclusion::new(text).hint(hint))
}
