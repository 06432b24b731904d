//! Whether systemd-oomd, earlyoom or nohang has killed programs of this user since the start: it acts under memory pressure,
//! before the kernel would, and ends everything in the same terminal. The kernel's log does not show it.

use super::killed::is_of_a_run;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// What the service writes for each kill: `… due to memory pressure for …`, or `… due to memory used … and
/// swap used …`.
const KILLED: &str = " due to memory ";
/// Groups that hold the programs of users, and containers.
const OF_USERS: [&str; 4] = ["/user.slice/", "/system.slice/docker-", "/machine.slice/", "libpod-"];
/// Other programs that end processes when memory is short, and where they are installed.
const OTHERS: [(&str, &str); 3] = [
    ("earlyoom", "/usr/lib/systemd/system/earlyoom.service"),
    ("nohang", "/usr/lib/systemd/system/nohang.service"),
    ("nohang-desktop", "/usr/lib/systemd/system/nohang-desktop.service"),
];

pub(super) static CHECK: Check = Check {
    question: "Did a service kill programs because of low memory?",
    reports: &["memory.oomd"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_container() {
        return Ok(Vec::new());
    }
    let said = log(host).unwrap_or_default();
    let mut kills: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("systemd-oomd") && line.contains(KILLED))
        .filter(|line| OF_USERS.iter().any(|group| line.contains(group)))
        .map(str::trim)
        .collect();
    kills.dedup();
    let Some(last) = kills.last() else { return Ok(of_others(host).into_iter().collect()) };
    let what = last
        .split_once("Killed ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .and_then(|(group, _)| group.rsplit('/').next())
        .unwrap_or("a group of programs");
    let title = format!("systemd-oomd killed {what} because of memory pressure, with all that ran in it");
    let finding = Finding::new("memory.oomd", title).seen((*last).to_owned());
    // A scope of its own would take a run out of its job, with the job's limits and devices.
    let is_container = last.contains("docker-") || last.contains("libpod-") || host.job().is_some();
    Ok(vec![if is_container {
        finding.remedy(
            "train with fewer --workers, without `--cache ram` or with a smaller --batch, or give the machine more memory or swap",
        )
    } else {
        finding
    }])
}

/// A kill by another watcher of memory. One of a program that is no run is only told.
fn of_others(host: &Host) -> Option<Finding> {
    let said = log_of_others(host);
    let kills: Vec<(&str, Kill)> =
        said.lines().filter_map(|line| Some((line.trim(), parse(line)?))).collect();
    let (line, kill) = kills.iter().rfind(|(_, kill)| is_of_a_run(&kill.name)).or(kills.last())?;
    let title = format!("{} ended {} because memory was short", kill.by, kill.name);
    let finding = Finding::new("memory.oomd", title)
        .seen(*line)
        .because(format!(
            "{} ends the largest program before the kernel has to, when little memory and swap are left; a run that it ends \
             leaves no message, or only \"Terminated\"",
            kill.by
        ))
        .remedy(if kill.by == "earlyoom" {
            "train with fewer --workers, without `--cache ram` or with a smaller --batch, or add swap; or have earlyoom spare \
             runs: add `--avoid '^(yolo|python|pt_)'` to EARLYOOM_ARGS in /etc/default/earlyoom and restart \
             earlyoom.service"
        } else {
            "train with fewer --workers, without `--cache ram` or with a smaller --batch, or add swap; or lower its thresholds \
             in /etc/nohang and restart the service"
        });
    Some(if is_of_a_run(&kill.name) { finding } else { finding.status(Status::Info) })
}

struct Kill {
    by: &'static str,
    name: String,
}

/// `earlyoom[845]: sending SIGTERM to process 322603 uid 1000 "python3.13": oom_score 1282, …`; old ones write
/// `Killing process 27541 python`, and nohang `Sending SIGTERM to …`.
fn parse(line: &str) -> Option<Kill> {
    let by = OTHERS.iter().map(|(name, _)| *name).find(|name| line.contains(&format!("{name}[")))?;
    let by = if by == "nohang-desktop" { "nohang" } else { by };
    let rest = ["SIGTERM to ", "SIGKILL to ", "illing process "]
        .iter()
        .find_map(|words| Some(line.split_once(words)?.1))?;
    let quoted = rest.split('"').nth(1);
    // Without quotes, the name is the first word that is no number and not of the sentence.
    let is_name = |word: &&str| {
        word.parse::<u64>().is_err()
            && !["process", "uid", "pid", "PID", "victim", "the", "with", "to"].contains(word)
    };
    let plain = || rest.split([' ', ':', ',', '(', ')']).filter(|word| !word.is_empty()).find(is_name);
    let name = quoted.or_else(plain)?;
    Some(Kill { by, name: name.to_owned() })
}

/// The messages of the other watchers, where one exists.
fn log_of_others(host: &Host) -> String {
    if host.is_recorded() {
        let mut texts = host.recorded_texts("journalctl");
        texts.extend(
            ["/var/log/syslog", "/var/log/messages"].iter().filter_map(|file| host.text(file).ok().flatten()),
        );
        return texts.join("\n");
    }
    let installed: Vec<&str> =
        OTHERS.iter().filter(|(_, unit)| host.exists(unit) == Ok(true)).map(|(name, _)| *name).collect();
    if installed.is_empty() {
        return String::new();
    }
    let mut command = vec!["journalctl", "-b", "-q", "--no-pager", "-o", "short", "-n", "200"];
    installed.iter().for_each(|name| command.extend(["-u", *name]));
    host.command(&command).ok().flatten().map(|output| output.text()).unwrap_or_default()
}

/// The messages of the service, where it exists.
fn log(host: &Host) -> Option<String> {
    if host.is_recorded() {
        return Some(host.recorded_texts("journalctl").join("\n")).filter(|text| !text.is_empty());
    }
    if host.exists("/usr/lib/systemd/systemd-oomd") != Ok(true) {
        return None;
    }
    let command = ["journalctl", "-u", "systemd-oomd", "-b", "-q", "--no-pager", "-o", "short", "-n", "200"];
    Some(host.command(&command).ok()??.text())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_programs_that_other_watchers_end_are_read() {
        let name = |line: &str| parse(line).map(|kill| (kill.by, kill.name));
        assert_eq!(
            name(
                "Nov 2 10:00:00 box earlyoom[845]: sending SIGTERM to process 322603 uid 1000 \"python3.13\": oom_score 1282, VmRSS 29931 MiB"
            ),
            Some(("earlyoom", "python3.13".to_owned()))
        );
        assert_eq!(
            name("earlyoom[9]: Killing process 27541 python"),
            Some(("earlyoom", "python".to_owned()))
        );
        assert_eq!(
            name("earlyoom[845]: mem avail: 15000 of 32000 MiB (46.88%), swap free: 0 of 0 MiB"),
            None
        );
        assert_eq!(name("systemd[1]: sending SIGTERM to process 7 \"python\""), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(earlyoom\\[|nohang\\[|SIGTERM to |process |[0-9]{1,6}|\"|\\PC){0,12}") {
            let _ = parse(&line);
        }
    }
}
