//! Processes that may matter to a run: those named like ours, those of Python and torchrun, and
//! those that are stuck in the kernel or wait to be reaped.

use serde_json::Value;

/// The name of a process, if this user may see it.
#[cfg(target_os = "linux")]
pub(super) fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn name_of(_: u32) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
pub(super) fn ask() -> Value {
    use crate::facts::answer::of_error;

    let folders = match std::fs::read_dir("/proc") {
        Ok(folders) => folders,
        Err(error) => return of_error(error),
    };
    let pids = folders.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(describe).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn ask() -> Value {
    crate::facts::answer::of_error("processes are listed on Linux only")
}

#[cfg(target_os = "linux")]
fn describe(pid: u32) -> Option<Value> {
    use std::os::unix::fs::MetadataExt as _;

    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, state, parent) = parse(&stat)?;
    let of_a_run = ["yolo", "python", "torchrun"].iter().any(|word| name.starts_with(word));
    if !of_a_run && !matches!(state, "D" | "Z") {
        return None;
    }
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok().map(|data| data.uid());
    Some(serde_json::json!({
        "pid": pid, "parent": parent, "name": name, "command": command, "uid": uid, "state": state,
    }))
}

/// Name, state and parent of a line of /proc/PID/stat; the name may hold spaces and parentheses.
#[cfg(target_os = "linux")]
fn parse(stat: &str) -> Option<(&str, &str, u32)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some((name, fields.next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        assert_eq!(parse("42 (a) b (c)) D 7 0 0"), Some(("a) b (c)", "D", 7)));
        assert_eq!(parse("garbage"), None);
    }

    #[test]
    fn this_process_has_a_name() {
        assert!(name_of(std::process::id()).is_some());
    }
}
