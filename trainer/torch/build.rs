//! Compiles the C++ shim in `csrc/` against libtorch and links it.

use libtorch_installed::Libtorch;

/// The shim's sources, one per header.
const SOURCES: &[&str] = &["autocast", "context", "error", "memory_format", "optimizer"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc");
    match Libtorch::find() {
        Ok(libtorch) => {
            libtorch
                .shim("tcht")
                .files(SOURCES.iter().map(|name| format!("csrc/{name}.cpp")))
                .compile("tch_train_shim");
            libtorch.link();
        }
        Err(message) => println!("cargo::error={message}"),
    }
}
