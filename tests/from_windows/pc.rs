//! A Windows PC with a stand-in for `wsl.exe`, which replays recorded answers or runs the Linux program. On Linux,
//! `yolo_in_windows` stands for `yolo.exe`. Under Wine it is `yolo.exe` itself; there, the stand-in runs Linux programs
//! through `linux_side`, if YOLO_TEST_LINUX says where it listens. `.ci/windows` starts it.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::user::{Finished, User};

/// A Windows PC with a stand-in for `wsl.exe`.
pub struct Pc {
    pub user: User,
}

/// An example that is built next to this test.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is missing: run `cargo build --examples`", path.display());
    path
}

impl Pc {
    /// A PC whose `wsl.exe` gives these answers.
    pub fn answering(answers: &[Value]) -> Self {
        let pc = Self { user: User::new() };
        std::fs::create_dir_all(pc.answers()).unwrap();
        std::fs::write(pc.answers().join("answers.json"), json!(answers).to_string()).unwrap();
        std::fs::create_dir_all(pc.work()).unwrap();
        pc
    }

    /// A PC on which commands run in a Linux that sees its drives. With a terminal, they get one of their own. `None`
    /// under Wine if nothing runs Linux programs.
    pub fn with_linux(terminal: bool) -> Option<Self> {
        Self::running(LinuxSide::find()?, terminal, &json!({}))
    }

    /// Likewise, where `sh` is run instead of `yolo`: a file with the name of the command is a script.
    pub fn with_shell() -> Option<Self> {
        Self::running(LinuxSide { program: "/bin/sh".into(), ..LinuxSide::find()? }, false, &json!({}))
    }

    /// Likewise, with these variables set in Linux.
    pub fn with_linux_variables(variables: &Value) -> Option<Self> {
        Self::running(LinuxSide::find()?, false, variables)
    }

    fn running(linux: LinuxSide, terminal: bool, variables: &Value) -> Option<Self> {
        let pc =
            Self::answering(&[list(), json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "runs": true })]);
        let mut variables = variables.clone();
        if cfg!(not(windows)) && variables.get("YOLO_DRIVE_Z").is_none() {
            // `yolo_in_windows` finds no drives on Linux.
            variables["YOLO_DRIVE_Z"] = "/".into();
        }
        let settings = json!({
            "program": linux.program, "asks": linux.asks, "drives": drives(), "terminal": terminal,
            "variables": variables,
        });
        std::fs::write(pc.answers().join("linux.json"), settings.to_string()).unwrap();
        pc.user.write_data_set();
        Some(pc)
    }

    pub fn answers(&self) -> PathBuf {
        self.user.path().join("answers")
    }

    /// The working folder.
    pub fn work(&self) -> PathBuf {
        self.user.path().join("Zoë Müller 数据")
    }

    /// The data set, as it is written at a Windows prompt.
    pub fn data_set(&self) -> String {
        windows_path(&self.user.path().join("squares").join("squares.yaml"))
    }

    /// `yolo.exe` with these arguments, in the working folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_here(arguments);
        command.current_dir(self.work());
        command
    }

    /// `yolo.exe` with these arguments, in the folder of this test.
    pub fn command_here(&self, arguments: &[&str]) -> Command {
        #[cfg(windows)]
        let mut command = Command::new(env!("CARGO_BIN_EXE_yolo"));
        #[cfg(not(windows))]
        let mut command = Command::new(example("yolo_in_windows"));
        command
            .args(arguments)
            .env("YOLO_WSL", example("stand_in_wsl"))
            .env("STAND_IN_WSL", self.answers())
            .env("OMP_NUM_THREADS", "1")
            .env("YOLO_OFFLINE", "1")
            .env_remove("WSLENV")
            .env_remove("YOLO_MIRROR")
            .stdin(std::process::Stdio::null());
        if cfg!(windows) {
            command
                .env("LOCALAPPDATA", self.user.path().join("local"))
                .env("APPDATA", self.user.path().join("roaming"));
        } else {
            command.env("XDG_CONFIG_HOME", self.user.path().join("config"));
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// The calls of `wsl.exe`.
    pub fn calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.answers().join("calls.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// The Linux program, and what runs it.
struct LinuxSide {
    program: PathBuf,
    /// The address of `linux_side` and its word; none on Linux.
    asks: Option<(String, String)>,
}

impl LinuxSide {
    fn find() -> Option<Self> {
        if cfg!(not(windows)) {
            return Some(Self { program: env!("CARGO_BIN_EXE_yolo").into(), asks: None });
        }
        // The program, and what linux_side prints.
        let Ok(told) = std::env::var("YOLO_TEST_LINUX") else {
            println!("skipped: YOLO_TEST_LINUX does not name a Linux program");
            return None;
        };
        let mut words = told.split(' ').map(str::to_owned);
        let program = words.next().unwrap().into();
        Some(Self { program, asks: Some((words.next().unwrap(), words.next().unwrap())) })
    }
}

/// Where Wine keeps drive C:.
fn drive_c() -> String {
    format!("{}/drive_c", std::env::var("WINEPREFIX").expect("Wine has a prefix"))
}

/// Where Linux sees the drives of this PC. For Wine, Z: is everything.
fn drives() -> Value {
    if cfg!(windows) { json!({ "C": drive_c(), "Z": "/" }) } else { json!({ "Z": "/" }) }
}

/// The path in Linux of a path of this test.
pub fn in_linux(path: &Path) -> String {
    let text = path.to_str().unwrap().replace('\\', "/");
    match text.split_once(':') {
        Some((drive, rest)) if drive.eq_ignore_ascii_case("c") => format!("{}{rest}", drive_c()),
        Some((_, rest)) => rest.to_owned(),
        None => text,
    }
}

/// A path as it is written at a Windows prompt.
pub fn windows_path(path: &Path) -> String {
    let text = path.to_str().unwrap().replace('/', "\\");
    if cfg!(windows) { text } else { format!("Z:{text}") }
}

/// What `wsl.exe -l -v` prints in every language: neither the heading nor the states are in WSL's localization files
/// (microsoft/WSL `src/windows/common/WslClient.cpp`, `ListDistributions`).
pub const LIST: &str = "  NAME              STATE           VERSION\n\
                        * docker-desktop    Running         2\n  \
                          Ubuntu            Stopped         2\n  \
                          Old               Stopped         1\n";

/// The answer with [`LIST`].
pub fn list() -> Value {
    listing(LIST, true)
}

/// An answer to `wsl.exe -l -v`.
pub fn listing(text: &str, utf16: bool) -> Value {
    json!({ "words": "-l -v", "stdout": text, "utf16": utf16 })
}
