//! Runs `yolo` as a user does: in an empty working folder, on a small data set. It uses the libtorch
//! and the trainer that `yolo setup` installed.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Training for a few seconds: tiny images, one rank, a small batch. An option that is given again
/// replaces the one here.
pub const TRAIN: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 \
                         --nbs 8 --device cpu --workers 1";

/// Signals, as `kill` names them. Their numbers differ between systems.
pub const SIGHUP: &str = "HUP";
pub const SIGINT: &str = "INT";
pub const SIGKILL: &str = "KILL";
pub const SIGSTOP: &str = "STOP";
pub const SIGCONT: &str = "CONT";
pub const SIGTERM: &str = "TERM";
pub const SIGTSTP: &str = "TSTP";

/// How long a test waits for what must happen. A loaded machine may need minutes to build a trainer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A user with an empty working folder.
pub struct User {
    folder: tempfile::TempDir,
}

/// A command that has ended: its exit status and output.
pub struct Finished {
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

    /// Writes a script that can be executed, and returns its path.
    ///
    /// Another process writes it. If this one did, a process that another test starts at that moment could inherit the
    /// open file, and nothing can execute a file that is open for writing.
    #[cfg(unix)]
    pub fn write_program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path().join(name);
        let written = Command::new("sh")
            .args(["-c", "printf %s \"$0\" >\"$1\" && chmod 755 \"$1\"", script])
            .arg(&path)
            .status();
        assert!(written.unwrap().success());
        path
    }

    /// Writes a small data set, red and blue squares on gray, and returns the path of its yaml.
    pub fn write_data_set(&self) -> PathBuf {
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

    /// `yolo` with these arguments, which are split at spaces.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yolo"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .env("OMP_NUM_THREADS", "1")
            // A typo in a name must not make these tests download anything.
            .env("YOLO_OFFLINE", "1")
            .env_remove("YOLO_MIRROR");
        command
    }

    /// Runs `yolo` with these arguments to its end.
    pub fn run(&self, arguments: &str) -> Finished {
        Finished::from(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Starts `yolo`, and returns at once.
    pub fn start(&self, arguments: &str) -> Running {
        self.start_with(arguments, &[])
    }

    /// Starts training on two ranks with these environment variables, and returns when the first
    /// checkpoint exists. The second value is the process ids of the ranks.
    pub fn start_two_ranks(&self, arguments: &str, variables: &[(&str, &str)]) -> (Running, Vec<u32>) {
        let running = self.start_with(&format!("{arguments} --nproc-per-node 2"), variables);
        let ranks = wait_for("two ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == 2));
        let last = self.path().join("runs/train/exp/weights/last.pt");
        wait_for("the first checkpoint", || last.exists().then_some(()));
        (running, ranks)
    }

    /// Starts `yolo` with these environment variables, and returns at once.
    pub fn start_with(&self, arguments: &str, variables: &[(&str, &str)]) -> Running {
        let child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running::of(child)
    }
}

/// A `yolo` that is running. It is killed, and its ranks with it, when a test fails and drops it.
pub struct Running {
    /// None once its end is awaited.
    child: Option<Child>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    /// A `yolo` that was started in another way.
    pub fn of(child: Child) -> Self {
        Self { child: Some(child) }
    }

    /// The process ids of its ranks.
    pub fn ranks(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let listed = std::fs::read_to_string(children).unwrap_or_default();
        listed.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|&pid| is_trainer(pid)).collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: &str) {
        send_signal(self.pid(), signal);
    }

    pub fn wait(mut self) -> Finished {
        Finished::from(self.child.take().unwrap().wait_with_output().unwrap())
    }

    /// Sends a signal once all of these texts are on stderr, or at its end, and waits for the end. A process
    /// that has not ended after [`LONGEST_WAIT`] is killed.
    pub fn signal_after(mut self, texts: &[&str], signal: &str) -> Finished {
        let mut child = self.child.take().unwrap();
        let pid = child.id();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let limit = std::thread::spawn(move || {
            if end.recv_timeout(LONGEST_WAIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                send_signal(pid, SIGKILL);
            }
        });
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !texts.iter().all(|text| said.contains(text)) && lines.read_line(&mut said).unwrap() > 0 {}
        send_signal(child.id(), signal);
        lines.read_to_string(&mut said).unwrap();
        let finished = Finished { stderr: said, ..Finished::from(child.wait_with_output().unwrap()) };
        drop(ended);
        limit.join().unwrap();
        finished
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Finished {
    /// Fails the test, with all output, unless the command succeeded.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless the command ended with this exit status and exactly one error message,
    /// which contains all of `parts`, and without a panic.
    #[track_caller]
    pub fn failed_with(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.matches("error: ").count(), 1, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("backtrace"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in:\n{}", self.stderr);
        }
        self
    }

    /// The line about all classes in the table of metrics.
    #[track_caller]
    pub fn table(&self) -> &str {
        let line = self.stdout.lines().find(|line| line.trim_start().starts_with("all "));
        line.unwrap_or_else(|| panic!("there is no table of metrics in:\n{}", self.stdout))
    }
}

/// A port at which nobody listens. It is below those that Linux gives to outgoing connections, which start at 32768,
/// and other test programs start their search elsewhere.
pub fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(64);
    let next = || FIRST + own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    (0..PORTS).map(|_| next() as u16).find(is_free).unwrap()
}

/// Sends a signal to a process.
pub fn send_signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether a process is alive; a zombie is not.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Whether all threads of a process are stopped. Only then does the kernel treat the process as stopped.
pub fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}

fn is_trainer(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "yolo-trainer")
}

/// Polls until `look` returns a value; fails the test after [`LONGEST_WAIT`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONGEST_WAIT, "waited {} s for {what}", LONGEST_WAIT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The text with `N` for every number, and one space for several.
pub fn masked(text: &str) -> String {
    let is_number = |word: &str| word.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| if is_number(word) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
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
