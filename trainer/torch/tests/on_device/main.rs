//! Runs this crate on a device and compares with the same computation on the CPU in double precision,
//! written with plain tch operations. `YOLO_TEST_DEVICE` names the device: `cpu`, the default, or
//! `cuda:0`. If the device cannot be used, every test fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod autocast;
mod compare;
mod copies;
mod host_waits;
mod layout;
mod lists;
mod memory;
mod optimizers;
mod scaler;
mod streams;

use std::process::Command;

use compare::{DEVICE, device};

#[test]
fn a_device_that_cannot_be_used_fails_a_test() {
    // This process must be able to use its own device.
    let _ = device();
    for name in ["cuda:4096", "gpu", ""] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["lists::tensors_become_zero", "--exact"]).env(DEVICE, name);
        let output = child.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!output.status.success(), "{DEVICE}={name} passed\n{said}");
        assert!(said.contains(&format!("{DEVICE}={name} cannot be used: ")), "{said}");
    }
}
