//! A command typed in a folder of the distribution, as PowerShell shows it: `\\wsl.localhost\Ubuntu\home\ada`. Wine has such
//! folders if its prefix says where they are, which `.ci/windows` does, and starts a program in one only if that is the
//! folder of the program that starts it. So this is a program of its own.

#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "from_windows/pc.rs"]
mod pc;
#[path = "support/user.rs"]
mod user;

use std::path::Path;

use pc::{Pc, in_linux, windows_path};
use user::Finished;

#[test]
fn a_command_works_in_the_folder_of_the_distribution_in_which_it_is_typed() {
    let Some(pc) = Pc::with_linux(false) else { return };
    for server in ["wsl.localhost", "wsl$"] {
        let folder = format!(r"\\{server}\Ubuntu{}", in_linux(&pc.work()).replace('/', "\\"));
        assert!(Path::new(&folder).is_dir(), "{folder}: .ci/windows links it");
        std::env::set_current_dir(&folder).unwrap();
        let output = pc.command_here(&["val", "--weights", "yolov5n.pt", "--data", "missing.yaml"]).output();
        // Linux has looked for the file in this folder, which is also below a drive.
        let file = windows_path(&pc.work().join("missing.yaml"));
        Finished::from(output.unwrap()).failed_with(1, &[&file]);
    }
    // The temporary folder is removed.
    std::env::set_current_dir(r"C:\").unwrap();
}
