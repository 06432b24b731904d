//! Whole files from misbehaving servers and from several sources. Each test covers one fault and its outcome:
//! the right bytes or one clear message, and whether partial files are kept.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use yolo::fetch::{Client, Downloaded, FetchError, FileRequest, Meter, Policy, Silent, download};

#[allow(dead_code, reason = "each test program uses its own part of the server")]
#[path = "support/rude_server.rs"]
mod rude_server;
use rude_server::{Manner, RudeServer};

const FILE: &str = "/file.bin";

/// Long enough for several connections.
fn bytes() -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let word = |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index >> 3)).to_le_bytes();
        (0..1_500_000).flat_map(word).collect()
    });
    &BYTES
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A server with the file, and a folder to download it into.
struct Case {
    server: RudeServer,
    folder: tempfile::TempDir,
    policy: Policy,
}

impl Case {
    fn new() -> Self {
        let server = RudeServer::start(HashMap::from([(FILE.to_owned(), bytes().to_vec())]));
        let policy = Policy {
            // Long, for a busy machine; the tests of stalls set their own.
            stall: Duration::from_secs(20),
            attempts: 4,
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(50),
            connections: 4,
            ..Policy::default()
        };
        Self { server, folder: tempfile::tempdir().unwrap(), policy }
    }

    fn behaves(self, manners: &[Manner]) -> Self {
        self.server.behave(FILE, manners);
        self
    }

    fn impatient(mut self) -> Self {
        self.policy.stall = Duration::from_secs(2);
        self
    }

    fn part(&self) -> PathBuf {
        self.folder.path().join("file.bin.part")
    }

    fn wanted(&self) -> FileRequest {
        let (name, sources) = ("file.bin".to_owned(), vec![self.server.url(FILE)]);
        FileRequest { name, sources, length: None, sha256: None }
    }

    fn fetch(&self, wanted: &FileRequest) -> Result<Downloaded, FetchError> {
        download(&Client::new(self.policy.clone()).unwrap(), wanted, &self.part(), &Meter::new(&Silent))
    }

    /// Expects the complete file.
    fn comes_right(&self) -> &Self {
        self.comes_right_as(&self.wanted())
    }

    fn comes_right_as(&self, wanted: &FileRequest) -> &Self {
        let done = self.fetch(wanted).unwrap();
        assert_eq!((done.size, done.sha256), (bytes().len() as u64, hash(bytes())));
        assert!(fs::read(&done.path).unwrap() == bytes(), "the file on the disk differs");
        self
    }

    fn fails(&self) -> String {
        self.fails_as(&self.wanted())
    }

    fn fails_as(&self, wanted: &FileRequest) -> String {
        self.fetch(wanted).unwrap_err().to_string()
    }

    /// Bytes that the server sent, once it gets no more requests. Connections of a failed run end only after
    /// their current read.
    fn sent_in_all(&self) -> usize {
        let told = || (self.server.sent(), self.server.asked().len());
        let mut before = told();
        loop {
            // Longer than the longest pause before another attempt.
            std::thread::sleep(self.policy.longest_pause * 6);
            if told() == before {
                return before.0;
            }
            before = told();
        }
    }

    /// Bytes that are kept for the next run.
    fn kept(&self) -> u64 {
        fs::metadata(self.part()).map_or(0, |data| data.len())
    }
}

#[test]
fn a_file_is_read_over_several_connections() {
    let case = Case::new();
    case.comes_right();
    let ranges = case.server.asked().len();
    assert!(ranges >= 5, "{:?}", case.server.asked());
    assert!(case.server.sent() <= bytes().len() + 1, "no byte travels twice");
}

#[test]
fn every_response_may_be_cut() {
    Case::new().behaves(&[Manner::Cut(500_000)]).comes_right();
}

#[test]
fn a_stalled_download_is_resumed() {
    Case::new()
        .behaves(&[Manner::Fine, Manner::Stall(100_000), Manner::Stall(1), Manner::Fine])
        .comes_right();
}

#[test]
fn a_server_without_ranges_is_read_in_one_request() {
    let case = Case::new().behaves(&[Manner::NoRanges]);
    case.comes_right();
    let cut = Case::new().behaves(&[Manner::NoRanges, Manner::Cut(3_000_000), Manner::NoRanges]);
    cut.comes_right();
}

#[test]
fn a_web_page_is_rejected_and_not_kept() {
    for manners in [vec![Manner::Html], vec![Manner::Fine, Manner::Html]] {
        let case = Case::new().behaves(&manners);
        let message = case.fails();
        assert!(
            message.contains("web page")
                || message.contains("does not support")
                || message.contains("changed"),
            "{message}"
        );
    }
}

#[test]
fn permanent_errors_are_not_retried() {
    for (status, word) in
        [(401, "credentials"), (403, "credentials"), (404, "does not exist"), (410, "does not exist")]
    {
        let case = Case::new().behaves(&[Manner::Status(status, "")]);
        let message = case.fails();
        assert!(message.contains(&status.to_string()) && message.contains(word), "{message}");
        assert_eq!(case.server.asked().len(), 1);
    }
}

#[test]
fn a_rejected_range_leads_to_the_whole_file() {
    Case::new().behaves(&[Manner::Status(416, ""), Manner::NoRanges]).comes_right();
}

#[test]
fn transient_errors_are_retried() {
    for status in [408, 429, 500, 502, 503, 504] {
        let again = [Manner::Status(status, ""), Manner::Status(status, "Retry-After: 0\r\n"), Manner::Fine];
        Case::new().behaves(&again).comes_right();
    }
}

#[test]
fn retry_after_is_respected() {
    let case = Case::new().behaves(&[Manner::Status(429, "Retry-After: 1\r\n"), Manner::Fine]);
    let began = Instant::now();
    case.comes_right();
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[test]
fn a_retry_after_that_is_too_long_is_an_error() {
    let message = Case::new().behaves(&[Manner::Status(429, "Retry-After: 3600\r\n")]).fails();
    assert!(message.contains("429") && message.contains("3600 s"), "{message}");
}

#[test]
fn a_server_that_stays_broken_is_an_error() {
    let message = Case::new().behaves(&[Manner::Status(500, "")]).fails();
    assert!(message.contains("500") && message.contains("4 attempts"), "{message}");
}

#[test]
fn a_wrong_length_is_detected() {
    // The server announces more than it sends, so every connection ends early.
    let message = Case::new().behaves(&[Manner::TooLong(1000)]).fails();
    assert!(message.contains("4 attempts"), "{message}");
    let case = Case::new();
    let message = case.fails_as(&FileRequest { length: Some(7), ..case.wanted() });
    assert!(message.contains("wrong length") && message.contains("expected 7"), "{message}");
}

#[test]
fn a_file_that_changes_between_two_ranges_is_downloaded_again() {
    let mut manners = vec![Manner::Fine; 3];
    manners.push(Manner::Changed);
    Case::new().behaves(&manners).comes_right();
}

#[test]
fn a_wrong_hash_is_detected_and_the_bytes_are_not_kept() {
    let case = Case::new().behaves(&[Manner::Flip(5_000_000)]);
    let message = case.fails_as(&FileRequest { sha256: Some(hash(bytes())), ..case.wanted() });
    assert!(message.contains("wrong SHA-256") && message.contains("nothing was installed"), "{message}");
    assert_eq!(case.kept(), 0);
}

#[test]
fn a_slow_drip_may_take_longer_than_the_stall_time() {
    let server = RudeServer::start(HashMap::from([(FILE.to_owned(), bytes()[..320].to_vec())]));
    let case = Case { server, ..Case::new() }.impatient();
    let case = case.behaves(&[Manner::Drip(16, Duration::from_millis(150))]);
    let began = Instant::now();
    assert_eq!(case.fetch(&case.wanted()).unwrap().size, 320);
    assert!(began.elapsed() > case.policy.stall);
}

#[test]
fn a_redirect_loop_ends() {
    let message = Case::new().behaves(&[Manner::RedirectLoop]).fails();
    assert!(message.contains("redirect"), "{message}");
}

#[test]
fn bytes_before_a_cut_are_kept_for_the_next_run() {
    // After 40 responses the server sends nothing.
    let mut manners = vec![Manner::Cut(250_000); 40];
    manners.push(Manner::Status(503, ""));
    let case = Case::new().behaves(&manners);
    assert!(case.fails().contains("503"));
    let (kept, sent) = (case.kept(), case.sent_in_all());
    assert!(kept > 1_000_000, "{kept}");
    case.server.behave(FILE, &[Manner::Fine]);
    case.comes_right();
    let again = case.server.sent() - sent;
    assert!(again <= bytes().len() - kept as usize + 1, "{again} of {} came again", bytes().len());
    let headers = case.server.headers();
    assert!(headers.iter().any(|line| line.to_lowercase() == "if-range: \"one\""), "{headers:?}");
}

#[test]
fn bytes_of_another_version_are_dropped() {
    for manner in [Manner::Changed, Manner::WeakTag] {
        let case = Case::new();
        case.comes_right();
        fs::OpenOptions::new().write(true).open(case.part()).unwrap().set_len(2_000_000).unwrap();
        let sent = case.server.sent();
        case.server.behave(FILE, &[manner]);
        case.comes_right();
        assert!(case.server.sent() - sent >= bytes().len(), "it began anew");
    }
}

#[test]
fn wrong_kept_bytes_are_downloaded_again_when_the_hash_is_known() {
    let case = Case::new();
    let wanted = FileRequest { sha256: Some(hash(bytes())), ..case.wanted() };
    case.comes_right_as(&wanted);
    let mut spoiled = bytes()[..3_000_000].to_vec();
    spoiled[1_000_000] ^= 1;
    fs::write(case.part(), spoiled).unwrap();
    case.comes_right_as(&wanted);
}

#[test]
fn mirrors_are_asked_in_order() {
    let [missing, page, good] = [Case::new(), Case::new(), Case::new()];
    missing.server.behave(FILE, &[Manner::Status(404, "")]);
    page.server.behave(FILE, &[Manner::Html]);
    let sources = [&missing, &page, &good].map(|case| case.server.url(FILE)).to_vec();
    good.comes_right_as(&FileRequest { sources: sources.clone(), ..good.wanted() });
    good.server.behave(FILE, &[Manner::Status(403, "")]);
    fs::remove_file(good.part()).unwrap();
    let message = good.fails_as(&FileRequest { sources, ..good.wanted() });
    for word in ["file.bin cannot be downloaded", "404", "web page", "403"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
}

#[test]
fn a_mirror_with_wrong_bytes_is_skipped() {
    let [bad, good] = [Case::new(), Case::new()];
    bad.server.behave(FILE, &[Manner::Flip(9)]);
    let sources = vec![bad.server.url(FILE), good.server.url(FILE)];
    good.comes_right_as(&FileRequest { sources, sha256: Some(hash(bytes())), ..good.wanted() });
}

#[test]
fn a_local_file_is_used_in_place() {
    let case = Case::new();
    let path = case.folder.path().join("here.bin");
    fs::write(&path, bytes()).unwrap();
    let wanted = FileRequest { sources: vec![path.display().to_string()], ..case.wanted() };
    assert_eq!(case.comes_right_as(&wanted).fetch(&wanted).unwrap().path, path);
}

#[test]
fn offline_nothing_is_requested() {
    let mut case = Case::new();
    case.policy.offline = true;
    assert!(case.fails().contains("offline"));
    assert!(case.server.asked().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_does_not_fit_is_rejected_before_the_download() {
    use std::process::{Command, Stdio};

    let case = Case::new();
    let disk = case.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&disk).stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        println!("skipped: mounting a small tmpfs needs root and the right to mount");
        return;
    }
    let client = Client::new(case.policy.clone()).unwrap();
    let result = download(&client, &case.wanted(), &disk.join("part"), &Meter::new(&Silent));
    let sent = case.server.sent();
    let _ = Command::new("umount").arg("-l").arg(&disk).status();
    let message = result.unwrap_err().to_string();
    assert!(message.contains("free") && message.contains("needed"), "{message}");
    assert!(sent <= 1, "{sent} bytes came");
}
