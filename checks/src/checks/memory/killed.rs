//! Whether the kernel killed a rank of an earlier run because memory ran out. The run itself only
//! reports "Killed", or that a rank disappeared.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Did the kernel kill a training process because of low memory?",
    reports: &["memory.killed"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let log = match host.kernel_log() {
        Ok(log) => log,
        Err(why) => return in_group(host).map(|finding| vec![finding]).ok_or(why),
    };
    let kills: Vec<(&str, Kill)> = log.lines().filter_map(|line| Some((line, parse(line)?))).collect();
    let of_a_run =
        |name: &str| ["yolo", "python", "pt_", "torchrun"].iter().any(|word| name.starts_with(word));
    let Some((line, last)) = kills.iter().rfind(|(_, kill)| of_a_run(&kill.name)) else {
        return Ok(in_group(host).into_iter().collect());
    };
    let held = last.held.map_or(String::new(), |bytes| format!(", which used {}", format::memory(bytes)));
    let title = format!("the kernel killed {} (process {}){held}: out of memory", last.name, last.pid);
    Ok(vec![Finding::new("memory.killed", title).seen(line.trim())])
}

/// Processes that were killed because of the limit of this process's own control group: the kernel counts
/// them there, also where its log cannot be read, as in containers.
fn in_group(host: &Host) -> Option<Finding> {
    let limit = host.cgroup_memory_limit().ok()??;
    let kills = host.cgroup_kills(&limit);
    if kills == 0 {
        return None;
    }
    let title = format!(
        "the kernel killed {} here because of the memory limit of {}",
        format::count(kills as usize, "process"),
        format::memory(limit.bytes)
    );
    Some(Finding::new("memory.killed", title).seen(limit.file).remedy(
        "raise the limit, or train with fewer --workers, without `--cache ram`, and with a smaller --batch or --imgsz",
    ))
}

struct Kill {
    pid: u32,
    name: String,
    held: Option<u64>,
}

/// `Out of memory: Killed process 6154 (python) total-vm:18109076kB, anon-rss:14095848kB, …`, also
/// `Memory cgroup out of memory: Killed process …` and older kernels' `Kill process`.
fn parse(line: &str) -> Option<Kill> {
    let line = line.get(line.to_ascii_lowercase().find("out of memory:")?..)?;
    let rest = line.split_once("rocess ")?.1;
    let (pid, rest) = rest.split_once(" (")?;
    let (name, rest) = rest.split_once(')')?;
    let held =
        rest.split_once("anon-rss:").and_then(|(_, rest)| rest.split_once("kB")?.0.parse::<u64>().ok());
    Some(Kill { pid: pid.trim().parse().ok()?, name: name.to_owned(), held: held.map(|kib| kib * 1024) })
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
        assert!(
            parse("[1.0] Memory cgroup out of memory: Killed process 7 (yolo-trainer) total-vm:1kB")
                .is_some()
        );
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
