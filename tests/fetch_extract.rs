//! Hostile archives. Nothing is written outside the folder, only regular files are created, the disk is not
//! filled, and the message says what is wrong.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::LazyLock;

use yolo::fetch::{Client, Contents, FetchError, Meter, Policy, Silent, extract};
use zip::write::SimpleFileOptions;

/// Unpacks these bytes. Returns the contents, and what is in the parent folder afterwards.
fn unpack(bytes: &[u8]) -> (Result<Contents, FetchError>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    fs::write(&archive, bytes).unwrap();
    // Reading the system's certificates takes time, and this test needs none.
    static CLIENT: LazyLock<Client> = LazyLock::new(|| Client::new(Policy::default()).unwrap());
    let client = CLIENT.clone();
    let into = folder.path().join("deep/below");
    let result = extract(&client, &archive, "the archive", &into, &Meter::new(&Silent));
    (result, folder)
}

#[track_caller]
fn refused(bytes: &[u8], words: &[&str]) {
    let (result, folder) = unpack(bytes);
    let message = result.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    // The archive itself, and the destination folder.
    let mut outside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    outside.sort();
    assert_eq!(outside, ["archive", "deep"]);
    let deep: Vec<_> =
        fs::read_dir(folder.path().join("deep")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(deep, ["below"]);
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    zip_with(members, SimpleFileOptions::default())
}

fn zip_with(members: &[(&str, &[u8])], options: SimpleFileOptions) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Renames a member in the finished bytes, since the writer rejects such names.
fn renamed(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        bytes[at + found..at + found + to.len()].copy_from_slice(to.as_bytes());
        at += found + to.len();
    }
    bytes
}

fn tar(build: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    build(&mut builder);
    builder.into_inner().unwrap()
}

/// An entry with a handwritten header, since the builder rejects such names.
fn entry(builder: &mut tar::Builder<Vec<u8>>, name: &str, kind: tar::EntryType, link: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn honest_archives_are_unpacked_completely() {
    let members: [(&str, &[u8]); 3] =
        [("set/images/a.jpg", b"a"), ("set/labels/a.txt", b""), ("set/x/y/z", b"zz")];
    let tarred = tar(|builder| {
        entry(builder, "set/", tar::EntryType::Directory, "", b"");
        for (name, bytes) in members {
            entry(builder, name, tar::EntryType::Regular, "", bytes);
        }
    });
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let wide = SimpleFileOptions::default().large_file(true);
    let archives = [
        ("zip", zip(&members)),
        ("stored zip", zip_with(&members, stored)),
        ("zip64", zip_with(&members, wide)),
        ("tar", tarred.clone()),
        ("tar.gz", gz(&tarred)),
    ];
    for (kind, bytes) in archives {
        let (result, folder) = unpack(&bytes);
        assert_eq!(result.unwrap(), Contents { files: 3, bytes: 3 }, "{kind}");
        assert_eq!(fs::read(folder.path().join("deep/below/set/x/y/z")).unwrap(), b"zz", "{kind}");
    }
}

#[test]
fn paths_outside_the_folder_are_rejected() {
    let one = zip(&[("aa/bb/evil", b"x")]);
    refused(&renamed(one.clone(), "aa/bb/evil", "../../evil"), &["../../evil", "leaves the folder"]);
    refused(&renamed(one.clone(), "aa/bb/evil", "/tmp//evil"), &["/tmp//evil", "absolute"]);
    refused(&renamed(one.clone(), "aa/bb/evil", "C:\\bb\\evil"), &["drive letter"]);
    refused(&renamed(one.clone(), "aa/bb/evil", "..\\..\\evil"), &["leaves the folder"]);
    refused(&renamed(one, "aa/bb/evil", "\\\\hhh\\evil"), &["absolute"]);
    for (name, word) in
        [("../evil", "leaves the folder"), ("/tmp/evil", "absolute"), ("a/../../evil", "leaves")]
    {
        let bytes = tar(|builder| entry(builder, name, tar::EntryType::Regular, "", b"x"));
        refused(&bytes, &[word]);
        refused(&gz(&bytes), &[word]);
    }
}

#[test]
fn links_and_devices_are_refused() {
    let kinds = [
        (tar::EntryType::Symlink, "symbolic link"),
        (tar::EntryType::Link, "hard link"),
        (tar::EntryType::Char, "device"),
        (tar::EntryType::Block, "device"),
        (tar::EntryType::Fifo, "pipe"),
    ];
    for (kind, word) in kinds {
        refused(&tar(|builder| entry(builder, "a/b", kind, "/etc/passwd", b"")), &["a/b", word]);
    }
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("a/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    refused(&writer.finish().unwrap().into_inner(), &["a/link", "symbolic link"]);
}

#[test]
fn a_link_cannot_be_written_through() {
    let bytes = tar(|builder| {
        entry(builder, "a", tar::EntryType::Symlink, "/tmp", b"");
        entry(builder, "a/evil", tar::EntryType::Regular, "", b"x");
    });
    refused(&bytes, &["symbolic link"]);
    assert!(!Path::new("/tmp/evil").exists());
}

#[test]
fn two_members_of_one_name_are_refused() {
    refused(&renamed(zip(&[("a/b1", b"x"), ("a/b2", b"y")]), "a/b2", "a/b1"), &["a/b1", "twice"]);
    refused(&renamed(zip(&[("a/b/c", b"x"), ("a\\b\\d", b"y")]), "a\\b\\d", "a\\b\\c"), &["a/b/c", "twice"]);
    let bytes = tar(|builder| {
        entry(builder, "a/b", tar::EntryType::Regular, "", b"x");
        entry(builder, "./a//b", tar::EntryType::Regular, "", b"y");
    });
    refused(&bytes, &["a/b", "twice"]);
}

#[test]
fn a_file_and_a_folder_of_one_name_are_refused() {
    let words = ["the archive", "it contains s/a both as a file and as a folder"];
    refused(&zip(&[("s/a", b"x"), ("s/a/b", b"y")]), &words);
    let members = ["s/a", "s/a/b"];
    for order in [members, ["s/a/b", "s/a"]] {
        let bytes = tar(|builder| {
            for name in order {
                entry(builder, name, tar::EntryType::Regular, "", b"x");
            }
        });
        refused(&bytes, &words);
    }
}

#[test]
fn a_name_that_is_too_long_is_the_archives_fault() {
    let bytes = zip(&[(&format!("s/{}.txt", "a".repeat(300)), b"x")]);
    refused(&bytes, &["the archive", "a name of 304 bytes"]);
    // Each component is short enough, but the path is too long for Linux.
    #[cfg(target_os = "linux")]
    let deep = zip(&[(&"d/".repeat(3000), b""), (&format!("{}x", "d/".repeat(3000)), b"x")]);
    #[cfg(target_os = "linux")]
    refused(&deep, &["the archive", "cannot be a file here"]);
}

#[test]
fn a_zip_between_other_bytes_is_found() {
    let members: [(&str, &[u8]); 2] = [("s/a", b"a"), ("s/b", b"bb")];
    for options in [SimpleFileOptions::default(), SimpleFileOptions::default().large_file(true)] {
        let bytes = zip_with(&members, options);
        let around = |before: &[u8], after: &[u8]| [before, &bytes, after].concat();
        for (kind, bytes) in [
            ("before", around(b"#!/bin/sh\nexit\n", b"")),
            ("after", around(b"", &b"JUNK".repeat(9000))),
            ("both", around(b"#!/bin/sh\n", b"JUNK")),
        ] {
            let (result, folder) = unpack(&bytes);
            assert_eq!(result.unwrap(), Contents { files: 2, bytes: 3 }, "{kind}");
            assert_eq!(fs::read(folder.path().join("deep/below/s/b")).unwrap(), b"bb", "{kind}");
        }
    }
}

#[test]
fn a_name_with_a_line_break_makes_no_line() {
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let bytes = zip_with(&[("a\nERROR: x", b"the bytes of a member")], stored);
    let (result, _folder) = unpack(&renamed(bytes, "the bytes of", "the lices of"));
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n') && message.contains("a\\nERROR: x"), "{message}");
}

#[test]
fn backslashes_are_separators() {
    let (result, folder) = unpack(&zip(&[("set\\images\\a.jpg", b"a")]));
    result.unwrap();
    assert!(folder.path().join("deep/below/set/images/a.jpg").is_file());
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    // Five gigabytes of zeros in five megabytes.
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let zeros = vec![0; 16 << 20];
    for index in 0..20 {
        writer.start_file(format!("z{index}"), SimpleFileOptions::default()).unwrap();
        for _ in 0..4 {
            writer.write_all(&zeros).unwrap();
        }
    }
    refused(&writer.finish().unwrap().into_inner(), &["over 200 times"]);
}

#[test]
fn a_bomb_in_a_tar_is_refused_when_it_grows() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(3 << 40);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    encoder.write_all(&vec![0; 8 << 20]).unwrap();
    refused(&encoder.finish().unwrap(), &["over 200 times"]);
}

#[test]
fn a_member_that_is_longer_than_it_says_stops_at_that_length() {
    let bytes = zip(&[("a", &[7; 100_000])]);
    // The uncompressed size, in both headers, becomes 10.
    let mut lying = bytes.clone();
    let size = 100_000_u32.to_le_bytes();
    let places: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, window)| *window == size).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        lying[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
    }
    refused(&lying, &["more than 10 bytes"]);
}

#[test]
fn members_that_share_their_bytes_are_refused() {
    let bytes = zip(&[("a1", &[1; 500]), ("a2", &[2; 500])]);
    // The second entry of the directory points to the first member.
    let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    let mut overlapping = bytes;
    overlapping[at + 42..at + 46].copy_from_slice(&0_u32.to_le_bytes());
    refused(&overlapping, &["overlap"]);
}

#[test]
fn a_wrong_checksum_is_found() {
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let bytes = zip_with(&[("a/file", b"the bytes of a member")], stored);
    refused(&renamed(bytes, "the bytes of", "the lices of"), &["a/file", "CRC-32"]);
    let mut broken = gz(&tar(|builder| entry(builder, "a", tar::EntryType::Regular, "", b"x")));
    let end = broken.len();
    broken[end - 8] ^= 1;
    refused(&broken, &["the archive is not a usable archive", "this tar.gz is damaged", "checksum"]);
}

#[test]
fn archives_that_end_early_are_refused() {
    let bytes = zip(&[("a", &[9; 100_000])]);
    refused(&bytes[..bytes.len() / 2], &["incomplete"]);
    let tarred = gz(&tar(|builder| entry(builder, "a", tar::EntryType::Regular, "", &[9; 100_000])));
    refused(&tarred[..tarred.len() / 2], &["this tar.gz ends early"]);
}

#[test]
fn an_encrypted_member_is_refused() {
    let mut bytes = zip(&[("a", b"secret")]);
    // Bit 0 of the flags, in the local and in the central header.
    bytes[6] |= 1;
    let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    bytes[at + 8] |= 1;
    refused(&bytes, &["encrypted"]);
}

#[test]
fn what_is_no_archive_is_said() {
    refused(b"<!DOCTYPE html><html>Please log in</html>", &["web page"]);
    let others: [(&[u8], &str); 3] =
        [(b"Rar!\x1a\x07", "rar"), (b"BZh91AY&SY", "bz2"), (b"\xfd7zXZ\0\0\x04", "xz")];
    for (start, kind) in others {
        refused(start, &[&format!("it is {kind}"), "use zip, tar or tar.gz"]);
    }
    refused(&[0xff, 0xd8, 0xff, 0xe0, 1, 2], &["yolo does not support its format"]);
    refused(b"", &["empty"]);
}

#[test]
fn the_shadows_of_macos_are_left_out() {
    let (result, folder) = unpack(&zip(&[("set/a.jpg", b"a"), ("__MACOSX/set/._a.jpg", b"m")]));
    assert_eq!(result.unwrap().files, 1);
    assert!(!folder.path().join("deep/below/__MACOSX").exists());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, start in 0_usize..4) {
        let start: &[u8] = [&b"PK\x03\x04"[..], b"\x1f\x8b\x08\0", b"PK\x05\x06", b""][start];
        let _ = unpack(&[start, &bytes].concat());
    }
}
