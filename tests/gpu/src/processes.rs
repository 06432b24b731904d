//! The processes of a kit's run. Each inherits a variable with a value of its own, by which it is found
//! wherever it went.

use rustix::process::Signal;

use crate::invocation::signal;

/// The variable that marks the processes of a run.
pub const MARK: &str = "YOLO_GPU_KIT_RUN";

/// The ids of the marked processes that are alive.
pub fn alive(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let Ok(listing) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &u32| {
        // Zombies have an empty environment.
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes()))
    };
    pids.filter(is_marked).collect()
}

/// The ids of the marked processes that are ranks.
pub fn ranks(mark: &str) -> Vec<u32> {
    let is_rank = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "yolo-trainer")
    };
    alive(mark).into_iter().filter(is_rank).collect()
}

/// Kills the marked processes that are alive, and returns how many there were.
pub fn kill_all(mark: &str) -> usize {
    let left = alive(mark);
    left.iter().for_each(|&pid| signal(pid, Signal::KILL));
    left.len()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_found_by_its_mark_and_killed() {
        let mark = format!("test-{}", std::process::id());
        let mut child = Command::new("sleep").arg("600").env(MARK, &mark).spawn().unwrap();
        // A new process has its environment only when its program has started.
        let began = Instant::now();
        while alive(&mark).is_empty() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (found, are_ranks, killed) = (alive(&mark), ranks(&mark), kill_all(&mark));
        let _ = child.kill();
        child.wait().unwrap();
        assert_eq!((found.as_slice(), are_ranks.len(), killed), ([child.id()].as_slice(), 0, 1));
        assert!(alive(&mark).is_empty());
        assert!(alive("another mark").is_empty());
    }
}
