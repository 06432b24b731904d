//! Catalogue entries about the disks of WSL and of Windows.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.data-on-windows",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The run uses files on a Windows drive",
        cause: "WSL reads every file there through a Windows file server: users report 90 to 250 MB/s for large \
                files (microsoft/WSL issue 4197), and each small file waits for the server, so the first epoch is \
                slow and the GPU waits",
        remedy: Some(
            "let yolo copy the data set once, with --data-to-linux, and keep other files on the Linux file \
                system, for example in your home folder",
        ),
        fix: None,
        detects: &["wsl-dataset-mnt-c", "wsl-mnt-root-moved"],
    },
    Entry {
        id: "wsl.drive-permissions",
        area: Area::Wsl,
        status: Status::Info,
        title: "A Windows drive does not store Linux permissions",
        cause: "it is mounted without `metadata`: all files have mode 777, and chmod has no effect",
        remedy: Some("mount the drives with metadata"),
        fix: None,
        detects: &["wsl-drvfs-permissions"],
    },
    Entry {
        id: "wsl.case-clash",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Two image names differ only in case",
        cause: "Windows treats both names as one file, so both images share one label file",
        remedy: Some("rename one of the images and its label file"),
        fix: None,
        detects: &["wsl-case-clash"],
    },
    Entry {
        id: "wsl.windows-disk-full",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The Windows drive behind WSL is nearly full",
        cause: "WSL's disk is a file on that drive, and it grows: when the drive is full, Linux fails with \
                I/O errors or becomes read-only, whatever df reports",
        remedy: Some(
            "free some space on the Windows drive, or move the virtual disk to another with `wsl --manage NAME \
                --move FOLDER`; space deleted inside WSL is only returned after `wsl --shutdown` and, in diskpart as administrator, \
                `select vdisk file=\"PATH\\ext4.vhdx\"`, `attach vdisk readonly`, `compact vdisk` and `detach vdisk`; Docker Desktop \
                has a disk of its own, which `docker system prune` empties first",
        ),
        fix: None,
        detects: &["wsl-vhdx-host-full"],
    },
    Entry {
        id: "wsl.disk-limit",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's virtual disk is full",
        cause: "its maximum size is fixed (256 GB, 512 GB or 1 TB), however much space the Windows drive \
                has",
        remedy: Some("enlarge it from a Windows terminal (WSL 2.5 or later), or delete data inside WSL"),
        fix: None,
        detects: &["wsl-vhd-limit-reached"],
    },
    Entry {
        id: "wsl.fstab",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL could not mount a drive of /etc/fstab",
        cause: "WSL mounts what /etc/fstab names when it starts, and goes on if that fails: the folder is then empty, and a run \
                finds no data",
        remedy: Some("mount it now, which also shows what is wrong"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.crash-dumps",
        area: Area::Wsl,
        status: Status::Info,
        title: "Dumps of crashed programs fill the Windows drive",
        cause: "WSL keeps the memory of the last programs that crashed as files on the Windows drive (ten, unless .wslconfig says \
                otherwise), and a program that trains has many GB",
        remedy: Some(
            "delete the files of that folder in Windows, and write `maxCrashDumpCount=1` under [wsl2] in .wslconfig, which WSL \
             reads after `wsl --shutdown`",
        ),
        fix: None,
        detects: &[],
    },
];
