//! Which file systems read over a network, or through another program, by their names in /proc/mounts. Most of
//! those in user space (FUSE) do, so the local ones are listed and not the others.

/// Where the files of such a file system are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remote {
    /// On a server, or in a bucket.
    Network,
    /// On the servers of a cluster, which many machines read at the same time.
    Parallel,
    /// In Google Drive, as Colab mounts it.
    GoogleDrive,
}

const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "davfs", "ncpfs", "coda"];
const PARALLEL: [&str; 10] =
    ["ceph", "lustre", "beegfs", "fhgfs", "gpfs", "wekafs", "panfs", "pvfs2", "quobyte", "fuse.ceph-fuse"];
const GOOGLE_DRIVE: [&str; 2] = ["fuse.drive", "fuse.google-drive-ocamlfuse"];
/// Programs in user space whose files are on a local disk, in the layers of a container, or in a folder that the host
/// of a virtual machine shares, which is a case of its own.
const LOCAL: [&str; 24] = [
    "vmhgfs-fuse",
    "grpcfuse",
    "fuse-overlayfs",
    "ntfs-3g",
    "ntfs",
    "exfat",
    "mergerfs",
    "unionfs",
    "unionfs-fuse",
    "bindfs",
    "encfs",
    "gocryptfs",
    "cryfs",
    "securefs",
    "squashfuse",
    "squashfuse_ll",
    "snapfuse",
    "archivemount",
    "zfs-fuse",
    "lxcfs",
    "portal",
    "shfs",
    "apfs-fuse",
    "dislocker",
];

/// Where the files of this file system are; `None` on a local disk.
pub(super) fn of_kind(kind: &str) -> Option<Remote> {
    if GOOGLE_DRIVE.contains(&kind) {
        return Some(Remote::GoogleDrive);
    }
    if PARALLEL.contains(&kind) {
        return Some(Remote::Parallel);
    }
    // Buckets of Amazon, Azure and others are often mounted without the name of their program.
    let of_program = kind == "fuse"
        || kind
            .strip_prefix("fuse.")
            .is_some_and(|program| !LOCAL.contains(&program) && !program.ends_with(".AppImage"));
    (NETWORK.contains(&kind) || of_program).then_some(Remote::Network)
}

#[cfg(test)]
mod tests {
    use super::{Remote, of_kind};

    #[test]
    fn programs_in_user_space_read_over_the_network_unless_they_are_known_to_be_local() {
        for kind in [
            "nfs4",
            "fuse.sshfs",
            "fuse.rclone",
            "fuse.gcsfuse",
            "fuse.s3fs",
            "fuse.juicefs",
            "fuse.geesefs",
            "fuse",
        ] {
            assert_eq!(of_kind(kind), Some(Remote::Network), "{kind}");
        }
        assert_eq!(of_kind("fuse.drive"), Some(Remote::GoogleDrive));
        assert_eq!(of_kind("lustre"), Some(Remote::Parallel));
        for kind in [
            "ext4",
            "btrfs",
            "overlay",
            "fuseblk",
            "tmpfs",
            "9p",
            "vboxsf",
            "fuse.vmhgfs-fuse",
            "fuse.fuse-overlayfs",
            "fuse.mergerfs",
            "fuse.shfs",
        ] {
            assert_eq!(of_kind(kind), None, "{kind}");
        }
    }
}
