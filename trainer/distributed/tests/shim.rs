//! The symbols of the compiled shim.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::process::Command;

/// The stubs of gloo are sound only while no code or vtable of gloo's classes is generated from them.
#[test]
fn the_shim_has_no_symbol_of_gloo_classes() {
    let archive = concat!(env!("OUT_DIR"), "/libtchd_shim.a");
    let output = Command::new("nm").args(["--demangle", archive]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let symbols = String::from_utf8(output.stdout).unwrap();
    assert!(symbols.contains(" T tchd_group_gloo"), "nm must list the shim");
    let of_gloo: Vec<&str> =
        symbols.lines().filter(|line| line.contains("GlooStore") || line.contains(" gloo::")).collect();
    assert!(of_gloo.is_empty(), "{of_gloo:#?}");
}
