//! The command `yolo`.

fn main() -> std::process::ExitCode {
    yolo::run()
}
