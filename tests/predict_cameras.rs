//! Cameras and the screen with `yolo predict`. The screen is a virtual one. A stand-in for ffmpeg has the pictures of
//! cameras, which test machines lack; all else is done by the real ffmpeg.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

#[path = "support/predictions.rs"]
mod predictions;
#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use predictions::{PREDICT, has_ffmpeg, interrupted_after, names, with_detector};
use user::{Running, User, wait_for};

/// The file of a camera, which is removed when it is dropped.
struct Device(PathBuf);

impl Device {
    /// `None` where nobody may make one.
    fn new(number: u32) -> Option<Self> {
        let path = PathBuf::from(format!("/dev/video{number}"));
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        file.is_ok().then_some(Self(path))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An ffmpeg in whose place the camera `device` shows a test picture of two seconds, once, and then is unplugged. Returns
/// the value of `PATH`. Other calls of ffmpeg are passed on.
fn with_camera(user: &User, device: &Path) -> String {
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("ffmpeg")).find(|it| it.is_file());
    let folder = user.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    user.write_program(
        "bin/ffmpeg",
        &format!(
            "#!/bin/sh\n\
             if [ \"$4 $5 $6 $7\" = '-f v4l2 -i {device}' ]; then\n\
               if [ -e {seen} ]; then echo '{device}: No such device' >&2; exit 1; fi\n\
               touch {seen}\n\
               shift 7\n\
               set -- -nostdin -v error -re -f lavfi -i testsrc=size=64x64:rate=10:duration=2 \"$@\"\n\
             fi\n\
             exec {real} \"$@\"\n",
            device = device.display(),
            seen = user.path().join("seen").display(),
            real = real.unwrap().display()
        ),
    );
    format!("{}:{path}", folder.display())
}

#[test]
fn a_camera_that_is_unplugged_is_opened_again_and_then_named() {
    if !has_ffmpeg() {
        return;
    }
    let number = 10_000 + std::process::id();
    let Some(device) = Device::new(number) else {
        println!("skipped: making a file in /dev needs root");
        return;
    };
    let user = with_detector("--epochs 1");
    let path = with_camera(&user, &device.0);
    let running =
        user.start_with(&format!("{PREDICT} --source {number} --save-txt --name camera"), &[("PATH", &path)]);
    let finished = running.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let shown = device.0.display();
    for part in [
        format!("video 1/1 (1) {shown}: 64x64 "),
        format!("warning: {shown}: "),
        format!("{shown}: No such device; "),
        " searched\n".to_owned(),
    ] {
        assert!(finished.stderr.contains(&part), "`{part}` is not in:\n{}", finished.stderr);
    }
    assert_eq!(finished.stderr.matches("; opening it again").count(), 3, "{}", finished.stderr);
    // What it had shown until then is saved under its number.
    let saved = names(&user.path().join("runs/detect/camera"));
    assert_eq!(saved, [format!("{number}.mp4"), "labels".to_owned()], "{}", finished.stderr);
}

#[test]
fn the_screen_is_read_where_there_is_one() {
    if !has_ffmpeg() {
        return;
    }
    let user = with_detector("--epochs 1");
    let without = user.command(&format!("{PREDICT} screen")).env_remove("DISPLAY").output().unwrap();
    let said = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(1), "{said}");
    assert!(
        said.contains("--source screen: there is no screen to read, because the variable DISPLAY is not")
    );
    assert!(said.contains("\nhint: run yolo in a terminal on the desktop"), "{said}");
    assert!(!user.path().join("runs/detect").exists());
    let wrong = user.command(&format!("{PREDICT} screen")).env("DISPLAY", ":4711").output().unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(1) && said.contains("warning: screen: "), "{said}");
}

/// A virtual screen on which something moves; `None` where one is missing.
fn moving_screen(display: &str) -> Option<[Running; 2]> {
    let quiet = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut xvfb = Command::new("Xvfb");
    xvfb.args([display, "-screen", "0", "320x240x24", "-nolisten", "tcp"]);
    let server = Running::of(quiet(&mut xvfb).ok()?);
    let socket = format!("/tmp/.X11-unix/X{}", display.trim_start_matches(':'));
    wait_for("the screen", || std::path::Path::new(&socket).exists().then_some(()));
    let mut player = Command::new("ffplay");
    player.args("-v error -noborder -left 0 -top 0 -f lavfi testsrc2=size=320x240:rate=30".split(' '));
    player.env("DISPLAY", display).env("SDL_RENDER_DRIVER", "software").env("SDL_AUDIODRIVER", "dummy");
    Some([Running::of(quiet(&mut player).ok()?), server])
}

#[test]
fn the_screen_and_a_part_of_it_are_read() {
    if !has_ffmpeg() {
        return;
    }
    let display = format!(":{}", 1000 + std::process::id() % 30_000);
    let Some(_screen) = moving_screen(&display) else {
        assert!(std::env::var_os("CI").is_none(), "Xvfb is not installed");
        println!("skipped: Xvfb and ffplay are not installed");
        return;
    };
    let user = with_detector("--epochs 1");
    std::fs::write(user.path().join("sources.txt"), "screen 0 100 50 160 120\n").unwrap();
    for (source, size, name) in [("screen", "320,240", "whole"), ("sources.txt", "160,120", "part")] {
        let running = user.start_with(&format!("{PREDICT} {source} --name {name}"), &[("DISPLAY", &display)]);
        let said = interrupted_after(&["video 1/1 (2) screen: "], running);
        let output = Command::new("ffprobe")
            .args("-v error -show_entries stream=width,height -of csv=p=0".split(' '))
            .arg(user.path().join("runs/detect").join(name).join("screen.mp4"))
            .output()
            .unwrap();
        let probed = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        assert_eq!(probed.trim(), size, "{why}{said}");
    }
}
