//! Running the steps of `wsl.exe`. A step that the user watches keeps the terminal and has no time
//! limit; questions go through [`Host`](yolo_checks::Host), which has one, since a broken WSL can
//! hang forever.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use yolo_base::env::{SystemRoot, WSL_UTF8, YOLO_WSL};
use yolo_base::exit;
use yolo_checks::wsl::exe_output::{decode, trouble};

use super::error::WslError;

/// Where the Linux program is in a distribution.
pub(crate) const PROGRAM: &str = "/opt/yolo/yolo";

/// The `wsl.exe` of this PC, or its stand-in.
#[derive(Debug, Clone)]
pub(crate) struct WslExe {
    program: PathBuf,
}

impl WslExe {
    /// The one that `YOLO_WSL` names, or that of Windows.
    pub(crate) fn of_this_pc() -> Self {
        let named = std::env::var_os(YOLO_WSL).filter(|name| !name.is_empty()).map(PathBuf::from);
        let program = named.unwrap_or_else(|| {
            let windows = std::env::var_os(SystemRoot).map(PathBuf::from);
            let system = windows.map(|windows| windows.join("System32").join("wsl.exe"));
            system.filter(|exe| exe.is_file()).unwrap_or_else(|| PathBuf::from("wsl.exe"))
        });
        Self { program }
    }

    /// A program that replays recorded output.
    #[cfg(test)]
    pub(super) fn stand_in(program: PathBuf) -> Self {
        Self { program }
    }

    /// The program to run.
    pub(super) fn program(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// A command as a person would type it.
    pub(super) fn command_line(args: &[&str]) -> String {
        let quoted = args.iter().map(|arg| {
            let plain =
                !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./~:=".contains(c));
            if plain { (*arg).to_owned() } else { format!("\"{arg}\"") }
        });
        std::iter::once("wsl.exe".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
    }

    /// A command of `wsl.exe` with these arguments, which writes UTF-8 where it can.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // Releases since 2022 then write UTF-8; the output of others is decoded as well.
        command.args(args).env(WSL_UTF8, "1");
        command
    }

    /// The error if it cannot be started.
    pub(crate) fn no_exe(&self, source: io::Error) -> WslError {
        WslError::NoExe { program: self.program.clone(), source }
    }

    /// Runs a step in the user's terminal.
    pub(super) fn run(&self, args: &[&str]) -> Result<(), WslError> {
        let status = self.command(args).status().map_err(|error| self.no_exe(error))?;
        if status.success() { Ok(()) } else { Err(failed(args, status, String::new())) }
    }

    /// Runs a step that reads a file from stdin.
    pub(super) fn run_with_input(&self, args: &[&str], file: &Path) -> Result<(), WslError> {
        let input = std::fs::File::open(file).map_err(WslError::file("open", file))?;
        self.run_captured(args, input.into())
    }

    /// Runs a step whose output is part of the error if it fails.
    pub(super) fn run_captured(&self, args: &[&str], input: Stdio) -> Result<(), WslError> {
        let mut command = self.command(args);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| self.no_exe(error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(args, output.status, format!("{}{}", decode(&output.stdout), decode(&output.stderr))))
    }
}

/// The error of a command that failed.
fn failed(args: &[&str], status: ExitStatus, output: String) -> WslError {
    let trouble = trouble(&output);
    WslError::Failed { command: WslExe::command_line(args), status: exit::describe(status), output, trouble }
}
