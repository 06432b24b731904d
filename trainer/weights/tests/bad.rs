//! Files that are not weights, or are damaged or hostile. Each gives an error with the file, the reason
//! and a hint. None runs code, panics, or uses memory out of proportion.
#![expect(clippy::unwrap_used, reason = "clippy exempts tests, but not their helper functions")]

use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;
use torch_checkpoint::{Problem, WeightsError};
use zip::write::SimpleFileOptions;

/// The error of reading a file with this content.
fn rejected(content: &[u8]) -> WeightsError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("best.pt");
    std::fs::write(&path, content).unwrap();
    let error = torch_checkpoint::read(&path).expect_err("the file must be rejected");
    assert_eq!(error.path(), path);
    assert!(error.to_string().starts_with(&format!("{} ", path.display())), "{error}");
    assert!(error.hint().is_some(), "no hint: {error}");
    error
}

/// An archive as PyTorch lays it out, around a pickle.
fn archive(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in records {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn pickle(stream: &[u8]) -> WeightsError {
    rejected(&archive(&[("archive/data.pkl", stream)]))
}

fn golden(protocol: u8) -> Vec<u8> {
    golden_file(&format!("protocol{protocol}.pt"))
}

fn golden_file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

#[test]
fn files_that_are_not_checkpoints_are_recognized() {
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let bare = b"\x80\x02X\x05\0\0\0hello.";
    let cases: [(&[u8], &str, &str); 15] = [
        (b"", "is empty (0 bytes)", "download"),
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "web page", "login"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "web page", "URL"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
            "Git LFS pointer",
            "git lfs pull",
        ),
        (b"Not Found", "is a text file, not weights (it begins with \u{201c}Not Found\u{201d})", ".pt"),
        (&tar, "is a tar archive, which is not supported", "torch.save"),
        (bare, "is a bare pickle, which is not supported", "torch.save"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "neither", ".safetensors"),
        (b"\x08\x08\x12\x07pytorch\x1a\x032.4", "is an ONNX export, not a checkpoint", "made from"),
        (b"PK", "truncated", "again"),
        (&archive(&[]), "is an empty zip archive", ".pt"),
        (&archive(&[("photo.jpg", b"x"), ("b.txt", b"y")]), "without data.pkl", ".pt"),
        (&archive(&[("m/data.pkl", b"N."), ("m/constants.pkl", b"N.")]), "TorchScript", "checkpoint"),
        (&archive(&[("m/data.pkl", b"N.")]), "contains no model: it is not a dict", "state dict"),
        (&archive(&[("m/data.pkl", b"}X\x01\0\0\0aK\x01s.")]), "its keys are a", "state dict"),
    ];
    for (content, message, hint) in cases {
        let error = rejected(content);
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
}

#[test]
fn a_truncated_checkpoint_is_reported_as_truncated() {
    let whole = golden(2);
    for length in (4..whole.len() - 1).step_by(97) {
        let error = rejected(&whole[..length]);
        assert!(matches!(error.problem(), Problem::Truncated(n) if *n == length as u64), "{length}: {error}");
    }
}

#[test]
fn a_truncated_checkpoint_in_the_old_format_is_reported_as_such() {
    for name in ["legacy2.pt", "legacy4.pt"] {
        let whole = golden_file(name);
        let mut ends_in_tensors = 0;
        for length in (32..whole.len()).step_by(13) {
            let error = rejected(&whole[..length]);
            match error.problem() {
                Problem::Pickle { reason, .. } => assert!(reason.starts_with("ends "), "{length}: {error}"),
                Problem::TensorsEnd(n) => {
                    assert_eq!(*n, length as u64);
                    ends_in_tensors += 1;
                }
                _ => panic!("{length}: {error}"),
            }
            assert!(error.hint().unwrap().contains("again"), "{:?}", error.hint());
        }
        assert!(ends_in_tensors > 0);
    }
}

#[test]
fn a_damaged_checkpoint_in_the_old_format_never_panics() {
    let whole = golden_file("legacy2.pt");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.pt");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&path, &damaged).unwrap();
        // Damage in the data of a tensor cannot be noticed; everything else is an error.
        let _ = torch_checkpoint::read(&path);
    }
}

#[test]
fn the_old_format_runs_no_code_either() {
    let mut bytes = golden_file("legacy2.pt");
    let name = b"cmodels.yolo\nDetectionModel\n";
    let at = bytes.windows(name.len()).position(|part| part == name).unwrap();
    bytes.splice(at..at + name.len(), *b"cposix\nsystem\n");
    let error = rejected(&bytes);
    assert!(error.to_string().contains("references `posix.system`"), "{error}");
}

#[test]
fn paths_that_are_not_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let missing = torch_checkpoint::read(&folder.path().join("none.pt")).unwrap_err();
    assert!(missing.to_string().contains("cannot be opened"), "{missing}");
    let is_folder = torch_checkpoint::read(folder.path()).unwrap_err();
    assert!(is_folder.to_string().contains("is not a file"), "{is_folder}");
}

#[test]
fn a_pickle_that_calls_os_system_is_rejected_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let command = format!("touch {}", witness.display());
    let mut binary = b"\x80\x02cposix\nsystem\nX".to_vec();
    binary.extend(u32::try_from(command.len()).unwrap().to_le_bytes());
    binary.extend(command.as_bytes());
    binary.extend(b"\x85R.");
    let text = format!("cos\nsystem\n(S'{command}'\ntR.").into_bytes();
    let inst = format!("(S'{command}'\nios\nsystem\n.").into_bytes();
    let obj = format!("(cos\nsystem\nS'{command}'\no.").into_bytes();
    let stacked = b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x01x\x85R.".to_vec();
    for (stream, class) in [
        (binary.clone(), "posix.system"),
        (text.clone(), "os.system"),
        (inst, "os.system"),
        (obj, "os.system"),
        (stacked, "posix.system"),
        (b"\x80\x02c__builtin__\neval\nX\x01\0\0\x001\x85R.".to_vec(), "__builtin__.eval"),
        (b"\x80\x02cbuiltins\ngetattr\n.".to_vec(), "builtins.getattr"),
        (b"\x80\x02cmodels.yolo\nos.system\n.".to_vec(), "models.yolo.os.system"),
        (b"\x80\x02ctorch.hub\nload\n.".to_vec(), "torch.hub.load"),
    ] {
        let error = pickle(&stream);
        assert!(
            error.to_string().contains(&format!(
                "wants to run code: it references `{class}`, which is not on the allow-list"
            )),
            "{error}"
        );
    }
    // The same without an archive.
    for bare in [binary, text] {
        let error = rejected(&bare);
        assert!(matches!(error.problem(), Problem::Code(class) if class.ends_with(".system")), "{error}");
    }
    assert!(!witness.exists());
}

#[test]
fn models_of_the_ultralytics_package_are_recognized() {
    let error = pickle(b"\x80\x02cultralytics.nn.tasks\nDetectionModel\n.");
    assert!(error.hint().unwrap().contains("YOLOv8"), "{:?}", error.hint());
}

#[test]
fn streams_that_are_wrong_or_without_measure_are_rejected() {
    let mut deep = b"]".repeat(100_000);
    deep.extend(b"a".repeat(99_999));
    deep.push(b'.');
    // Each list holds the one before it twice: 2^64 members.
    let mut bomb = b"]q\0".to_vec();
    for n in 1..=64u8 {
        bomb.extend([b']', b'q', n, b'(', b'h', n - 1, b'h', n - 1, b'e']);
    }
    bomb.push(b'.');
    let mut copies = b"(".to_vec();
    copies.extend(b"N".repeat(50_000));
    copies.extend(b"l\x85q\x000");
    copies.extend(b"c__builtin__\nset\nh\0R0".repeat(1000));
    copies.extend(b"N.");
    let own_member = b"]q\0h\0a.";
    let cases: [(&[u8], &str); 19] = [
        (&deep, "more than 200 deep"),
        (own_member, "one within itself"),
        (&bomb, "more than 4194304 values"),
        (&copies, "copies more than"),
        (b"", "ends in the middle"),
        (b"\x80\x02", "ends in the middle"),
        (b"\x80\x09.", "protocol 9"),
        (b".", "empty stack"),
        (b"(.", "empty stack"),
        (b"(0.", "empty stack"),
        (b"N\x85R.", "empty stack"),
        (b"e.", "not opened"),
        (b"]NNs.", "not a dict"),
        (b"X\xff\xff\xff\xffab.", "4294967295 bytes announced"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffab.", "announced"),
        (b"h\x05.", "recalls value 5"),
        (b"\xfe.", "unknown instruction 0xfe"),
        (b"\x82\x01.", "extension registry"),
        (b"Inine\n.", "\u{201c}nine\u{201d} instead of a number"),
    ];
    for (stream, message) in cases {
        let error = pickle(stream);
        assert!(error.to_string().contains(message), "{message}: {error}");
    }
}

/// `{'w': tensor}` over the storage `0`, with these sizes, strides and offset.
fn tensor(shape: &[u32], strides: &[u32], offset: u32, storage: &[u8]) -> Vec<u8> {
    let int = |n: u32| [&b"\x8a\x05"[..], &n.to_le_bytes(), b"\0"].concat();
    let tuple = |n: &[u32]| [b"(".to_vec(), n.iter().flat_map(|n| int(*n)).collect(), b"t".to_vec()].concat();
    let stream = [
        &b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n"[..],
        b"X\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ",
        &int(offset),
        &tuple(shape),
        &tuple(strides),
        b"\x89ccollections\nOrderedDict\n)RtRs.",
    ]
    .concat();
    archive(&[("archive/data.pkl", &stream), ("archive/data/0", storage)])
}

#[test]
fn a_tensor_that_reaches_beyond_its_storage_is_rejected() {
    let max = u32::MAX;
    let cases: [(&[u32], &[u32], u32, &str); 7] = [
        (&[3], &[1], 0, "has 8 bytes, but a tensor needs 12"),
        (&[2], &[1], 1, "has 8 bytes, but a tensor needs 12"),
        (&[2], &[max], 0, "a tensor needs"),
        (&[2, 2], &[1], 0, "a different number of strides than sizes"),
        (&[max, max, max], &[1, 1, 1], 0, "more bytes than can be addressed"),
        // Valid repetitions of one element, but larger than any weights.
        (&[max], &[0], 0, "many times more tensor bytes than the file contains"),
        (&[1], &[1], max, "a tensor needs"),
    ];
    for (shape, strides, offset, message) in cases {
        let error = rejected(&tensor(shape, strides, offset, &[0; 8]));
        assert!(error.to_string().contains(message), "{message}: {error}");
    }
    let missing = rejected(&archive(&[(
        "archive/data.pkl",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x007X\x03\0\0\0cpuK\x01tQK\0K\x01\x85K\x01\x85tR.",
    )]));
    assert!(missing.to_string().contains("record archive/data/7 is missing"), "{missing}");
}

#[test]
fn a_damaged_byte_in_a_tensor_is_found_by_the_checksum() {
    let mut file = tensor(&[2], &[1], 0, b"WEIGHTS!");
    let at = file.windows(8).position(|window| window == b"WEIGHTS!").unwrap();
    file[at] ^= 1;
    let error = rejected(&file);
    assert!(error.to_string().contains("record archive/data/0 cannot be read"), "{error}");
}

#[test]
fn a_compressed_record_is_rejected() {
    // The bytes say deflate (8) and the record holds one empty deflate block.
    let mut file = archive(&[("archive/data.pkl", b"\x03\x00")]);
    let local = file.windows(4).position(|bytes| bytes == b"PK\x03\x04").unwrap();
    file[local + 8] = 8;
    let central = file.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    file[central + 10] = 8;
    let error = rejected(&file);
    assert!(error.to_string().contains("is compressed, which PyTorch never does"), "{error}");
}

#[test]
fn truncated_safetensors_are_damaged() {
    let header = br#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    let whole = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 16]].concat();
    for length in [20, 8 + header.len(), whole.len() - 1] {
        let error = rejected(&whole[..length]);
        assert!(matches!(error.problem(), Problem::Safetensors(_)), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_as_a_pickle_are_read_or_rejected(stream in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pt");
        std::fs::write(&path, archive(&[("archive/data.pkl", &stream)])).unwrap();
        let _ = torch_checkpoint::read(&path);
        std::fs::write(&path, &stream).unwrap();
        let _ = torch_checkpoint::read(&path);
    }

    /// The pickle is changed before it is packed; otherwise the checksum would catch most changes.
    #[test]
    fn any_change_of_a_real_pickle_is_read_or_rejected(
        protocol in prop::sample::select(vec![2u8, 4]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut real = zip::ZipArchive::new(std::io::Cursor::new(golden(protocol))).unwrap();
        let mut records = Vec::new();
        for n in 0..real.len() {
            let mut record = real.by_index(n).unwrap();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut record, &mut content).unwrap();
            records.push((record.name().to_owned(), content));
        }
        for (name, content) in &mut records {
            if name.ends_with("data.pkl") {
                for (at, byte) in &changes {
                    let at = at.index(content.len());
                    content[at] = *byte;
                }
            }
        }
        let records: Vec<(&str, &[u8])> = records.iter().map(|(n, c)| (n.as_str(), c.as_slice())).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pt");
        std::fs::write(&path, archive(&records)).unwrap();
        let _ = torch_checkpoint::read(&path);
    }

    #[test]
    fn any_change_of_a_real_file_is_read_or_rejected(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = golden(2);
        for (at, byte) in &changes {
            let at = at.index(file.len());
            file[at] = *byte;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pt");
        std::fs::write(&path, file).unwrap();
        let _ = torch_checkpoint::read(&path);
    }
}
