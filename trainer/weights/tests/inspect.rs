//! What Python would execute to open a file is named, with its arguments, and nothing of it happens.
#![expect(clippy::unwrap_used, reason = "clippy exempts tests, but not their helper functions")]

use std::path::Path;

use torch_checkpoint::{Format, Inspection, inspect};

fn inspected(content: &[u8]) -> Inspection {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pt");
    std::fs::write(&path, content).unwrap();
    inspect(&path).unwrap()
}

/// Names, calls and arguments of what is not on the allow-list.
fn foreign(inspection: &Inspection) -> Vec<String> {
    let foreign = inspection.references.iter().filter(|reference| !reference.allowed);
    foreign
        .map(|one| format!("{}{} ×{}", one.name, one.arguments.as_deref().unwrap_or_default(), one.calls))
        .collect()
}

#[test]
fn a_call_is_shown_with_its_arguments() {
    let text = inspected(b"cos\nsystem\n(S'echo hello'\nI2\ntR.");
    assert_eq!(foreign(&text), ["os.system('echo hello', 2) ×1"]);
    assert_eq!((text.format, text.protocol), (Format::Pickle, Some(0)));
    // The function is the result of a call, so it has no name: getattr(os, 'system')('x').
    let hidden =
        inspected(b"\x80\x02cbuiltins\ngetattr\ncos\nabort\nX\x06\0\0\0system\x86RX\x01\0\0\0x\x85R.");
    assert_eq!(
        foreign(&hidden),
        ["builtins.getattr(os.abort, 'system') ×1", "os.abort ×0", "builtins.getattr(…)('x') ×1"]
    );
}

#[test]
fn names_without_calls_count_because_python_imports_their_modules() {
    let inspection = inspected(b"\x80\x02cevil_package\nvalue\n.");
    assert_eq!(foreign(&inspection), ["evil_package.value ×0"]);
}

#[test]
fn a_pickle_that_breaks_off_is_followed_as_far_as_possible() {
    let inspection = inspected(b"\x80\x02cos\nsystem\nX\x01\0\0\0x\x85R0R.");
    assert_eq!(foreign(&inspection), ["os.system('x') ×1"]);
    assert_eq!(
        inspection.problem.unwrap().to_string(),
        "is damaged: its pickle takes a value from an empty stack (byte 23)"
    );
}

#[test]
fn the_classes_of_a_checkpoint_of_yolov5_are_all_known() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, format) in [("protocol4.pt", Format::Zip), ("legacy2.pt", Format::Legacy)] {
        let inspection = inspect(&golden.join(name)).unwrap();
        assert_eq!(inspection.format, format);
        assert!(foreign(&inspection).is_empty(), "{:?}", foreign(&inspection));
        assert!(
            inspection
                .references
                .iter()
                .any(|one| one.name == "models.yolo.DetectionModel" && one.calls == 1)
        );
    }
}

/// What a name costs must not multiply with the instructions that repeat it.
#[test]
fn long_names_and_endless_calls_take_little_memory() {
    let mut long = b"\x80\x04X\x00\x00\x10\x00".to_vec();
    long.extend(std::iter::repeat_n(b'a', 1 << 20));
    long.extend(b"q\x00q\x01");
    long.extend(b"h\x00h\x01\x93".repeat(100_000));
    long.push(b'.');
    assert!(inspected(&long).problem.unwrap().to_string().contains("too long a name"));
    let mut calls = b"\x80\x02cevil\nf\n".to_vec();
    calls.extend(b")R".repeat(100_000));
    calls.push(b'.');
    assert_eq!(foreign(&inspected(&calls)), ["evil.f() ×1", "evil.f(…)() ×99999"]);
}
