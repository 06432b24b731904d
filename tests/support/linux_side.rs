//! Runs Linux programs for the stand-in of `wsl.exe` under Wine: started on Linux, it listens on loopback, prints its
//! address and a random word, and runs what a request with that word names. With a terminal, the program runs in one of
//! its own, so that Ctrl-C and the end of the terminal are those of the kernel; without, its output and errors stay
//! apart. It ends with its stdin.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::exit,
    reason = "a helper of tests fails by panicking"
)]
#![allow(dead_code, reason = "the stand-in has the other half of the protocol")]

#[path = "runs_linux.rs"]
mod runs_linux;

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use runs_linux::{CTRL_C, EXIT, Request, STDERR, STDOUT, TERMINATE};

fn main() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let seed = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    let word = seed.trim().to_owned();
    println!("{} {word}", listener.local_addr().unwrap());
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let word = word.clone();
        std::thread::spawn(move || serve(&stream.unwrap(), &word));
    }
}

fn serve(stream: &TcpStream, word: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let request: Request = serde_json::from_str(&line).unwrap();
    assert_eq!(request.word, word, "a stranger asks");
    let out = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let Some(mut child) = started(&request) else {
        let error = "<3>WSL (9 - ) ERROR: CreateProcessCommon:735: execvpe(/opt/yolo/yolo) failed: No such file or directory\n";
        send(&out, STDERR, error.as_bytes());
        return send(&out, EXIT, &1_i32.to_le_bytes());
    };
    let pid = child.id();
    let copies = [
        copied(child.stdout.take().map(boxed), STDOUT, &out),
        copied(child.stderr.take().map(boxed), STDERR, &out),
    ];
    let mut keyboard = child.stdin.take();
    std::thread::spawn(move || {
        let mut byte = [0];
        while reader.read_exact(&mut byte).is_ok() {
            match byte[0] {
                // `script` passes it to the terminal, which sends SIGINT.
                CTRL_C => keyboard.as_mut().map_or((), |keyboard| keyboard.write_all(&[CTRL_C]).unwrap()),
                // Nothing in the distribution can save anything.
                TERMINATE => {
                    let children = format!("/proc/{pid}/task/{pid}/children");
                    let children = std::fs::read_to_string(children).unwrap_or_default();
                    children.split_whitespace().for_each(|child| kill(child.parse().unwrap(), "KILL"));
                    kill(pid, "KILL");
                }
                other => panic!("byte {other}"),
            }
        }
        // The window is closed: so is the terminal, and its programs get SIGHUP.
        kill(pid, "KILL");
    });
    let status = child.wait().unwrap().code().unwrap_or(1);
    copies.into_iter().flatten().for_each(|copy| copy.join().unwrap());
    send(&out, EXIT, &status.to_le_bytes());
}

/// The program, in a terminal if the request says so.
fn started(request: &Request) -> Option<Child> {
    if !request.program.exists() {
        return None;
    }
    let mut command = if request.terminal {
        let words = std::iter::once(request.program.to_str().unwrap())
            .chain(request.arguments.iter().map(String::as_str));
        let quoted: Vec<String> = words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let mut command = Command::new("script");
        command.args(["-qefc", &format!("exec {}", quoted.join(" ")), "/dev/null"]).stdin(Stdio::piped());
        command
    } else {
        let mut command = Command::new(&request.program);
        command.args(&request.arguments).stdin(Stdio::null());
        command
    };
    command.current_dir(&request.folder).envs(&request.variables).env("TERM", "xterm-256color");
    Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn boxed(reader: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(reader)
}

/// Copies output to the stand-in as it comes.
fn copied(
    from: Option<Box<dyn Read + Send>>,
    kind: u8,
    out: &Arc<Mutex<TcpStream>>,
) -> Option<std::thread::JoinHandle<()>> {
    let (mut from, out) = (from?, Arc::clone(out));
    Some(std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            send(&out, kind, &bytes[..count]);
        }
    }))
}

/// Sends a frame. The stand-in may be gone.
fn send(out: &Mutex<TcpStream>, kind: u8, bytes: &[u8]) {
    let mut frame = vec![kind];
    frame.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    frame.extend(bytes);
    let _ = out.lock().unwrap().write_all(&frame);
}

fn kill(pid: u32, signal: &str) {
    let _ = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).stderr(Stdio::null()).status();
}
