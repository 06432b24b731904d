//! Running `wsl.exe`. A question has a time limit, since a broken WSL can hang for ever; a step
//! that the user watches keeps the terminal and has none.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use yolo_checks::wsl::exe_output::{decode, trouble};

use super::WslError;

/// How long a question may take: starting the virtual machine is part of some.
const PATIENCE: Duration = Duration::from_secs(60);

/// `wsl.exe`, or what stands in for it in a test.
#[derive(Debug, Clone)]
pub(super) struct WslExe {
    program: PathBuf,
    /// What a test adds to its environment.
    #[cfg(test)]
    recorded: Option<PathBuf>,
}

/// What a question came back with.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) succeeded: bool,
    /// What it wrote to stdout, decoded.
    pub(super) stdout: String,
    /// What it wrote to stderr, decoded.
    stderr: String,
}

impl Answer {
    /// Everything that was said.
    pub(super) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl WslExe {
    /// The one that `YOLO_WSL` names, else Windows' own.
    pub(super) fn of_this_pc() -> Self {
        let named = std::env::var_os("YOLO_WSL").filter(|name| !name.is_empty()).map(PathBuf::from);
        let program = named.unwrap_or_else(|| {
            let windows = std::env::var_os("SystemRoot").map(PathBuf::from);
            let own = windows.map(|windows| windows.join("System32").join("wsl.exe"));
            own.filter(|own| own.is_file()).unwrap_or_else(|| PathBuf::from("wsl.exe"))
        });
        Self {
            program,
            #[cfg(test)]
            recorded: None,
        }
    }

    /// A program that replays the answers in a folder.
    #[cfg(test)]
    pub(super) fn stand_in(program: PathBuf, folder: &Path) -> Self {
        Self { program, recorded: Some(folder.to_owned()) }
    }

    /// A command as a person would type it.
    pub(super) fn words(args: &[&str]) -> String {
        let quoted = args.iter().map(|arg| {
            let plain =
                !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./~:=".contains(c));
            if plain { (*arg).to_owned() } else { format!("\"{arg}\"") }
        });
        std::iter::once("wsl.exe".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // Releases since 2022 then answer in UTF-8; others are understood as well.
        command.args(args.iter().map(OsStr::new)).env("WSL_UTF8", "1");
        #[cfg(test)]
        command.envs(self.recorded.as_ref().map(|folder| ("STAND_IN_WSL", folder)));
        command
    }

    fn no_exe(&self, source: io::Error) -> WslError {
        WslError::NoExe { program: self.program.clone(), source }
    }

    /// Asks something; `None` when there is no `wsl.exe`.
    pub(super) fn ask(&self, args: &[&str]) -> Result<Option<Answer>, WslError> {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => wait(child, args, PATIENCE).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.no_exe(error)),
        }
    }

    /// Takes a step in front of the user, who sees what it says and can answer it.
    pub(super) fn take(&self, args: &[&str]) -> Result<(), WslError> {
        let status = self.command(args).status().map_err(|error| self.no_exe(error))?;
        if status.success() { Ok(()) } else { Err(failed(args, status, String::new())) }
    }

    /// Takes a step that reads a file.
    pub(super) fn feed(&self, args: &[&str], file: &Path) -> Result<(), WslError> {
        let input = std::fs::File::open(file).map_err(WslError::file("open", file))?;
        let mut command = self.command(args);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| self.no_exe(error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(args, output.status, format!("{}{}", decode(&output.stdout), decode(&output.stderr))))
    }
}

/// Asks another program; `None` when it is not there, fails, or does not answer in time.
pub(super) fn question(program: &Path, args: &[&str], limit: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let answer = wait(command.spawn().ok()?, args, limit).ok()?;
    answer.succeeded.then_some(answer.stdout)
}

/// The error of a command that ended with a failure.
fn failed(args: &[&str], status: ExitStatus, answer: String) -> WslError {
    let trouble = trouble(&answer);
    WslError::Failed { command: WslExe::words(args), status: status.to_string(), answer, trouble }
}

fn wait(mut child: Child, args: &[&str], limit: Duration) -> Result<Answer, WslError> {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                // It may have ended just now, or be stuck in the system; either way it is left.
                let _ = child.kill();
                return Err(WslError::Silent { command: WslExe::words(args), seconds: limit.as_secs() });
            }
            Err(source) => {
                return Err(WslError::NoExe { program: PathBuf::from("wsl.exe"), source });
            }
        }
    };
    let text = |reader: Option<JoinHandle<Vec<u8>>>| {
        decode(&reader.and_then(|reader| reader.join().ok()).unwrap_or_default())
    };
    Ok(Answer { succeeded: status.success(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads on a thread of its own, so that a full pipe stops nobody.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    pipe.map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What came before a broken pipe is the answer.
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    })
}
