//! Commands. A command runs with `LC_ALL=C` and `WSL_UTF8=1`, no standard input, and a timeout after
//! which it is killed. Threads that can be abandoned read its pipes, since a grandchild may hold them
//! open forever.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yolo_base::env::{LC_ALL, WSL_UTF8};

use crate::facts::answer::{of_bytes, of_error};

/// Output beyond this is cut: no check reads more, and a recording stays small.
const LONGEST: u64 = 1 << 20;

/// A command as one line, which is its name in a recording: arguments with spaces are quoted.
pub fn line(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| {
        if word.is_empty() || word.contains([' ', '\t', '\'']) {
            format!("'{}'", word.replace('\'', "'\\''"))
        } else {
            (*word).to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The arguments of a line that [`line()`] made.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => {
                // Outside quotes only a quote is escaped; a backslash of Windows stays.
                let mut ahead = letters.clone();
                if ahead.next() == Some('\'') {
                    letters = ahead;
                    word.get_or_insert_default().push('\'');
                } else {
                    word.get_or_insert_default().push('\\');
                }
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Runs a command, and kills it when the budget is used up.
pub(super) fn ask(line: &str, budget: Duration) -> Value {
    let words = words(line);
    let Some((program, arguments)) = words.split_first() else { return of_error("the command is empty") };
    let path = match which::which(program) {
        Ok(path) => path,
        Err(_) => return Value::Null,
    };
    let child = Command::new(path)
        .args(arguments)
        .env(LC_ALL, "C")
        .env(WSL_UTF8, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match child {
        Ok(child) => collect(child, budget),
        Err(error) => of_error(format_args!("it cannot be started: {error}")),
    }
}

fn collect(mut child: Child, budget: Duration) -> Value {
    let deadline = Instant::now() + budget;
    let stdout = child.stdout.take().map(read_apart);
    let stderr = child.stderr.take().map(read_apart);
    let mut pause = Duration::from_micros(200);
    let exit = loop {
        match child.try_wait() {
            Ok(Some(status)) => break i64::from(status.code().unwrap_or(-1)),
            Ok(None) if Instant::now() >= deadline => {
                // It may have ended by now, or be stuck in the kernel: then it is abandoned.
                let _ = child.kill();
                let _ = child.try_wait();
                return super::budget::too_late(budget);
            }
            Ok(None) => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            Err(error) => return of_error(error),
        }
    };
    let stream = |bytes: Option<mpsc::Receiver<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(50));
        bytes.and_then(|bytes| bytes.recv_timeout(left).ok()).unwrap_or_default()
    };
    json!({ "exit": exit, "stdout": of_bytes(&stream(stdout)), "stderr": of_bytes(&stream(stderr)) })
}

fn read_apart(pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still useful.
        let _ = pipe.take(LONGEST).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn output_and_exit_code_are_kept() {
        let answer = ask("sh -c 'echo out; echo err >&2; exit 3'", Duration::from_secs(5));
        assert_eq!(answer, json!({ "exit": 3, "stdout": "out\n", "stderr": "err\n" }));
    }

    #[test]
    #[cfg(unix)]
    fn a_command_that_takes_too_long_is_killed() {
        let began = Instant::now();
        assert_eq!(ask("sleep 60", Duration::from_millis(50)), json!({ "error": "no answer within 0.1 s" }));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_program_is_null() {
        assert_eq!(ask("no-such-program-of-yolo --version", Duration::from_secs(1)), Value::Null);
    }

    proptest! {
        #[test]
        fn arguments_survive_quoting(given in proptest::collection::vec("[a-zA-Z/ '=\\\\-]{0,8}", 1..5)) {
            let given: Vec<String> = given;
            let refs: Vec<&str> = given.iter().map(String::as_str).collect();
            prop_assert_eq!(words(&line(&refs)), given);
        }
    }
}
