//! The answers of this machine. Each question has a time budget. One that can hang (a dead network
//! drive, the driver, a command) is asked on a thread that is abandoned when its time is up. Nothing
//! on the machine changes.

mod budget;
pub(in crate::facts) mod command;
mod elf;
mod files;
mod libraries;
mod loader_cache;
mod network;
pub(in crate::facts) mod nvml;
mod processes;
mod registry;
mod system;

use std::time::Duration;

use serde_json::{Value, json};

use self::budget::{Budget, too_late};
use super::question::{Question, Section};

/// The budget for files and host names; a drive that takes longer does not respond.
const FILE_BUDGET: Duration = Duration::from_millis(1500);
/// Without persistence mode the driver wakes each card first, which takes up to a second per card.
const NVML_BUDGET: Duration = Duration::from_secs(10);

/// Asks this machine.
#[derive(Debug)]
pub(super) struct Live {
    budget: Budget,
    libraries: libraries::Loader,
    wsl_exe: Option<WslExe>,
}

/// The program to run as `wsl.exe`, and the least time it gets.
#[derive(Debug)]
pub(super) struct WslExe {
    pub(super) program: String,
    pub(super) budget: Duration,
}

impl Live {
    /// Answers for this machine, with the library search path of these programs.
    pub(super) fn of_programs(trainer: Option<&str>, libtorch: Option<&str>) -> Self {
        let libraries = libraries::Loader::of_programs(trainer, libtorch);
        Self { budget: Budget::default(), libraries, wsl_exe: None }
    }

    /// Runs this program where `wsl.exe` is asked for.
    pub(super) fn use_wsl_exe(&mut self, exe: WslExe) {
        self.wsl_exe = Some(exe);
    }

    fn run(&self, line: &str, budget: Duration) -> Value {
        match &self.wsl_exe {
            Some(exe) => match line.strip_prefix("wsl.exe ") {
                Some(rest) => {
                    let program = command::line(&[&exe.program]);
                    command::ask(&format!("{program} {rest}"), budget.max(exe.budget))
                }
                None => command::ask(line, budget),
            },
            None => command::ask(line, budget),
        }
    }

    /// The answer to a question, or an error with the reason.
    pub(super) fn ask(&self, question: &Question, budget: Option<Duration>) -> Value {
        let name = question.name.clone();
        let budget = budget.unwrap_or(FILE_BUDGET);
        let file = |ask: fn(&str) -> Value| {
            if files::cannot_hang(&name) {
                return ask(&name);
            }
            let path = name.clone();
            self.budget.within(budget, move || ask(&path)).unwrap_or_else(|| too_late(budget))
        };
        match question.section {
            Section::Os => json!(std::env::consts::OS),
            Section::Arch => json!(std::env::consts::ARCH),
            Section::Time => system::time(),
            Section::User => system::user(),
            Section::Hostname => system::hostname(),
            // `Host::of_this_machine` gets this answer from its caller.
            Section::Places => Value::Null,
            Section::System => system::system(),
            Section::Nvml => nvml::ask(NVML_BUDGET),
            Section::Listening => network::listening(),
            Section::Interfaces => network::interfaces(),
            Section::Processes => processes::ask(),
            Section::Threads => system::threads(),
            Section::Files => file(files::contents),
            Section::Heads => file(files::head),
            Section::Tails => file(files::tail),
            Section::Links => file(files::link),
            Section::Folders => file(files::folder),
            Section::Stats => file(files::stat),
            Section::Filesystems => file(files::file_system),
            Section::Env => {
                std::env::var_os(&name).map_or(Value::Null, |value| json!(value.to_string_lossy()))
            }
            Section::Commands => self.run(&name, budget),
            Section::Libraries => self.libraries.ask(&name),
            Section::Names => {
                let host = name.clone();
                self.budget
                    .within(budget, move || network::addresses(&host))
                    .unwrap_or_else(|| too_late(budget))
            }
            Section::Registry => registry::ask(&name),
            Section::Binds => network::can_listen(&name),
            Section::Binaries => file(elf::needs),
        }
    }
}
