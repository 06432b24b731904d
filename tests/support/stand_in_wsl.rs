//! A stand-in for `wsl.exe` that replays recorded answers, for tests and for trying
//! `yolo setup --wsl` without touching a PC: name it in YOLO_WSL, and put `answers.json` into the
//! folder that STAND_IN_WSL names, or next to the program. An answer has the arguments it belongs
//! to, the state in which it is given (the file `state` of that folder), and the next state. Every
//! call is appended to `calls.log`. An answer may also be to really run the Linux program: see `runs_linux.rs`.

#![allow(clippy::unwrap_used, clippy::exit, reason = "a stand-in for tests fails by panicking")]

#[path = "runs_linux.rs"]
mod runs_linux;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use serde::Deserialize;

/// One recorded answer.
#[derive(Deserialize)]
struct Recorded {
    /// The first arguments.
    words: String,
    /// The state in which it is given; any if absent.
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    stdout: String,
    /// Whether stdout is UTF-16, as wsl.exe writes it without WSL_UTF8.
    #[serde(default)]
    utf16: bool,
    #[serde(default)]
    code: i32,
    #[serde(default)]
    then: Option<String>,
    /// Whether stdin is copied to the file `stdin`.
    #[serde(default)]
    reads: bool,
    /// Seconds before it answers.
    #[serde(default)]
    waits: u64,
    /// Whether the program is run as `linux.json` of that folder says.
    #[serde(default)]
    runs: bool,
}

fn main() {
    let named = std::env::var_os("STAND_IN_WSL").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| std::env::current_exe().unwrap().parent().unwrap().to_owned());
    let words = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let mut log =
        std::fs::OpenOptions::new().create(true).append(true).open(folder.join("calls.log")).unwrap();
    writeln!(log, "{words}").unwrap();
    let state = std::fs::read_to_string(folder.join("state")).unwrap_or_default();
    let answers = std::fs::read(folder.join("answers.json")).unwrap();
    let answers: Vec<Recorded> = serde_json::from_slice(&answers).unwrap();
    let fits = |one: &&Recorded| {
        words.starts_with(&one.words) && one.state.as_ref().is_none_or(|wanted| *wanted == state)
    };
    let Some(answer) = answers.iter().find(fits) else {
        writeln!(log, "  (no answer in state {state:?})").unwrap();
        std::process::exit(99);
    };
    if answer.reads {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).unwrap();
        std::fs::write(folder.join("stdin"), bytes).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(answer.waits));
    if answer.runs {
        std::process::exit(runs_linux::run(&folder));
    }
    let text = answer.stdout.replace('\n', "\r\n");
    let bytes = if answer.utf16 {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    } else {
        answer.stdout.clone().into_bytes()
    };
    std::io::stdout().write_all(&bytes).unwrap();
    if let Some(then) = &answer.then {
        std::fs::write(folder.join("state"), then).unwrap();
    }
    std::process::exit(answer.code);
}
