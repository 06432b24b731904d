//! Cores, memory, disks and limits.

use yolo_base::format;

use crate::checks::cores;
use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};
use crate::facts::Fact;

/// With this many times less memory than another one, a machine is likely to limit a run.
const NOTABLE: f64 = 1.25;
/// Loader threads per rank, unless `--workers` says otherwise.
const LOADERS: f64 = 8.0;
/// Shared memory that suffices for eight ranks.
const ENOUGH_SHARED: f64 = (1_u64 << 30) as f64;

pub(super) const RULES: &[Rule] = &[
    Rule { id: "cores", what: "CPU cores", read: cores_of, judge: judge_cores },
    Rule {
        id: "cpu",
        what: "CPU",
        read: |machine| match machine.host.system() {
            Ok(system) => Reading::if_any(system.cpu),
            Err(why) => Reading::Unknown(why.0),
        },
        judge: |seen| {
            if !seen.is_on_cpus() {
                return Meaning::harmless("CPUs only load and augment the images");
            }
            Meaning::slows(
                "all ranks wait for the slowest CPU at every step",
                "use CPUs of one model, or expect the speed of the slowest one on all of them",
            )
        },
    },
    Rule { id: "memory", what: "memory", read: memory, judge: judge_memory },
    Rule {
        id: "swap",
        what: "swap",
        read: |machine| {
            Reading::of(machine.host.memory(), |memory| {
                Reading::amount(memory.swap_total as f64, format::memory(memory.swap_total))
            })
        },
        judge: |_| Meaning::harmless("a run that swaps is too slow to be useful on any machine"),
    },
    Rule { id: "shared-memory", what: "/dev/shm", read: shared, judge: judge_shared },
    Rule {
        id: "disk",
        what: "disk of the working folder",
        read: disk,
        judge: |_| Meaning::harmless("a finding says so where the disk slows a run down"),
    },
    Rule {
        id: "open-files",
        what: "limit of open files",
        read: |machine| limit(machine, "Max open files", |number| number.to_string()),
        judge: |_| Meaning::harmless("a finding says so where the limit is too low for a run"),
    },
    Rule {
        id: "locked-memory",
        what: "limit of locked memory",
        read: |machine| limit(machine, "Max locked memory", format::memory),
        judge: judge_locked,
    },
];

/// The ranks of a run on this machine: one per named device, else one per GPU.
fn ranks(machine: &Machine<'_>) -> usize {
    if machine.intent.run {
        return machine.intent.ranks_here();
    }
    machine.host.gpus().map_or(1, |gpus| gpus.len()).max(1)
}

fn cores_of(machine: &Machine<'_>) -> Reading {
    let Some(cores) = cores(machine.host) else {
        return Reading::Unknown("the system does not report its cores".to_owned());
    };
    Reading::amount(cores as f64, cores.to_string())
}

fn judge_cores(seen: &Seen<'_>) -> Meaning {
    if seen.is_on_cpus() {
        return Meaning::slows(
            "all ranks wait for those with the fewest cores",
            "start more ranks where there are more cores, with `--nproc-per-node`",
        );
    }
    let shares = seen
        .known()
        .filter_map(|(machine, value)| Some((machine.name, value.amount? / ranks(machine) as f64)));
    let Some((name, share)) = shares.min_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Meaning::harmless("it is not known how many cores a rank has");
    };
    if share >= LOADERS {
        return Meaning::harmless("every rank has a core for each of its 8 loader threads");
    }
    Meaning::slows(
        format!("{name} has {share:.1} cores per rank; if images load too slowly there, all ranks wait"),
        "if `yolo bench` says that the loader limits training there, use `--cache ram`",
    )
}

/// The machine's memory, or less if a control group limits it.
fn memory(machine: &Machine<'_>) -> Reading {
    Reading::of(machine.host.memory(), |memory| {
        let limit = machine.host.cgroup_memory_limit().ok().flatten().map(|limit| limit.bytes);
        let total = limit.map_or(memory.total, |limit| limit.min(memory.total));
        Reading::amount(total as f64, format::memory(total))
    })
}

fn judge_memory(seen: &Seen<'_>) -> Meaning {
    if seen.ratio() < NOTABLE {
        return Meaning::harmless("the machines have about the same memory");
    }
    let smallest = seen.least().map_or("", |(name, _)| name);
    Meaning::slows(
        format!("{smallest} may lack memory for what fits on other machines, such as `--cache ram`"),
        format!("choose `--cache` and `--workers` for the memory of {smallest}"),
    )
}

fn shared(machine: &Machine<'_>) -> Reading {
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    Reading::of(machine.host.file_system("/dev/shm"), |space| match space.total {
        Some(total) => Reading::amount(total as f64, format::memory(total)),
        None => Reading::Unknown("the size of /dev/shm is not known".to_owned()),
    })
}

fn judge_shared(seen: &Seen<'_>) -> Meaning {
    match seen.least() {
        Some((name, least)) if least < ENOUGH_SHARED => Meaning::slows(
            format!("the ranks of one machine exchange tensors through it, and {name} has less than 1 GiB"),
            format!(
                "enlarge it on {name}: `--shm-size=1g` for a container, else `sudo mount -o remount,size=1g /dev/shm`"
            ),
        ),
        _ => Meaning::harmless("all machines have enough for eight ranks"),
    }
}

fn disk(machine: &Machine<'_>) -> Reading {
    let kind = || -> Fact<Option<String>> {
        let Some(working) = machine.host.places()?.working else { return Ok(None) };
        Ok(machine.host.file_system(&working)?.kind)
    };
    Reading::of(kind(), Reading::if_any)
}

/// A soft limit of this process.
fn limit(machine: &Machine<'_>, resource: &str, show: fn(u64) -> String) -> Reading {
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    Reading::of(machine.host.soft_limit(resource), |limit| match limit {
        u64::MAX => Reading::text("unlimited"),
        limit => Reading::text(show(limit)),
    })
}

fn judge_locked(seen: &Seen<'_>) -> Meaning {
    let has_adapter = |machine: &Machine<'_>| {
        let names = machine.host.folder("/sys/class/infiniband").ok().flatten();
        names.is_some_and(|names| !names.is_empty())
    };
    if !seen.known().any(|(machine, _)| has_adapter(machine)) {
        return Meaning::harmless("only InfiniBand needs locked memory");
    }
    Meaning::slows(
        "NCCL locks memory for InfiniBand, and fails where the limit is too low",
        "raise the limit to unlimited on all machines: `ulimit -l unlimited`",
    )
}
