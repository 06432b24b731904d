//! Whether other programs already use all CPU cores: loading images and starting GPU work then wait for a core, and the
//! GPU waits for them. The load average shows how long it has been so. It also counts tasks that wait for a disk, so at
//! least half as many tasks as cores must be able to run now.

use yolo_base::format;

use crate::checks::cores::{cores, cores_of_machine};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are CPU cores free for the run?",
    reports: &["system.cpu-busy"],
    // What ends in a minute is no reason to warn at the start of each run.
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.run || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let Some(text) = host.text("/proc/loadavg")? else { return Ok(Vec::new()) };
    // A job that is bound to some cores of a machine has them for itself.
    let Some(cores) = cores(host).filter(|_| cores_of_machine(host).is_none()) else { return Ok(Vec::new()) };
    let Some(([minute, five_minutes], runnable)) = averages(&text).zip(runnable(&text)) else {
        return Ok(Vec::new());
    };
    if minute.min(five_minutes) < cores as f64 || runnable * 2 < cores {
        return Ok(Vec::new());
    }
    let title = format!(
        "other programs use the CPU: the load average is {five_minutes:.0} on {}",
        format::count(cores, "core")
    );
    Ok(vec![programs(host).into_iter().fold(Finding::new("system.cpu-busy", title), Finding::seen)])
}

/// The load averages of the last minute and the last five.
fn averages(text: &str) -> Option<[f64; 2]> {
    let mut words =
        text.split_whitespace().map(|word| word.parse::<f64>().ok().filter(|load| load.is_finite()));
    Some([words.next()??, words.next()??])
}

/// The tasks that run or wait for a core at this moment: the first number of `63/1204`. The load also counts those that wait
/// for a disk. Some of those that keep the cores busy may be reading just now.
fn runnable(text: &str) -> Option<usize> {
    let all: usize = text.split_whitespace().nth(3)?.split('/').next()?.parse().ok()?;
    // One of them reads this.
    Some(all.saturating_sub(1))
}

/// The running program of which there are most processes, among those that are listed.
fn programs(host: &Host) -> Option<String> {
    let processes = host.processes().ok()?;
    let running = || processes.iter().filter(|process| process.state.as_deref() == Some("R"));
    let count = |name: &str| running().filter(|process| process.name == name).count();
    let name = running().map(|process| process.name.as_str()).max_by_key(|name| count(name))?;
    Some(format!("{} named {name} running", format::count_of(count(name), "process", "processes")))
}

#[cfg(test)]
mod tests {
    use super::{averages, runnable};

    #[test]
    fn load_averages_are_read() {
        assert_eq!(averages("60.92 58.41 57.03 63/1204 22871\n"), Some([60.92, 58.41]));
        assert_eq!(runnable("60.92 58.41 57.03 63/1204 22871\n"), Some(62));
        assert_eq!([averages(""), averages("0.1"), averages("a b c"), averages("inf 1")], [None; 4]);
    }
}
