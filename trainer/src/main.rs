//! One rank of a run. `yolo` writes the plan and starts one `yolo-trainer PLAN` per device, with
//! the environment variables that torchrun sets. `--version` prints the version, which must be that
//! of `yolo`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use yolo_base::exit;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(argument), None) if argument == "--version" => {
            let text = concat!("yolo-trainer ", env!("CARGO_PKG_VERSION"), "\n");
            match std::io::stdout().write_all(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        (Some(plan), None) => yolo_trainer::rank::run(Path::new(&plan)),
        _ => {
            // Nothing is lost if stderr is closed: the exit status is the same.
            let _ = writeln!(
                std::io::stderr(),
                "usage: yolo-trainer PLAN.json\nyolo-trainer runs one rank; `yolo train` starts it"
            );
            ExitCode::from(exit::USAGE)
        }
    }
}
