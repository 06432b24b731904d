//! The questions to a host. A question is a section and, if the section is a table, the name of a
//! row: the path of a file, the name of a variable, a command line. Section and row are also the keys
//! of the answer in a recording, so that whatever a check asks can be recorded and replayed.

use std::fmt;

/// A kind of question; its name is the section of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `linux`, `windows` or `macos`.
    Os,
    /// The CPU architecture, such as `x86_64`.
    Arch,
    /// When the facts were asked, in seconds since 1970.
    Time,
    /// Who runs `yolo`.
    User,
    /// The name of the machine.
    Hostname,
    /// Where `yolo` keeps its files, and the programs of a run.
    Places,
    /// Name and kernel of the operating system, CPUs and memory.
    System,
    /// Everything that the NVIDIA driver reports.
    Nvml,
    /// Listening TCP sockets, with their owners.
    Listening,
    /// Network interfaces.
    Interfaces,
    /// Processes that may belong to a run, and those stuck in the kernel.
    Processes,
    /// Whether a program can start threads.
    Threads,
    /// Contents of files.
    Files,
    /// The first bytes of files that are too large to read whole.
    Heads,
    /// Their last bytes.
    Tails,
    /// The target of a symbolic link, one step.
    Links,
    /// Names in a folder.
    Folders,
    /// Kind, mode, owner and size of a path.
    Stats,
    /// The file system under a path: type, space, flags.
    Filesystems,
    /// Environment variables.
    Env,
    /// Commands and their output.
    Commands,
    /// Shared libraries as the loader would find them for `yolo-trainer`.
    Libraries,
    /// Addresses of host names.
    Names,
    /// Values of the Windows registry.
    Registry,
    /// Whether a socket can listen on an address.
    Binds,
    /// What a program or library asks of the system that loads it.
    Binaries,
}

impl Section {
    /// All sections, in the order of a recording.
    pub const ALL: [Self; 26] = [
        Self::Os,
        Self::Arch,
        Self::Time,
        Self::User,
        Self::Hostname,
        Self::Places,
        Self::System,
        Self::Nvml,
        Self::Listening,
        Self::Interfaces,
        Self::Processes,
        Self::Threads,
        Self::Files,
        Self::Heads,
        Self::Tails,
        Self::Links,
        Self::Folders,
        Self::Stats,
        Self::Filesystems,
        Self::Env,
        Self::Commands,
        Self::Libraries,
        Self::Names,
        Self::Registry,
        Self::Binds,
        Self::Binaries,
    ];

    /// The name of the section in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Os => "os",
            Self::Arch => "arch",
            Self::Time => "time",
            Self::User => "user",
            Self::Hostname => "hostname",
            Self::Places => "places",
            Self::System => "system",
            Self::Nvml => "nvml",
            Self::Listening => "listening",
            Self::Interfaces => "interfaces",
            Self::Processes => "processes",
            Self::Threads => "threads",
            Self::Files => "files",
            Self::Heads => "heads",
            Self::Tails => "tails",
            Self::Links => "links",
            Self::Folders => "folders",
            Self::Stats => "stats",
            Self::Filesystems => "filesystems",
            Self::Env => "env",
            Self::Commands => "commands",
            Self::Libraries => "libraries",
            Self::Names => "names",
            Self::Registry => "registry",
            Self::Binds => "binds",
            Self::Binaries => "binaries",
        }
    }

    /// Whether the section has one answer per row, not a single one.
    pub fn is_table(self) -> bool {
        self >= Self::Files
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Question {
    pub(crate) section: Section,
    /// The row of a table; empty for a section that is one answer.
    pub(crate) name: String,
}

impl Question {
    pub(crate) fn one(section: Section) -> Self {
        Self { section, name: String::new() }
    }

    pub(crate) fn row(section: Section, name: impl Into<String>) -> Self {
        Self { section, name: name.into() }
    }
}

impl fmt::Display for Question {
    /// A noun phrase, as in "the recording does not include …" and "… could not be determined".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.section {
            Section::Os => f.write_str("the operating system"),
            Section::Arch => f.write_str("the CPU architecture"),
            Section::Time => f.write_str("the time"),
            Section::User => f.write_str("the user who runs yolo"),
            Section::Hostname => f.write_str("the host name"),
            Section::Places => f.write_str("the paths of yolo's files"),
            Section::System => f.write_str("the memory and CPUs of the machine"),
            Section::Nvml => f.write_str("the state of the NVIDIA driver"),
            Section::Listening => f.write_str("the listening ports"),
            Section::Interfaces => f.write_str("the network interfaces"),
            Section::Processes => f.write_str("the running processes"),
            Section::Threads => f.write_str("whether threads can be started"),
            Section::Files => write!(f, "the contents of {name}"),
            Section::Heads => write!(f, "the first bytes of {name}"),
            Section::Tails => write!(f, "the last bytes of {name}"),
            Section::Links => write!(f, "the target of the link {name}"),
            Section::Folders => write!(f, "the contents of the folder {name}"),
            Section::Stats => write!(f, "the file metadata of {name}"),
            Section::Filesystems => write!(f, "the file system of {name}"),
            Section::Env => write!(f, "the environment variable {name}"),
            Section::Commands => write!(f, "the output of `{name}`"),
            Section::Libraries => write!(f, "the location of {name}"),
            Section::Names => write!(f, "the addresses of {name}"),
            Section::Registry => write!(f, "the registry value {name}"),
            Section::Binds => write!(f, "the result of listening on {name}"),
            Section::Binaries => write!(f, "what {name} needs from the system"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_its_own_name() {
        for (index, section) in Section::ALL.iter().enumerate() {
            assert!(Section::ALL[..index].iter().all(|other| other.name() != section.name()));
        }
    }

    #[test]
    fn tables_follow_the_single_answers() {
        assert!(!Section::Processes.is_table() && Section::Files.is_table() && Section::Binds.is_table());
    }
}
