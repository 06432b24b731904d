//! One rank of a run. `yolo` writes the plan and starts one `yolo-trainer PLAN` a device, with the
//! environment that torchrun gives; `--version` tells the version, which must be the command's.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(word), None) if word == "--version" => {
            let text = concat!("yolo-trainer ", env!("CARGO_PKG_VERSION"), "\n");
            match std::io::stdout().write_all(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        (Some(plan), None) => yolo_trainer::rank::run(Path::new(&plan)),
        _ => {
            // Nothing is lost when stderr is closed: the exit code says it too.
            let _ = writeln!(
                std::io::stderr(),
                "yolo-trainer is one rank of a run and is started by `yolo train`: yolo-trainer PLAN.json"
            );
            ExitCode::from(2)
        }
    }
}
