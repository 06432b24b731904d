//! `install.sh`: from a folder, from a web server, with a damaged archive, on unsupported systems, and over an
//! older installation. `install.ps1`, its counterpart for Windows, needs PowerShell and is not run here.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sha2::{Digest as _, Sha256};

const ARCHIVE: &str = "yolo-9.9.9-x86_64-unknown-linux-gnu.tar.gz";

/// A release, and a user's home to install it in.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// A release whose `yolo` is a script that prints its version.
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["release", "home", "bin", "yolo-9.9.9"] {
            fs::create_dir(bench.path(name)).unwrap();
        }
        bench.pack("#!/bin/sh\necho yolo 9.9.9\n");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn pack(&self, program: &str) {
        self.program("yolo-9.9.9/yolo", program);
        let archive = self.path("release").join(ARCHIVE);
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&archive).arg("-C").arg(self.folder.path()).arg("yolo-9.9.9");
        assert!(tar.status().unwrap().success());
        let sum = hex::encode(Sha256::digest(fs::read(&archive).unwrap()));
        let other = "0".repeat(64);
        let sums = format!("{sum}  {ARCHIVE}\n{other}  yolo-9.9.9-x86_64-pc-windows-gnu.zip\n");
        fs::write(self.path("release/SHA256SUMS"), sums).unwrap();
    }

    /// Runs the script; programs in `bin` come before the system's.
    fn install(&self, from: &str) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new("sh")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/release/install.sh"))
            .args(["--from", from])
            .env("HOME", self.path("home"))
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .output()
            .unwrap()
    }

    fn install_folder(&self) -> Output {
        self.install(self.path("release").to_str().unwrap())
    }

    /// The output of the installed program, or an empty string if there is none.
    fn installed(&self) -> String {
        let output = Command::new(self.path("home/.local/bin/yolo")).arg("--version").output();
        output.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default()
    }

    /// Fails the test unless the script failed with one message that contains the words.
    #[track_caller]
    fn refused(&self, output: &Output, words: &str) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{said}");
        assert!(said.contains(words), "`{words}` is not in:\n{said}");
    }
}

/// Serves the files of a folder, one request per connection, until the test ends.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            // The headers, up to the empty line.
            lines.find(String::is_empty);
            let name = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let (status, body) = match fs::read(folder.join(name)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", b"<html>no</html>".to_vec()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    format!("http://{address}")
}

fn has_downloader() -> bool {
    ["curl", "wget"].iter().any(|name| which::which(name).is_ok())
}

#[test]
fn a_release_is_installed_from_a_folder_and_again_over_itself() {
    let bench = Bench::new();
    for _ in 0..2 {
        let output = bench.install_folder();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("installed yolo 9.9.9") && said.contains("export PATH="), "{said}");
        assert_eq!(bench.installed(), "yolo 9.9.9\n");
    }
    let mut left: Vec<_> = fs::read_dir(bench.path("home/.local/lib"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["yolo"]);
}

#[test]
fn a_release_is_installed_from_a_web_server() {
    assert!(has_downloader(), "this test needs curl or wget");
    let bench = Bench::new();
    let address = serve(bench.path("release"));
    let output = bench.install(&address);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(bench.installed(), "yolo 9.9.9\n");
}

#[test]
fn a_server_without_the_release_is_reported() {
    assert!(has_downloader(), "this test needs curl or wget");
    let bench = Bench::new();
    let address = serve(bench.path("home"));
    bench.refused(&bench.install(&address), "cannot get SHA256SUMS from");
}

#[test]
fn a_damaged_archive_changes_nothing() {
    let bench = Bench::new();
    assert!(bench.install_folder().status.success());
    let archive = bench.path("release").join(ARCHIVE);
    let mut bytes = fs::read(&archive).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).unwrap();
    bench.refused(&bench.install_folder(), "nothing was changed");
    assert_eq!(bench.installed(), "yolo 9.9.9\n");
}

#[test]
fn a_program_that_does_not_run_here_changes_nothing() {
    let bench = Bench::new();
    assert!(bench.install_folder().status.success());
    bench.pack("#!/bin/sh\necho 'libc.so.6: version not found' >&2\nexit 1\n");
    bench.refused(&bench.install_folder(), "does not run here; nothing was changed");
    assert_eq!(bench.installed(), "yolo 9.9.9\n");
}

#[test]
fn unsupported_systems_are_rejected_with_one_clear_message() {
    for (program, text, words) in [
        ("uname", "[ \"$1\" = -m ] && echo aarch64 || echo Linux", "aarch64 CPUs"),
        ("uname", "[ \"$1\" = -m ] && echo arm64 || echo Darwin", "not support macOS"),
        ("uname", "[ \"$1\" = -m ] && echo x86_64 || echo MINGW64_NT-10.0", "run install.ps1 in PowerShell"),
        ("ldd", "echo 'musl libc (x86_64)' >&2; exit 1", "C library is musl"),
        ("getconf", "echo glibc 2.31", "glibc is 2.31, but yolo needs 2.35"),
    ] {
        let bench = Bench::new();
        bench.program(&format!("bin/{program}"), &format!("#!/bin/sh\n{text}\n"));
        bench.refused(&bench.install_folder(), words);
        assert!(!bench.path("home/.local").exists());
    }
}
