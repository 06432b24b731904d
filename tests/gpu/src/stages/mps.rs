//! A private daemon of NVIDIA's Multi-Process Service, through which the kernels of several processes run
//! on one GPU at the same time instead of in turns.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use yolo_base::env::{CUDA_MPS_LOG_DIRECTORY, CUDA_MPS_PIPE_DIRECTORY};

use crate::invocation::signal;
use crate::processes::MARK;

/// The program that starts the daemon and controls it.
pub(super) const PROGRAM: &str = "nvidia-cuda-mps-control";
/// How long the daemon may take to start or to quit.
const TIME: Duration = Duration::from_secs(10);
/// How often it is looked at.
const POLL: Duration = Duration::from_millis(20);

/// A daemon of this run alone: a daemon that the machine already has is neither used nor stopped. It
/// quits when this value is dropped.
#[derive(Debug)]
pub(super) struct PrivateDaemon {
    program: PathBuf,
    /// Its pipes and its process id; clients find it by this folder.
    pipes: PathBuf,
    logs: PathBuf,
}

impl PrivateDaemon {
    /// Starts a daemon that keeps its files in `folder`, and gives its processes a mark.
    pub(super) fn start(program: &Path, folder: &Path, mark: &str) -> io::Result<Self> {
        let daemon =
            Self { program: program.to_owned(), pipes: folder.join("pipes"), logs: folder.join("logs") };
        fs_err::create_dir_all(&daemon.pipes)?;
        fs_err::create_dir_all(&daemon.logs)?;
        let mut starter = daemon.control().env(MARK, mark).arg("-d").stdin(Stdio::null()).spawn()?;
        match wait(&mut starter)? {
            Some(status) if status.success() => Ok(daemon),
            Some(status) => Err(io::Error::other(format!("{PROGRAM} -d ended with {status}"))),
            None => Err(io::Error::other(format!("{PROGRAM} -d did not end within {} s", TIME.as_secs()))),
        }
    }

    /// The variables by which a program finds this daemon.
    pub(super) fn environment(&self) -> [(&'static str, &Path); 2] {
        [(CUDA_MPS_PIPE_DIRECTORY, &self.pipes), (CUDA_MPS_LOG_DIRECTORY, &self.logs)]
    }

    fn control(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.environment()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Asks the daemon to quit.
    fn quit(&self) -> io::Result<()> {
        let mut control = self.control().stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = control.stdin.take() {
            stdin.write_all(b"quit -t 1\n")?;
        }
        wait(&mut control).map(|_status| ())
    }

    /// The process id of the daemon, from the file that it writes.
    fn pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.pipes.join("nvidia-cuda-mps-control.pid")).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        let pid = self.pid();
        // A daemon that does not answer is killed below.
        let _ = self.quit();
        if let Some(pid) = pid.filter(|&pid| is_daemon(pid)) {
            signal(pid, Signal::KILL);
        }
    }
}

/// Whether this process is a daemon of MPS, and not another that was given its number.
fn is_daemon(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(PROGRAM))
}

/// The exit status of a program that should end soon; `None` if it had to be killed.
fn wait(child: &mut Child) -> io::Result<Option<std::process::ExitStatus>> {
    let began = Instant::now();
    while began.elapsed() < TIME {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that is a shell script, and does `quit` when it is asked to.
    fn fake(folder: &Path, quit: &str) -> PathBuf {
        let program = folder.join(PROGRAM);
        let script = format!(
            "#!/bin/sh
             pid=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
             case \"$1\" in
               -d) \"$0\" serve & echo $! >$pid ;;
               serve) while :; do sleep 0.05; done ;;
               *) read line; echo \"$line\" >$CUDA_MPS_LOG_DIRECTORY/asked; {quit} ;;
             esac"
        );
        // Another process writes the file, so that no process of another test inherits it while it is open.
        let write = "printf '%s' \"$0\" >\"$1\" && chmod 755 \"$1\"";
        let written = Command::new("sh").args(["-c", write, &script]).arg(&program).status().unwrap();
        assert!(written.success());
        program
    }

    /// Whether a process is alive, or only not reaped yet.
    fn is_alive(pid: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    }

    fn ends(pid: u32) -> bool {
        let began = Instant::now();
        while is_alive(pid) && began.elapsed() < TIME {
            std::thread::sleep(POLL);
        }
        !is_alive(pid)
    }

    #[test]
    fn a_daemon_is_asked_to_quit() {
        let folder = tempfile::tempdir().unwrap();
        let program = fake(folder.path(), "kill $(cat $pid)");
        let daemon = PrivateDaemon::start(&program, folder.path(), "test").unwrap();
        let pid = daemon.pid().unwrap();
        assert!(is_alive(pid));
        let [(_, pipes), (_, logs)] = daemon.environment();
        assert_eq!((pipes, logs), (&*folder.path().join("pipes"), &*folder.path().join("logs")));
        drop(daemon);
        assert!(ends(pid));
        assert_eq!(std::fs::read_to_string(folder.path().join("logs/asked")).unwrap(), "quit -t 1\n");
    }

    #[test]
    fn a_daemon_that_does_not_quit_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let daemon = PrivateDaemon::start(&fake(folder.path(), "true"), folder.path(), "test").unwrap();
        let pid = daemon.pid().unwrap();
        drop(daemon);
        assert!(ends(pid));
    }

    #[test]
    fn a_daemon_that_does_not_start_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let missing = PrivateDaemon::start(Path::new("/nonexistent/mps"), folder.path(), "test");
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
        let message =
            PrivateDaemon::start(Path::new("/bin/false"), folder.path(), "test").unwrap_err().to_string();
        assert!(message.contains("ended with exit status: 1"), "{message}");
    }
}
