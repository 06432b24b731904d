//! Gives the trainer, its tests and benchmarks the run path of libtorch.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo through stdout")]

fn main() {
    match libtorch_installed::Libtorch::find() {
        Ok(libtorch) => libtorch.set_run_path(),
        Err(message) => println!("cargo::error={message}"),
    }
}
