//! Options of `yolo train` and `yolo val`: each run is compared with one that differs only in that
//! option. Runs with the same seed are identical to the last bit, so any difference comes from
//! that option.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, read};
use user::{Finished, TRAIN, User};

const VAL: &str = "val --data squares/squares.yaml --weights first/exp/weights/best.pt --imgsz 64 --batch 4 \
                   --device cpu";

fn weights(user: &User, name: &str) -> IndexMap<String, TensorData> {
    read(&user.path().join("runs/train").join(name).join("weights/last.pt")).unwrap().tensors
}

fn train(user: &User, name: &str, arguments: &str) -> Finished {
    user.run(&format!("{TRAIN} --epochs 2 {arguments} --name {name}")).succeeded()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn options_that_change_the_weights() {
    let user = User::new();
    user.write_data_set();
    train(&user, "plain", "");
    let plain = weights(&user, "plain");
    train(&user, "again", "");
    assert!(weights(&user, "again") == plain, "two runs with the same seed differ");
    for (name, arguments) in [
        ("adam", "--optimizer Adam"),
        ("adamw", "--optimizer AdamW"),
        ("smooth", "--label-smoothing 0.1"),
        ("rect", "--rect"),
        ("scales", "--multi-scale"),
        ("weighted", "--image-weights"),
        ("quad", "--quad"),
        ("freeze", "--freeze 3"),
        ("list", "--freeze 1 7"),
        ("bf16", "--precision bf16"),
        ("seed", "--seed 7"),
        ("hyp", "--hyp high"),
        ("nominal", "--nbs 4"),
    ] {
        train(&user, name, arguments);
        assert!(weights(&user, name) != plain, "{arguments} had no effect");
    }
    let both = train(&user, "both", "--rect --image-weights");
    assert!(both.stderr.contains("warning: --rect has no effect with --image-weights"), "{}", both.stderr);
    assert!(weights(&user, "both") == weights(&user, "weighted"), "--image-weights does not replace --rect");

    train(&user, "fp32", "--precision fp32");
    assert!(weights(&user, "fp32") == plain, "--precision fp32 is not the default on the CPU");
    // Whether the fastest algorithms have other results depends on the processor.
    train(&user, "fast", "--nondeterministic");
    let settings = |name: &str| {
        std::fs::read_to_string(user.path().join("runs/train").join(name).join("opt.yaml")).unwrap()
    };
    assert!(
        settings("fast").contains("nondeterministic: true")
            && settings("plain").contains("nondeterministic: false")
    );
    // After one of two epochs, both schedules have the same value; three epochs are needed.
    train(&user, "line", "--epochs 3");
    train(&user, "cosine", "--epochs 3 --cos-lr");
    assert!(weights(&user, "cosine") != weights(&user, "line"), "--cos-lr had no effect");

    train(&user, "single", "--single-cls");
    let single = read(&user.path().join("runs/train/single/weights/last.pt")).unwrap();
    assert_eq!(single.names.unwrap(), ["item"]);

    // The default anchors fit the squares; with a small anchor_t, they count as unfit.
    let hyp = std::fs::read_to_string(user.path().join("runs/train/plain/hyp.yaml")).unwrap();
    std::fs::write(user.path().join("strict.yaml"), format!("{hyp}\nanchor_t: 1.15\n")).unwrap();
    train(&user, "fitted", "--hyp strict.yaml");
    train(&user, "unfitted", "--hyp strict.yaml --noautoanchor");
    assert!(weights(&user, "fitted") != weights(&user, "unfitted"), "--noautoanchor had no effect");

    let two = train(&user, "two", "--nproc-per-node 2");
    assert_eq!(two.stderr.matches("communicating over gloo: the ranks are on the CPU").count(), 1);
    let gloo = train(&user, "gloo", "--nproc-per-node 2 --backend gloo");
    assert!(!gloo.stderr.contains("communicating over"), "{}", gloo.stderr);
    assert!(weights(&user, "gloo") == weights(&user, "two"), "--backend gloo is not what auto chooses");
    train(&user, "more", "--nproc-per-node 2 --batch 16");
    for (options, without) in [
        ("--quad", "two"),
        ("--image-weights", "two"),
        // With a batch of 8, a rank would have one image, which --multi-scale can make too small to normalize over.
        ("--batch 16 --quad --image-weights --multi-scale --rect", "more"),
    ] {
        let name = format!("two{}", options.replace([' ', '-'], ""));
        train(&user, &name, &format!("--nproc-per-node 2 {options}"));
        assert!(weights(&user, &name) != weights(&user, without), "{options} had no effect on two ranks");
    }
    train(&user, "sync", "--nproc-per-node 2 --sync-bn");
    assert!(weights(&user, "sync") != weights(&user, "two"), "--sync-bn had no effect");
    train(&user, "same", "--device cpu,cpu --batch-split 4,4");
    assert!(weights(&user, "same") == weights(&user, "two"), "--batch-split 4,4 is not the equal split");
    // The batch, 7 images, is not a multiple of two ranks.
    train(&user, "split", "--device cpu,cpu --batch 7 --batch-split 5,2");
    assert!(weights(&user, "split") != weights(&user, "two"), "--batch-split had no effect");

    train(&user, "replicas", "--device cpu,cpu --parallel dp");
    for other in ["plain", "two"] {
        // Ranks average over the objects of each, and one device normalizes over the whole batch.
        assert!(weights(&user, "replicas") != weights(&user, other), "--parallel dp trains as {other}");
    }
    train(&user, "spread", "--device cpu,cpu --parallel model");
    assert!(weights(&user, "spread") == plain, "--parallel model computes something else than one device");
    train(&user, "ddp", "--device cpu,cpu --parallel ddp");
    assert!(weights(&user, "ddp") == weights(&user, "two"), "--parallel ddp is not the default");

    // With as many boxes on all images there is nothing to balance.
    train(&user, "even", "--nproc-per-node 2 --balance boxes");
    assert!(weights(&user, "even") == weights(&user, "two"), "--balance moved images that cost the same");
    for index in 0..5 {
        let label = user.path().join(format!("squares/labels/train/{index:02}.txt"));
        let text = std::fs::read_to_string(&label).unwrap();
        let shifted: String = (1..9).map(|step| format!("0 0.{step} 0.5 0.1 0.1\n")).collect();
        std::fs::write(label, text + &shifted).unwrap();
    }
    train(&user, "uneven", "--nproc-per-node 2");
    train(&user, "boxes", "--nproc-per-node 2 --balance boxes");
    assert!(weights(&user, "boxes") != weights(&user, "uneven"), "--balance boxes had no effect");
}

#[test]
fn options_that_change_only_the_files() {
    let user = User::new();
    user.write_data_set();
    train(&user, "plain", "--save-period 1");
    let plain = weights(&user, "plain");
    let run = |name: &str| user.path().join("runs/train").join(name);
    assert_eq!(names_in(&run("plain").join("weights")), ["best.pt", "epoch0.pt", "epoch1.pt", "last.pt"]);
    for (name, arguments) in [
        ("ram", "--cache"),
        ("disk", "--cache disk"),
        ("again", "--cache disk"),
        ("bare", "--noplots --nosave"),
        // The thread that trains loads the images.
        ("alone", "--workers 0"),
    ] {
        train(&user, name, arguments);
        assert!(weights(&user, name) == plain, "{arguments} changed the weights");
    }
    let images = names_in(&user.path().join("squares/images/train"));
    assert_eq!(images.iter().filter(|name| name.ends_with("-linear.yolo-img")).count(), 16);
    let is_plot = |name: &String| [".svg", ".jpg", ".png"].iter().any(|ending| name.ends_with(ending));
    assert!(names_in(&run("plain")).iter().any(is_plot));
    assert!(!names_in(&run("bare")).iter().any(is_plot), "{:?}", names_in(&run("bare")));

    train(&user, "late", "--noval");
    let rows = std::fs::read_to_string(run("late").join("results.csv")).unwrap();
    let losses: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').nth(8).unwrap().trim()).collect();
    assert!(losses[0] == "0" && losses[1] != "0", "validation must run after the last epoch only:\n{rows}");

    let stopped = train(&user, "patience", "--epochs 9 --patience 1 --noautoanchor");
    let rows = std::fs::read_to_string(run("patience").join("results.csv")).unwrap();
    assert!(rows.lines().count() < 10 && stopped.stderr.contains("stopped early"), "{}", stopped.stderr);
}

#[test]
fn unsupported_options_are_usage_errors() {
    let user = User::new();
    user.write_data_set();
    for option in ["--adam", "--bucket x", "--quad --batch 6"] {
        let output = user.run(&format!("{TRAIN} {option}"));
        assert_eq!(output.code, Some(2), "{option}: {}", output.stderr);
    }
}

#[test]
fn options_of_tracking_services_are_ignored_with_one_warning() {
    let user = User::new();
    user.write_data_set();
    train(&user, "plain", "--epochs 1");
    let ignored = train(
        &user,
        "ignored",
        "--epochs 1 --entity team --upload_dataset --bbox_interval 2 --local_rank -1",
    );
    assert!(weights(&user, "ignored") == weights(&user, "plain"));
    assert_eq!(ignored.stderr.matches("warning: ").count(), 1, "{}", ignored.stderr);
    assert!(ignored.stderr.contains("--bbox_interval have no effect"), "{}", ignored.stderr);
    user.run(&format!("{TRAIN} --bucket gs://mine"))
        .failed_with(2, &["--bucket gs://mine: yolo uploads nothing", "run folder"]);
}

#[test]
fn options_of_val() {
    let user = User::new();
    user.write_data_set();
    let yaml = user.path().join("squares/squares.yaml");
    let text = std::fs::read_to_string(&yaml).unwrap();
    std::fs::write(&yaml, format!("{text}test: images/train\n")).unwrap();
    user.run(&format!("{TRAIN} --epochs 6 --project first")).succeeded();
    let val = |name: &str, arguments: &str| user.run(&format!("{VAL} {arguments} --name {name}")).succeeded();
    let folder = |name: &str| user.path().join("runs/val").join(name);
    let plain = val("plain", "");

    val("text", "--save-txt");
    let of_one = std::fs::read_to_string(folder("text").join("labels/00.txt")).unwrap();
    assert!(
        of_one.lines().count() > 0 && of_one.lines().all(|line| line.split(' ').count() == 5),
        "{of_one}"
    );
    val("conf", "--save-txt --save-conf");
    let of_one = std::fs::read_to_string(folder("conf").join("labels/00.txt")).unwrap();
    assert!(
        of_one.lines().count() > 0 && of_one.lines().all(|line| line.split(' ').count() == 6),
        "{of_one}"
    );
    val("json", "--save-json");
    let found = std::fs::read_to_string(folder("json").join("best_predictions.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let found = found.as_array().unwrap();
    assert!(!found.is_empty() && found.iter().all(|one| one["bbox"].as_array().unwrap().len() == 4));
    let coco = val("coco", "--save-json");
    assert!(coco.stdout.contains("IoU=0.50:0.95 | area=   all | maxDets=100 ] = "), "{}", coco.stdout);
    assert!(folder("coco").join("annotations.json").is_file());
    // Labels count as detections with confidence 1, so all are found.
    assert!(val("hybrid", "--save-hybrid").table().contains("0.995"));
    assert!(folder("hybrid").join("labels/00.txt").is_file());

    assert_ne!(val("augment", "--augment").table(), plain.table());
    assert_ne!(val("few", "--max-det 1").table(), plain.table());
    assert_ne!(val("strict", "--conf-thres 0.9").table(), plain.table());
    assert_ne!(val("overlap", "--iou-thres 0.01").table(), plain.table());
    // "all", images and labels.
    let counts = |output: &Finished| -> Vec<String> {
        output.table().split_whitespace().take(3).map(str::to_owned).collect()
    };
    assert_eq!(counts(&val("train", "--task train"))[1], "16");
    assert_eq!(counts(&val("test", "--task test"))[1], "16");
    // Speed is measured on square batches without padding, but on the same images and labels.
    let speed = val("speed", "--task speed");
    assert!(!folder("speed").join("PR_curve.svg").exists(), "drawing would take time that is measured");
    assert_eq!(counts(&speed), counts(&plain));
    let dnn = val("dnn", "--dnn");
    assert!(dnn.stderr.contains("warning: --dnn"), "{}", dnn.stderr);
    assert_eq!(dnn.table(), plain.table());
    user.run(&format!("{VAL} --half")).failed_with(2, &["--half contradicts --device cpu", "CUDA"]);
    // With few classes, the table has a row per class anyway.
    assert_eq!(val("verbose", "--verbose").table(), plain.table());
    for workers in ["--workers 2", "--workers 0"] {
        assert_eq!(val("workers", workers).table(), plain.table());
    }
    // Two classes in the weights, one in the table.
    let single = val("single", "--single-cls --save-txt");
    assert_eq!(counts(&single), counts(&plain));
    assert!(plain.stdout.contains("red") && !single.stdout.contains("red"), "{}", single.stdout);
    let of_one = std::fs::read_to_string(folder("single").join("labels/00.txt")).unwrap();
    assert!(!of_one.is_empty() && of_one.lines().all(|line| line.starts_with("0 ")), "{of_one}");
    user.run(&format!("{VAL} --task everything")).failed_with(2, &["everything", "speed"]);
}

#[test]
fn a_study_writes_a_line_per_image_size() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --project first")).succeeded();
    // One image, since the largest size is 1536 pixels.
    let squares = user.path().join("squares");
    for (kind, file) in [("images", "00.bmp"), ("labels", "00.txt")] {
        std::fs::create_dir_all(squares.join(kind).join("one")).unwrap();
        std::fs::copy(squares.join(kind).join("val").join(file), squares.join(kind).join("one").join(file))
            .unwrap();
    }
    let yaml = "path: .\ntrain: images/train\nval: images/one\nnames: [red, blue]\n";
    std::fs::write(squares.join("one.yaml"), yaml).unwrap();
    let arguments = VAL.replace("squares.yaml", "one.yaml");
    let output = user.run(&format!("{arguments} --task study --name study")).succeeded();
    let tables = output.stdout.lines().filter(|line| line.trim_start().starts_with("all ")).count();
    assert_eq!(tables, 11, "{}", output.stdout);

    let text = std::fs::read_to_string(user.path().join("runs/val/study/study_one_best.txt")).unwrap();
    let lines: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(lines.len(), 11, "image sizes 256 to 1536 in steps of 128");
    for line in lines {
        let (metrics, times) = line.split_at(4);
        assert!(metrics.iter().all(|metric| (0.0..=1.0).contains(metric)), "{line:?}");
        let (losses, milliseconds) = times.split_at(3);
        assert_eq!(losses, [0.0; 3]);
        assert_eq!(milliseconds.len(), 3, "pre-processing, inference, NMS");
        assert!(milliseconds.iter().all(|time| *time > 0.0), "{line:?}");
    }
    let plot = std::fs::read_to_string(user.path().join("runs/val/study/study.svg")).unwrap();
    assert!(plot.contains("mAP50-95") && plot.contains("1536"));
}
