//! What a program of WSL printed, and what its command says about that.

/// Options that install something, or list what can be installed.
const SETUP: [&str; 4] = ["--install", "--update", "--online", " -o"];

/// What a program of WSL printed.
pub(in crate::checks::wsl) struct Said {
    /// The command and its arguments.
    pub(super) command: String,
    pub(super) text: String,
    /// Whether it installs or updates WSL.
    pub(super) is_setup: bool,
}

impl Said {
    pub(in crate::checks::wsl) fn new(command: &str, text: &str) -> Self {
        let is_setup = SETUP.iter().any(|option| command.contains(option));
        Self { command: command.to_owned(), text: text.to_owned(), is_setup }
    }

    /// Whether it lists what can be installed.
    pub(super) fn is_list(&self) -> bool {
        self.command.contains("--online") || self.command.contains(" -o")
    }

    /// The distribution that the command names with `-d`, or by its own name.
    pub(super) fn distribution(&self) -> Option<&str> {
        let words: Vec<&str> = self.command.split_whitespace().collect();
        let at = words.iter().position(|word| matches!(*word, "-d" | "--distribution"))?;
        words.get(at + 1).copied()
    }
}
