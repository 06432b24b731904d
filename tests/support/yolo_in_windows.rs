//! `yolo.exe` on any system: commands that belong in WSL are started through the `wsl.exe` that `YOLO_WSL` names. For
//! tests on Linux, with the stand-in for `wsl.exe`.

fn main() -> std::process::ExitCode {
    yolo::run_as_in_windows()
}
