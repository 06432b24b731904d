//! `yolo predict --view-img` in terminals of several kinds: a stand-in answers the questions of `yolo` as each does, and
//! sees what is drawn.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/predictions.rs"]
mod predictions;
#[path = "support/user.rs"]
mod user;

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use predictions::{PREDICT, ffmpeg, has_ffmpeg, with_detector};
use user::User;

/// Pictures to show. None are saved.
const PICTURES: &str = "squares/images/val --view-img --nosave";

const KITTY: &str = "\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1bP>|kitty(0.35.2)\x1b\\\x1b[?62;c";
const ITERM2: &str = "\x1bP>|iTerm2 3.5.4\x1b\\\x1b[?64;1;2;4;6;17;18;21;22c";
const FOOT: &str = "\x1b[6;18;9t\x1bP>|foot(1.16.2)\x1b\\\x1b[?62;4;22c";
const LINUX: &str = "\x1b[?6c";

/// What a terminal of 80 columns and 24 lines gets from `yolo` if it gives this answer, and the exit status.
fn in_terminal(user: &User, arguments: &str, answer: &str) -> (String, Option<i32>) {
    let yolo = env!("CARGO_BIN_EXE_yolo");
    let mut child = Command::new("script")
        .args(["-qefc", &format!("stty rows 24 cols 80; exec {yolo} {arguments}"), "/dev/null"])
        .current_dir(user.path())
        .env("OMP_NUM_THREADS", "1")
        .env("YOLO_OFFLINE", "1")
        .env_remove("TERM_PROGRAM")
        .env_remove("LC_TERMINAL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take();
    let mut screen = child.stdout.take().unwrap();
    let (mut seen, mut part) = (Vec::new(), [0; 4096]);
    loop {
        // When its last process ends, a terminal ends in an error.
        match screen.read(&mut part) {
            Ok(count) if count > 0 => seen.extend(&part[..count]),
            _ => break,
        }
        let asked = seen.windows(3).any(|window| window == b"\x1b[c");
        if asked
            && !answer.is_empty()
            && let Some(mut keys) = keys.take()
        {
            keys.write_all(answer.as_bytes()).unwrap();
            // The end of the input would be a key, too.
            std::mem::forget(keys);
        }
    }
    let code = child.wait().unwrap().code();
    (String::from_utf8_lossy(&seen).into_owned(), code)
}

#[test]
fn pictures_are_drawn_in_the_protocol_of_the_terminal() {
    let user = with_detector("--epochs 1");
    for (answer, begin) in
        [(KITTY, "\x1b_Ga=T,f=24,"), (ITERM2, "\x1b]1337;File=inline=1;"), (FOOT, "\x1bP0;1q")]
    {
        let (seen, code) = in_terminal(&user, &format!("{PREDICT} {PICTURES}"), answer);
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(seen.matches(begin).count(), 8, "{begin:?} in {seen:?}");
        // Pictures are below each other, each after the line about it.
        assert!(!seen.contains("i=5,p=1"), "{seen:?}");
        let line = seen.find("image 8/8 ").unwrap();
        assert!(seen[line..].matches(begin).count() == 1, "{seen:?}");
    }
    // Two ranks draw on one terminal.
    let (seen, code) = in_terminal(&user, &format!("{PREDICT} {PICTURES} --device cpu,cpu"), KITTY);
    assert_eq!((seen.matches("\x1b_Ga=T").count(), code), (8, Some(0)), "{seen}");
}

#[test]
fn the_frames_of_a_video_are_drawn_over_each_other() {
    if !has_ffmpeg() {
        return;
    }
    let user = with_detector("--epochs 1");
    ffmpeg(&user, "-f lavfi -i testsrc=size=64x64:rate=30:duration=20 film.mp4");
    let (seen, code) = in_terminal(&user, &format!("{PREDICT} film.mp4 --view-img --nosave"), KITTY);
    assert_eq!(code, Some(0), "{seen}");
    let frames = seen.matches("\x1b_Ga=T").count();
    assert!((2..300).contains(&frames), "{frames} frames are shown");
    assert_eq!(seen.matches(",i=5,p=1,").count(), frames);
    // 64 pixels are four lines, which each frame but the first goes up again.
    assert_eq!(
        seen.matches("\x1b[4A\n\n\n\n").count() + seen.matches("\x1b[4A\r\n").count(),
        frames - 1,
        "{seen:?}"
    );
}

#[test]
fn where_no_picture_can_be_shown_nothing_is_started() {
    let user = with_detector("--epochs 1");
    let (seen, code) = in_terminal(&user, &format!("{PREDICT} {PICTURES}"), LINUX);
    assert_eq!(code, Some(1), "{seen}");
    let flat = seen.replace("\r\n", "\n");
    for part in [
        "--view-img cannot show pictures here: this terminal knows none of the protocols of kitty, iTerm2 and sixel",
        "omit it, and open the saved pictures",
    ] {
        assert!(flat.contains(part), "`{part}` is not in {flat}");
    }
    let (seen, _) = in_terminal(&user, &format!("{PREDICT} {PICTURES}"), "");
    assert!(seen.contains("--view-img cannot show pictures here: this terminal does not answer"), "{seen}");
    user.run(&format!("{PREDICT} {PICTURES}"))
        .failed_with(1, &["--view-img cannot show pictures here: stderr is not a terminal", "omit it"]);
    assert!(!user.path().join("runs/detect").exists());
}
