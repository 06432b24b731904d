//! A user at a shell: runs `yolo` in a folder of its own, on a small data set, and looks at what
//! comes back. libtorch and the trainer are those that `yolo setup` has installed.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder in which a user works.
pub struct User {
    folder: tempfile::TempDir,
}

/// What a command answered.
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl User {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A data set of a few images that are written here: red and blue squares on grey.
    pub fn data(&self) -> PathBuf {
        let root = self.path().join("squares");
        for (split, count) in [("train", 16_usize), ("val", 8)] {
            for kind in ["images", "labels"] {
                std::fs::create_dir_all(root.join(kind).join(split)).unwrap();
            }
            for index in 0..count {
                let (image, label) = square(index, split == "val");
                std::fs::write(root.join("images").join(split).join(format!("{index:02}.bmp")), image)
                    .unwrap();
                std::fs::write(root.join("labels").join(split).join(format!("{index:02}.txt")), label)
                    .unwrap();
            }
        }
        let yaml = root.join("squares.yaml");
        std::fs::write(&yaml, "path: .\ntrain: images/train\nval: images/val\nnames: [red, blue]\n").unwrap();
        yaml
    }

    /// The command `yolo` with these words, split at spaces.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yolo"));
        command
            .args(words.split_whitespace())
            .current_dir(self.path())
            .env("OMP_NUM_THREADS", "1")
            // A mistake in a name must not lead these tests to servers of other people.
            .env("YOLO_OFFLINE", "1")
            .env_remove("YOLO_MIRROR");
        command
    }

    /// Types `yolo` and the words, and waits for the answer.
    pub fn types(&self, words: &str) -> Answer {
        Answer::from(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    /// Starts `yolo` and goes on.
    pub fn starts(&self, words: &str) -> Running {
        self.starts_in(words, &[])
    }

    /// Starts a training on two ranks with these variables, and goes on when its first checkpoint
    /// stands; also gives the two processes.
    pub fn starts_two_ranks(&self, words: &str, variables: &[(&str, &str)]) -> (Running, Vec<u32>) {
        let running = self.starts_in(&format!("{words} --nproc-per-node 2"), variables);
        let ranks = until("two ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == 2));
        let last = self.path().join("runs/train/exp/weights/last.pt");
        until("the first checkpoint", || last.exists().then_some(()));
        (running, ranks)
    }

    /// Starts `yolo` with these environment variables, and returns at once.
    pub fn starts_in(&self, words: &str, variables: &[(&str, &str)]) -> Running {
        let child = self
            .command(words)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running { child }
    }
}

/// A `yolo` that runs.
pub struct Running {
    child: Child,
}

impl Running {
    /// The processes that it started.
    pub fn ranks(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let listed = std::fs::read_to_string(children).unwrap_or_default();
        listed.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|&pid| is_trainer(pid)).collect()
    }

    pub fn signal(&self, signal: i32) {
        send(self.child.id(), signal);
    }

    pub fn waits(self) -> Answer {
        Answer::from(self.child.wait_with_output().unwrap())
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Answer {
    /// Fails the test with everything that was said unless the command did what was asked.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless the command ended with this code and one error that holds the words,
    /// and without a panic.
    #[track_caller]
    pub fn refused(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.matches("error: ").count(), 1, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("backtrace"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in:\n{}", self.stderr);
        }
        self
    }
}

/// Sends a signal to a process.
pub fn send(pid: u32, signal: i32) {
    let status = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether a process lives (a zombie does not).
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

fn is_trainer(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "yolo-trainer")
}

/// Waits until something holds; fails the test when it does not for a minute.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A 64x64 BMP with one square, and its label.
pub fn square(index: usize, shifted: bool) -> (Vec<u8>, String) {
    const SIDE: usize = 64;
    let size = 12 + index % 5 * 5;
    let (left, top) = ((index * 7 + usize::from(shifted) * 3) % (SIDE - size), (index * 13) % (SIDE - size));
    let class = index % 2;
    let mut pixels = Vec::with_capacity(SIDE * SIDE * 3);
    for y in (0..SIDE).rev() {
        for x in 0..SIDE {
            let inside = (left..left + size).contains(&x) && (top..top + size).contains(&y);
            pixels.extend(match (inside, class) {
                (false, _) => [96 + (x * 7 + y * 3) as u8 % 32; 3],
                (true, 0) => [30, 30, 220],
                (true, _) => [220, 60, 30],
            });
        }
    }
    let mut bmp = Vec::new();
    bmp.extend(b"BM");
    bmp.extend((54 + pixels.len() as u32).to_le_bytes());
    bmp.extend([0; 4]);
    bmp.extend(54_u32.to_le_bytes());
    bmp.extend(40_u32.to_le_bytes());
    bmp.extend((SIDE as i32).to_le_bytes());
    bmp.extend((SIDE as i32).to_le_bytes());
    bmp.extend(1_u16.to_le_bytes());
    bmp.extend(24_u16.to_le_bytes());
    bmp.extend([0; 24]);
    bmp.extend(&pixels);
    let part = |pixels: f64| pixels / SIDE as f64;
    let label = format!(
        "{class} {} {} {} {}\n",
        part(left as f64 + size as f64 / 2.0),
        part(top as f64 + size as f64 / 2.0),
        part(size as f64),
        part(size as f64)
    );
    (bmp, label)
}
