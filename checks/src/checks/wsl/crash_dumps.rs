//! Dumps of crashed programs that WSL writes to the Windows drive: up to ten, each as large as the program's memory. A
//! Python or trainer that crashes fills drive C:, and then WSL's own disk cannot grow.

use yolo_base::{exit, format};

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do dumps of crashed programs fill the Windows drive?",
    reports: &["wsl.crash-dumps"],
    preflight: false,
    run,
};

/// Fewer bytes are not worth a word.
const NOTABLE: u64 = 1 << 30;
/// So many bytes are missing on a usual drive.
const MUCH: u64 = 10 << 30;
/// A limit this low was set on purpose.
const FEW: i64 = 2;
/// More files than WSL keeps.
const MOST: usize = 32;

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::has_wslconfig(host)? {
        return Ok(Vec::new());
    }
    // Nothing is missing in a report where this is unknown.
    let Ok(profile) = host.windows_profile() else { return Ok(Vec::new()) };
    let config = host.wslconfig().ok();
    let set = |key: &str| config.as_ref()?.value(key).map(str::trim).filter(|value| !value.is_empty());
    // Files in a folder that the user chose are wanted.
    if set("crashDumpFolder").is_some() {
        return Ok(Vec::new());
    }
    let separator = if host.is_windows()? { '\\' } else { '/' };
    let folder = ["AppData", "Local", "Temp", "wsl-crashes"]
        .iter()
        .fold(profile, |path, part| format!("{path}{separator}{part}"));
    let Ok(Some(names)) = host.folder(&folder) else { return Ok(Vec::new()) };
    let size = |name: &String| host.stat(&format!("{folder}{separator}{name}")).ok().flatten()?.size;
    let dumps: Vec<String> = names.into_iter().filter(|name| name.ends_with(".dmp")).take(MOST).collect();
    let bytes: u64 = dumps.iter().filter_map(size).sum();
    if bytes < NOTABLE {
        return Ok(Vec::new());
    }
    let title = format!(
        "{} of programs that crashed in WSL {} {} of the Windows drive",
        format::count(dumps.len(), "dump"),
        if dumps.len() == 1 { "takes" } else { "take" },
        format::memory(bytes)
    );
    let count = set("maxCrashDumpCount").and_then(|count| count.parse::<i64>().ok());
    let is_limited = count.is_some_and(|count| count <= FEW);
    let status = if bytes >= MUCH && !is_limited { Status::Warning } else { Status::Info };
    let finding = Finding::new("wsl.crash-dumps", title).status(status).seen(folder.clone());
    // Names begin with the time.
    let last = dumps.iter().filter_map(|name| crashed(name)).max();
    let finding = match last {
        Some((_, program, signal)) => finding
            .seen(format!("the last one is of {program}, which {} ended", exit::describe_signal(signal))),
        None => finding,
    };
    let finding = finding.command(format!("explorer.exe '{}'", host.windows_path(&folder)));
    Ok(vec![match &config {
        _ if is_limited => {
            finding.remedy("delete the files of that folder in Windows, if you do not need them")
        }
        Some(config) => finding.command(super::edit(host, config)),
        None => finding,
    }])
}

/// Time, program and signal in a name: `wsl-crash-1763690000-4711-_usr_bin_python3.12-11.dmp`.
fn crashed(name: &str) -> Option<(u64, String, i32)> {
    let mut parts = name.strip_prefix("wsl-crash-")?.strip_suffix(".dmp")?.splitn(3, '-');
    let time = parts.next()?.parse().ok()?;
    let _process: u64 = parts.next()?.parse().ok()?;
    let (program, signal) = parts.next()?.rsplit_once('-')?;
    let program = program.rsplit(['_', '!']).next().filter(|program| !program.is_empty())?;
    Some((time, program.to_owned(), signal.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::crashed;

    #[test]
    fn the_name_of_a_dump_says_what_crashed() {
        let name = "wsl-crash-1763690000-4711-_usr_bin_python3.12-11.dmp";
        assert_eq!(crashed(name), Some((1_763_690_000, "python3.12".to_owned(), 11)));
        assert_eq!(crashed("kernel-panic-1763690000.txt"), None);
    }

    proptest! {
        #[test]
        fn any_name_is_read(name in "(wsl-crash-)?[0-9a-z_!.-]{0,30}(\\.dmp)?") {
            let _ = crashed(&name);
        }
    }
}
