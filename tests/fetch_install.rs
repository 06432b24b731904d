//! Installations that are killed, raced or run out of disk space: the target is complete or absent. Child
//! processes are this test program, started again with one ignored test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use yolo::fetch::{
    Archive, Client, FetchError, FolderLock, MemberFetch, MemberPattern, Meter, Policy, Progress,
    ProgressEvent, ResumeState, Silent, Staging, fetch_members,
};
use zip::write::SimpleFileOptions;

#[allow(dead_code, reason = "each test program uses its own part of the server")]
#[path = "support/rude_server.rs"]
mod rude_server;
use rude_server::{Manner, RudeServer};

const WHEEL: &str = "/wheel.whl";
const MEMBERS: usize = 6;

fn member(index: usize) -> Vec<u8> {
    // All 8-byte words differ, so that a lost or duplicated block is detected.
    (0..60_000_u64)
        .flat_map(|word| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64).to_le_bytes())
        .collect()
}

fn slow_server() -> RudeServer {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..MEMBERS {
        zip.start_file(format!("lib/{index}"), SimpleFileOptions::default()).unwrap();
        zip.write_all(&member(index)).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    let server = RudeServer::start(HashMap::from([(WHEEL.to_owned(), bytes)]));
    server.behave(WHEEL, &[Manner::Drip(64 << 10, Duration::from_millis(2))]);
    server
}

fn install(address: &str, folder: &Path, progress: &dyn Progress) -> Result<(), FetchError> {
    let client = Client::new(Policy::default())?;
    let lock = FolderLock::acquire(folder, progress)?;
    Staging::sweep(&lock);
    let target = folder.join("it");
    if target.exists() {
        return Ok(());
    }
    let meter = Meter::new(progress);
    let archive = Archive::open(&client, address)?;
    let selection = archive.select(&[MemberPattern::tree("lib", "lib")], &meter)?;
    let incoming = Staging::open(&lock, "it")?;
    let parts = ResumeState::open(incoming.parts());
    let all = [MemberFetch { archive: &archive, selection: &selection, sha256: None }];
    match fetch_members(&all, incoming.path(), Some(&parts), &meter) {
        Ok(_) => incoming.publish(&target),
        Err(error) => {
            incoming.discard();
            Err(error)
        }
    }
}

fn assert_whole(target: &Path) {
    for index in 0..MEMBERS {
        assert!(fs::read(target.join(format!("lib/{index}"))).unwrap() == member(index), "member {index}");
    }
}

/// Starts this program again to install in a separate process.
fn child(address: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_installs", "--ignored", "--nocapture", "--test-threads", "1"])
        .env("CHILD_ADDRESS", address)
        .env("CHILD_FOLDER", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the child of the other tests: without their environment it has nothing to do"]
fn the_child_installs() {
    struct Says;
    impl Progress for Says {
        fn event(&self, event: ProgressEvent<'_>) {
            match event {
                ProgressEvent::Bytes { .. } => println!("bytes"),
                ProgressEvent::Note { text } => println!("note {text}"),
                _ => {}
            }
        }
    }
    let (Ok(address), Ok(folder)) = (std::env::var("CHILD_ADDRESS"), std::env::var("CHILD_FOLDER")) else {
        return;
    };
    install(&address, Path::new(&folder), &Says).unwrap();
}

#[test]
fn killed_at_any_moment_the_next_run_finishes() {
    let server = slow_server();
    let (mut died_inside, mut moments) = (0, 0);
    for lines in [0, 1, 2, 5, 9, 14, 20, 27, 35, 60] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("it");
        let mut child = child(&server.url(WHEEL), folder.path());
        // The child reports each piece, so the moment of the kill is a number of pieces and not of seconds.
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let heard = told.by_ref().map_while(Result::ok).filter(|line| line == "bytes").take(lines).count();
        moments += usize::from(heard == lines);
        child.kill().unwrap();
        child.wait().unwrap();
        if target.exists() {
            assert_whole(&target);
        } else {
            died_inside += 1;
        }
        install(&server.url(WHEEL), folder.path(), &Silent).unwrap();
        assert_whole(&target);
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "only the lock and the installation: {left:?}");
    }
    assert!(
        died_inside >= 5 && moments >= 5,
        "{died_inside} kills before the end, {moments} moments reached"
    );
}

#[test]
fn two_at_once_install_once_and_the_second_says_for_whom_it_waits() {
    let server = slow_server();
    let folder = tempfile::tempdir().unwrap();
    let mut first = child(&server.url(WHEEL), folder.path());
    let mut told = BufReader::new(first.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line == "bytes"), "the first never began");
    struct Notes(Mutex<Vec<String>>);
    impl Progress for Notes {
        fn event(&self, event: ProgressEvent<'_>) {
            if let ProgressEvent::Note { text } = event {
                self.0.lock().unwrap().push(text.to_owned());
            }
        }
    }
    let notes = Notes(Mutex::default());
    // Keep reading, so that a full pipe does not block the first one.
    let reader = std::thread::spawn(move || told.count());
    install(&server.url(WHEEL), folder.path(), &notes).unwrap();
    assert!(first.wait().unwrap().success());
    reader.join().unwrap();
    assert_whole(&folder.path().join("it"));
    let notes = notes.0.into_inner().unwrap();
    assert!(notes.len() == 1 && notes[0].contains(&format!("process {}", first.id())), "{notes:?}");
    let directories = server.asked().iter().filter(|range| range.starts_with("bytes=-")).count();
    assert_eq!(directories, 1, "the second fetched again: {:?}", server.asked());
}

#[cfg(target_os = "linux")]
mod full_disk {
    use super::*;

    /// A small file system, unmounted when dropped.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        fn new(kilobytes: usize) -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
                .arg(folder.path())
                .stderr(Stdio::null())
                .status();
            mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
        }
    }

    #[test]
    fn a_full_disk_is_one_message_and_leaves_nothing() {
        let Some(disk) = SmallDisk::new(1000) else {
            println!("skipped: mounting a small tmpfs needs root and the right to mount");
            return;
        };
        let folder = disk.0.path().join("data");
        let server = slow_server();
        let began = std::time::Instant::now();
        let error = install(&server.url(WHEEL), &folder, &Silent).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("No space left") && message.contains("YOLO_HOME"), "{message}");
        assert!(began.elapsed() < Duration::from_secs(20));
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
    }
}
