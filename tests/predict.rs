//! `yolo predict` as a user runs it: what it finds, says and writes, and what it does with pictures that it cannot
//! read.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/predictions.rs"]
mod predictions;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/user.rs"]
mod user;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use predictions::{LONG, PREDICT, with_detector};
use small_disk::SmallDisk;
use user::{Finished, SIGINT, User, masked, wait_for};

/// The files of a prediction with their contents, except the plan and the logs.
fn files(user: &User, name: &str) -> BTreeMap<String, Vec<u8>> {
    let run = user.path().join("runs/detect").join(name);
    let mut files = BTreeMap::new();
    let mut folders = vec![run.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&run).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "logs" {
                folders.push(path);
            } else if path.is_file() && name != "plan.json" {
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn text<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> &'a str {
    std::str::from_utf8(&files[name]).unwrap()
}

#[test]
fn a_folder_becomes_pictures_with_boxes_and_files_with_numbers() {
    let user = with_detector(LONG);
    let options = "--save-txt --save-conf --save-csv --save-crop --name all";
    let finished = user.run(&format!("{PREDICT} squares/images/val {options}")).succeeded();
    let written = files(&user, "all");
    let labels: Vec<Vec<f64>> = written
        .iter()
        .filter(|(name, _)| name.starts_with("labels/"))
        .flat_map(|(name, _)| text(&written, name).lines())
        .map(|line| line.split(' ').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert!(!labels.is_empty(), "{}", finished.stderr);
    for line in &labels {
        assert_eq!(line.len(), 6);
        assert!(line[1..].iter().all(|number| (0.0..=1.0).contains(number)), "{line:?}");
        // Boxes are in whole pixels.
        assert!((line[3] * 64.0).fract().abs() < 1e-4, "{line:?}");
    }
    let crops = written.keys().filter(|name| name.starts_with("crops/")).count();
    assert_eq!((crops, text(&written, "predictions.csv").lines().count()), (labels.len(), labels.len() + 1));
    for number in 0..8 {
        let name = format!("{number:02}.bmp");
        let pixels = |bytes: &[u8]| bytes[bytes.len() - 64 * 64 * 3..].to_vec();
        let original = std::fs::read(user.path().join("squares/images/val").join(&name)).unwrap();
        let has_boxes = written.contains_key(&format!("labels/{number:02}.txt"));
        assert_eq!(pixels(&written[&name]) != pixels(&original), has_boxes, "{name}");
    }
    assert!(finished.stderr.contains("\nimage 1/8 "), "{}", finished.stderr);
    let objects = format!("{} objects in 8 pictures, ", labels.len());
    assert!(finished.stderr.contains(&objects), "{}", finished.stderr);
    let results: Vec<&str> = finished.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(results, ["pictures", "labels", "objects", "table"]);
    let quiet = user.run(&format!("--quiet {PREDICT} squares/images/val --name quiet")).succeeded();
    assert_eq!(quiet.stderr, "");

    // What is found depends on nothing but the picture.
    for (name, options) in [
        ("batch", "--batch 3"),
        ("ranks", "--device cpu,cpu"),
        ("both", "--device cpu,cpu --batch 2 --workers 1"),
        ("alias", ""),
    ] {
        let command = PREDICT.replace("predict", if name == "alias" { "detect" } else { "predict" });
        let all = "--save-txt --save-csv --save-crop";
        user.run(&format!("{command} --source squares/images/val {all} {options} --name {name}")).succeeded();
        let again = files(&user, name);
        assert_eq!(again.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>(), "{name}");
        for (file, content) in &again {
            let without_confidence = |text: &str| -> Vec<String> {
                text.lines().map(|line| line.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
            };
            if file.starts_with("labels/") {
                let (got, want) = (text(&again, file), text(&written, file));
                assert_eq!(without_confidence(got), without_confidence(want), "{name}");
            } else if file.starts_with("crops/") {
                assert_eq!(content.len(), written[file].len(), "{name}: {file}");
            }
        }
    }
}

#[test]
fn sources_are_files_folders_patterns_and_lists() {
    let user = with_detector("--epochs 1");
    let seen = |finished: &Finished| -> Vec<String> {
        let lines = finished.stderr.lines().filter(|line| line.starts_with("image "));
        lines.map(|line| line.split(':').next().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    let pictures = |sources: &str| seen(&user.run(&format!("{PREDICT} {sources} --nosave")).succeeded());
    assert_eq!(pictures("squares/images/val/03.bmp squares/images/val/01.bmp"), ["03.bmp", "01.bmp"]);
    assert_eq!(pictures("squares/images/val/0[12].bmp"), ["01.bmp", "02.bmp"]);
    let all = ["00.bmp", "01.bmp", "02.bmp", "03.bmp", "04.bmp", "05.bmp", "06.bmp", "07.bmp"];
    assert_eq!(pictures("squares/images/val"), all);
    std::fs::write(user.path().join("list.txt"), "squares/images/val/05.bmp\n").unwrap();
    assert_eq!(pictures("--source list.txt squares/images/val/00.bmp"), ["05.bmp", "00.bmp"]);
    std::fs::write(user.path().join("list.txt"), "squares/images/val/0[67].bmp\nsquares/images/val\n")
        .unwrap();
    assert_eq!(pictures("list.txt"), [&all[6..], &all[..]].concat());

    let mut child = user
        .command(&format!("{PREDICT} - --nosave"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"squares/images/val/06.bmp\nsquares/images/val/02.bmp").unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).succeeded();
    assert_eq!(seen(&finished), ["06.bmp", "02.bmp"]);
}

#[test]
fn pictures_that_cannot_be_read_are_named_and_the_others_are_done() {
    let user = with_detector("--epochs 1");
    let folder = user.path().join("mixed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(user.path().join("squares/images/val/00.bmp"), folder.join("good.bmp")).unwrap();
    let whole = std::fs::read(folder.join("good.bmp")).unwrap();
    std::fs::write(folder.join("broken.bmp"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(folder.join("empty.jpg"), "").unwrap();
    std::fs::write(folder.join("text.png"), "no picture").unwrap();
    let mut huge = whole.clone();
    huge[18..22].copy_from_slice(&20_000_i32.to_le_bytes());
    huge[22..26].copy_from_slice(&20_000_i32.to_le_bytes());
    std::fs::write(folder.join("huge.bmp"), huge).unwrap();
    // Nobody ever writes into it.
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("pipe.jpg")).status();
    assert!(pipe.unwrap().success());
    std::fs::write(user.path().join("list.txt"), "mixed/gone.jpg\nmixed/good.bmp\n").unwrap();

    let finished = user.run(&format!("{PREDICT} mixed --name mixed"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for reason in [
        "broken.bmp: truncated: the file ends inside the image data; skipped",
        "empty.jpg: the file is empty; skipped",
        "text.png: not an image; skipped",
        "huge.bmp: 20000x20000 pixels are above the limit of 100 megapixels; skipped",
        "pipe.jpg: it is not a file; skipped",
        "in 1 picture, ",
        "; 5 skipped, see the warnings",
    ] {
        assert!(finished.stderr.contains(reason), "`{reason}` is not in:\n{}", finished.stderr);
    }
    assert_eq!(files(&user, "mixed").into_keys().collect::<Vec<_>>(), ["good.bmp"]);
    let finished = user.run(&format!("{PREDICT} list.txt --name list"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let gone = "gone.jpg: No such file or directory (os error 2); skipped";
    assert!(finished.stderr.contains(gone), "{}", finished.stderr);
    assert_eq!(files(&user, "list").into_keys().collect::<Vec<_>>(), ["good.bmp"]);
    // Likewise on the command line.
    let finished = user.run(&format!("{PREDICT} gone.jpg mixed/good.bmp --name named"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains(gone), "{}", finished.stderr);
    assert_eq!(files(&user, "named").into_keys().collect::<Vec<_>>(), ["good.bmp"]);
    // A run without any result says none, and leaves nothing.
    let finished = user.run(&format!("{PREDICT} mixed/huge.bmp --save-txt --name nothing"));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{}", finished.stderr);
    assert!(!user.path().join("runs/detect/nothing").exists());
}

#[test]
fn pictures_of_one_name_have_rows_of_their_own() {
    let user = with_detector(LONG);
    let picture = user.path().join("squares/images/val/00.bmp");
    std::fs::create_dir(user.path().join("other")).unwrap();
    std::fs::copy(&picture, user.path().join("other/00.bmp")).unwrap();
    user.run(&format!("{PREDICT} squares/images/val/00.bmp other --save-csv --name rows")).succeeded();
    let written = files(&user, "rows");
    let rows = text(&written, "predictions.csv").lines().skip(1);
    let of: Vec<&str> = rows.map(|row| row.split(',').next().unwrap()).collect();
    assert!(!of.is_empty() && of.len().is_multiple_of(2), "{of:?}");
    let (first, second) = of.split_at(of.len() / 2);
    assert!(first.iter().all(|name| *name == "00.bmp") && second.iter().all(|name| *name == "00-2.bmp"));
    assert!(written.contains_key("00.bmp") && written.contains_key("00-2.bmp"));
}

#[test]
fn mistakes_are_one_message_and_leave_no_folder() {
    let user = User::new();
    user.write_data_set();
    std::fs::create_dir(user.path().join("empty")).unwrap();
    std::fs::write(user.path().join("model.pt"), "no model").unwrap();
    for (arguments, code, parts) in [
        ("--weights model.pt", 2, &["no picture is named", "yolo predict photos/"][..]),
        ("gone.jpg --weights model.pt", 1, &["--source gone.jpg does not exist"]),
        ("empty --weights model.pt", 1, &["there is no picture and no video in the folder empty"]),
        ("squares/images/val --weights gone.pt", 1, &["--weights gone.pt", "does not exist"]),
        (
            "squares/images/val --view-img",
            1,
            &["--view-img cannot show pictures here: stderr is not a terminal"],
        ),
        ("squares/images/val --vid-stride 0", 2, &["--vid-stride 0 would use no frame"]),
        ("4711", 1, &["--source 4711 is the camera /dev/video4711, which does not exist"]),
        ("https://youtu.be/x", 1, &["yolo predict does not read YouTube's pages"]),
        ("squares/images/val --visualize --augment", 2, &["--visualize contradicts --augment"]),
        ("squares/images/val --conf-thres 2", 2, &["--conf-thres 2 is not a number from 0 to 1"]),
    ] {
        let finished = user.run(&format!("predict {arguments} --device cpu")).failed_with(code, parts);
        assert!(finished.stderr.contains("\nhint: "), "{}", finished.stderr);
    }
    assert!(!user.path().join("runs").exists(), "a rejected plan left a run folder");
    user.run("predict squares/images/val --weights model.pt --device cpu").failed_with(1, &["model.pt"]);
    assert_eq!(std::fs::read_dir(user.path().join("runs/detect")).unwrap().count(), 0);
}

#[test]
fn ctrl_c_keeps_what_was_done() {
    let user = with_detector("--epochs 1");
    let list: String = (0..4000).map(|_| "squares/images/val/00.bmp\n").collect();
    std::fs::write(user.path().join("list.txt"), list).unwrap();
    let running = user.start(&format!("{PREDICT} list.txt --save-csv --name stopped"));
    let first = user.path().join("runs/detect/stopped/00.bmp");
    wait_for("the first picture", || first.exists().then_some(()));
    running.signal(SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    let mut written = files(&user, "stopped");
    // The table has what was found until then, and stdout says where everything is.
    let table = String::from_utf8(written.remove("predictions.csv").unwrap()).unwrap();
    assert!(table.starts_with("Image Name,Prediction,"), "{table}");
    let results: Vec<&str> = finished.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(results, ["pictures", "table"]);
    assert!(!written.is_empty() && written.len() < 4000);
    let size = std::fs::metadata(&first).unwrap().len() as usize;
    assert!(written.iter().all(|(name, content)| name.ends_with(".bmp") && content.len() == size));
}

#[test]
fn a_disk_that_fills_is_one_message_and_no_half_file() {
    let user = with_detector("--epochs 1");
    let small = user.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(_disk) = SmallDisk::mount(&small, "64k") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    let finished = user.run(&format!("{PREDICT} squares/images/val --project small"));
    let left: Vec<(String, u64)> = std::fs::read_dir(small.join("exp"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.metadata().unwrap().len()))
        .collect();
    finished.failed_with(1, &["cannot save the results: ", "No space left on device"]);
    let whole = std::fs::metadata(user.path().join("squares/images/val/00.bmp")).unwrap().len();
    assert!(left.iter().all(|(name, size)| !name.ends_with(".bmp") || *size == whole), "{left:?}");
    assert!(left.iter().all(|(name, _)| !name.ends_with(".part")), "{left:?}");
}

#[test]
fn options_of_predict() {
    let user = with_detector(LONG);
    let predict = |name: &str, options: &str| {
        let all = "squares/images/val --save-txt --save-conf";
        let finished = user.run(&format!("{PREDICT} {all} {options} --name {name}")).succeeded();
        (files(&user, name), finished)
    };
    let labels = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        files
            .iter()
            .filter(|(name, _)| name.starts_with("labels/"))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    let pictures = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        files.iter().filter(|(name, _)| name.ends_with(".bmp")).map(|(a, b)| (a.clone(), b.clone())).collect()
    };
    let (plain, _) = predict("plain", "");
    // These change what is found.
    for (name, options) in [
        ("conf", "--conf-thres 0.2"),
        ("iou", "--iou-thres 0.05"),
        ("few", "--max-det 1"),
        ("class", "--classes 1"),
        ("agnostic", "--agnostic-nms"),
        ("augment", "--augment"),
        ("size", "--imgsz 96"),
        ("sides", "--imgsz 64 32"),
    ] {
        assert_ne!(labels(&predict(name, options).0), labels(&plain), "{options} had no effect");
    }
    let (class, _) = predict("both", "--classes 0 1");
    assert_eq!(labels(&class), labels(&plain));
    // These change only how it is shown.
    for (name, options) in
        [("thick", "--line-thickness 6"), ("nolabels", "--hide-labels"), ("noconf", "--hide-conf")]
    {
        let (files, _) = predict(name, options);
        assert_eq!(labels(&files), labels(&plain), "{options}");
        assert_ne!(pictures(&files), pictures(&plain), "{options} had no effect");
    }
    let (bare, _) = predict("bare", "--nosave");
    assert!(pictures(&bare).is_empty() && labels(&bare) == labels(&plain));
    let (corners, _) = predict("corners", "--save-format 1");
    let line = text(&corners, corners.keys().find(|name| name.starts_with("labels/")).unwrap());
    let numbers: Vec<&str> = line.lines().next().unwrap().split(' ').collect();
    assert!(numbers[1..5].iter().all(|number| number.parse::<u32>().unwrap() <= 64), "{numbers:?}");
    let (named, _) = predict("named", "--data squares/squares.yaml --update --dnn");
    assert_eq!(labels(&named), labels(&plain));
    let again = user.run(&format!("{PREDICT} squares/images/val/00.bmp --name plain --exist-ok")).succeeded();
    assert!(again.stdout.contains("runs/detect/plain\n"), "{}", again.stdout);
    let shorter = PREDICT.replace("--conf-thres", "--conf");
    user.run(&format!("{shorter} squares/images/val/00.bmp --save-t --nos")).succeeded();
    user.run(&format!("{PREDICT} squares/images/val --classes 0 7"))
        .failed_with(1, &["--classes 7: ", "last.pt has 2 classes, numbered from 0", "numbers from 0 to 1"]);
}

/// The text of a whole run, with `N` for numbers.
#[test]
fn what_a_run_says() {
    let user = with_detector("--epochs 1");
    let finished =
        user.run(&format!("{PREDICT} squares/images/val/00.bmp --conf-thres 0.999 --max-det 3")).succeeded();
    let folder = user.path().canonicalize().unwrap();
    let said = finished.stderr.replace(&format!("{}", folder.display()), "…");
    let said = said.replace(&format!("{}", user.path().display()), "…");
    let lines: Vec<String> = masked(&said).lines().map(str::to_owned).collect();
    let last = &lines[lines.len().saturating_sub(2)..];
    assert!(last[0].starts_with("image 1/1 …/squares/images/val/00.bmp: 64x64 (no detections), "), "{said}");
    assert!(last[1].starts_with("N objects in N picture, N ms of the network per picture"), "{said}");
    assert!(finished.stdout.starts_with("pictures: ") && finished.stdout.lines().count() == 1);
    assert!(Path::new(finished.stdout["pictures: ".len()..].trim()).is_dir());
}
