//! The disks of WSL and of Windows: rows of the catalogue.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.data-on-windows",
        area: Area::Wsl,
        status: Status::Warning,
        title: "A run works on a Windows drive",
        cause: "each file is fetched by a file server of Windows: the first epoch takes many times longer, \
                and the GPU waits",
        remedy: Some("copy it to the Linux side, such as below your home folder, and train there"),
        fix: None,
        detects: &["wsl-dataset-mnt-c", "wsl-mnt-root-moved"],
    },
    Entry {
        id: "wsl.drive-permissions",
        area: Area::Wsl,
        status: Status::Info,
        title: "A Windows drive keeps no Linux permissions",
        cause: "it is mounted without `metadata`: all files are of mode 777 and chmod does nothing",
        remedy: Some("mount the drives with metadata"),
        fix: None,
        detects: &["wsl-drvfs-permissions"],
    },
    Entry {
        id: "wsl.case-clash",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Two images differ by case alone",
        cause: "Windows takes both names for one file, and both images have one label file",
        remedy: Some("rename one of them and its label"),
        fix: None,
        detects: &["wsl-case-clash"],
    },
    Entry {
        id: "wsl.windows-disk-full",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The Windows drive behind WSL is nearly full",
        cause: "WSL's disk is a file there that grows: when the drive is full, Linux fails with I/O errors \
                or turns read-only, whatever df says",
        remedy: Some(
            "free space on the Windows drive; what was deleted inside WSL comes back only after `wsl \
             --shutdown` and Optimize-VHD, or with sparseVhd",
        ),
        fix: None,
        detects: &["wsl-vhdx-host-full"],
    },
    Entry {
        id: "wsl.disk-limit",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's disk has reached its size",
        cause: "its virtual size is fixed (256 GB, 512 GB or 1 TB), however much is free on the Windows \
                drive",
        remedy: Some("enlarge it from a Windows terminal (WSL 2.5 or later), or delete data inside WSL"),
        fix: None,
        detects: &["wsl-vhd-limit-reached"],
    },
];
