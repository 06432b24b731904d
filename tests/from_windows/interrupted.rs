//! Runs that end early, under Wine: Ctrl-C in the console, a closed window, a distribution that is stopped. The Linux
//! program has a terminal of its own.

use std::os::windows::process::CommandExt as _;
use std::path::Path;

use super::pc::Pc;
use super::runs::TRAIN;
use super::user::{LONGEST_WAIT, wait_for};

/// Starts a run in a console of its own, in which Ctrl-C can be pressed, without a window.
fn spawn(pc: &Pc, arguments: &[&str]) -> std::process::Child {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    let log = std::fs::File::create(pc.answers().join("output.txt")).unwrap();
    let mut command = pc.command(arguments);
    command.creation_flags(CREATE_NO_WINDOW).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap()
}

/// Starts a long training, and returns when it has a checkpoint.
fn start(pc: &Pc) -> std::process::Child {
    let data = pc.data_set();
    let mut child =
        spawn(pc, &[&TRAIN[..], &["--epochs", "20000", "--patience", "0", "--data", &data]].concat());
    let last = pc.work().join("runs/train/exp/weights/last.pt");
    wait_for("the first checkpoint", || {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended before its first checkpoint: {}",
            output(pc)
        );
        last.exists().then_some(())
    });
    child
}

fn output(pc: &Pc) -> String {
    String::from_utf8_lossy(&std::fs::read(pc.answers().join("output.txt")).unwrap()).into_owned()
}

/// Resumes the run, and ends it by Ctrl-C.
fn resumes(pc: &Pc, arguments: &[&str]) {
    let arguments = [&["train", "--resume"], arguments].concat();
    let began = std::time::Instant::now();
    let mut child = loop {
        let mut child = spawn(pc, &arguments);
        let trains = wait_for("a step of the resumed run, or its end", || {
            let trains = output(pc).contains("training epoch");
            (trains || child.try_wait().unwrap().is_some()).then_some(trains)
        });
        if trains {
            break child;
        }
        // In Linux, the earlier run may not have ended yet.
        assert!(output(pc).contains("in use by another run"), "{}", output(pc));
        assert!(began.elapsed() < LONGEST_WAIT, "the earlier run has not ended: {}", output(pc));
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    std::thread::sleep(std::time::Duration::from_secs(2));
    std::fs::write(pc.answers().join("ctrl-c"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", output(pc));
}

#[test]
fn ctrl_c_saves_and_the_run_resumes_by_the_command_that_is_printed() {
    let Some(pc) = Pc::with_linux(true) else { return };
    let mut child = start(&pc);
    std::fs::write(pc.answers().join("ctrl-c"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", output(&pc));
    let said = output(&pc);
    assert!(said.contains("the run's state is saved"), "{said}");
    let (_, command) = said.split_once("yolo train --resume ").unwrap();
    let path = command.lines().next().unwrap().trim().trim_matches('"').to_owned();
    assert!(Path::new(&path).is_file(), "{path}\n{said}");
    resumes(&pc, &[&path]);
}

#[test]
fn a_stopped_distribution_and_a_closed_window_are_explained() {
    for event in ["terminate", "close"] {
        let Some(pc) = Pc::with_linux(true) else { return };
        let mut child = start(&pc);
        std::fs::write(pc.answers().join(event), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{}", output(&pc));
        assert!(!pc.answers().join(event).exists(), "{}", output(&pc));
        let said = output(&pc);
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
        assert!(
            said.contains("WSL ended before yolo did") && said.contains("`yolo train --resume`"),
            "{said}"
        );
        resumes(&pc, &[]);
    }
}
