//! Invalid input of users: each mistake gives one message with the file or value, the reason and the
//! next step, and an exit status other than 0. Nothing is lost, and no empty run folder is left.

// In Windows these commands run in WSL, see from_windows/options.rs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/mistakes.rs"]
mod mistakes;
#[path = "support/user.rs"]
mod user;

use std::path::Path;

use user::User;

const QUICK: &str = "--cfg yolov5n --weights= --imgsz 64 --batch 8 --epochs 1 --device cpu --workers 1";

#[test]
fn invalid_data_yamls() {
    let user = User::new();
    user.write_data_set();
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
    for (name, text, parts) in cases {
        std::fs::write(user.path().join(name), text).unwrap();
        user.run(&format!("train --data {name} {QUICK}")).failed_with(1, parts);
    }
    user.run(&format!("train --data missing.yaml {QUICK}")).failed_with(1, &["missing.yaml"]);
    assert!(!user.path().join("runs").exists(), "a rejected plan left a run folder");
}

#[test]
fn invalid_options() {
    let user = User::new();
    user.write_data_set();
    let train = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --epochs 1";
    let wrong = |options: &str, parts: &[&str]| {
        let finished = user.run(&format!("{train} {options}")).failed_with(2, parts);
        let has_hint = finished.stderr.contains("\nhint: ") || finished.stderr.contains("try '--help'");
        assert!(has_hint, "{options}:\n{}", finished.stderr);
    };
    for (options, part) in mistakes::OF_TRAINING {
        wrong(&format!("{options} --device cpu,cpu"), &[part]);
    }
    wrong("--batch 15 --nproc-per-node 2 --device cpu", &["15", "--batch 14 or 16"]);
    wrong("--batch 7 --device cpu,cpu", &["--batch 7 cannot be divided among 2 ranks", "--batch 6 or 8"]);
    wrong("--batch-split 4 --device cpu,cpu", &["--batch-split 4 has 1 share, but there are 2 ranks"]);
    wrong("--freeze 9999", &["--freeze 9999 is beyond the last layer"]);
    wrong("--device banana", &["banana"]);
    wrong("--device -1", &["--device -1 is not a device"]);
    wrong("--device cpu,0", &["mixes cpu with GPUs"]);
    wrong(
        "--device cpu --nproc-per-node 0",
        &["--nproc-per-node 0 is not a number of ranks", "--nproc-per-node 2"],
    );
    wrong("--device cpu,cpu --nproc-per-node 3", &["--nproc-per-node 3 does not match --device cpu,cpu"]);
    wrong("--device cpu --parallel dp", &["--parallel dp needs several devices"]);
    let nccl = ["--backend nccl cannot be used", "NCCL works on GPUs only", "--backend gloo"];
    wrong("--device cpu --nproc-per-node 2 --backend nccl", &nccl);
    let no_effect = "squares.yaml has no effect, because this run does not use NCCL";
    wrong("--device cpu --nccl squares/squares.yaml", &[no_effect]);
    wrong("--backend mpi", &["'mpi'", "auto, nccl, gloo"]);
    wrong("--no-such-option", &["'--no-such-option'"]);
    assert!(!user.path().join("runs").exists(), "a rejected plan left a run folder");
}

#[test]
fn invalid_options_of_a_validation() {
    let user = User::new();
    let of_device = ("--device -1", "--device -1 is not a device");
    for (options, part) in mistakes::OF_VALIDATION.into_iter().chain([of_device]) {
        user.run(&format!("val --data shapes {options}")).failed_with(2, &[part, "\nhint: "]);
    }
}

/// Right options whose files or devices this machine lacks.
#[test]
fn what_is_missing_is_no_mistake_in_the_options() {
    let user = User::new();
    user.write_data_set();
    let train = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --epochs 1";
    user.run("train --data squares/squares.yaml").failed_with(1, &["yolov5s.pt"]);
    user.run("train --weights= --cfg yolov5n").failed_with(1, &["coco128"]);
    user.run("train --resume gone.pt").failed_with(1, &["gone.pt: there is no such run or checkpoint"]);
    user.run(&format!("{train} --device cpu --nccl no.so"))
        .failed_with(1, &["--nccl no.so does not exist or is not a file"]);
    if !std::path::Path::new("/proc/driver/nvidia").exists() {
        user.run(&format!("{train} --device 0")).failed_with(1, &["--device 0", "NVIDIA"]);
    }
}

#[test]
fn a_resumed_run_takes_no_other_options() {
    let user = User::new();
    let run = "train --resume runs/train/exp";
    user.run(&format!("{run} --epochs 10"))
        .failed_with(2, &["--epochs cannot be changed with --resume", "hint: give only --device, "]);
    // As the help names it, and other messages.
    user.run(&format!("{run} --batch-size 4"))
        .failed_with(2, &["error: --batch cannot be changed with --resume"]);
}

#[test]
fn variables_with_numbers_are_checked() {
    let user = User::new();
    user.write_data_set();
    for (name, value) in
        [("YOLO_JOIN_SECONDS", "10 min"), ("YOLO_JOIN_SECONDS", "0"), ("YOLO_SILENCE_SECONDS", "1m")]
    {
        let message = format!("{name} is `{value}`, which is not a whole number of seconds from 1");
        let run = user.start_with(&format!("train --data squares/squares.yaml {QUICK}"), &[(name, value)]);
        run.wait()
            .failed_with(2, &[&message, &format!("hint: write it without a unit, for example {name}=120")]);
    }
    assert!(!user.path().join("runs").exists());
}

#[test]
fn switches_are_checked() {
    let user = User::new();
    let run =
        user.start_with(&format!("train --data squares/squares.yaml {QUICK}"), &[("YOLO_OFFLINE", "maybe")]);
    run.wait()
        .failed_with(2, &["invalid value 'maybe' for '--offline'", "YOLO_OFFLINE takes 1, true, yes or on"]);
}

#[test]
fn an_empty_run_to_resume_is_not_the_newest() {
    let user = User::new();
    let message =
        "for '--resume [<LAST.PT>]': it is empty; without a value, --resume continues the newest run";
    user.run("train --resume=").failed_with(2, &[message]);
}

#[test]
fn invalid_numbers() {
    let user = User::new();
    for (arguments, message) in [
        ("train --epochs abc", "invalid value 'abc' for '--epochs <N>': not a whole number"),
        ("train --epochs 1.5", "invalid value '1.5' for '--epochs <N>': not a whole number"),
        ("train --epochs -1", "invalid value '-1' for '--epochs <N>': the number must not be negative"),
        ("train --seed 99999999999999999999", "for '--seed <N>': the number is too large"),
        ("train --label-smoothing much", "for '--label-smoothing <EPSILON>': not a number"),
        ("val --conf-thres 0,5", "invalid value '0,5' for '--conf-thres <CONFIDENCE>': not a number"),
        ("doctor --deep --nproc-per-node two", "for '--nproc-per-node <N>': not a whole number"),
        ("setup --wsl --nnodes 0", "for '--nnodes <N>': the number must be at least 1"),
    ] {
        user.run(arguments).failed_with(2, &[message]);
    }
}

/// Mistakes that are reported once a run starts, which on Windows is inside WSL.
#[cfg(unix)]
mod where_training_runs {
    use super::*;

    #[test]
    fn an_image_size_is_rounded_up_to_the_stride_with_a_warning() {
        let user = User::new();
        user.write_data_set();
        let output = user
            .run("train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 65 --batch 8 --epochs 1 --device cpu --workers 1")
            .succeeded();
        let warning = "warning: --imgsz 65 is not a multiple of the model's largest stride 32: using 96";
        assert!(output.stderr.contains(warning), "{}", output.stderr);
    }

    #[test]
    fn a_number_of_threads_that_is_none_is_a_warning() {
        let user = User::new();
        user.write_data_set();
        let run = user
            .start_with(&format!("train --data squares/squares.yaml {QUICK}"), &[("OMP_NUM_THREADS", "four")])
            .wait()
            .succeeded();
        let warning =
            "OMP_NUM_THREADS is \"four\": not a number of threads, so yolo divides the cores equally";
        assert!(run.stderr.contains(warning), "{}", run.stderr);
    }

    #[test]
    fn invalid_weights() {
        let user = User::new();
        user.write_data_set();
        let train =
            "train --data squares/squares.yaml --imgsz 64 --batch 8 --epochs 1 --device cpu --cfg yolov5n";
        let cases: [(&str, &[u8]); 3] = [
            ("page.pt", b"<!DOCTYPE html><html>Not found</html>"),
            ("cut.pt", b"PK\x03\x04\x14\0\0\0"),
            ("empty.pt", b""),
        ];
        for (name, bytes) in cases {
            std::fs::write(user.path().join(name), bytes).unwrap();
            user.run(&format!("{train} --weights {name}")).failed_with(1, &[name]);
        }
        user.run(&format!("{train} --weights nothing.pt")).failed_with(1, &["nothing.pt"]);
    }

    #[test]
    fn invalid_labels_and_images_are_named_and_skipped() {
        let user = User::new();
        user.write_data_set();
        let labels = user.path().join("squares/labels/train");
        let images = user.path().join("squares/images/train");
        std::fs::write(labels.join("00.txt"), "0 0.5 0.5 0.2\n").unwrap();
        std::fs::write(labels.join("01.txt"), "0 0.5 0.5 1.5 0.2\n").unwrap();
        std::fs::write(labels.join("02.txt"), "0 nan 0.5 0.5 0.2\n").unwrap();
        std::fs::write(images.join("03.jpg"), "this is text").unwrap();
        std::fs::write(images.join("04.jpg"), "").unwrap();
        let output = user.run(&format!("train --data squares/squares.yaml {QUICK}")).succeeded();
        for word in ["00.bmp", "01.bmp", "02.bmp", "03.jpg", "04.jpg", "5 corrupt"] {
            assert!(output.stderr.contains(word), "{word} is not in:\n{}", output.stderr);
        }

        std::fs::write(labels.join("05.txt"), "7 0.5 0.5 0.2 0.2\n").unwrap();
        user.run(&format!("train --data squares/squares.yaml {QUICK}"))
            .failed_with(1, &["05.txt:1: class 7"]);
    }

    #[test]
    fn an_unusable_run_folder() {
        let user = User::new();
        let yaml = user.write_data_set();
        let text = std::fs::read_to_string(&yaml).unwrap();
        std::fs::write(yaml, format!("{text}nc: 3\n")).unwrap();
        std::fs::write(user.path().join("file"), "").unwrap();
        let output = user
            .run(&format!("train --data squares/squares.yaml {QUICK} --project file/runs"))
            .failed_with(1, &["file/runs", "nc is 3 but names has 2 classes"]);
        let warnings = output.stderr.lines().filter(|line| line.contains("nc")).count();
        assert_eq!(warnings, 1, "planning and preflight both warn:\n{}", output.stderr);
    }
}
