//! Runs the trainer on a device and compares with the CPU: loss, gradients, steps, detections, metrics and
//! checkpoints. `YOLO_TEST_DEVICE` names the device: `cpu`, the default, or `cuda:0`. If the device
//! cannot be used, every test fails.
//!
//! The reference is the same model in double precision on the CPU, which it supports as it is, with loss,
//! decoding, metrics, optimizer and moving average written once more in plain tch operations. So a run
//! on the CPU is a test as well. TF32 is off.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says how close the results are"
)]

mod checkpoint;
mod compare;
mod detection;
mod deterministic;
mod gradients;
mod mixed;
mod models;
mod reference_boxes;
mod reference_loss;
mod reference_step;
mod scenes;
mod several_devices;
mod steps;

use std::process::Command;

use compare::device;
use yolo_base::env::YOLO_TEST_DEVICE;

#[test]
fn a_device_that_cannot_be_used_fails_a_test() {
    // This process must be able to use its own device.
    let _ = device();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child
        .args(["checkpoint::a_checkpoint_holds_the_bytes_of_the_device", "--exact"])
        .env(YOLO_TEST_DEVICE, "cuda:4096");
    let output = child.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("YOLO_TEST_DEVICE=cuda:4096 cannot be used: "), "{said}");
}
