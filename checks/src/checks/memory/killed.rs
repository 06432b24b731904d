//! Whether the kernel killed a rank of an earlier run because memory ran out. The run itself only
//! reports "Killed", or that a rank disappeared.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, Job, MemoryLimit};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate;
use crate::remedies::more_memory::{raise, words};

pub(super) static CHECK: Check = Check {
    question: "Did the kernel kill a training process because of low memory?",
    reports: &["memory.killed"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let log = match host.kernel_log() {
        Ok(log) => log,
        Err(why) => {
            let counted = in_group(host, intent).or_else(|| counted(host));
            return counted.map(|finding| vec![finding]).ok_or(why);
        }
    };
    let kills: Vec<(&str, Kill)> = log.lines().filter_map(|line| Some((line, parse(line)?))).collect();
    let Some((line, last)) = kills.iter().rfind(|(_, kill)| is_of_a_run(&kill.name)) else {
        // The log may begin after the kill. It has no kills at all then.
        let counted = || counted(host).filter(|_| kills.is_empty());
        return Ok(in_group(host, intent).or_else(counted).into_iter().collect());
    };
    let held = last.held.map_or(String::new(), |bytes| format!(", which used {}", format::memory(bytes)));
    let title = format!("the kernel killed {} (process {}){held}: out of memory", last.name, last.pid);
    let finding = Finding::new("memory.killed", title).seen(line.trim());
    let limit = host
        .cgroup_memory_limit()
        .ok()
        .flatten()
        .filter(|limit| last.is_of_group && host.cgroup_kills(limit) > 0);
    Ok(vec![match limit {
        Some(limit) => with_more(host, intent, finding.seen(limit.file.clone()), &limit),
        None if last.is_of_group => of_group(host, finding),
        None => finding,
    }])
}

/// The limit of a group of programs was the reason, whose present state is unknown: perhaps that of an earlier job.
fn of_group(host: &Host, finding: Finding) -> Finding {
    let first = words(host);
    let finding = finding.because(GROUP_FULL).remedy(format!(
        "{first}train with fewer --workers, without `--cache ram`, and with a smaller --batch or --imgsz"
    ));
    match host.job() {
        Some(Job::Slurm) => finding.command("sbatch --mem=<more>G …"),
        _ => finding,
    }
}

const GROUP_FULL: &str = "the memory that the control group of this container or job allows ran out, although the machine may have \
                          more; the run itself only reports that a rank disappeared, or \"Killed\"";

/// Whether a program of this name may be a run, or what a run was started in. The kernel keeps 15 letters.
pub(super) fn is_of_a_run(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "yolo",
        "python",
        "pt_",
        "torchrun",
        "ipykernel",
        "jupyter",
        "ray::",
        "accelerate",
        "deepspeed",
        "darknet",
    ];
    NAMES.iter().any(|word| name.starts_with(word))
}

/// Kills that the kernel counts without a name, where its log cannot be read: those of this user, or of all users
/// of the machine, since its start. In a container they are those of the whole host.
fn counted(host: &Host) -> Option<Finding> {
    if host.is_container() {
        return None;
    }
    let count_in = |file: &str| {
        let text = host.text(file).ok().flatten()?;
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        line.trim().parse::<usize>().ok()
    };
    let vmstat = "/proc/vmstat";
    let all = count_in(vmstat).filter(|count| *count > 0)?;
    let groups = host.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
    let of_user = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once("/user.slice/")?;
        Some(format!("/sys/fs/cgroup/user.slice/{}/memory.events", rest.split('/').next()?))
    });
    let own = of_user.and_then(|file| Some((count_in(&file)?, file)));
    let (count, whose, file) = match own {
        // They were all of others.
        Some((0, _)) => return None,
        Some((count, file)) => (count, "of this user ".to_owned(), file),
        None => (all, String::new(), vmstat.to_owned()),
    };
    let title = format!(
        "the kernel has killed {} {whose}on this machine since its start: out of memory",
        format::count_of(count, "process", "processes")
    );
    // Without a name, it may have been a browser.
    let finding = Finding::new("memory.killed", title).seen(file).status(crate::status::Status::Info);
    let finding = finding.remedy(
        "if a run only reported \"Killed\" or that a rank disappeared, it was one of them: train with a smaller --batch or \
         --imgsz, or fewer --workers, or close other programs first; the kernel log names them",
    );
    Some(if host.is_own_machine() {
        finding.command("sudo dmesg -T | grep -i 'killed process'")
    } else {
        finding
    })
}

/// Processes that were killed because of the limit of this process's own control group: the kernel counts
/// them there, also where its log cannot be read, as in containers.
fn in_group(host: &Host, intent: &Intent) -> Option<Finding> {
    let limit = host.cgroup_memory_limit().ok()??;
    let kills = host.cgroup_kills(&limit);
    if kills == 0 {
        return None;
    }
    let title = format!(
        "the kernel killed {} here because of the memory limit of {}",
        format::count_of(kills as usize, "process", "processes"),
        format::memory(limit.bytes)
    );
    let finding = Finding::new("memory.killed", title).seen(limit.file.clone());
    Some(with_more(host, intent, finding, &limit))
}

/// The finding with how to get more memory here. The estimate of what a run needs was too low if a run of that size
/// was killed, so it is twice the limit at least, and no more than the machine has.
fn with_more(host: &Host, intent: &Intent, finding: Finding, limit: &MemoryLimit) -> Finding {
    let need = intent.run.then(|| memory_estimate::in_memory(intent, intent.workers.unwrap_or(8)).bytes);
    let wanted = limit.bytes.saturating_mul(2).max(need.unwrap_or(0));
    let (finding, first) = match raise(host, &finding, limit, wanted) {
        Some(raised) => (raised, words(host)),
        None => (finding, ""),
    };
    finding.because(GROUP_FULL).remedy(format!(
        "{first}train with fewer --workers, without `--cache ram`, and with a smaller --batch or --imgsz"
    ))
}

struct Kill {
    pid: u32,
    name: String,
    held: Option<u64>,
    /// Whether the limit of a control group was the reason.
    is_of_group: bool,
}

/// `Out of memory: Killed process 6154 (python) total-vm:18109076kB, anon-rss:14095848kB, …`, also
/// `Memory cgroup out of memory: Killed process …` and older kernels' `Kill process`.
fn parse(line: &str) -> Option<Kill> {
    let at = line.to_ascii_lowercase().find("out of memory:")?;
    let is_of_group = line.get(..at)?.trim_end().to_ascii_lowercase().ends_with("cgroup");
    let line = line.get(at..)?;
    let rest = line.split_once("rocess ")?.1;
    let (pid, rest) = rest.split_once(" (")?;
    let (name, rest) = rest.split_once(')')?;
    let held =
        rest.split_once("anon-rss:").and_then(|(_, rest)| rest.split_once("kB")?.0.parse::<u64>().ok());
    let held = held.map(|kib| kib.saturating_mul(1024));
    Some(Kill { pid: pid.trim().parse().ok()?, name: name.to_owned(), held, is_of_group })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kills_of_all_kernels_are_read() {
        let line = "[Sun Mar 24 23:54:53 2024] Out of memory: Killed process 6154 (python) total-vm:18109076kB, anon-rss:14095848kB, file-rss:0kB";
        let kill = parse(line).unwrap();
        assert_eq!((kill.pid, kill.name.as_str(), kill.held), (6154, "python", Some(14_095_848 * 1024)));
        assert!(!kill.is_of_group);
        let line = "[1.0] Memory cgroup out of memory: Killed process 7 (yolo-trainer) total-vm:1kB";
        assert!(parse(line).unwrap().is_of_group);
        assert!(
            parse("[1.0] Out of memory: Kill process 7 (python3) score 900 or sacrifice child").is_some()
        );
        assert!(parse("oom-kill:constraint=CONSTRAINT_NONE,task=python").is_none());
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(Out of memory: |Killed process |[0-9]{1,12}|\\(|\\)|anon-rss:|kB|\\PC){0,12}") {
            let _ = parse(&line);
        }
    }
}
