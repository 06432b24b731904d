//! The part of the stand-in for `wsl.exe` that really runs the Linux program of its command line, with the variables
//! that `WSLENV` names and in the translated working folder. On Linux it starts the program itself. Under Wine, where a
//! Linux program has no handle to wait on, it asks `linux_side`, another example, over loopback. A file in the folder of
//! the test says what happens to the run: `ctrl-c` presses it, `terminate` stops the distribution, `close` the window.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// `linux.json`: what this WSL is like.
#[derive(Deserialize)]
struct Linux {
    /// What `/opt/yolo/yolo` is here.
    program: PathBuf,
    /// Where `linux_side` listens, and the word that it expects; absent on Linux.
    #[serde(default)]
    asks: Option<(String, String)>,
    /// Where drives are mounted, by their letter.
    drives: BTreeMap<char, String>,
    /// Whether the program gets a terminal.
    #[serde(default)]
    terminal: bool,
    /// Variables that are set inside.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// The name of the distribution, from the command line.
    #[serde(skip)]
    distribution: String,
}

/// What `linux_side` is asked to run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) word: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) folder: String,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) terminal: bool,
}

/// Bytes that follow a request.
pub(crate) const CTRL_C: u8 = 3;
pub(crate) const TERMINATE: u8 = 0;
/// Kinds of frames of an answer: output, errors, the exit status.
pub(crate) const STDOUT: u8 = 1;
pub(crate) const STDERR: u8 = 2;
pub(crate) const EXIT: u8 = 3;

impl Linux {
    /// A Windows path as WSL translates it; `None` if it cannot.
    fn translated(&self, path: &str) -> Option<String> {
        if path.starts_with('/') {
            return Some(path.to_owned());
        }
        let slashes = path.replace('\\', "/");
        let plain = slashes.strip_prefix("//?/UNC/").map_or(slashes.clone(), |rest| format!("//{rest}"));
        // The files of the distribution, as Windows sees them.
        for server in ["//wsl.localhost/", "//wsl$/"] {
            if let Some(rest) = plain.strip_prefix(server) {
                let (distribution, rest) = rest.split_once('/').unwrap_or((rest, ""));
                return (distribution == self.distribution).then(|| format!("/{rest}"));
            }
        }
        let (letter, rest) = plain.trim_start_matches("//?/").split_once(':')?;
        let point = self.drives.get(&letter.chars().next()?.to_ascii_uppercase())?;
        Some(format!("{}/{}", point.trim_end_matches('/'), rest.trim_start_matches('/')))
    }

    /// The variables that `WSLENV` lets pass.
    fn passed(&self) -> BTreeMap<String, String> {
        let listed = std::env::var("WSLENV").unwrap_or_default();
        let value = |entry: &str| {
            let (name, flags) = entry.split_once('/').unwrap_or((entry, ""));
            let value = std::env::var(name).ok()?;
            let value = if flags.contains('p') { self.translated(&value)? } else { value };
            Some((name.to_owned(), value))
        };
        let mut passed: BTreeMap<String, String> = listed.split(':').filter_map(value).collect();
        passed.extend(self.variables.clone());
        passed
    }
}

/// Runs the program, and returns the exit status of `wsl.exe`.
pub(crate) fn run(folder: &Path) -> i32 {
    let mut linux: Linux =
        serde_json::from_slice(&std::fs::read(folder.join("linux.json")).unwrap()).unwrap();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let at = words.iter().position(|word| word == "--exec").unwrap();
    linux.distribution = words[words.iter().position(|word| word == "-d").unwrap() + 1].clone();
    let here = std::env::current_dir().unwrap();
    let mut variables = linux.passed();
    variables.insert("WSL_DISTRO_NAME".to_owned(), linux.distribution.clone());
    let request = Request {
        word: linux.asks.as_ref().map(|(_, word)| word.clone()).unwrap_or_default(),
        program: if words[at + 1] == "/opt/yolo/yolo" {
            linux.program.clone()
        } else {
            PathBuf::from(&words[at + 1])
        },
        arguments: words[at + 2..].to_vec(),
        // WSL starts programs somewhere else if it does not see the folder.
        folder: linux.translated(here.to_str().unwrap()).unwrap_or_else(|| "/".to_owned()),
        variables,
        terminal: linux.terminal,
    };
    match &linux.asks {
        None => start(&request),
        Some((address, _)) => ask(address, &request, folder),
    }
}

/// Starts the program on this Linux.
fn start(request: &Request) -> i32 {
    let mut command = std::process::Command::new(&request.program);
    command.args(&request.arguments).current_dir(&request.folder).envs(&request.variables);
    match command.status() {
        Ok(status) => status.code().unwrap_or(1),
        Err(error) => {
            let message = format!(
                "<3>WSL (9 - ) ERROR: CreateProcessCommon:735: execvpe(/opt/yolo/yolo) failed: {error}\n"
            );
            let _ = std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes());
            1
        }
    }
}

/// Lets `linux_side` run the program.
fn ask(address: &str, request: &Request, folder: &Path) -> i32 {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let mut text = serde_json::to_vec(request).unwrap();
    text.push(b'\n');
    stream.write_all(&text).unwrap();
    keyboard::listen();
    let mut sender = stream.try_clone().unwrap();
    let watched = folder.to_owned();
    std::thread::spawn(move || {
        let mut pressed = 0;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(20));
            // The test is at the keyboard.
            if std::fs::remove_file(watched.join("ctrl-c")).is_ok() {
                keyboard::press_ctrl_c();
            }
            let now = keyboard::presses();
            for _ in pressed..now {
                sender.write_all(&[CTRL_C]).unwrap();
            }
            pressed = now;
            // Each happens once: `yolo.exe` starts WSL again, to ask why the run ended.
            if std::fs::remove_file(watched.join("close")).is_ok() {
                std::process::exit(1);
            }
            if std::fs::remove_file(watched.join("terminate")).is_ok() {
                sender.write_all(&[TERMINATE]).unwrap();
                std::process::exit(-1);
            }
        }
    });
    loop {
        let mut head = [0; 5];
        if stream.read_exact(&mut head).is_err() {
            return -1;
        }
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let mut bytes = vec![0; length as usize];
        stream.read_exact(&mut bytes).unwrap();
        match head[0] {
            STDOUT => {
                std::io::stdout().write_all(&bytes).unwrap();
                std::io::stdout().flush().unwrap();
            }
            STDERR => std::io::stderr().write_all(&bytes).unwrap(),
            EXIT => return i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            other => panic!("frame {other}"),
        }
    }
}

/// Ctrl-C in the console that this program shares with `yolo.exe`.
mod keyboard {
    use std::sync::atomic::{AtomicUsize, Ordering};

    static PRESSES: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn presses() -> usize {
        PRESSES.load(Ordering::SeqCst)
    }

    #[cfg(windows)]
    pub(super) fn listen() {
        #![allow(unsafe_code, reason = "Windows is called")]
        unsafe extern "system" fn count(event: u32) -> i32 {
            if event == 0 {
                PRESSES.fetch_add(1, Ordering::SeqCst);
            }
            1
        }
        // SAFETY: the function has the signature that Windows calls.
        unsafe { windows_sys::Win32::System::Console::SetConsoleCtrlHandler(Some(count), 1) };
    }

    /// Every program in the console receives it.
    #[cfg(windows)]
    pub(super) fn press_ctrl_c() {
        #![allow(unsafe_code, reason = "Windows is called")]
        // SAFETY: the call has no preconditions.
        let sent = unsafe { windows_sys::Win32::System::Console::GenerateConsoleCtrlEvent(0, 0) };
        assert_ne!(sent, 0, "there is no console");
    }

    #[cfg(not(windows))]
    pub(super) fn listen() {
        let _ = PRESSES.load(Ordering::SeqCst);
    }

    #[cfg(not(windows))]
    pub(super) fn press_ctrl_c() {
        PRESSES.fetch_add(1, Ordering::SeqCst);
    }
}
