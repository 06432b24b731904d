//! Runs that get less memory or disk than they need: a control group with a limit, and a full disk. The
//! message says what ran out, and the run leaves no half-written file.

// Control groups and tmpfs are Linux's.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use small_disk::SmallDisk;
use user::{Finished, TRAIN, User};

/// A control group with a limit, removed when it is dropped.
struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// `None` if this user or machine cannot make one.
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("yolo-test-{}", std::process::id());
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        places.into_iter().find_map(|(root, limit)| {
            let group = Self { folder: Path::new(root).join(&name) };
            std::fs::create_dir(&group.folder).ok()?;
            std::fs::write(group.folder.join(limit), bytes.to_string()).ok()?;
            // Without swap, which would only make the ranks slow. Machines without swap may lack these files.
            let _ = std::fs::write(group.folder.join("memory.memsw.limit_in_bytes"), bytes.to_string());
            let _ = std::fs::write(group.folder.join("memory.swap.max"), "0");
            Some(group)
        })
    }

    /// Runs `command` in the group.
    fn run(&self, command: &Command) -> Finished {
        let mut inside = Command::new("sh");
        inside.arg("-c").arg(r#"echo $$ > "$1"/cgroup.procs && shift && exec "$@""#).arg("sh");
        inside.arg(&self.folder).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
        Finished::from(inside.output().unwrap())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A folder of control groups is removed like an empty folder, once its processes are gone.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_rank_that_the_kernel_kills_for_its_memory_is_told_from_one_that_a_person_kills() {
    let Some(limit) = MemoryLimit::new(150 << 20) else {
        println!("skipped: limiting memory needs root and a control group of its own");
        return;
    };
    let user = User::new();
    user.write_data_set();
    let command = user.command(&format!("{TRAIN} --epochs 50 --nproc-per-node 2 --no-preflight --imgsz 320"));
    let finished = limit.run(&command).failed_with(1, &["rank ", " of 2 ", "was killed by signal 9"]);
    let memory = ["reached its memory limit", "ran out of memory"];
    assert!(memory.iter().any(|words| finished.stderr.contains(words)), "{}", finished.stderr);
    assert!(finished.stderr.contains("--batch"), "{}", finished.stderr);
}

#[test]
fn a_full_disk_is_named_with_the_file_and_leaves_no_part_of_it() {
    let user = User::new();
    user.write_data_set();
    let folder = user.path().join("small");
    std::fs::create_dir(&folder).unwrap();
    let Some(_disk) = SmallDisk::mount(&folder, "12m") else {
        println!("skipped: mounting a small tmpfs needs root and the right to mount");
        return;
    };
    let run = format!("{TRAIN} --epochs 2 --nproc-per-node 2 --project small --no-preflight --noplots");
    let finished = user.run(&run).failed_with(1, &["weights/", "the disk is full", "free at least"]);
    assert!(finished.stderr.contains("rank 0 of 2"), "{}", finished.stderr);
    let weights: Vec<PathBuf> = std::fs::read_dir(folder.join("exp/weights"))
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    assert!(weights.is_empty(), "{weights:?} are left");
}
