//! Members of a zip archive on a misbehaving server. Each test covers one fault and its outcome: the right
//! bytes, or one clear message.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use yolo::fetch::{
    Archive, Client, FetchError, MemberPattern, Meter, Policy, Progress, ProgressEvent, Silent,
    UnpackedMember, fetch_text,
};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

#[allow(dead_code, reason = "each test program uses its own part of the server")]
#[path = "support/rude_server.rs"]
mod rude_server;
use rude_server::{Manner, RudeServer};

const WHEEL: &str = "/wheel.whl";

/// The large member: long enough for several connections.
fn big() -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| noise(9_000_000));
    &BYTES
}

/// Incompressible bytes, the same on every run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A large deflated member, unwanted ones around it, a stored one and a folder of headers.
fn wheel(zip64: bool) -> Vec<u8> {
    static WHEELS: [LazyLock<Vec<u8>>; 2] =
        [LazyLock::new(|| make_wheel(false)), LazyLock::new(|| make_wheel(true))];
    WHEELS[usize::from(zip64)].to_vec()
}

fn make_wheel(zip64: bool) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let deflated =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(zip64);
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(zip64);
    let mut add = |name: &str, options, bytes: &[u8]| {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    };
    add("t/unwanted", deflated, &noise(300_000));
    add("t/lib/big.so", deflated, big());
    add("t/other", stored, &noise(200_000));
    add("t/lib/small.so", stored, b"stored bytes");
    for index in 0..50 {
        add(&format!("t/include/{index}.h"), deflated, format!("// header {index}").as_bytes());
    }
    zip.finish().unwrap().into_inner()
}

fn patterns() -> [MemberPattern; 3] {
    [
        MemberPattern::file("t/lib/big.so", "lib/big.so"),
        MemberPattern::file("t/lib/small.so", "lib/small.so"),
        MemberPattern::tree("t/include", "include"),
    ]
}

/// Long timeouts for a busy machine, short pauses for a test.
fn policy() -> Policy {
    Policy {
        stall: Duration::from_secs(2),
        attempts: 4,
        first_pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(50),
        connections: 4,
        ..Policy::default()
    }
}

fn server(wheel: Vec<u8>) -> RudeServer {
    RudeServer::start(HashMap::from([(WHEEL.to_owned(), wheel)]))
}

fn open(address: &str) -> Archive {
    Archive::open(&Client::new(policy()).unwrap(), address).unwrap()
}

fn by_ranges(address: &str, into: &Path) -> Result<Vec<UnpackedMember>, FetchError> {
    let meter = Meter::new(&Silent);
    let archive = open(address);
    let selection = archive.select(&patterns(), &meter)?;
    archive.fetch_members(&selection, into, &meter)
}

fn stream(address: &str, into: &Path) -> Result<(Vec<UnpackedMember>, [u8; 32]), FetchError> {
    open(address).stream(&patterns(), into, &Meter::new(&Silent))
}

fn assert_right(into: &Path, unpacked: &[UnpackedMember]) {
    assert_eq!(unpacked.len(), 52);
    assert!(fs::read(into.join("lib/big.so")).unwrap() == big(), "the large member differs");
    assert_eq!(fs::read(into.join("lib/small.so")).unwrap(), b"stored bytes");
    assert_eq!(fs::read_to_string(into.join("include/49.h")).unwrap(), "// header 49");
    let one = unpacked.iter().find(|one| one.name == "t/lib/big.so").unwrap();
    assert_eq!(one.sha256[..], Sha256::digest(big())[..]);
}

/// Downloads by ranges from a server that misbehaves like this, and expects the right bytes.
fn comes_right(manners: &[Manner]) -> RudeServer {
    let server = server(wheel(false));
    server.behave(WHEEL, manners);
    let into = tempfile::tempdir().unwrap();
    let unpacked = by_ranges(&server.url(WHEEL), into.path()).unwrap();
    assert_right(into.path(), &unpacked);
    server
}

/// Downloads from a server whose faults cannot be recovered from, and expects an error.
fn fails(manners: &[Manner]) -> String {
    let server = server(wheel(false));
    server.behave(WHEEL, manners);
    let into = tempfile::tempdir().unwrap();
    by_ranges(&server.url(WHEEL), into.path()).unwrap_err().to_string()
}

#[test]
fn only_selected_members_are_downloaded() {
    let wheel = wheel(false);
    let length = wheel.len();
    let server = server(wheel);
    let into = tempfile::tempdir().unwrap();
    let unpacked = by_ranges(&server.url(WHEEL), into.path()).unwrap();
    assert_right(into.path(), &unpacked);
    // The two unwanted members have 500,000 bytes; the central directory and the tail have less than 40,000.
    assert!(server.sent() < length - 500_000 + 40_000, "{} of {length}", server.sent());
    assert!(server.asked().iter().all(|range| range.starts_with("bytes=")), "{:?}", server.asked());
}

#[test]
fn a_zip64_archive_is_read() {
    let server = server(wheel(true));
    let into = tempfile::tempdir().unwrap();
    assert_right(into.path(), &by_ranges(&server.url(WHEEL), into.path()).unwrap());
    let into = tempfile::tempdir().unwrap();
    assert_right(into.path(), &stream(&server.url(WHEEL), into.path()).unwrap().0);
}

#[test]
fn an_archive_on_the_disk_is_read_by_path_and_by_file_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a wheel.whl");
    fs::write(&path, wheel(false)).unwrap();
    for address in [path.display().to_string(), format!("file://{}", path.display()).replace(' ', "%20")] {
        let into = tempfile::tempdir().unwrap();
        assert_right(into.path(), &by_ranges(&address, into.path()).unwrap());
    }
}

#[test]
fn a_server_without_suffix_ranges_is_asked_in_two_steps() {
    for status in [400, 416, 501] {
        comes_right(&[Manner::NoSuffix(status)]);
    }
}

#[test]
fn a_server_without_ranges_says_so_and_is_streamed() {
    let bytes = wheel(false);
    let hash = Sha256::digest(&bytes);
    let server = server(bytes);
    for manner in [Manner::NoRanges, Manner::RefusesRanges(416), Manner::RefusesRanges(400)] {
        server.behave(WHEEL, &[manner]);
        let into = tempfile::tempdir().unwrap();
        let error = by_ranges(&server.url(WHEEL), into.path()).unwrap_err();
        assert!(matches!(error, FetchError::NoRanges { .. }), "{error}");
        let (unpacked, whole) = stream(&server.url(WHEEL), into.path()).unwrap();
        assert_right(into.path(), &unpacked);
        assert_eq!(whole[..], hash[..]);
    }
}

#[test]
fn a_broken_stream_resumes_where_it_broke() {
    let server = server(wheel(false));
    server.behave(WHEEL, &[Manner::Cut(1_000_000), Manner::Cut(7_000_000), Manner::NoRanges]);
    let into = tempfile::tempdir().unwrap();
    let (unpacked, _) = stream(&server.url(WHEEL), into.path()).unwrap();
    assert_right(into.path(), &unpacked);
}

#[test]
fn a_cut_member_is_resumed_inside() {
    let mut manners = vec![Manner::Fine; 2];
    manners.extend([Manner::Cut(100_000), Manner::Cut(1), Manner::Cut(70_001)]);
    manners.push(Manner::Fine);
    let server = comes_right(&manners);
    // No range is requested again from its beginning.
    let mut asked = server.asked();
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count, "{:?}", server.asked());
}

#[test]
fn every_response_may_be_cut_as_long_as_bytes_arrive() {
    comes_right(&[Manner::Cut(400_000)]);
}

#[test]
fn a_stalled_connection_is_closed_and_reopened() {
    let began = Instant::now();
    comes_right(&[Manner::Fine, Manner::Fine, Manner::Stall(50_000), Manner::Fine]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_slow_drip_may_take_longer_than_the_stall_time() {
    let server = server(b"the text".repeat(40));
    server.behave(WHEEL, &[Manner::Drip(16, Duration::from_millis(150))]);
    let began = Instant::now();
    let text = fetch_text(&Client::new(policy()).unwrap(), &server.url(WHEEL), 1000, &Silent).unwrap();
    assert_eq!(text.len(), 320);
    assert!(began.elapsed() > policy().stall, "{:?}", began.elapsed());
}

#[test]
fn transient_errors_are_retried() {
    for status in [408, 429, 500, 502, 503, 504] {
        comes_right(&[
            Manner::Status(status, ""),
            Manner::Status(status, "Retry-After: 0\r\n"),
            Manner::Fine,
        ]);
    }
}

#[test]
fn a_server_that_stays_broken_fails_with_its_last_error() {
    let message = fails(&[Manner::Status(503, "")]);
    assert!(message.contains("503") && message.contains("4 attempts"), "{message}");
}

#[test]
fn retries_are_reported() {
    struct Heard(std::sync::Mutex<Vec<String>>);
    impl Progress for Heard {
        fn event(&self, event: ProgressEvent<'_>) {
            if let ProgressEvent::Retry { why, .. } = event {
                self.0.lock().unwrap().push(why.to_owned());
            }
        }
    }
    let server = server(b"text".to_vec());
    server.behave(WHEEL, &[Manner::Status(500, ""), Manner::Fine]);
    let heard = Heard(std::sync::Mutex::default());
    fetch_text(&Client::new(policy()).unwrap(), &server.url(WHEEL), 10, &heard).unwrap();
    let heard = heard.0.into_inner().unwrap();
    assert!(heard.len() == 1 && heard[0].contains("500"), "{heard:?}");
}

#[test]
fn permanent_errors_are_not_retried() {
    for (status, word) in
        [(401, "credentials"), (403, "credentials"), (404, "does not exist"), (410, "does not exist")]
    {
        let server = server(wheel(false));
        server.behave(WHEEL, &[Manner::Status(status, "")]);
        let into = tempfile::tempdir().unwrap();
        let message = by_ranges(&server.url(WHEEL), into.path()).unwrap_err().to_string();
        assert!(message.contains(&status.to_string()) && message.contains(word), "{message}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn a_redirect_loop_ends() {
    let message = fails(&[Manner::RedirectLoop]);
    assert!(message.contains("redirect"), "{message}");
}

#[test]
fn a_refused_connection_is_reported_with_the_address() {
    let into = tempfile::tempdir().unwrap();
    let message = by_ranges("http://127.0.0.1:1/wheel.whl", into.path()).unwrap_err().to_string();
    assert!(message.contains("127.0.0.1:1") && message.contains("refused"), "{message}");
}

#[test]
fn a_web_page_instead_of_the_archive_is_recognised() {
    let server = server(wheel(false));
    server.behave(WHEEL, &[Manner::Html]);
    let into = tempfile::tempdir().unwrap();
    let message = stream(&server.url(WHEEL), into.path()).unwrap_err().to_string();
    assert!(message.contains("web page"), "{message}");
    let page = self::server(b"<html>login</html>".repeat(20));
    let message = by_ranges(&page.url(WHEEL), into.path()).unwrap_err().to_string();
    assert!(message.contains("web page"), "{message}");
}

#[test]
fn a_flipped_bit_is_detected_by_ranges_and_by_stream() {
    let server = server(wheel(false));
    server.behave(WHEEL, &[Manner::Flip(5_000_000)]);
    for way in ["ranges", "stream"] {
        let into = tempfile::tempdir().unwrap();
        let error = if way == "ranges" {
            by_ranges(&server.url(WHEEL), into.path()).unwrap_err()
        } else {
            stream(&server.url(WHEEL), into.path()).unwrap_err()
        };
        let message = error.to_string();
        assert!(message.contains("big.so"), "{way}: {message}");
    }
}

#[test]
fn a_file_that_changes_between_two_ranges_is_rejected() {
    let message = fails(&[Manner::Fine, Manner::Fine, Manner::Changed]);
    assert!(message.contains("changed on the server"), "{message}");
}

#[test]
fn an_incomplete_archive_says_so() {
    let mut bytes = wheel(false);
    bytes.truncate(8_000_000);
    let server = server(bytes);
    let into = tempfile::tempdir().unwrap();
    let message = by_ranges(&server.url(WHEEL), into.path()).unwrap_err().to_string();
    assert!(message.contains("incomplete"), "{message}");
    let message = stream(&server.url(WHEEL), into.path()).unwrap_err().to_string();
    assert!(message.contains("big.so"), "{message}");
}

#[test]
fn a_missing_member_is_named() {
    let server = server(wheel(false));
    let patterns = [MemberPattern::file("t/lib/none.so", "x")];
    let message = open(&server.url(WHEEL)).select(&patterns, &Meter::new(&Silent)).unwrap_err().to_string();
    assert!(message.ends_with("does not contain t/lib/none.so"), "{message}");
}

#[test]
fn credentials_go_to_the_server_and_never_into_a_message() {
    let server = server(wheel(false));
    let address = server.url(WHEEL).replace("http://", "http://me:secret@");
    let into = tempfile::tempdir().unwrap();
    assert_right(into.path(), &by_ranges(&address, into.path()).unwrap());
    let sent = server.headers();
    assert!(sent.iter().any(|line| line.to_lowercase().starts_with("authorization: basic")), "{sent:?}");
    for manners in [Manner::Status(403, ""), Manner::Status(500, ""), Manner::RedirectLoop, Manner::Html] {
        server.behave(WHEEL, &[manners]);
        let message = by_ranges(&address, into.path()).unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn a_range_is_fetched_in_parallel_and_the_meter_ends_at_its_total() {
    let server = server(wheel(false));
    let meter = Meter::new(&Silent);
    let archive = open(&server.url(WHEEL));
    let selection = archive.select(&patterns(), &meter).unwrap();
    let before = meter.done();
    let into = tempfile::tempdir().unwrap();
    archive.fetch_members(&selection, into.path(), &meter).unwrap();
    assert_eq!(meter.done() - before, selection.transfer());
    let chunks = server.asked().iter().filter(|range| !range.starts_with("bytes=-")).count();
    assert!(chunks >= 3, "{:?}", server.asked());
}
