//! The system's words for a drive that does not answer: a disk that fails, a program that served a folder and has
//! ended, a server that is away. Any path on such a drive is answered with one of them.

/// Why no path on a drive can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveFault {
    /// A disk, or what stands for one, answers with errors.
    Device,
    /// The program that served the mount has ended, or its connection has: FUSE.
    NotConnected,
    /// The server, or the host of a container, has replaced what was mounted.
    Stale,
    /// The server does not answer.
    ServerAway,
    /// The file system contradicts itself.
    Damaged,
    /// The key or ticket for the server is no longer valid.
    KeyExpired,
}

/// Texts of errno in lower case.
const WORDS: [(&str, DriveFault); 16] = [
    ("input/output error", DriveFault::Device),
    ("remote i/o error", DriveFault::Device),
    ("no such device (os error 19)", DriveFault::Device),
    ("transport endpoint is not connected", DriveFault::NotConnected),
    ("socket not connected", DriveFault::NotConnected),
    ("software caused connection abort", DriveFault::NotConnected),
    ("stale file handle", DriveFault::Stale),
    ("stale nfs file handle", DriveFault::Stale),
    ("host is down", DriveFault::ServerAway),
    ("no route to host", DriveFault::ServerAway),
    ("connection timed out", DriveFault::ServerAway),
    ("cannot send after transport endpoint shutdown", DriveFault::ServerAway),
    ("structure needs cleaning", DriveFault::Damaged),
    ("bad message", DriveFault::Damaged),
    ("key has expired", DriveFault::KeyExpired),
    ("required key not available", DriveFault::KeyExpired),
];

impl DriveFault {
    /// The fault that the text of an error means, if it is one of a drive.
    pub(crate) fn of(why: &str) -> Option<Self> {
        let why = why.to_lowercase();
        WORDS.iter().find(|(words, _)| why.contains(words)).map(|(_, fault)| *fault)
    }

    /// The error message of the system within a longer text, such as `stale file handle`.
    pub(crate) fn words(why: &str) -> Option<&'static str> {
        let why = why.to_lowercase();
        WORDS.iter().find(|(words, _)| why.contains(words)).map(|(words, _)| *words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_system_are_known_in_any_case() {
        assert_eq!(DriveFault::of("Stale file handle (os error 116)"), Some(DriveFault::Stale));
        assert_eq!(DriveFault::of("Transport endpoint is not connected"), Some(DriveFault::NotConnected));
        for harmless in
            ["permission denied", "No such file or directory (os error 2)", "no answer within 2.0 s"]
        {
            assert_eq!(DriveFault::of(harmless), None);
        }
    }
}
