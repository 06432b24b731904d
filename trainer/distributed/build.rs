//! Compiles the C++ shim in `csrc/` against libtorch and links it.

use std::env;
use std::path::Path;

use libtorch_installed::Libtorch;

/// The shim's sources, one for each header.
const SOURCES: &[&str] = &[
    "autocast",
    "context",
    "error",
    "memory_format",
    "optimizer",
    "process_group",
    "reducer",
    "store",
    "sync_batch_norm",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc");
    match Libtorch::find() {
        Ok(libtorch) => {
            compile(&libtorch);
            link(&libtorch);
        }
        Err(message) => println!("cargo::error={message}"),
    }
}

/// Builds `csrc/` into a static library.
fn compile(libtorch: &Libtorch) {
    println!("cargo::rerun-if-env-changed=LIBTORCH_CXX11_ABI");
    let abi = env::var("LIBTORCH_CXX11_ABI").unwrap_or_else(|_| "1".to_owned());
    let csrc = Path::new("csrc");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .pic(true)
        .warnings(false)
        .define("_GLIBCXX_USE_CXX11_ABI", abi.as_str())
        .define("USE_C10D_GLOO", None)
        .define("USE_DISTRIBUTED", None)
        .include(csrc.join("gloo_stubs"))
        .include(&libtorch.include)
        .include(libtorch.include.join("torch/csrc/api/include"))
        .files(SOURCES.iter().map(|name| csrc.join(name).with_extension("cpp")))
        .compile("tch_distributed_shim");
}

/// Links libtorch, and lets this package's own tests and examples find it at
/// run time. A program that depends on this crate sets its own run path.
fn link(libtorch: &Libtorch) {
    println!("cargo::rustc-link-search=native={}", libtorch.lib.display());
    println!("cargo::rustc-link-lib=torch_cpu");
    println!("cargo::rustc-link-lib=c10");
    libtorch.set_run_path();
}
