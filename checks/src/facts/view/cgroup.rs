//! The limits of this process's control group: the memory and CPUs that a container or a batch system
//! allows, in both versions of control groups. Limits of parent groups apply too; the smallest wins.

use crate::facts::answer::Fact;
use crate::facts::host::Host;

/// A limit above this means none: version 1 writes the largest multiple of a page.
const NO_LIMIT: u64 = 1 << 60;

/// A limit on memory, and the file that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// The file that contains it.
    pub file: String,
    /// What the group uses already and the kernel cannot take back, in bytes; 0 if unknown.
    pub used: u64,
}

/// A limit on the number of processes and threads, and the file that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimit {
    /// How many there may be.
    pub most: u64,
    /// How many there are.
    pub used: u64,
    /// The file that contains the limit.
    pub file: String,
}

impl Host {
    /// The limit on processes and threads that leaves the fewest, of all control groups of this process; `None` if
    /// none is known.
    pub fn cgroup_task_limit(&self) -> Option<TaskLimit> {
        let number = |file: &str| self.text(file).ok().flatten()?.trim().parse::<u64>().ok();
        let limits = self.cgroup_files("pids", "pids.max", "pids.max").into_iter().filter_map(|file| {
            let most = number(&file)?;
            let used = number(&format!("{}pids.current", file.strip_suffix("pids.max")?)).unwrap_or(0);
            Some(TaskLimit { most, used, file })
        });
        limits.min_by_key(|limit| limit.most.saturating_sub(limit.used))
    }

    /// The smallest memory limit of this process's control groups; `None` if there is none.
    pub fn cgroup_memory_limit(&self) -> Fact<Option<MemoryLimit>> {
        let mut smallest: Option<MemoryLimit> = None;
        let mut unknown = None;
        for file in self.cgroup_files("memory", "memory.max", "memory.limit_in_bytes") {
            match self.text(&file) {
                Ok(Some(text)) => {
                    let limit = text.trim().parse::<u64>().ok().filter(|&bytes| bytes < NO_LIMIT);
                    if let Some(bytes) =
                        limit.filter(|&bytes| smallest.as_ref().is_none_or(|s| bytes < s.bytes))
                    {
                        let used = self.cgroup_memory_used(&file);
                        smallest = Some(MemoryLimit { bytes, file, used });
                    }
                }
                Ok(None) => {}
                Err(why) => unknown = Some(why),
            }
        }
        match (smallest, unknown) {
            (Some(limit), _) => Ok(Some(limit)),
            // A file that is unknown does not matter if no other one has a limit …
            (None, None) => Ok(None),
            (None, Some(_)) if self.knows_root_group() => Ok(None),
            (None, Some(why)) => Err(why),
        }
    }

    /// The smallest amount of memory above which the kernel slows the programs of a control group down, instead of ending
    /// one; `None` if there is none. Only version 2 has it.
    pub fn cgroup_memory_high(&self) -> Option<MemoryLimit> {
        let high = |file: String| {
            let bytes = self.text(&file).ok().flatten()?.trim().parse::<u64>().ok()?;
            Some(MemoryLimit { used: self.cgroup_memory_used(&file), bytes, file })
        };
        let files = self.cgroup_files("memory", "memory.high", "memory.high");
        files
            .into_iter()
            .filter_map(high)
            .filter(|limit| limit.bytes < NO_LIMIT)
            .min_by_key(|limit| limit.bytes)
    }

    /// How often the kernel has slowed programs of this group down because of [`Host::cgroup_memory_high`].
    pub fn cgroup_slowed(&self, limit: &MemoryLimit) -> u64 {
        let Some((folder, _)) = limit.file.rsplit_once('/') else { return 0 };
        let events = self.text(&format!("{folder}/memory.events")).ok().flatten().unwrap_or_default();
        let number = events.lines().find_map(|line| line.strip_prefix("high "));
        number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }

    /// What a group uses of its memory, without files that the kernel keeps only as long as nobody needs
    /// their memory. Shared memory is not among them: it stays until its files are deleted.
    fn cgroup_memory_used(&self, limit: &str) -> u64 {
        let Some((folder, _)) = limit.rsplit_once('/') else { return 0 };
        let text = |name: &str| self.text(&format!("{folder}/{name}")).ok().flatten();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes")).unwrap_or(0);
        let stat = text("memory.stat").unwrap_or_default();
        let value = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        // Version 1 counts its subgroups in fields of their own.
        let files = value("inactive_file").max(value("total_inactive_file"));
        used.saturating_sub(files + value("active_file") + value("slab_reclaimable"))
    }

    /// How often the kernel has killed a process of this group because of the group's limit.
    pub fn cgroup_kills(&self, limit: &MemoryLimit) -> u64 {
        let Some((folder, _)) = limit.file.rsplit_once('/') else { return 0 };
        let events = ["memory.events", "memory.oom_control"]
            .into_iter()
            .find_map(|name| self.text(&format!("{folder}/{name}")).ok().flatten());
        let events = events.unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }

    /// CPUs that the control group allows, such as 2.5; `None` if there is no limit.
    pub fn cgroup_cpu_limit(&self) -> Fact<Option<f64>> {
        let mut smallest: Option<f64> = None;
        for file in self.cgroup_files("cpu", "cpu.max", "cpu.cfs_quota_us") {
            let Ok(Some(text)) = self.text(&file) else { continue };
            let period = match file.strip_suffix("cpu.cfs_quota_us") {
                Some(folder) => self.text(&format!("{folder}cpu.cfs_period_us")).ok().flatten(),
                None => text.split_whitespace().nth(1).map(ToOwned::to_owned),
            };
            let quota = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            let period =
                period.and_then(|word| word.trim().parse::<f64>().ok()).filter(|&period| period > 0.0);
            if let (Some(quota), Some(period)) = (quota.filter(|&quota| quota > 0.0), period) {
                let cores = quota / period;
                smallest = Some(smallest.map_or(cores, |known| known.min(cores)));
            }
        }
        Ok(smallest)
    }

    /// Whether the limit files of the topmost visible group are known, with or without a limit.
    fn knows_root_group(&self) -> bool {
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .iter()
            .any(|file| self.text(file).is_ok_and(|text| text.is_some()))
    }

    /// Files that may contain a limit: of this process's groups, and of all their parents.
    fn cgroup_files(&self, controller: &str, second: &str, first: &str) -> Vec<String> {
        let mut files = Vec::new();
        let groups = self.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let (root, name) = if controllers.is_empty() {
                ("/sys/fs/cgroup".to_owned(), second)
            } else if controllers.split(',').any(|one| one == controller) {
                (format!("/sys/fs/cgroup/{controller}"), first)
            } else {
                continue;
            };
            let mut path = path.trim_end_matches('/');
            while !path.is_empty() {
                // A path that begins with /.. is outside of what this container sees.
                if !path.starts_with("/..") {
                    files.push(format!("{root}{path}/{name}"));
                }
                path = &path[..path.rfind('/').unwrap_or(0)];
            }
        }
        files.push(format!("/sys/fs/cgroup/{second}"));
        files.push(format!("/sys/fs/cgroup/{controller}/{first}"));
        files
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(files: Value) -> Host {
        Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0
    }

    #[test]
    fn the_smallest_limit_of_all_parents_applies() {
        let host = host(json!({
            "/proc/self/cgroup": "0::/user.slice/job_7\n",
            "/sys/fs/cgroup/user.slice/job_7/memory.max": "max\n",
            "/sys/fs/cgroup/user.slice/memory.max": "4294967296\n",
        }));
        let limit = host.cgroup_memory_limit().unwrap().unwrap();
        assert_eq!(limit.bytes, 4 << 30);
        assert_eq!(limit.file, "/sys/fs/cgroup/user.slice/memory.max");
    }

    #[test]
    fn version_1_writes_no_limit_as_a_large_number() {
        let files = |limit: &str| {
            json!({ "/proc/self/cgroup": "5:memory:/docker/abc\n",
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes": limit })
        };
        assert_eq!(host(files("9223372036854771712\n")).cgroup_memory_limit(), Ok(None));
        assert_eq!(host(files("2147483648\n")).cgroup_memory_limit().unwrap().unwrap().bytes, 2 << 30);
    }

    #[test]
    fn the_limit_is_unknown_in_a_recording_without_groups() {
        assert!(host(json!({})).cgroup_memory_limit().is_err());
    }

    #[test]
    fn the_group_with_the_fewest_tasks_left_limits_them() {
        let host = host(json!({
            "/proc/self/cgroup": "0::/system.slice/runner.service\n",
            "/sys/fs/cgroup/system.slice/runner.service/pids.max": "max\n",
            "/sys/fs/cgroup/system.slice/pids.max": "500\n",
            "/sys/fs/cgroup/system.slice/pids.current": "20\n",
            "/sys/fs/cgroup/pids.max": "512\n",
            "/sys/fs/cgroup/pids.current": "400\n",
        }));
        let limit = host.cgroup_task_limit().unwrap();
        assert_eq!((limit.most, limit.used, limit.file.as_str()), (512, 400, "/sys/fs/cgroup/pids.max"));
    }

    #[test]
    fn max_is_no_limit_on_tasks() {
        let files = json!({ "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/pids.max": "max\n", "/sys/fs/cgroup/pids.current": "12\n" });
        assert_eq!(host(files).cgroup_task_limit(), None);
    }

    #[test]
    fn cpus_are_a_quota_per_period() {
        let second = host(json!({ "/sys/fs/cgroup/cpu.max": "250000 100000\n" }));
        assert_eq!(second.cgroup_cpu_limit(), Ok(Some(2.5)));
        let first = host(json!({ "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n" }));
        assert_eq!(first.cgroup_cpu_limit(), Ok(None));
    }
}
