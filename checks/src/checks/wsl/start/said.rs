//! What a program of WSL printed, and what its command says about that.

/// Options that install something, or list what can be installed.
const SETUP: [&str; 4] = ["--install", "--update", "--online", "-o"];

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
        let mut said = Self { command: command.to_owned(), text: text.to_owned(), is_setup: false };
        said.is_setup = SETUP.iter().any(|option| said.has(option));
        said
    }

    /// Its words, without those of a command that it runs in Linux, whose options have other meanings.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.command.split_whitespace().take_while(|word| !matches!(*word, "--" | "-e" | "--exec"))
    }

    /// Whether it has this option. Others may be part of it, as `--mount` is of `--mount=…`.
    pub(super) fn has(&self, option: &str) -> bool {
        let is_it = |word: &str| word.strip_prefix(option).is_some_and(is_end);
        self.words().any(|word| is_it(word.trim_start_matches(['"', '\''])))
    }

    /// Whether it lists what can be installed.
    pub(super) fn is_list(&self) -> bool {
        self.has("--online") || self.has("-o")
    }

    /// The text, if it may tell why nothing starts. What a download of a setup needs are other services of Windows.
    pub(in crate::checks::wsl) fn of_start(&self) -> Option<&str> {
        let is_of_start = !self.is_setup || self.text.to_ascii_lowercase().contains("/service/");
        is_of_start.then_some(self.text.as_str())
    }

    /// Whether the command starts a distribution and says nothing but which.
    pub(super) fn is_plain_start(&self) -> bool {
        let words: Vec<&str> = self.command.split_whitespace().skip(1).collect();
        matches!(words[..], [] | ["~"] | ["-d" | "--distribution", _] | ["-d" | "--distribution", _, "~"])
    }

    /// The folder into which the command wants to put a new disk: `--import NAME FOLDER FILE`, `--location FOLDER`, `--move FOLDER`.
    pub(super) fn folder(&self) -> Option<&str> {
        const OPTIONS: [&str; 3] = ["--import", "--location", "--move"];
        let mut words = self.words().skip_while(|word| !OPTIONS.contains(word));
        words.find(|word| is_path(word)).map(|word| word.trim_matches(['"', '\'']))
    }

    /// The distribution that the command names with `-d`.
    pub(super) fn distribution(&self) -> Option<&str> {
        let words: Vec<&str> = self.words().collect();
        let at = words.iter().position(|word| matches!(*word, "-d" | "--distribution"))?;
        words.get(at + 1).copied()
    }
}

/// `E:\wsl`, perhaps behind a quote.
fn is_path(word: &str) -> bool {
    let mut letters = word.trim_start_matches(['"', '\'']).chars();
    letters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && matches!(letters.next(), Some('\\' | '/'))
}

/// Whether an option ends there.
fn is_end(rest: &str) -> bool {
    !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_command_in_linux_are_its_own() {
        for (command, is_setup) in [
            ("wsl.exe --install -d Ubuntu", true),
            ("wsl -l -o", true),
            ("powershell \"wsl --update\"", true),
            ("wsl.exe -d Ubuntu -- pip install -o file", false),
            ("wsl.exe --exec apt --update", false),
            ("wsl.exe --import-in-place Ubuntu D:\\ext4.vhdx", false),
        ] {
            assert_eq!(Said::new(command, "").is_setup, is_setup, "{command}");
        }
        assert!(!Said::new("wsl.exe --import-in-place Ubuntu D:\\ext4.vhdx", "").has("--import"));
        assert_eq!(Said::new("wsl -d Ubuntu -e a", "").distribution(), Some("Ubuntu"));
        assert_eq!(Said::new("wsl -e a -d b", "").distribution(), None);
        assert!(
            Said::new("wsl -d Ubuntu", "").is_plain_start() && Said::new("ubuntu.exe ~", "").is_plain_start()
        );
        assert!(!Said::new("wsl --cd Q:", "").is_plain_start());
    }

    #[test]
    fn the_folder_of_a_new_disk_is_found() {
        for (command, folder) in [
            (r"wsl.exe --import Ubuntu E:\wsl\Ubuntu D:\ubuntu.tar", Some(r"E:\wsl\Ubuntu")),
            (r#"wsl --install Ubuntu --location "E:\wsl""#, Some(r"E:\wsl")),
            (r"wsl --manage Ubuntu --move F:/wsl", Some("F:/wsl")),
            (r"wsl --import Ubuntu wsl ubuntu.tar", None),
            (r"wsl -d Ubuntu -- ls D:\wsl", None),
        ] {
            assert_eq!(Said::new(command, "").folder(), folder, "{command}");
        }
    }
}
