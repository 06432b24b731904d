//! What commands print on a host. A live host runs them, each for a limited time; a recorded one has the outputs that
//! its file names, which may be of commands that nobody asks a live host for.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;

use super::Host;
use super::answer::{self, Fact, Output};
use super::question::{Question, Section};

/// How long a command may take unless the check says otherwise.
const BUDGET: Duration = Duration::from_secs(2);

impl Host {
    /// The output of a command, which gets two seconds; `None` if there is no such program.
    pub fn command(&self, arguments: &[&str]) -> Fact<Option<Output>> {
        self.command_within(arguments, BUDGET)
    }

    /// The output of a command that gets this long.
    pub fn command_within(&self, arguments: &[&str], budget: Duration) -> Fact<Option<Output>> {
        let line = super::live::command::line(arguments);
        self.read_within(Question::row(Section::Commands, line), Some(budget), answer::output)
    }

    /// The recorded outputs of a program with any arguments, also after `sudo` or with a path, each
    /// with its command line. Empty on a live host.
    pub(crate) fn recorded_outputs(&self, program: &str) -> Vec<(String, Output)> {
        let of_program = |line: &str| {
            let mut words = line.split_whitespace();
            let first = words.find(|word| *word != "sudo").unwrap_or_default();
            let name = first.rsplit(['/', '\\']).next().unwrap_or_default();
            name.trim_end_matches(".exe") == program
        };
        self.recorded_commands().into_iter().filter(|(line, _)| of_program(line)).collect()
    }

    /// Keeps what a command printed that was run for another purpose than this fact, so that a recording has it.
    ///
    /// Invariant: the command was run on this machine, and ended with this status and this text.
    pub fn hear(&self, command: &str, exit: Option<i32>, text: &str) {
        self.remember(
            Question::row(Section::Commands, command),
            json!({ "exit": exit.unwrap_or(-1), "stdout": text }),
        );
    }

    /// All recorded outputs, each with its command line. Empty on a live host.
    pub(crate) fn recorded_commands(&self) -> Vec<(String, Output)> {
        if !self.is_recorded() {
            return Vec::new();
        }
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let commands = asked.iter().filter(|(question, _)| question.section == Section::Commands);
        commands
            .filter_map(|(question, cell)| Some((question.name.clone(), answer::output(cell.get()?)?)))
            .collect()
    }

    /// The recorded output of a program with any arguments, for facts that a live host is asked for
    /// in another way.
    pub(crate) fn recorded_output(&self, program: &str) -> Option<String> {
        self.recorded_outputs(program).first().map(|(_, output)| output.all_text())
    }
}
