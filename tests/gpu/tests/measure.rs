//! The script that measures the Python original, without the original: what it refuses, and which steps it
//! counts. It needs `python3`, without which its tests are skipped.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

use std::path::Path;
use std::process::{Command, Output};

fn source() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("original")
}

/// What `python3` without installed packages does with these arguments; `None` if there is no `python3`.
fn python(arguments: &[&str]) -> Option<Output> {
    let output =
        Command::new("python3").args(["-B", "-S"]).args(arguments).env("PYTHONPATH", source()).output();
    if output.is_err() {
        eprintln!("skipped: there is no python3");
    }
    output.ok()
}

/// The message of the script in a pack for this version of Python, with this number of workers.
fn refusal(version: &str, workers: &str) -> Option<String> {
    let pack = tempfile::tempdir().unwrap();
    for file in ["measure.py", "absent.py"] {
        std::fs::copy(source().join(file), pack.path().join(file)).unwrap();
    }
    std::fs::write(pack.path().join("original.json"), format!("{{\"python\": \"{version}\"}}")).unwrap();
    let (script, work) = (pack.path().join("measure.py"), pack.path().join("work"));
    let options = "--data no.yaml --device cpu --imgsz 64 --batch-size 4 --precision fp32 --seconds 1";
    let mut arguments = vec![script.to_str().unwrap()];
    arguments.extend(options.split(' '));
    arguments.extend(["--workers", workers, "--work", work.to_str().unwrap()]);
    let output = python(&arguments)?;
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    Some(String::from_utf8(output.stderr).unwrap())
}

#[test]
fn another_python_than_that_of_the_pack_is_refused() {
    let Some(message) = refusal("2.7", "1") else { return };
    assert!(message.starts_with("error: `python3` is Python 3."), "{message}");
    assert!(message.contains(", and the pack is for 2.7; pack again with --original 3."), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn too_little_shared_memory_is_named() {
    let Some(message) = refusal("2.7", "1000000000") else { return };
    let expected = "error: the loader of the original needs 98304000 MB in /dev/shm, which has ";
    assert!(message.starts_with(expected) && message.ends_with(" MB free\n"), "{message}");
}

#[test]
fn a_python_without_pytorch_is_refused() {
    let version = "import sys; print('{}.{}'.format(*sys.version_info))";
    let Some(version) = python(&["-c", version]) else { return };
    let message = refusal(String::from_utf8(version.stdout).unwrap().trim(), "1").unwrap();
    assert_eq!(message, "error: the Python that `python3` starts has no PyTorch\n");
}

/// A clock that advances by a second whenever it is read, batches of four images, epochs of six steps, and
/// measurements of 5 s and 1000 s.
const EPOCHS: &str = "
import itertools, measure
clock = itertools.count(1)
measure.time.perf_counter = lambda: next(clock)
class Images:
    ndim = 4
    def __len__(self):
        return 4
def epochs(wanted, between):
    begun = []
    meter = measure.Meter(wanted, lambda: None, lambda: begun.append(meter.warm_up))
    try:
        while True:
            meter.saw('on_train_epoch_start', [])
            for step in range(6):
                meter.saw('on_train_batch_end', [0, Images(), None])
            meter.saw('on_train_epoch_end', [])
            for second in range(between):
                next(clock)
    except measure.Finished:
        print(begun, meter.images, meter.steps, meter.seconds)
epochs(5, 100)
epochs(1000, 0)
";

#[test]
fn steps_after_the_warm_up_count_and_the_time_between_epochs_does_not() {
    let Some(output) = python(&["-c", EPOCHS]) else { return };
    // Ten steps of warm-up end in the second epoch. Its last two steps take 2 s and its end 1 s, then two
    // steps of the next epoch take 2 s; reading the clock at the end is another second. The long measurement
    // has a hundred steps of warm-up.
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "[10] 16 4 6.0\n[100] 3428 857 1001.0\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Folders with 13, 2 and 0 images, and a file that is none.
const IMAGES: &str = "
import pathlib, sys, measure
root = pathlib.Path(sys.argv[1])
for name, count in ('many', 13), ('few', 2), ('none', 0):
    (root / name / 'sub').mkdir(parents=True)
    (root / name / 'notes.txt').touch()
    for number in range(count):
        (root / name / 'sub' / f'{number:02}.JPG').touch()
    print([path.name for path in measure.whole_batches(root / name, 4)])
";

#[test]
fn the_images_that_do_not_fill_a_batch_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = python(&["-c", IMAGES, folder.path().to_str().unwrap()]) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [many, few, none] = lines[..] else { panic!("{}", String::from_utf8_lossy(&output.stderr)) };
    assert!(many.starts_with("['00.JPG', '01.JPG', ") && many.ends_with(", '11.JPG']"), "{many}");
    assert_eq!((few, none), ("['00.JPG', '01.JPG']", "[]"));
}
