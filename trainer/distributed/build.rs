//! Compiles the C++ shim in `csrc/` against libtorch and links it.

use libtorch_installed::Libtorch;

/// The shim's sources, one per header.
const SOURCES: &[&str] = &["error", "process_group", "reducer", "store", "sync_batch_norm"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc");
    match Libtorch::find() {
        Ok(libtorch) => {
            libtorch
                .shim("tchd")
                .define("USE_C10D_GLOO", None)
                .define("USE_DISTRIBUTED", None)
                .include("csrc/gloo_stubs")
                .files(SOURCES.iter().map(|name| format!("csrc/{name}.cpp")))
                .compile("tch_distributed_shim");
            libtorch.link();
        }
        Err(message) => println!("cargo::error={message}"),
    }
}
