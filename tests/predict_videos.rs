//! Videos and streams with `yolo predict`: what becomes of their frames, and what happens when they are damaged, end
//! early, or cannot be written.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

#[path = "support/predictions.rs"]
mod predictions;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/user.rs"]
mod user;

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use predictions::{LONG, PREDICT, ffmpeg, has_ffmpeg, names, with_detector};
use serde_json::Value;
use small_disk::SmallDisk;
use user::{Finished, SIGINT, User, free_port, wait_for};

/// A user with a detector that finds objects, and `film.mp4` with eight pictures at four per second; `None` without
/// ffmpeg.
fn with_film() -> Option<User> {
    if !has_ffmpeg() {
        return None;
    }
    let user = with_detector(LONG);
    ffmpeg(&user, "-framerate 4 -i squares/images/val/%02d.bmp -c:v libx264 -qp 0 film.mp4");
    Some(user)
}

/// The frames of a video that can be read, and its frames per second.
fn frames(file: &Path) -> (usize, String) {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-select_streams", "v:0", "-of", "json"])
        .args(["-show_entries", "stream=nb_read_frames,avg_frame_rate"])
        .arg(file)
        .output()
        .unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stream = &value["streams"][0];
    let count = stream["nb_read_frames"].as_str().unwrap_or("0").parse().unwrap();
    (count, stream["avg_frame_rate"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_video_becomes_a_video_with_boxes() {
    let Some(user) = with_film() else { return };
    let run = |name: &str| user.path().join("runs/detect").join(name);
    let finished = user.run(&format!("{PREDICT} film.mp4 --save-txt --save-csv --name film")).succeeded();
    assert!(finished.stderr.contains("\nvideo 1/1 (1/8) "), "{}", finished.stderr);
    assert!(finished.stderr.contains(" objects in 8 frames, "), "{}", finished.stderr);
    assert!(finished.stdout.starts_with("videos: "), "{}", finished.stdout);
    assert_eq!(names(&run("film")), ["film.mp4", "labels", "predictions.csv"]);
    assert_eq!(frames(&run("film").join("film.mp4")), (8, "4/1".to_owned()));

    // The frames are the pictures, apart from the conversion of colors, so most objects are found in both.
    user.run(&format!("{PREDICT} squares/images/val --save-txt --name pictures")).succeeded();
    let lines = |name: &str| -> usize {
        let labels = run(name).join("labels");
        names(&labels)
            .iter()
            .map(|file| std::fs::read_to_string(labels.join(file)).unwrap().lines().count())
            .sum()
    };
    assert!(lines("pictures") > 0 && lines("film").abs_diff(lines("pictures")) <= lines("pictures") / 4);
    assert!(names(&run("film").join("labels")).iter().all(|name| name.starts_with("film_")));

    // Every third frame is the third and the sixth.
    let finished = user.run(&format!("{PREDICT} film.mp4 --vid-stride 3 --json --name strided")).succeeded();
    let events = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_frames: Vec<Value> = events.filter(|event| event["event"] == "predicted").collect();
    let numbers: Vec<_> = of_frames.iter().map(|event| (&event["frame"], &event["frames"])).collect();
    assert_eq!(numbers, [(&Value::from(1), &Value::from(2)), (&Value::from(2), &Value::from(2))]);
    assert_eq!(frames(&run("strided").join("film.mp4")), (2, "4/3".to_owned()));

    // Two ranks share videos and pictures, and two frames share a batch.
    std::fs::copy(user.path().join("film.mp4"), user.path().join("other.mov")).unwrap();
    let sources = "film.mp4 other.mov squares/images/val/00.bmp";
    let finished =
        user.run(&format!("{PREDICT} {sources} --device cpu,cpu --batch 2 --name both")).succeeded();
    assert!(finished.stderr.contains(" in 1 picture and 16 frames, "), "{}", finished.stderr);
    assert_eq!(names(&run("both")), ["00.bmp", "film.mp4", "other.mp4"]);
    assert_eq!(frames(&run("both").join("other.mp4")).0, 8);
    user.run(&format!("{PREDICT} film.mp4 --nosave --name bare")).succeeded();
    assert!(names(&run("bare")).is_empty());
}

#[test]
fn damaged_videos_are_named_and_the_others_are_done() {
    let Some(user) = with_film() else { return };
    let whole = std::fs::read(user.path().join("film.mp4")).unwrap();
    std::fs::write(user.path().join("cut.mp4"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(user.path().join("empty.mp4"), "").unwrap();
    // In this format, the frames before the damage can be read, and ffmpeg says how many there were.
    ffmpeg(&user, "-f lavfi -i testsrc=size=64x64:rate=10:duration=4 -c:v mjpeg -f avi whole.avi");
    let whole = std::fs::read(user.path().join("whole.avi")).unwrap();
    std::fs::write(user.path().join("half.avi"), &whole[..whole.len() / 2]).unwrap();
    let finished = user.run(&format!("{PREDICT} cut.mp4 empty.mp4 half.avi film.mp4"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for part in ["cut.mp4: ", "empty.mp4: ", "skipped in whole or in part, see the warnings", "(8/8) "] {
        assert!(finished.stderr.contains(part), "`{part}` is not in:\n{}", finished.stderr);
    }
    let run = user.path().join("runs/detect/exp");
    assert_eq!(names(&run), ["film.mp4", "half.mp4"]);
    let (count, _) = frames(&run.join("half.mp4"));
    assert!((5..40).contains(&count), "{count} frames");
    let missing = format!("half.avi: {} of 40 frames could not be read: ", 40 - count);
    let line = finished.stderr.lines().find(|line| line.contains(&missing));
    let searched = format!("; {count} frames were searched");
    assert!(line.is_some_and(|line| line.ends_with(&searched)), "{}", finished.stderr);
}

#[test]
fn damage_in_any_format_is_named_and_healthy_videos_are_not() {
    let Some(user) = with_film() else { return };
    let test = "-f lavfi -i testsrc2=size=64x64:rate=10:duration=4";
    for (name, options) in [
        ("whole.mkv", "-c:v libx264"),
        ("whole.mp4", "-c:v libx264"),
        ("whole.ts", "-c:v libx264"),
        ("whole.webm", "-c:v libvpx -deadline realtime"),
        ("whole.avi", "-c:v mpeg4"),
        ("uneven.mkv", "-vf select=not(mod(n\\,7))+not(mod(n\\,3)) -fps_mode vfr -c:v libx264"),
        ("uneven.mp4", "-vf select=not(mod(n\\,7))+not(mod(n\\,3)) -fps_mode vfr -c:v libx264"),
    ] {
        ffmpeg(&user, &format!("{test} {options} {name}"));
    }
    // A recording that begins between two key frames, as a dash cam's: packets have 188 bytes.
    ffmpeg(&user, &format!("{test} -c:v libx264 -g 20 late.ts"));
    let whole = std::fs::read(user.path().join("late.ts")).unwrap();
    std::fs::write(user.path().join("late.ts"), &whole[whole.len() / 188 / 4 * 188..]).unwrap();
    let healthy = "whole.mkv whole.mp4 whole.ts whole.webm whole.avi uneven.mkv uneven.mp4 late.ts";
    let finished = user.run(&format!("{PREDICT} {healthy} --nosave")).succeeded();
    assert!(!finished.stderr.contains("skipped"), "{}", finished.stderr);

    let damaged = |name: &str, damage: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(user.path().join(name)).unwrap();
        damage(&mut bytes);
        std::fs::write(user.path().join(name), bytes).unwrap();
    };
    let hole = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle..middle * 5 / 4].fill(0);
    };
    for name in ["whole.mkv", "whole.webm"] {
        damaged(name, &|bytes| bytes.truncate(bytes.len() / 2));
    }
    for name in ["whole.ts", "whole.mp4", "whole.avi"] {
        damaged(name, &hole);
    }
    damaged("late.ts", &|bytes| {
        let packets = bytes.len() / 188;
        for packet in packets / 2..packets * 3 / 4 {
            bytes[packet * 188 + 100..][..8].fill(0xa5);
        }
    });
    let finished = user.run(&format!("{PREDICT} {healthy} --nosave"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for name in ["whole.mkv", "whole.webm", "whole.ts", "whole.avi", "whole.mp4", "late.ts"] {
        let mut lines = finished.stderr.lines();
        let warning =
            lines.find(|line| line.contains(&format!("{name}: ")) && line.ends_with(" frames were searched"));
        let says_how = |line: &str| {
            line.contains(" frames could not be read: ")
                || line.contains("it is damaged, so that frames may be missing or wrong; ")
        };
        assert!(warning.is_some_and(says_how), "{name}: {}", finished.stderr);
    }
    assert_eq!(finished.stderr.matches(" frames were searched\n").count(), 6, "{}", finished.stderr);
}

#[test]
fn ctrl_c_leaves_a_part_that_plays() {
    let Some(user) = with_film() else { return };
    ffmpeg(&user, "-f lavfi -i testsrc=size=64x64:rate=30:duration=600 -c:v mpeg4 long.mp4");
    let running = user.start(&format!("{PREDICT} long.mp4 --save-csv --name stopped"));
    let run = user.path().join("runs/detect/stopped");
    wait_for("a part of the video", || {
        let entries = std::fs::read_dir(&run).ok()?.filter_map(Result::ok);
        entries.into_iter().any(|entry| entry.path().extension().is_some_and(|it| it == "part")).then_some(())
    });
    std::thread::sleep(Duration::from_millis(300));
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert_eq!(names(&run), ["long.mp4", "predictions.csv"], "{}", finished.stderr);
    let results: Vec<&str> = finished.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(results, ["videos", "table"]);
    let (count, _) = frames(&run.join("long.mp4"));
    assert!((1..18_000).contains(&count), "{count} frames");
}

#[test]
fn a_disk_that_fills_is_one_message_and_no_video() {
    let Some(user) = with_film() else { return };
    ffmpeg(&user, "-f lavfi -i testsrc2=size=320x240:rate=30:duration=20 -c:v mpeg4 long.mp4");
    let small = user.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(_disk) = SmallDisk::mount(&small, "160k") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    let finished = user.run(&format!("{PREDICT} long.mp4 --project small"));
    let left = std::fs::read_dir(&small).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name != "lost+found").collect();
    finished.failed_with(1, &["cannot save the results: ", "long.mp4: No space left on device"]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn without_ffmpeg_nothing_is_started() {
    let Some(user) = with_film() else { return };
    let output = user.command(&format!("{PREDICT} film.mp4")).env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("film.mp4 is a video, which yolo predict reads with ffmpeg, but ffmpeg is not"),
        "{said}"
    );
    assert!(said.contains("\nhint: install ffmpeg"), "{said}");
    assert!(!user.path().join("runs/detect").exists());
}

/// A server that sends a stream of two seconds to the first who asks.
fn serve(port: u16) -> Child {
    Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "error",
            "-re",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=64x64:rate=10:duration=2",
        ])
        .args(["-c:v", "mpeg2video", "-f", "mpegts", &format!("tcp://127.0.0.1:{port}?listen=1")])
        .spawn()
        .unwrap()
}

#[test]
fn a_stream_that_drops_out_is_opened_again_and_then_named() {
    let Some(user) = with_film() else { return };
    let port = free_port();
    let mut server = serve(port);
    let address = format!("tcp://127.0.0.1:{port}");
    wait_for("the server", || {
        let listening = std::fs::read_to_string("/proc/net/tcp").unwrap();
        listening.contains(&format!("0100007F:{port:04X} 00000000:0000 0A")).then_some(())
    });
    let finished = user.run(&format!("{PREDICT} {address} --name live"));
    server.wait().unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let again = finished.stderr.matches("; opening it again").count();
    assert_eq!(again, 3, "{}", finished.stderr);
    let why = format!("{address}: Connection refused; ");
    let mut lines = finished.stderr.lines();
    assert!(lines.any(|line| line.contains(&why) && line.ends_with(" searched")), "{}", finished.stderr);
    let run = user.path().join("runs/detect/live");
    assert_eq!(names(&run), [format!("127_0_0_1_{port}.mp4")]);
    assert!(frames(&run.join(format!("127_0_0_1_{port}.mp4"))).0 > 0);
    let gone = user.run(&format!("{PREDICT} {address} --name gone"));
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(
        gone.stderr.contains("Connection refused; skipped") && !gone.stderr.contains("again"),
        "{}",
        gone.stderr
    );
}

#[test]
fn a_url_of_a_file_is_downloaded() {
    let Some(user) = with_film() else { return };
    let picture = std::fs::read(user.path().join("squares/images/val/00.bmp")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let length = std::io::Read::read(&mut stream, &mut request).unwrap_or(0);
            let is_there = !String::from_utf8_lossy(&request[..length]).contains("/gone");
            let (status, body) = if is_there { ("200 OK", &picture[..]) } else { ("404 Not Found", &[][..]) };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = std::io::Write::write_all(&mut stream, head.as_bytes());
            let _ = std::io::Write::write_all(&mut stream, body);
        }
    });
    let address = format!("http://127.0.0.1:{port}/pictures/square.bmp?size=64");
    let mut online = user.command(&format!("{PREDICT} {address} --name fetched"));
    Finished::from(online.env_remove("YOLO_OFFLINE").output().unwrap()).succeeded();
    assert_eq!(names(&user.path().join("runs/detect/fetched")), ["square.bmp"]);
    // It is called by its address, not by the file in the cache.
    let mut named = user.command(&format!("{PREDICT} {address} --json --nosave"));
    let named = Finished::from(named.env_remove("YOLO_OFFLINE").output().unwrap()).succeeded();
    let shown = format!("\"source\":\"http://127.0.0.1:{port}/pictures/square.bmp\"");
    assert!(named.stdout.contains(&shown), "{}", named.stdout);
    let offline = user.run(&format!("{PREDICT} {address} --name offline --offline"));
    assert_eq!(offline.code, Some(1), "{}", offline.stderr);
    assert!(!offline.stderr.contains("downloading"), "{}", offline.stderr);
    assert!(offline.stderr.contains("download the file elsewhere and give its path"), "{}", offline.stderr);
    assert!(!user.path().join("runs/detect/offline").exists());

    // Of a list, what is not there is named and skipped; alone, it is an error.
    let gone = format!("http://127.0.0.1:{port}/gone.jpg");
    std::fs::write(user.path().join("list.txt"), format!("{gone}\n{address}\n")).unwrap();
    let mut listed = user.command(&format!("{PREDICT} list.txt --name listed"));
    let listed = Finished::from(listed.env_remove("YOLO_OFFLINE").output().unwrap());
    assert_eq!(listed.code, Some(1), "{}", listed.stderr);
    assert!(listed.stderr.contains(&gone) && listed.stderr.contains("; 1 skipped, see"), "{}", listed.stderr);
    assert_eq!(names(&user.path().join("runs/detect/listed")), ["square.bmp"]);
    let mut alone = user.command(&format!("{PREDICT} {gone} --name alone"));
    let alone = Finished::from(alone.env_remove("YOLO_OFFLINE").output().unwrap());
    alone.failed_with(1, &[&gone, "404", "hint: check the address"]);
    assert!(!user.path().join("runs/detect/alone").exists());
}
