//! The disks under a path: those of a partition, of an array of md, or of a volume of the device mapper.

use yolo_base::mounts;

use crate::facts::host::Host;

/// How many layers of volumes and arrays are looked through.
const DEPTH: usize = 4;

impl Host {
    /// The names of the block devices that hold an absolute path, the mounted one first: `md0`, `nvme0n1`.
    /// Empty for network drives and whatever else has no disk here.
    pub(crate) fn disks_of(&self, path: &str) -> Vec<String> {
        let Some(table) = self.text("/proc/self/mountinfo").ok().flatten() else { return Vec::new() };
        let Some(source) = mounts::source_of(&table, path) else { return Vec::new() };
        let Some(name) = source.strip_prefix("/dev/") else { return Vec::new() };
        // A volume is a link: /dev/mapper/vg-data leads to ../dm-0.
        let target = if name.starts_with("mapper/") { self.link(&source).ok().flatten() } else { None };
        let name = target.as_deref().and_then(|target| target.rsplit('/').next()).unwrap_or(name);
        let mut disks = vec![whole(name)];
        // A volume may be encrypted, on an array, and that on partitions.
        let mut above = vec![name.to_owned()];
        for _ in 0..DEPTH {
            let below: Vec<String> = above.iter().flat_map(|name| self.below(name)).collect();
            disks.extend(below.iter().map(|member| whole(member)));
            above = below;
        }
        disks.dedup();
        disks
    }

    /// What a block device is made of.
    fn below(&self, name: &str) -> Vec<String> {
        let mut below = self.members_of_array(name);
        let members = self.folder(&format!("/sys/block/{name}/slaves")).ok().flatten().unwrap_or_default();
        below.extend(members.into_iter().filter(|member| !member.is_empty()));
        below.dedup();
        below
    }

    /// `md0 : active raid1 nvme1n1[1] nvme0n1p2[0](F)`
    fn members_of_array(&self, name: &str) -> Vec<String> {
        if !name.starts_with("md") {
            return Vec::new();
        }
        let table = self.text("/proc/mdstat").ok().flatten().unwrap_or_default();
        let line = table.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
        let members = line.unwrap_or_default().split_whitespace();
        members.filter_map(|word| Some(word.split_once('[')?.0.to_owned())).collect()
    }
}

/// The disk of a partition: `sda2` is on `sda`, `nvme0n1p2` on `nvme0n1`.
fn whole(name: &str) -> String {
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if let Some(disk) =
        bare.strip_suffix('p').filter(|disk| disk.starts_with("nvme") || disk.starts_with("mmcblk"))
    {
        return disk.to_owned();
    }
    let is_lettered = ["sd", "vd", "xvd", "hd"].iter().any(|start| bare.starts_with(start));
    if is_lettered { bare.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_partition_is_on_its_disk() {
        assert_eq!(
            ["sda2", "nvme0n1p2", "nvme0n1", "md0", "vdb", "dm-0"].map(whole),
            ["sda", "nvme0n1", "nvme0n1", "md0", "vdb", "dm-0"]
        );
    }
}
