//! The two files, and one setting of a file.

/// Which of the two files it is: their keys differ, and so does the effect of a broken line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigFile {
    /// `%UserProfile%\.wslconfig`, read by Windows for the virtual machine of all distributions.
    WslConfig,
    /// `/etc/wsl.conf`, read by Linux for its own distribution.
    WslConf,
}

/// One `key = value` that WSL reads, even if it then ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The section that WSL assigns it to, as written; empty before the first section.
    pub section: &'a str,
    /// The key, as written.
    pub key: &'a str,
    /// The value as WSL reads it, without quotes, escapes and comment.
    pub value: &'a str,
    /// The line of the file, from 1.
    pub line: usize,
}
