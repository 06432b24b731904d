//! Gives the trainer, its tests and benchmarks the run path of libtorch, and says in one line what
//! to do where libtorch is not installed yet.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    let libtorch = PathBuf::from(std::env::var_os("LIBTORCH").unwrap_or_default());
    // A path that does not exist counts as changed, so this runs again after a setup.
    println!("cargo::rerun-if-changed={}", libtorch.join("build-version").display());
    let lib = libtorch.join("lib");
    let library = lib.join("libtorch_cpu.so");
    if !libtorch.join("include/torch/extension.h").is_file() || !library.is_file() {
        println!("cargo::error=libtorch is not installed; run `cargo run --release -- setup` first");
        return;
    }
    // The folder itself, not the link: a program goes on finding what it was built against.
    let lib = lib.canonicalize().unwrap_or(lib);
    // A RUNPATH, never an RPATH: LD_LIBRARY_PATH has to win, since yolo chooses a variant by it.
    println!("cargo::rustc-link-arg=-Wl,--enable-new-dtags,-rpath,{}", lib.display());
}
