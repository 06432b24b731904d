//! Runs a program under test: in its own process group, with its output in files, and never longer
//! than its deadline.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How long a program that hangs may take to stop its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// A program with its arguments and environment.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    shown: String,
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    shown: String,
    stdout: PathBuf,
    stderr: PathBuf,
    began: Instant,
}

/// A program that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The command line, without the folders of the kit.
    pub shown: String,
    /// How it ended; `None` if it was killed because its time was over.
    pub status: Option<ExitStatus>,
    /// Its output.
    pub stdout: String,
    /// Its messages.
    pub stderr: String,
    /// How long it ran.
    pub seconds: f64,
}

impl Invocation {
    /// A program without arguments, in this working folder.
    pub fn new(program: &Path, working: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(working).stdin(Stdio::null());
        let shown = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { command, shown }
    }

    /// Adds arguments, which are split at spaces.
    #[must_use]
    pub fn args(mut self, arguments: &str) -> Self {
        for argument in arguments.split_whitespace() {
            self = self.arg(argument);
        }
        self
    }

    /// Adds one argument, which may contain spaces.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument.as_ref());
        self.shown.push(' ');
        self.shown.push_str(&shown(argument.as_ref()));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// The command line, without the folders of the kit.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Starts it with its output in `LOG.out` and `LOG.err`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut self, log: &Path) -> io::Result<Running> {
        let (stdout, stderr) = (log.with_extension("out"), log.with_extension("err"));
        self.command.stdout(fs_err::File::create(&stdout)?.into_parts().0);
        self.command.stderr(fs_err::File::create(&stderr)?.into_parts().0);
        let child =
            self.command.process_group(0).spawn().map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start {}: {error}", self.shown))
            })?;
        Ok(Running { child, shown: self.shown, stdout, stderr, began: Instant::now() })
    }
}

/// An argument as a person would write it: a path by its last part.
fn shown(argument: &OsStr) -> String {
    let path = Path::new(argument);
    match path.file_name() {
        Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
        _ => argument.to_string_lossy().into_owned(),
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Asks it to stop, as Ctrl-C does.
    pub fn interrupt(&self) {
        signal(self.pid(), Signal::INT);
    }

    /// Waits for its end, or kills it when the deadline comes first.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn wait(mut self, deadline: Instant) -> io::Result<Ended> {
        let status = self.status_by(deadline)?;
        let seconds = self.began.elapsed().as_secs_f64();
        if status.is_none() {
            // `yolo` ends its ranks when it is asked to stop, but a program that hangs may not listen.
            signal(self.pid(), Signal::TERM);
            let _ = self.status_by(Instant::now() + GRACE)?;
        }
        if let Some(group) = Pid::from_raw(self.pid().cast_signed()) {
            // Fails only if the whole group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.child.wait()?;
        let read = |path: &Path| fs_err::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (stdout, stderr) = (read(&self.stdout)?, read(&self.stderr)?);
        Ok(Ended { shown: self.shown, status, stdout, stderr, seconds })
    }

    fn status_by(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Sends a signal to a process, which may have ended.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

impl Ended {
    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        self.code() == Some(0)
    }

    /// Its exit status, if it ended by itself.
    pub fn code(&self) -> Option<i32> {
        self.status?.code()
    }

    /// How it ended: `exit status 3`, `signal 9 (SIGKILL)`, or that its time was over.
    pub fn how(&self) -> String {
        match self.status {
            Some(status) => yolo_base::exit::describe(status),
            None => "killed because its time was over".to_owned(),
        }
    }

    /// Whether a signal ended it.
    pub fn was_signaled(&self) -> bool {
        self.status.is_some_and(|status| status.signal().is_some())
    }

    /// The last lines of its messages, or of its output if there are no messages.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].iter().map(|&line| line.to_owned()).collect()
    }

    /// The lines that begin with `error: ` or `hint: `, joined.
    pub fn message(&self) -> String {
        let is_message = |line: &&str| line.starts_with("error: ") || line.starts_with("hint: ");
        self.stderr.lines().filter(is_message).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, seconds: u64) -> (Ended, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let invocation = Invocation::new(Path::new("/bin/sh"), folder.path()).arg("-c").arg(script);
        let running = invocation.start(&folder.path().join("log")).unwrap();
        (running.wait(Instant::now() + Duration::from_secs(seconds)).unwrap(), folder)
    }

    #[test]
    fn output_and_exit_status_are_kept() {
        let (ended, _folder) = shell("echo result; echo 'error: broken' >&2; exit 3", 10);
        assert_eq!((ended.code(), ended.stdout.as_str()), (Some(3), "result\n"));
        assert_eq!(ended.message(), "error: broken");
        assert_eq!(ended.how(), "exit status 3");
        assert!(!ended.succeeded());
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let began = Instant::now();
        let (ended, folder) = shell("trap '' TERM; sleep 600 & echo $! >child; wait; sleep 600", 1);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert!(ended.status.is_none() && ended.how().contains("time was over"));
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        let is_alive = || {
            std::fs::read_to_string(format!("/proc/{}/stat", child.trim()))
                .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
        };
        // A signal takes a moment.
        while is_alive() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(POLL);
        }
        assert!(!is_alive(), "the child still runs");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Invocation::new(Path::new("/nonexistent/yolo"), folder.path());
        let message = missing.start(&folder.path().join("log")).unwrap_err().to_string();
        assert!(message.contains("cannot start yolo"), "{message}");
    }
}
