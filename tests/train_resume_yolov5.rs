//! `yolo train --resume` of a run that YOLOv5 itself began: from its options to its last row, and what is refused. The
//! checkpoint is the small one of `trainer/tests/golden/generate_yolov5_run.py`, after one epoch of three.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use user::User;

/// The options of the run as YOLOv5 7.0 writes them.
const OPT: &str = "weights: yolov5n.pt\ncfg: ''\ndata: squares/squares.yaml\nhyp:\n  lr0: 0.01\nepochs: 3\nbatch_size: 8\n\
                   imgsz: 64\nrect: false\nresume: false\nnosave: false\nnoval: false\nnoautoanchor: false\n\
                   noplots: true\nevolve: null\nbucket: ''\ncache: null\nimage_weights: false\ndevice: cpu\n\
                   multi_scale: false\nsingle_cls: false\noptimizer: SGD\nsync_bn: false\nworkers: 1\n\
                   project: runs/train\nname: exp\nexist_ok: false\nquad: false\ncos_lr: false\n\
                   label_smoothing: 0.0\npatience: 100\nfreeze:\n- 0\nsave_period: -1\nseed: 0\nlocal_rank: -1\n\
                   entity: null\nupload_dataset: false\nbbox_interval: -1\nartifact_alias: latest\n\
                   hf_token: null\nsave_dir: runs/train/exp\n";
const HYP: &str = "lr0: 0.01\nlrf: 0.01\nmomentum: 0.937\nweight_decay: 0.0005\nwarmup_epochs: 3.0\n\
                   warmup_momentum: 0.8\nwarmup_bias_lr: 0.1\nbox: 0.05\ncls: 0.5\ncls_pw: 1.0\nobj: 1.0\n\
                   obj_pw: 1.0\niou_t: 0.2\nanchor_t: 4.0\nfl_gamma: 0.0\nhsv_h: 0.015\nhsv_s: 0.7\n\
                   hsv_v: 0.4\ndegrees: 0.0\ntranslate: 0.1\nscale: 0.5\nshear: 0.0\nperspective: 0.0\n\
                   flipud: 0.0\nfliplr: 0.5\nmosaic: 1.0\nmixup: 0.0\ncopy_paste: 0.0\n";
const COLUMNS: &str = "epoch,train/box_loss,train/obj_loss,train/cls_loss,metrics/precision,metrics/recall,\
                       metrics/mAP_0.5,metrics/mAP_0.5:0.95,val/box_loss,val/obj_loss,val/cls_loss,x/lr0,x/lr1,\
                       x/lr2,metrics/red_mAP,metrics/blue_mAP";
const ROW: &str = "0,0.1,0.05,0.04,0.01,0.02,0.03,0.04,0.1,0.04,0.04,0.08,0.002,0.002,0.5,0.25";

/// The folder of the run.
fn begun(user: &User) -> PathBuf {
    user.write_data_set();
    let run = user.path().join("runs/train/exp");
    std::fs::create_dir_all(run.join("weights")).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("trainer/tests/golden/yolov5_run.pt");
    std::fs::copy(golden, run.join("weights/last.pt")).unwrap();
    std::fs::write(run.join("opt.yaml"), OPT).unwrap();
    std::fs::write(run.join("hyp.yaml"), HYP).unwrap();
    std::fs::write(run.join("results.csv"), format!("{COLUMNS}\n{ROW}\n")).unwrap();
    run
}

#[test]
fn the_run_is_continued_in_its_folder() {
    let user = User::new();
    let run = begun(&user);
    let output = user.run("train --resume runs/train/exp/weights/last.pt").succeeded();
    assert!(output.stderr.contains("the run is one of YOLOv5: "), "{}", output.stderr);
    assert!(!output.stderr.contains("have no effect here"), "no option is lost: {}", output.stderr);
    let results = std::fs::read_to_string(run.join("results.csv")).unwrap();
    let lines: Vec<&str> = results.lines().collect();
    assert_eq!(lines[..2], [COLUMNS, ROW]);
    let epochs: Vec<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap().trim()).collect();
    assert_eq!(epochs, ["0", "1", "2"]);
    // The learning rates are those of epochs 2 and 3 of a run of three, in a warm-up of 100 steps.
    let rate = |line: &str, column| line.split(',').nth(column).unwrap().trim().parse::<f64>().unwrap();
    let of = |epoch: f64| (1.0 - epoch / 3.0) * 0.99 + 0.01;
    let bias = |epoch: f64, step: f64| 0.1 + (0.01 * of(epoch) - 0.1) * step / 100.0;
    assert!((rate(lines[2], 11) - bias(1.0, 3.0)).abs() < 1e-5, "{}", lines[2]);
    assert!((rate(lines[3], 12) - 0.01 * of(2.0) * 5.0 / 100.0).abs() < 1e-6, "{}", lines[3]);
    let options = std::fs::read_to_string(run.join("opt.yaml")).unwrap();
    for line in ["epochs: 3", "batch_size: 8", "imgsz: 64", "weights: \"yolov5n.pt\"", "nbs: 64"] {
        assert!(options.lines().any(|found| found == line), "{line}: {options}");
    }
    user.run("train --resume runs/train/exp").failed_with(1, &["is finished, so there is nothing to resume"]);
}

#[test]
fn the_newest_run_may_be_one_of_yolov5_and_ranks_may_change() {
    let user = User::new();
    let run = begun(&user);
    std::fs::write(run.join("opt.yaml"), OPT.replace("hf_token: null", "hf_token: secret\nlinear_lr: true"))
        .unwrap();
    let output = user.run("train --resume --device cpu,cpu --workers 1").succeeded();
    let lost = "hf_token and linear_lr of ";
    assert!(
        output.stderr.contains(lost) && output.stderr.contains("have no effect here"),
        "{}",
        output.stderr
    );
    let plan = std::fs::read_to_string(run.join("plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["ranks"]["world_size"], 2);
}

#[test]
fn what_is_missing_or_damaged_is_named() {
    let user = User::new();
    let run = begun(&user);
    let refused = |arguments: &str, status: i32, said: &[&str]| {
        user.run(&format!("train --resume runs/train/exp {arguments}")).failed_with(status, said);
        assert!(!run.join("plan.json").exists(), "the run was touched");
    };
    let opt = |old: &str, new: &str| std::fs::write(run.join("opt.yaml"), OPT.replace(old, new)).unwrap();
    opt("squares/squares.yaml", "gone/data.yaml");
    refused("", 1, &["the run of YOLOv5 in ", "gone/data.yaml", "opt.yaml, where you can correct them"]);
    opt("epochs: 3", "epochs: many");
    refused("", 1, &["opt.yaml: epochs is \"many\"; it must be a number"]);
    opt("batch_size: 8", "batch_size: -1");
    refused("", 1, &["opt.yaml: batch_size is -1", "write the number into the file"]);
    opt("epochs: 3\n", "");
    refused("", 1, &["has no `data` or no `epochs`"]);
    opt("epochs: 3", "epochs: [");
    refused("", 1, &["opt.yaml is not valid YAML"]);
    opt("", "");
    refused("--epochs 9", 2, &["--epochs cannot be changed with --resume"]);
    refused(
        "--nnodes 2 --node-rank 0 --master-addr 127.0.0.1",
        1,
        &["cannot be resumed on several machines"],
    );
    std::fs::remove_file(run.join("hyp.yaml")).unwrap();
    refused("", 1, &["its hyperparameters, ", "hyp.yaml, are missing"]);
    std::fs::write(run.join("hyp.yaml"), HYP).unwrap();
    let last = run.join("weights/last.pt");
    let bytes = std::fs::read(&last).unwrap();
    std::fs::write(&last, &bytes[..bytes.len() / 2]).unwrap();
    refused("", 1, &["the run cannot be resumed: ", "last.pt is truncated"]);
    std::fs::write(&last, bytes).unwrap();
    std::fs::remove_file(run.join("opt.yaml")).unwrap();
    refused("", 1, &["there is neither plan.json nor the opt.yaml of YOLOv5", "--weights"]);
}
