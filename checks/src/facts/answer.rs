//! The answers, as recordings store them and as checks receive them. An answer is JSON that a person
//! can write: text is text, bytes that are not UTF-8 are `{"base64": …}`, `null` means that the thing
//! does not exist, and `{"error": …}` says why it is not known.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The maximum number of names listed for a folder.
pub(crate) const MOST_NAMES: usize = 20_000;

/// Why something is not known, as a phrase that follows "skipped, because".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl Unknown {
    /// Not known for this reason.
    pub fn because(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Something known, or why it is not. With `?` a check ends as "skipped, because …".
pub type Fact<T> = Result<T, Unknown>;

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit status; -1 if a signal ended it.
    pub exit: i64,
    /// Raw bytes.
    pub stdout: Vec<u8>,
    /// Raw bytes.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text, also where it is UTF-16, as that of `wsl.exe`.
    pub fn text(&self) -> String {
        decode(&self.stdout)
    }

    /// Standard error as text.
    pub fn error_text(&self) -> String {
        decode(&self.stderr)
    }

    /// Both, for commands that complain on either.
    pub fn all_text(&self) -> String {
        format!("{}{}", self.text(), self.error_text())
    }

    /// Whether it ended with 0.
    pub fn succeeded(&self) -> bool {
        self.exit == 0
    }
}

/// The file or folder at a path, links followed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stat {
    /// Its kind.
    pub kind: PathKind,
    /// Permission bits in octal, such as `0660`.
    pub mode: Option<String>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// When its contents last changed, in seconds since 1970.
    pub modified: Option<u64>,
    /// The major and minor number of a device file, such as `195:0`.
    pub device: Option<String>,
    /// Whether this user may read it.
    pub readable: Option<bool>,
    /// Whether this user may write it.
    pub writable: Option<bool>,
}

/// Kinds of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum PathKind {
    File,
    Folder,
    Char,
    Block,
    Socket,
    Fifo,
}

/// The file system under a path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileSystem {
    /// Such as `ext4`, `tmpfs`, `9p`, `nfs4`, as in /proc/mounts.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Where it is mounted.
    pub mount: Option<String>,
    /// Total bytes.
    pub total: Option<u64>,
    /// Bytes that this user can still write.
    pub available: Option<u64>,
    /// Free inodes.
    pub inodes_free: Option<u64>,
    /// How many inodes there may be; 0 if their number is not fixed.
    #[serde(default)]
    pub inodes: Option<u64>,
    /// Mount options, such as `ro`, `noexec`, `metadata`.
    #[serde(default)]
    pub options: Vec<String>,
}

impl FileSystem {
    /// Whether WSL reaches Windows through it.
    pub fn is_windows_drive(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| ["9p", "drvfs", "v9fs", "virtiofs"].contains(&kind))
    }
}

/// A shared library where the loader may find it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Library {
    /// The path by which the loader opens it.
    pub path: String,
    /// The file that this path leads to.
    pub real: Option<String>,
    /// The version in the file's name.
    pub version: Option<String>,
    /// The rule by which the loader finds it.
    pub via: Option<Via>,
}

/// The loader's rules, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Via {
    /// The variable, with libtorch's folder first, as `yolo` sets it.
    #[serde(rename = "LD_LIBRARY_PATH")]
    LdLibraryPath,
    /// The run path of the trainer or of libtorch.
    #[serde(rename = "run path")]
    RunPath,
    /// ld.so.cache.
    #[serde(rename = "ld.so.cache")]
    Cache,
    /// The loader's built-in folders.
    #[serde(rename = "default")]
    Default,
}

/// A program or library.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Binary {
    /// Whether it asks for an executable stack, if known.
    pub executable_stack: Option<bool>,
    /// The newest version of each kind that it needs, such as 2.28 of `GLIBC`.
    #[serde(default)]
    pub(in crate::facts) versions: BTreeMap<String, String>,
    /// The newest version of each kind that it has itself, such as 5.0 of `GOMP`.
    #[serde(default)]
    pub(in crate::facts) defines: BTreeMap<String, String>,
    /// The libraries that it is linked with.
    #[serde(default)]
    pub needed: Vec<String>,
}

/// A TCP socket that listens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// The address, such as `0.0.0.0` or `::1`.
    pub address: String,
    /// The port.
    pub port: u16,
    /// The owner's user id.
    pub uid: Option<u32>,
    /// The owner's name.
    pub user: Option<String>,
    /// The process, where this user may see it.
    pub pid: Option<u32>,
    /// Its name.
    pub process: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Interface {
    /// Such as `eth0`.
    pub name: String,
    /// Whether it is up.
    pub up: Option<bool>,
    /// Addresses with their prefix, such as `192.168.1.7/24`.
    #[serde(default)]
    pub addresses: Vec<String>,
}

/// A process that may matter to a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Its parent.
    pub parent: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its command line.
    pub command: Option<String>,
    /// Its owner's user id.
    pub uid: Option<u32>,
    /// The letter of its state, such as `R`, `S`, `D`, `Z`.
    pub state: Option<String>,
}

/// Who runs `yolo`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// The user id; 0 is root. Absent on Windows.
    pub uid: Option<u32>,
    /// The name.
    pub name: Option<String>,
    /// The group ids.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// The operating system's description of itself and of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct System {
    /// Such as `Ubuntu 24.04` or `Windows 11 (22631)`.
    pub name: Option<String>,
    /// The kernel's release, such as `6.8.0-45-generic`.
    pub kernel: Option<String>,
    /// The name of the CPU.
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: Option<u64>,
    /// Bytes of memory.
    pub memory_total: Option<u64>,
    /// Bytes that programs can still allocate.
    pub memory_available: Option<u64>,
    /// Bytes of swap.
    pub swap_total: Option<u64>,
    /// Free bytes of swap.
    pub swap_free: Option<u64>,
}

/// Where `yolo` keeps its files; the command passes this in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, serde::Serialize)]
pub struct KnownPaths {
    /// libtorch, weights and data sets.
    pub data: Option<String>,
    /// What can be created again.
    pub cache: Option<String>,
    /// Settings.
    pub config: Option<String>,
    /// The folder in which the command was started.
    pub working: Option<String>,
    /// The running `yolo`.
    pub program: Option<String>,
    /// The program of a rank, `yolo-trainer`, where it is built or installed.
    pub trainer: Option<String>,
    /// The libtorch that a run would use: the folder that holds `lib`; absent when none is installed.
    pub libtorch: Option<String>,
    /// The value of LIBTORCH when the user, not setup, names it.
    pub libtorch_named: Option<String>,
}

impl KnownPaths {
    /// From an answer, in which `libtorch_named` may also be `true`.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let mut answer = answer.clone();
        if let Some(named) = answer["libtorch_named"].as_bool() {
            answer["libtorch_named"] = if named { answer["libtorch"].clone() } else { Value::Null };
        }
        Self::deserialize(answer).ok()
    }
}

/// Bytes as an answer: text if they are UTF-8, base64 otherwise.
pub(crate) fn of_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// A reason as an answer.
pub(crate) fn of_error(why: impl fmt::Display) -> Value {
    json!({ "error": why.to_string() })
}

/// The bytes of an answer: text, lines, or base64.
pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        // Lines are easier to write by hand; each ends with a line feed.
        Value::Array(lines) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            Some(lines?.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes())
        }
        Value::Object(map) => STANDARD.decode(map.get("base64")?.as_str()?).ok(),
        _ => None,
    }
}

/// A command's answer: only its output as text, or an object with `exit`, `stdout` and `stderr`.
pub(crate) fn output(value: &Value) -> Option<Output> {
    if let Some(map) = value.as_object().filter(|map| !map.contains_key("base64")) {
        let stream = |name: &str| map.get(name).map_or(Some(Vec::new()), bytes);
        return Some(Output {
            exit: map.get("exit").map_or(Some(0), Value::as_i64)?,
            stdout: stream("stdout")?,
            stderr: stream("stderr")?,
        });
    }
    Some(Output { exit: 0, stdout: bytes(value)?, stderr: Vec::new() })
}

/// The reason in an answer that is an error.
pub(crate) fn error(value: &Value) -> Option<String> {
    let map: &Map<String, Value> = value.as_object()?;
    match map.get("error")? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Text in the encodings that Windows writes: UTF-8 and UTF-16 with or without a byte-order mark.
/// UTF-16 without a mark is recognized by its zero bytes, which text in UTF-8 does not have.
pub fn decode(bytes: &[u8]) -> String {
    if let Some(rest) = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        return String::from_utf8_lossy(rest).into_owned();
    }
    let units = |bytes: &[u8], of: fn([u8; 2]) -> u16| -> String {
        let units = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes),
        _ if looks_like_utf16(bytes) => units(bytes, u16::from_le_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Whether most of the high bytes are zero, as those of Latin letters in UTF-16 are.
fn looks_like_utf16(bytes: &[u8]) -> bool {
    let high = bytes.iter().skip(1).step_by(2);
    let zeros = high.clone().filter(|&&byte| byte == 0).count();
    bytes.len() >= 4 && zeros * 2 > high.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wsl_exe_prints_utf_16_without_a_mark() {
        let bytes: Vec<u8> = "WSL version: 2.6.1.0\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&bytes), "WSL version: 2.6.1.0\r\n");
    }

    #[test]
    fn lines_and_text_are_the_same_file() {
        assert_eq!(bytes(&json!(["a", "b"])), bytes(&json!("a\nb\n")));
    }

    #[test]
    fn a_command_may_be_written_as_its_output_alone() {
        let short = output(&json!("2.6.1\n")).unwrap();
        assert_eq!((short.exit, short.text()), (0, "2.6.1\n".to_owned()));
        let long = output(&json!({ "exit": 18, "stderr": "mismatch" })).unwrap();
        assert_eq!((long.exit, long.error_text()), (18, "mismatch".to_owned()));
    }

    proptest! {
        #[test]
        fn bytes_survive(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(bytes(&of_bytes(&input)), Some(input));
        }

        #[test]
        fn any_bytes_decode(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&input);
        }

        #[test]
        fn marked_utf_16_survives(text in "\\PC*") {
            let mut input = vec![0xFF, 0xFE];
            input.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            prop_assert_eq!(decode(&input), text);
        }
    }
}
