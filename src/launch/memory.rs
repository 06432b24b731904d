//! Whether the kernel killed a rank because memory ran out. Only the kernel knows: its log names the
//! process, and the control group of the ranks counts such kills. A rank that somebody killed with
//! `kill -9` looks the same from outside. Only what happened since the ranks started counts.

use std::path::PathBuf;

/// What the kernel says about a killed rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killer {
    /// The machine ran out of memory.
    Machine,
    /// The control group (a container or a job) reached its limit.
    ControlGroup,
    /// The machine or the control group ran out of memory.
    MachineOrGroup,
    /// Memory had nothing to do with it.
    SomebodyElse,
    /// The kernel's log cannot be read.
    Unknown,
}

/// What the kernel has counted and logged before the ranks started.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    events: Option<PathBuf>,
    kills: u64,
    log: Option<KernelLog>,
}

impl MemoryWatch {
    /// Invariant: made before the ranks start.
    pub(super) fn new() -> Self {
        let groups = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let counted = counters(&groups).into_iter().find_map(|path| {
            let kills = kills(&fs_err::read_to_string(&path).ok()?)?;
            Some((path, kills))
        });
        let (events, kills) = counted.map_or((None, 0), |(path, kills)| (Some(path), kills));
        Self { events, kills, log: KernelLog::from_now() }
    }

    /// Who killed the process that had this number.
    pub(super) fn killer(&self, pid: u32) -> Killer {
        let log = self.log.as_ref().map(KernelLog::read);
        if let Some(killer) = log.as_deref().and_then(|log| victim(log, pid)) {
            return killer;
        }
        let now = self.events.as_ref().and_then(|path| kills(&fs_err::read_to_string(path).ok()?));
        match now {
            // The count includes what the machine's lack of memory killed.
            Some(now) if now > self.kills => Killer::MachineOrGroup,
            _ if log.is_some() => Killer::SomebodyElse,
            _ => Killer::Unknown,
        }
    }
}

/// The files that may count the kills in the control group of this process: of the unified hierarchy, and of
/// version 1, whose folder a container sees at the root.
fn counters(groups: &str) -> Vec<PathBuf> {
    let of = |path: &str, root: &str, file: &str| {
        PathBuf::from(root).join(path.trim_start_matches('/')).join(file)
    };
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let first = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "memory").then_some(path)
    });
    let unified = unified.map(|path| of(path, "/sys/fs/cgroup", "memory.events"));
    let first = first
        .into_iter()
        .flat_map(|path| [path, ""].map(|path| of(path, "/sys/fs/cgroup/memory", "memory.oom_control")));
    unified.into_iter().chain(first).collect()
}

/// Processes of the control group that were killed because memory ran out.
fn kills(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Who killed the process, if the log says that memory ran out for it. In a container, the log has other
/// numbers for the processes, but the names of the programs.
fn victim(log: &str, pid: u32) -> Option<Killer> {
    let number = [format!("Killed process {pid} "), format!("Killed process {pid},")];
    let is_it = |line: &&str| number.iter().any(|number| line.contains(number.as_str()));
    let like_it = |line: &&str| line.contains("Killed process") && line.contains("(yolo-trainer)");
    let line = log.lines().rev().find(is_it).or_else(|| log.lines().rev().find(like_it))?;
    let group = line.contains("Memory cgroup out of memory");
    Some(if group { Killer::ControlGroup } else { Killer::Machine })
}

/// The messages of the kernel since this value was made.
#[derive(Debug)]
struct KernelLog {
    #[cfg(target_os = "linux")]
    file: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl KernelLog {
    /// The log from now on, if this user may read it.
    fn from_now() -> Option<Self> {
        use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open("/dev/kmsg", flags, Mode::empty()).ok()?;
        seek(&file, SeekFrom::End(0)).ok()?;
        Some(Self { file })
    }

    /// The messages that have arrived since the last call.
    fn read(&self) -> String {
        let mut log = String::new();
        let mut record = [0u8; 8192];
        // Each read returns one record. EAGAIN is the end; EPIPE, a record that was overwritten meanwhile.
        loop {
            match rustix::io::read(&self.file, &mut record) {
                Ok(0) => break,
                Ok(length) => {
                    log.push_str(&String::from_utf8_lossy(record.get(..length).unwrap_or_default()));
                    log.push('\n');
                }
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        log
    }
}

#[cfg(not(target_os = "linux"))]
impl KernelLog {
    fn from_now() -> Option<Self> {
        None
    }

    fn read(&self) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        6,991,81,-;yolo-trainer invoked oom-killer: gfp_mask=0xcc0, order=0\n\
        3,995,85,-;Out of memory: Killed process 4711 (yolo-trainer) total-vm:9kB, anon-rss:8kB\n\
        3,996,86,-;Memory cgroup out of memory: Killed process 4712 (yolo-trainer) total-vm:9kB\n";

    #[test]
    fn the_log_of_the_kernel_names_the_process() {
        assert_eq!(victim(LOG, 4711), Some(Killer::Machine));
        assert_eq!(victim(LOG, 4712), Some(Killer::ControlGroup));
        let other = LOG.replace("yolo-trainer", "firefox");
        assert_eq!(victim(&other, 471), None, "part of a number");
        assert_eq!(victim(LOG, 42), Some(Killer::ControlGroup), "a container numbers its processes itself");
    }

    #[test]
    fn the_control_group_counts_its_kills() {
        assert_eq!(
            counters("0::/user.slice/session-1.scope\n"),
            [PathBuf::from("/sys/fs/cgroup/user.slice/session-1.scope/memory.events")]
        );
        assert_eq!(
            counters("12:cpu,memory:/x\n1:name=systemd:/\n0::/\n"),
            [
                PathBuf::from("/sys/fs/cgroup/memory.events"),
                PathBuf::from("/sys/fs/cgroup/memory/x/memory.oom_control"),
                PathBuf::from("/sys/fs/cgroup/memory/memory.oom_control")
            ]
        );
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2), "version 1");
        assert_eq!(kills("low 0\nhigh 2\nmax 7\noom 1\noom_kill 3\noom_group_kill 0\n"), Some(3));
        assert_eq!(kills(""), None);
    }
}
