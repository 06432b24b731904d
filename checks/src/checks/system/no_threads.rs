//! A machine on which no program can start another thread, and which of its limits is used up: that of the user, or the
//! numbers of the kernel, which zombies keep as well.

use std::collections::BTreeMap;

use super::raise_limit::{Limit, raise};

use crate::facts::Host;
use crate::finding::Finding;
use crate::status::Status;

/// A control group with less room than this is used up.
const THREADS_OF_A_PROGRAM: u64 = 8;
/// What the kernel says if a limit is used up. A filter of system calls has another message.
const USED_UP: &str = "os error 11";
const USED_UP_IN_WORDS: &str = "temporarily unavailable";
/// How many zombies of one parent are a leak.
const MANY: usize = 20;
/// The share of the kernel's numbers, in percent, from which on they are used up.
const FULL: u64 = 98;

/// `system.processes`, if no thread can be started.
pub(super) fn finding(host: &Host) -> Option<Finding> {
    let why = host.can_start_threads().ok()?.err();
    let why = why.filter(|why| why.contains(USED_UP) || why.contains(USED_UP_IN_WORDS))?;
    // The control group of a container or a login is judged by its own numbers.
    if host.cgroup_task_limit().is_some_and(|limit| limit.used + THREADS_OF_A_PROGRAM >= limit.most) {
        return None;
    }
    let finding = of_kernel(host).or_else(|| of_user(host))?;
    Some(finding.status(Status::Error).seen(why))
}

/// All numbers of processes and threads are in use: `9/32741` in /proc/loadavg.
fn of_kernel(host: &Host) -> Option<Finding> {
    let number = |file: &str| host.text(file).ok().flatten()?.trim().parse::<u64>().ok();
    let used: u64 = {
        let text = host.text("/proc/loadavg").ok().flatten()?;
        text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?
    };
    let limits = [
        ("kernel.pid_max", "/proc/sys/kernel/pid_max"),
        ("kernel.threads-max", "/proc/sys/kernel/threads-max"),
    ];
    let (name, most) = limits
        .into_iter()
        .filter_map(|(name, file)| Some((name, number(file)?)))
        .find(|(_, most)| used * 100 >= most * FULL)?;
    let title = format!(
        "no program can start another thread: {used} of the {most} processes and threads of {name} exist"
    );
    let finding = Finding::new("system.processes", title);
    let ps = "ps -eo nlwp,pid,ppid,stat,user,args --sort=-nlwp | head";
    Some(match parent_of_zombies(host) {
        Some((parent, what, zombies)) => {
            finding
                .seen(format!("{zombies} zombies are children of process {parent}{what}"))
                .because(
                    "a zombie has ended, but keeps its number until its parent asks how it ended, or ends itself",
                )
                .remedy(format!(
                    "restart the service that process {parent} belongs to, or end that process by the program that started it: its \
                     zombies then go; the program has to be corrected, and a higher {name} would only delay the next time"
                ))
                .command(format!("ps -o pid,ppid,user,etime,args -p {parent}"))
        }
        None => finding
            .because("the kernel gives numbers to processes and threads of all users, and none is left")
            .remedy(format!(
                "find the programs that have the most threads, and end or restart those that need fewer; if all are needed, raise {name}"
            ))
            .command(ps)
            .command(format!("sudo sysctl -w {name}={}", (most * 4).min(4_194_304))),
    })
}

/// The process with the most children that are zombies: its number, what it is, if that is known, and their number.
fn parent_of_zombies(host: &Host) -> Option<(u32, String, usize)> {
    let processes = host.processes().ok()?;
    let mut children: BTreeMap<u32, usize> = BTreeMap::new();
    for zombie in processes.iter().filter(|process| process.state.as_deref() == Some("Z")) {
        *children.entry(zombie.parent?).or_default() += 1;
    }
    let (parent, number) = children.into_iter().max_by_key(|(_, number)| *number)?;
    let process = processes.into_iter().find(|process| process.pid == parent);
    let what = process.map(|process| format!(" ({})", process.command.unwrap_or(process.name)));
    (number >= MANY).then_some((parent, what.unwrap_or_default(), number))
}

/// The limit of this user, who has too many threads already.
fn of_user(host: &Host) -> Option<Finding> {
    let most = host.soft_limit("Max processes").ok().filter(|most| *most < u64::MAX)?;
    if host.user().is_ok_and(|user| user.uid == Some(0)) {
        return None;
    }
    let title = format!(
        "this user cannot start another thread; the limit on processes and threads (ulimit -u) is {most}"
    );
    let limit = Limit {
        resource: "Max processes",
        need: most.saturating_mul(2),
        wanted: most.saturating_mul(16).max(65_536),
        flag: "-u",
        item: "nproc",
        words: "the limit on processes",
        unit: "LimitNPROC",
    };
    let finding = Finding::new("system.processes", title).because(
        "the limit counts all processes and threads of a user, those of other programs too: Python's numerical libraries, for \
         instance, start one for each core (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS)",
    );
    Some(raise(host, finding, &limit))
}
