//! What a user sees who made a mistake: one message that names the file or value, the reason and
//! the next step, and an exit code that is not 0. Nothing is lost and no empty run is left.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;

use user::User;

const WORDS: &str = "--cfg yolov5n --weights= --imgsz 64 --batch 8 --epochs 1 --device cpu --workers 1";

#[test]
fn data_yamls() {
    let user = User::new();
    user.data();
    let nowhere = Path::new("not").join("here");
    let cases: [(&str, &str, &[&str]); 6] = [
        ("broken.yaml", "train: [unclosed", &["broken.yaml"]),
        ("noname.yaml", "path: squares\ntrain: images/train\nval: images/val\n", &["noname.yaml", "names"]),
        ("notrain.yaml", "path: squares\nval: images/val\nnames: [a]\n", &["notrain.yaml", "train"]),
        (
            "nowhere.yaml",
            "path: not/here\ntrain: t\nval: v\nnames: [a]\n",
            &["nowhere.yaml", nowhere.to_str().unwrap()],
        ),
        ("empty.yaml", "", &["empty.yaml"]),
        (
            "script.yaml",
            "path: elsewhere\ntrain: t\nval: v\nnames: [a]\ndownload: |\n  import os\n  os.system('id')\n",
            &["script.yaml", "elsewhere"],
        ),
    ];
    for (name, text, words) in cases {
        std::fs::write(user.path().join(name), text).unwrap();
        user.types(&format!("train --data {name} {WORDS}")).refused(1, words);
    }
    user.types(&format!("train --data missing.yaml {WORDS}")).refused(1, &["missing.yaml"]);
    assert!(!user.path().join("runs").exists(), "a refused plan leaves no run folder");
}

#[test]
fn options() {
    let user = User::new();
    user.data();
    let train = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --epochs 1";
    user.types(&format!("{train} --batch 15 --nproc-per-node 2 --device cpu"))
        .refused(1, &["15", "14", "16"]);
    user.types(&format!("{train} --batch 0 --device cpu")).refused(1, &["0"]);
    user.types("train --data squares/squares.yaml").refused(1, &["yolov5s.pt"]);
    user.types("train --weights= --cfg yolov5n").refused(1, &["coco128"]);
    user.types(&format!("{train} --device banana")).refused(1, &["banana"]);
    let wrong = user.types(&format!("{train} --no-such-option"));
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    if !std::path::Path::new("/proc/driver/nvidia").exists() {
        user.types(&format!("{train} --device 0")).refused(1, &["0", "NVIDIA"]);
    }
}

/// What is told once the run begins, which on Windows it does inside WSL.
#[cfg(unix)]
mod where_training_runs {
    use super::*;

    #[test]
    fn an_image_size_off_the_stride_is_rounded_up_with_a_warning() {
        let user = User::new();
        user.data();
        let answer = user
            .types("train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 65 --batch 8 --epochs 1 --device cpu --workers 1")
            .succeeded();
        assert!(answer.stderr.contains("warning: ") && answer.stderr.contains("96"), "{}", answer.stderr);
    }

    #[test]
    fn weights_files() {
        let user = User::new();
        user.data();
        let train =
            "train --data squares/squares.yaml --imgsz 64 --batch 8 --epochs 1 --device cpu --cfg yolov5n";
        let cases: [(&str, &[u8]); 3] = [
            ("page.pt", b"<!DOCTYPE html><html>Not found</html>"),
            ("cut.pt", b"PK\x03\x04\x14\0\0\0"),
            ("empty.pt", b""),
        ];
        for (name, bytes) in cases {
            std::fs::write(user.path().join(name), bytes).unwrap();
            user.types(&format!("{train} --weights {name}")).refused(1, &[name]);
        }
        user.types(&format!("{train} --weights nothing.pt")).refused(1, &["nothing.pt"]);
    }

    #[test]
    fn labels_and_images_that_are_wrong_are_named_and_left_out() {
        let user = User::new();
        user.data();
        let labels = user.path().join("squares/labels/train");
        let images = user.path().join("squares/images/train");
        std::fs::write(labels.join("00.txt"), "0 0.5 0.5 0.2\n").unwrap();
        std::fs::write(labels.join("01.txt"), "0 0.5 0.5 1.5 0.2\n").unwrap();
        std::fs::write(labels.join("02.txt"), "0 nan 0.5 0.5 0.2\n").unwrap();
        std::fs::write(images.join("03.jpg"), "this is text").unwrap();
        std::fs::write(images.join("04.jpg"), "").unwrap();
        let answer = user.types(&format!("train --data squares/squares.yaml {WORDS}")).succeeded();
        for word in ["00.bmp", "01.bmp", "02.bmp", "03.jpg", "04.jpg", "5 corrupt"] {
            assert!(answer.stderr.contains(word), "{word} is not in:\n{}", answer.stderr);
        }

        std::fs::write(labels.join("05.txt"), "7 0.5 0.5 0.2 0.2\n").unwrap();
        user.types(&format!("train --data squares/squares.yaml {WORDS}")).refused(1, &["05.txt", "7"]);
    }

    #[test]
    fn a_run_folder_that_cannot_be_written() {
        let user = User::new();
        user.data();
        std::fs::write(user.path().join("file"), "").unwrap();
        user.types(&format!("train --data squares/squares.yaml {WORDS} --project file/runs"))
            .refused(1, &["file"]);
    }
}

#[cfg(windows)]
#[test]
fn a_plan_without_fault_is_sent_to_wsl() {
    let user = User::new();
    user.data();
    user.types(&format!("train --data squares/squares.yaml {WORDS}"))
        .refused(1, &["x86-64 Linux", "`yolo setup --wsl`"]);
    assert!(!user.path().join("runs").exists());
}
