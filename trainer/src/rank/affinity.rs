//! The CPUs on which a rank runs. On machines with several NUMA nodes, the supervisor names those next to
//! the rank's device, so that its memory and its copies to the device stay on one node.

use yolo_base::cpu_list::CpuList;
use yolo_base::env::YOLO_CPUS;

use crate::error::TrainError;

/// Binds this thread, and those that it starts, to the CPUs that the supervisor names, if it does.
///
/// # Errors
/// When the variable is not a list of CPUs, or this process may use none of them.
pub(super) fn bind() -> Result<(), TrainError> {
    let Some(text) = std::env::var(YOLO_CPUS).ok().filter(|text| !text.is_empty()) else { return Ok(()) };
    let cpus: CpuList = text.parse().map_err(|error| TrainError::new(format!("{YOLO_CPUS}: {error}")))?;
    bind_to(&cpus).map_err(|error| TrainError::new(format!("cannot run on CPUs {cpus}: {error}")))
}

#[cfg(target_os = "linux")]
fn bind_to(cpus: &CpuList) -> std::io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    cpus.iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Elsewhere a rank runs where the system puts it.
#[cfg(not(target_os = "linux"))]
fn bind_to(_cpus: &CpuList) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn allowed() -> CpuList {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.parse().unwrap()
    }

    #[test]
    fn threads_inherit_the_cpus() {
        // A thread of its own, so that other tests keep theirs.
        let bound = std::thread::spawn(|| {
            let first: CpuList = allowed().iter().take(1).collect();
            bind_to(&first).unwrap();
            (first, std::thread::spawn(allowed).join().unwrap())
        });
        let (first, inherited) = bound.join().unwrap();
        assert_eq!(inherited, first);
    }

    #[test]
    fn cpus_that_do_not_exist_are_refused() {
        assert!(bind_to(&[1023].into_iter().collect()).is_err());
    }
}
