//! The command `yolo`.

use std::process::ExitCode;

fn main() -> ExitCode {
    yolo::run()
}
