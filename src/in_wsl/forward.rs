//! Starting the Linux `yolo` through `wsl.exe`, with this terminal, and what follows from its end. A command costs one
//! call of `wsl.exe`: the distribution comes from a setting or the registry, and where neither knows it, from one more
//! call. Only if `yolo` did not answer is `wsl.exe` asked why.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use yolo_base::exit;
use yolo_base::windows_paths::{Form, is_wsl};
use yolo_checks::wsl::exe_output::{Trouble, decode, distributions, trouble};

use super::error::InWslError;
use super::marker::Marker;
use super::{distribution, environment, registry, status, windows};
use crate::dirs::YoloDirs;
use crate::setup::wsl::{PROGRAM, WslExe, prepared_distribution};

/// What a program ends with that Ctrl-C has ended before it could handle it.
const ENDED_BY_CTRL_C: i32 = 0xC000_013A_u32.cast_signed();

/// What `wsl.exe` ends with if SIGINT has ended the program in Linux, which it does until `yolo` handles it: a shell's status.
/// The signal's number alone may also be another program's failure.
const ENDED_BY_SIGINT: i32 = 130;
const SIGINT: i32 = 2;

/// What a program in Rust ends with after a defect, about which it has written to the terminal.
const PANICKED: i32 = 101;

/// How long WSL may take to start and answer.
const MOST: Duration = Duration::from_secs(90);

/// A distribution in which commands run.
#[derive(Debug)]
pub(crate) struct Wsl {
    exe: WslExe,
    distribution: String,
    marker: Marker,
}

/// The arguments of this process, for the Linux `yolo`.
pub(crate) fn arguments_of_this_process() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

impl Wsl {
    /// The distribution for a command, which may name one.
    ///
    /// # Errors
    /// If WSL is not ready, or cannot see the current folder.
    pub(crate) fn choose(wanted: Option<&str>, dirs: &YoloDirs) -> Result<Self, InWslError> {
        let exe = WslExe::of_this_pc();
        let prepared = prepared_distribution(dirs);
        let mut known = registry::distributions();
        if known.is_empty() && wanted.is_none() && prepared.is_none() {
            known = listed(&exe)?;
        }
        let distribution = distribution::choose(wanted, prepared.as_deref(), &known)?;
        let folder = current_folder()?;
        let yolo = env!("CARGO_PKG_VERSION").to_owned();
        let marker = Marker { yolo, distribution: distribution.clone(), folder, paths: BTreeMap::new() };
        Ok(Self { exe, distribution, marker })
    }

    /// Its name.
    pub(crate) fn distribution(&self) -> &str {
        &self.distribution
    }

    /// Runs `yolo` with these arguments in the user's terminal, and returns its exit status. `trains` is whether a run
    /// can be resumed.
    ///
    /// # Errors
    /// If it could not start, or did not end by itself.
    pub(crate) fn run(&self, arguments: &[OsString], trains: bool) -> Result<u8, InWslError> {
        let mut command = self.command(arguments);
        let ended = {
            let _ctrl_c = windows::CtrlCForOthers::new();
            command.status().map_err(|source| self.no_exe(source))?
        };
        match ended.code().map(|code| (code, status::answered(code))) {
            Some((_, Some(status))) => Ok(status),
            Some((ENDED_BY_CTRL_C | ENDED_BY_SIGINT, None)) => Ok(exit::INTERRUPTED),
            Some((SIGINT, None)) => match self.why(ended, trains) {
                InWslError::Stopped { .. } => Ok(exit::INTERRUPTED),
                other => Err(other),
            },
            _ => Err(self.why(ended, trains)),
        }
    }

    /// The output of `yolo` with these arguments.
    ///
    /// # Errors
    /// If it could not start, or did not end by itself.
    pub(crate) fn output(&self, arguments: &[OsString]) -> Result<(u8, Output), InWslError> {
        let output = within(self.command(arguments), MOST).map_err(|source| self.no_exe(source))?;
        let Some(output) = output else {
            return Err(InWslError::Hangs { distribution: self.distribution.clone(), limit: MOST });
        };
        match output.status.code().and_then(status::answered) {
            Some(status) => Ok((status, output)),
            None => Err(self.explain(output.status, &decode(&output.stdout), &decode(&output.stderr), false)),
        }
    }

    /// Why the program gave this answer, which is not what was asked for: it is another version, if nothing else is known.
    pub(crate) fn why_not(&self, answer: &Output) -> InWslError {
        self.why(answer.status, false)
    }

    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = self.exe.command(&["-d", &self.distribution, "--exec", PROGRAM]);
        // The working folder is inherited: WSL translates it, also where `wsl.exe` has no `--cd` yet.
        let own = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        command.args(arguments).envs(environment::variables(own, &windows::drives(), &self.marker));
        command
    }

    fn no_exe(&self, source: std::io::Error) -> InWslError {
        match source.kind() {
            std::io::ErrorKind::NotFound => InWslError::NotInstalled,
            _ => self.exe.no_exe(source).into(),
        }
    }

    /// Why the program did not answer: what `wsl.exe` wrote is in the terminal, in the language of Windows, so that it
    /// is asked once more.
    fn why(&self, ended: ExitStatus, trains: bool) -> InWslError {
        let question = self.exe.command(&["-d", &self.distribution, "--exec", PROGRAM, "--version"]);
        let answer = match within(question, MOST) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                return InWslError::Hangs { distribution: self.distribution.clone(), limit: MOST };
            }
            Err(source) => Err(source),
        };
        match answer {
            Ok(answer) if answer.status.success() => {
                self.ended(ended, decode(&answer.stdout).trim().strip_prefix("yolo "), trains)
            }
            Ok(answer) => {
                self.explain(answer.status, &decode(&answer.stdout), &decode(&answer.stderr), trains)
            }
            Err(source) => self.no_exe(source),
        }
    }

    /// The error if the program is there, in this version, but did not answer.
    fn ended(&self, ended: ExitStatus, version: Option<&str>, trains: bool) -> InWslError {
        let distribution = self.distribution.clone();
        if let Some(here) = version.filter(|version| *version != self.marker.yolo) {
            let (here, windows) = (here.to_owned(), self.marker.yolo.clone());
            return InWslError::OtherVersion { distribution, here, windows };
        }
        match ended.code() {
            // A shell's status for a signal; `wsl.exe` gives the number alone.
            Some(code @ (129..=159)) => {
                InWslError::Killed { distribution, signal: exit::describe_signal(code - 128), trains }
            }
            Some(code @ (4 | 6 | 7 | 9 | 11 | 15)) => {
                InWslError::Killed { distribution, signal: exit::describe_signal(code), trains }
            }
            Some(PANICKED) => InWslError::Failed { distribution },
            _ => InWslError::Stopped { distribution, status: described(ended), trains },
        }
    }

    /// The error for what `wsl.exe` wrote.
    fn explain(&self, ended: ExitStatus, stdout: &str, stderr: &str, trains: bool) -> InWslError {
        let distribution = self.distribution.clone();
        let output = format!("{stdout}\n{stderr}");
        let command = format!("wsl.exe -d {distribution} --exec {PROGRAM}");
        let found = trouble(&output);
        let status = ended.code();
        match found {
            Some(Trouble::NotInstalled) => return InWslError::NotInstalled,
            Some(Trouble::NoDistribution) => {
                let known = registry::distributions().into_iter().filter(|one| one.is_usable());
                let others = known.map(|one| one.name).collect();
                return InWslError::NoSuchDistribution { name: distribution, others };
            }
            Some(_) => return InWslError::Trouble { distribution, trouble: found, command, output, status },
            None => {}
        }
        // Linux's own words, which WSL does not translate.
        let is_missing = output.contains(PROGRAM)
            && (output.contains("No such file") || output.contains(" 2\n"))
            || output.contains("execvpe") && output.contains("No such file")
            || ended.code() == Some(127);
        if is_missing {
            return InWslError::NoProgram { distribution };
        }
        if output.trim().is_empty() {
            return self.ended(ended, None, trains);
        }
        InWslError::Trouble { distribution, trouble: None, command, output, status }
    }
}

/// The output of a command; `None` if it is not there in time, when the command is ended.
fn within(mut command: Command, limit: Duration) -> std::io::Result<Option<Output>> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    fn all(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.map(|mut from| from.read_to_end(&mut bytes));
            bytes
        })
    }
    let (stdout, stderr) = (all(child.stdout.take()), all(child.stderr.take()));
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = |read: std::thread::JoinHandle<Vec<u8>>| read.join().unwrap_or_default();
    Ok(Some(Output { status, stdout: text(stdout), stderr: text(stderr) }))
}

/// The distributions that `wsl.exe` lists.
fn listed(exe: &WslExe) -> Result<Vec<yolo_checks::wsl::exe_output::Distribution>, InWslError> {
    let answer = match exe.command(&["-l", "-v"]).stdin(Stdio::null()).output() {
        Ok(answer) => answer,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(InWslError::NotInstalled),
        Err(error) => return Err(exe.no_exe(error).into()),
    };
    let (stdout, stderr) = (decode(&answer.stdout), decode(&answer.stderr));
    let found = distributions(&stdout);
    // That there is none is said in the language of Windows, with the command that installs one.
    let says_none = [&stdout, &stderr].iter().all(|text| text.trim().is_empty())
        || [&stdout, &stderr]
            .iter()
            .any(|text| text.contains("--install") || text.contains("aka.ms/wslstore"));
    match trouble(&format!("{stdout}\n{stderr}")).filter(|_| found.is_empty()) {
        Some(Trouble::NotInstalled) => Err(InWslError::NotInstalled),
        Some(Trouble::NoDistribution) => Ok(found),
        // Words that nobody knows are shown.
        None if answer.status.success() || !found.is_empty() || says_none => Ok(found),
        trouble => Err(InWslError::Trouble {
            distribution: "WSL".to_owned(),
            trouble,
            command: "wsl.exe -l -v".to_owned(),
            output: format!("{stdout}\n{stderr}"),
            status: answer.status.code(),
        }),
    }
}

/// The current folder as Windows writes it. WSL sees drives and its own files.
fn current_folder() -> Result<String, InWslError> {
    let folder = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    match Form::of(&folder) {
        Some(Form::Share { server, share, .. }) if !is_wsl(&server) => Err(InWslError::Folder {
            why: format!(r"\\{server}\{share} is on the network, which WSL does not see"),
            folder,
        }),
        _ => Ok(folder),
    }
}

/// An exit status as Windows shows it: failures of Windows are hexadecimal.
fn described(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code < 0 => format!("exit status 0x{:08x}", code.cast_unsigned()),
        _ => exit::describe(status),
    }
}
