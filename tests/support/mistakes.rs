//! Mistakes that options show by themselves, whatever the machine and the files are, each with what its message says.
//! The messages are the same on Linux and at a Windows prompt.

#![allow(unreachable_pub, reason = "each test program uses it")]

/// Those of `yolo train`.
pub const OF_TRAINING: [(&str, &str); 12] = [
    ("--batch 0", "--batch 0 is not a number of images"),
    ("--batch-split a,b", "--batch-split a,b: \"a\" is not a number of images"),
    ("--batch -1 --batch-split 4,4", "--batch -1 and --batch-split are both given"),
    ("--epochs 0", "--epochs 0 is not a number from 1"),
    ("--nbs 0", "--nbs 0 is not a number from 1"),
    ("--imgsz 0", "--imgsz 0 is not a number of pixels"),
    ("--label-smoothing 1", "--label-smoothing 1 is not a number from 0"),
    ("--name .", "--name \".\" is not a valid name"),
    ("--data=", "--data is empty"),
    ("--weights= --cfg=", "--weights and --cfg are both empty"),
    ("--parallel dp --nproc-per-node 2", "--nproc-per-node cannot be used with --parallel dp"),
    ("--node-rank 1", "--node-rank is given, but the run has one machine"),
];

/// Those of `yolo val`.
pub const OF_VALIDATION: [(&str, &str); 7] = [
    ("--task everything", "--task everything is not one of train, val, test, speed and study"),
    ("--conf-thres 1.5", "--conf-thres 1.5 is not a number from 0 to 1"),
    ("--iou-thres -1", "--iou-thres -1 is not a number from 0 to 1"),
    ("--max-det 0", "--max-det 0 would discard every detection"),
    ("--batch 0", "--batch 0 is not a number of images"),
    ("--imgsz 0", "--imgsz 0 is not a number of pixels"),
    ("--name=", "--name \"\" is not a valid name"),
];
