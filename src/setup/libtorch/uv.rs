//! Looks wheels up through the user's uv, which writes a lock file with their addresses.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use yolo_base::env::UV_PYTHON_DOWNLOADS;

use super::package_tool::{
    KillOnDrop, SILENCE_LIMIT, WheelLocation, add_credentials, file_of, hung, last_error,
};
use super::wheel::Wheel;
use crate::fetch::{Refusal, RefusalKind};

/// Looks up all wheels in one run of uv.
pub(super) fn ask_uv(wheels: &[Wheel]) -> Result<Vec<WheelLocation>, Refusal> {
    let program = which::which("uv")
        .map_err(|_| Refusal { why: "no uv on this machine".to_owned(), kind: RefusalKind::NoTool })?;
    let mut child = Command::new(program)
        .args(["pip", "compile", "--no-deps", "--no-header", "--quiet", "--format", "pylock.toml"])
        .args(["--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.12", "-"])
        // The lookup needs no Python 3.12; without this, uv downloads one when the machine has another.
        .env(UV_PYTHON_DOWNLOADS, "never")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map(KillOnDrop)
        .map_err(|error| format!("uv: {error}"))?;
    let requirements: String = wheels.iter().map(|wheel| wheel.requirement() + "\n").collect();
    if let Some(mut stdin) = child.0.stdin.take() {
        stdin.write_all(requirements.as_bytes()).map_err(|error| format!("uv: {error}"))?;
    }
    let lock = read_whole(child.0.stdout.take());
    let errors = read_whole(child.0.stderr.take());
    // Both streams end when it exits.
    let (lock, errors) = match (lock.recv_timeout(SILENCE_LIMIT), errors.recv_timeout(SILENCE_LIMIT)) {
        (Ok(lock), Ok(errors)) => (lock, errors),
        _ => return Err(format!("uv: {}", hung()).into()),
    };
    let status = child.0.wait().map_err(|error| format!("uv: {error}"))?;
    if !status.success() {
        return Err(explain(&errors).into());
    }
    let mut located = parse_pylock(&lock, wheels)?;
    add_credentials(&mut located, &[]);
    Ok(located)
}

/// Why uv failed.
fn explain(errors: &str) -> String {
    if errors.contains("No interpreter found") {
        return "uv needs a Python interpreter, and this machine has none".to_owned();
    }
    format!("uv: {}", last_error(errors))
}

/// Reads a stream to its end on another thread.
fn read_whole(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (says, said) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // After an error, use what was read before it.
            let _ = stream.read_to_end(&mut bytes);
        }
        says.send(String::from_utf8_lossy(&bytes).into_owned())
    });
    said
}

/// Finds each wheel's line in a pylock.toml: `{ url = "…", …, hashes = { sha256 = "…" } }`.
fn parse_pylock(text: &str, wheels: &[Wheel]) -> Result<Vec<WheelLocation>, String> {
    let quoted = |from: &str, key: &str| {
        let rest = &from[from.find(key)? + key.len()..];
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        rest.split('"').nth(1).map(str::to_owned)
    };
    wheels
        .iter()
        .map(|wheel| {
            text.split("{ ")
                .enumerate()
                .find_map(|(index, part)| {
                    let address = quoted(part, "url").or_else(|| quoted(part, "path"))?;
                    if !wheel.is_named(&file_of(&address)) {
                        return None;
                    }
                    // The hashes are the next table, inside this one.
                    let sha256 = text.split("{ ").nth(index + 1).and_then(|next| quoted(next, "sha256"));
                    Some(WheelLocation { address, sha256 })
                })
                .ok_or_else(|| format!("uv's lock file does not contain {}", wheel.shown()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::pinned_wheels;
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named() {
        let errors = "error: No interpreter found for Python 3.12 in virtual environments, managed \
            installations, or search path\n";
        assert_eq!(explain(errors), "uv needs a Python interpreter, and this machine has none");
        assert_eq!(explain("error: offline\n"), "uv: error: offline");
    }

    #[test]
    fn a_lock_file_is_read() {
        let wheels = pinned_wheels::CPU.map(Wheel::from);
        let file = wheels[0].file.clone().unwrap();
        let text = format!(
            "[[packages]]\nname = \"torch\"\nwheels = [\n    {{ url = \"https://h/other.whl\", hashes = {{ sha256 = \"00\" }} }},\n    \
             {{ url = \"https://h/{file}\", upload-time = 2026-03-23T00:00:00Z, size = 1, hashes = {{ sha256 = \"ff\" }} }},\n]\n"
        );
        let located = parse_pylock(&text, &wheels[..1]).unwrap();
        assert_eq!(located[0].address, format!("https://h/{file}"));
        assert_eq!(located[0].sha256.as_deref(), Some("ff"));
        assert!(parse_pylock(&text, &wheels).is_err());
    }
}
