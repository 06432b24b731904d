//! The download benchmarks of the docs: a large local file against `curl` followed by `sha256sum`, libtorch
//! from a server limited to 20 MB/s against the whole wheel, libtorch from the user's package index against
//! pip, and a repeated `yolo setup`.
//!
//! `cargo bench -p yolo --bench fetch`. `YOLO_BENCH_WHEELS` names a folder with the wheels of the CPU
//! variant, as from `pip download`; without it, those parts are skipped with a message.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement ends by panicking when it cannot be made"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use yolo::fetch::{Client, FileRequest, Meter, Policy, Silent, download};

/// The wheel whose members are wanted.
const TORCH: &str = "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl";

/// Bytes that the CPU variant's members have in their wheels.
const NEEDED: u64 = 121_208_472 + 1_485_037 + 203_707;

fn main() {
    large_file();
    match std::env::var_os("YOLO_BENCH_WHEELS").map(PathBuf::from) {
        Some(wheels) => limited_server(&wheels),
        None => println!("libtorch from a limited server: left out, since YOLO_BENCH_WHEELS is not set"),
    }
    package_index();
}

/// 1 GB over eight connections.
fn large_file() {
    let folder = tempfile::tempdir().unwrap();
    let word = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let bytes: Vec<u8> = (0..125_000_000).flat_map(word).collect();
    let server = Server::start(vec![("large".to_owned(), bytes)], None);
    let address = server.address("large");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let began = Instant::now();
        let client = Client::new(Policy::default()).unwrap();
        let wanted =
            FileRequest { name: "large".into(), sources: vec![address.clone()], length: None, sha256: None };
        let done = download(&client, &wanted, &folder.path().join("ours"), &Meter::new(&Silent)).unwrap();
        ours.push(began.elapsed());
        fs::remove_file(done.path).unwrap();
        let path = folder.path().join("theirs");
        let began = Instant::now();
        run(Command::new("curl").args(["-s", "-o"]).arg(&path).arg(&address));
        run(Command::new("sha256sum").arg(&path).stdout(Stdio::null()));
        theirs.push(began.elapsed());
        fs::remove_file(path).unwrap();
    }
    println!("1 GB from this machine, fetched and hashed, best of 3: {}", seconds(&ours));
    println!("    curl, then sha256sum: {}", seconds(&theirs));
}

/// libtorch cpu, and the whole wheel, at 20 MB/s.
fn limited_server(wheels: &Path) {
    let files = fs::read_dir(wheels).unwrap().flatten().filter(|entry| entry.file_name() != "");
    let files = files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "whl"));
    let files: Vec<(String, Vec<u8>)> = files
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    let server = Server::start(files, Some(20_000_000));
    let home = tempfile::tempdir().unwrap();
    let (took, memory) = setup(home.path(), &[("YOLO_MIRROR", &server.address(""))]);
    let sent = server.sent.swap(0, Ordering::Relaxed);
    println!(
        "libtorch cpu at 20 MB/s: ready in {:.1} s, {:.1} MB of memory at most",
        took.as_secs_f64(),
        memory
    );
    println!(
        "    {sent} bytes came, {:+.2} % of what its members need; RECORD, licenses and directories among them",
        (sent as f64 / NEEDED as f64 - 1.0) * 100.0
    );
    let again = Instant::now();
    setup(home.path(), &[("YOLO_OFFLINE", "1")]);
    println!("    a repeated `yolo setup`: {:.3} s", again.elapsed().as_secs_f64());
    let began = Instant::now();
    run(Command::new("curl").args(["-s", "-o", "/dev/null"]).arg(server.address(TORCH)));
    println!("    the whole wheel with curl: {:.1} s", began.elapsed().as_secs_f64());
}

/// libtorch cpu through the user's own package index, and pip's own installation of the wheel.
fn package_index() {
    let home = tempfile::tempdir().unwrap();
    let (took, memory) = setup(home.path(), &[]);
    println!(
        "libtorch cpu from the package index: ready in {:.1} s, {memory:.1} MB of memory at most, pip's not counted",
        took.as_secs_f64()
    );
    let target = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--target"])
        .arg(target.path());
    pip.args(["--python-version", "3.12", "--only-binary=:all:", "--platform", "manylinux_2_28_x86_64"]);
    run(pip.arg("torch==2.11.0"));
    println!("    pip install --no-deps --target DIR torch==2.11.0: {:.1} s", began.elapsed().as_secs_f64());
}

/// Runs `yolo setup --libtorch cpu` into `home`; the time, and the most memory that it had, in MB.
fn setup(home: &Path, variables: &[(&str, &str)]) -> (Duration, f64) {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_yolo"));
    command.args(["--quiet", "setup", "--libtorch", "cpu"]).env("YOLO_HOME", home);
    // An existing trainer, so that only libtorch is measured, without headers.
    command.env("YOLO_TRAINER", "/bin/true").env_remove("LIBTORCH").env_remove("YOLO_MIRROR");
    command.envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    let memory = watch(&mut child);
    assert!(child.wait().unwrap().success());
    (began.elapsed(), memory)
}

/// The peak resident memory of a process, in MB.
fn watch(child: &mut Child) -> f64 {
    let path = format!("/proc/{}/status", child.id());
    let mut highest = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
        highest = highest.max(kilobytes.unwrap_or(0.0) * 1024.0 / 1e6);
        thread::sleep(Duration::from_millis(5));
    }
    highest
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn seconds(times: &[Duration]) -> String {
    format!("{:.2} s", times.iter().min().unwrap().as_secs_f64())
}

/// A server that serves files from memory, whole or by ranges, at a limited rate over all connections.
struct Server {
    port: u16,
    sent: Arc<AtomicU64>,
}

impl Server {
    fn start(files: Vec<(String, Vec<u8>)>, rate: Option<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (files, sent) = (Arc::new(files), Arc::new(AtomicU64::new(0)));
        let pace = Arc::new(Mutex::new(Instant::now()));
        let count = Arc::clone(&sent);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, count, pace) = (Arc::clone(&files), Arc::clone(&count), Arc::clone(&pace));
                thread::spawn(move || {
                    // Clients may hang up.
                    let _ = answer(stream, &files, rate, &count, &pace);
                });
            }
        });
        Self { port, sent }
    }

    fn address(&self, file: &str) -> String {
        format!("http://127.0.0.1:{}/{file}", self.port)
    }
}

fn answer(
    mut stream: TcpStream,
    files: &[(String, Vec<u8>)],
    rate: Option<u64>,
    sent: &AtomicU64,
    pace: &Mutex<Instant>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut request, mut range) = (String::new(), None);
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                range = Some(value.trim().to_owned());
            }
        }
        let path = request.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
        let Some((_, bytes)) = files.iter().find(|(name, _)| name == path) else {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let total = bytes.len();
        let part = range.as_deref().and_then(|range| range.split_once('-')).map(|(start, end)| {
            let end = end.parse::<usize>().map(|end| (end + 1).min(total));
            match (start.parse::<usize>(), end) {
                (Ok(start), end) => (start, end.unwrap_or(total)),
                (Err(_), Ok(count)) => (total.saturating_sub(count - 1), total),
                (Err(_), Err(_)) => (0, total),
            }
        });
        let (start, end) = part.unwrap_or((0, total));
        let status = match part {
            Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}", end - 1),
            None => "200 OK".to_owned(),
        };
        let head = format!("HTTP/1.1 {status}\r\nETag: \"one\"\r\nContent-Length: {}\r\n\r\n", end - start);
        stream.write_all(head.as_bytes())?;
        for piece in bytes[start..end].chunks(64 << 10) {
            if let Some(rate) = rate {
                let wait = {
                    let mut next = pace.lock().unwrap();
                    *next = (*next).max(Instant::now())
                        + Duration::from_secs_f64(piece.len() as f64 / rate as f64);
                    *next
                };
                thread::sleep(wait.saturating_duration_since(Instant::now()));
            }
            stream.write_all(piece)?;
            sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
}
