//! The CPU cores that a run can use.

use crate::facts::Host;

/// CPU cores that this process may use: those of the system, or fewer if a cgroup limits them.
pub(crate) fn cores(host: &Host) -> Option<usize> {
    let counted = host.system().ok()?.cores.and_then(|cores| usize::try_from(cores).ok())?;
    let share = host.cgroup_cpu_limit().ok().flatten().map_or(counted, |limit| limit.ceil() as usize);
    Some(counted.min(share).max(1))
}
