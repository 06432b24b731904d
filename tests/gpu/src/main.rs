//! `gpu-kit`, the program of the GPU acceptance kit. The script `run` of a packed kit starts it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gpu_kit::main())
}
