//! A lossless model of the two files that configure WSL: `.wslconfig` in the Windows user's folder,
//! for the virtual machine, and `/etc/wsl.conf`, for one distribution. It reads them by WSL's own
//! rules, reports what WSL silently ignores, and changes single values while comments, spaces, order
//! and line ends stay. It is pure: bytes in, bytes out.
//!
//! The rules are those of WSL's parser as published in microsoft/WSL: a name is a letter followed by
//! letters and digits; names are compared case-insensitively; the first of two equal keys wins;
//! `#` begins a comment except inside quotes; `\` escapes; and a line that breaks the rules is
//! skipped in `.wslconfig`, but ends the reading of `wsl.conf`.
//!
//! ```
//! use yolo_checks::wsl::config::{Document, ConfigFile, size};
//!
//! let mut file = Document::parse(ConfigFile::WslConfig, b"# mine\r\n[wsl2]\r\nmemory = 8 # GB\r\n");
//! assert_eq!(file.value("wsl2", "memory").and_then(size::parse), Some(8));
//! file.set("wsl2", "memory", "8GB")?;
//! assert_eq!(file.bytes(), b"# mine\r\n[wsl2]\r\nmemory = 8GB # GB\r\n");
//! # Ok::<(), yolo_checks::wsl::config::EditError>(())
//! ```

mod edit;
mod encoding;
pub mod keys;
mod problems;
mod scan;
mod setting;
pub mod size;

pub use edit::EditError;
pub use encoding::Encoding;
pub use problems::{Found, Problem};
pub use scan::Broken;
pub use setting::{ConfigFile, Setting};

use scan::{Line, LineKind};

/// A file, with every byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    kind: ConfigFile,
    encoding: Encoding,
    /// The bytes as they were read, while nothing has been changed.
    original: Option<Vec<u8>>,
    text: String,
    lines: Vec<Line>,
}

impl Document {
    /// The file from its bytes. Any bytes are accepted: [`Self::problems`] reports what WSL cannot
    /// read, and it is kept.
    pub fn parse(kind: ConfigFile, bytes: &[u8]) -> Self {
        let (encoding, text) = encoding::decode(bytes);
        let lines = scan::lines(&text);
        Self { kind, encoding, original: Some(bytes.to_vec()), text, lines }
    }

    /// A file that does not exist yet.
    pub fn new(kind: ConfigFile) -> Self {
        Self::parse(kind, b"")
    }

    /// The bytes to write: those that were read, if nothing has changed.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.original {
            Some(bytes) => bytes.clone(),
            None => encoding::encode(self.encoding, &self.text),
        }
    }

    /// The text, decoded and without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The encoding of the file. A change makes it one that every WSL reads.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Every setting that WSL reads, in order, including repeated and unknown ones.
    pub fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        self.read_lines().filter_map(|line| line.setting())
    }

    /// The setting in effect for a key: the first of that name, or of its former name.
    pub fn get(&self, section: &str, key: &str) -> Option<Setting<'_>> {
        self.settings().find(|setting| keys::same(self.kind, (section, key), (setting.section, setting.key)))
    }

    /// The value in effect for a key. [`size::parse`] and [`Self::problems`] check whether it is a
    /// size or a number.
    pub fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.get(section, key).map(|setting| setting.value)
    }

    /// The lines that WSL reads: in `wsl.conf` it stops at the first broken one.
    fn read_lines(&self) -> impl Iterator<Item = &Line> {
        let stops = self.kind == ConfigFile::WslConf;
        self.lines.iter().take_while(move |line| !(stops && matches!(line.kind, LineKind::Broken { .. })))
    }
}
