//! The CPU cores that a run can use.

use crate::facts::Host;

/// CPU cores that this process may use: those of the system, or fewer if a cgroup limits them.
pub(crate) fn cores(host: &Host) -> Option<usize> {
    let counted = cores_of_system(host)?;
    let counted = bound(host).map_or(counted, |bound| counted.min(bound));
    let share = host.cgroup_cpu_limit().ok().flatten().map_or(counted, |limit| limit.ceil() as usize);
    Some(counted.min(share).max(1))
}

/// The cores of the machine, if this process may use fewer of them: a batch job, a container or `taskset` has bound
/// it to some.
pub(super) fn cores_of_machine(host: &Host) -> Option<usize> {
    let online = host.text("/sys/devices/system/cpu/online").ok().flatten();
    let all = online.and_then(|text| count(text.trim())).or_else(|| cores_of_system(host))?;
    (all > cores(host)?).then_some(all)
}

fn cores_of_system(host: &Host) -> Option<usize> {
    host.system().ok()?.cores.and_then(|cores| usize::try_from(cores).ok())
}

/// The cores to which a recorded process is bound. A live one has counted only these already.
fn bound(host: &Host) -> Option<usize> {
    if !host.is_recorded() {
        return None;
    }
    let status = host.text("/proc/self/status").ok().flatten()?;
    count(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim())
}

/// The number of cores in a list of the kernel, such as `0-3,8`.
fn count(list: &str) -> Option<usize> {
    let parts = list.split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    parts.collect::<Option<Vec<_>>>()?.into_iter().try_fold(0, usize::checked_add)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn cores_are_counted_in_the_kernels_lists() {
        assert_eq!([count("0-127"), count("0-3,8"), count("17")], [Some(128), Some(5), Some(1)]);
        assert_eq!([count(""), count("3-1"), count("a-b")], [None; 3]);
        assert_eq!(count("0-18446744073709551614,0-18446744073709551614"), None);
    }
}
