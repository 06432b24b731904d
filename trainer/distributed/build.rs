//! Compiles the C++ shim in `csrc/` against libtorch and links it. Finds
//! libtorch where torch-sys looks for it, by LIBTORCH, and says in one line
//! what to do when it is not there.
//!
//! It depends on no package that has a `links` key, on purpose: cargo then runs
//! it at once, before the build script of torch-sys, whose answer to a missing
//! libtorch is a page of C++ errors.

use std::env;
use std::path::{Path, PathBuf};

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

/// Where the headers and libraries of libtorch lie.
struct Libtorch {
    include: PathBuf,
    lib: PathBuf,
}

impl Libtorch {
    /// Reads LIBTORCH, and LIBTORCH_INCLUDE and LIBTORCH_LIB which override its
    /// two halves, as torch-sys does.
    fn find() -> Result<Self, String> {
        let root = variable("LIBTORCH");
        let include = variable("LIBTORCH_INCLUDE").or_else(|| root.clone());
        let lib = variable("LIBTORCH_LIB").or_else(|| root.clone());
        let (Some(include), Some(lib)) = (include, lib) else {
            return Err(missing("LIBTORCH is not set"));
        };
        let header = include.join("include/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp");
        let library = lib.join("lib").join(library_name());
        // A link that now leads to another libtorch shows in these files.
        for file in [&header, &library] {
            println!("cargo::rerun-if-changed={}", file.display());
            if !file.is_file() {
                return Err(missing(&format!("there is no {}", file.display())));
            }
        }
        // The run path holds the real folder, so that programs already built
        // keep their libraries when a link moves on.
        let lib = lib.join("lib");
        let lib = lib.canonicalize().map_err(|error| format!("{} cannot be read: {error}", lib.display()))?;
        Ok(Self { include: include.join("include"), lib })
    }
}

/// The one line of a build without libtorch.
fn missing(what: &str) -> String {
    format!(
        "libtorch was not found: {what}. In the yolo checkout run `cargo run --release -- setup`; \
         elsewhere set LIBTORCH to an unpacked libtorch 2.11.0"
    )
}

/// An environment variable whose change runs this script again.
fn variable(name: &str) -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The library whose presence tells a libtorch.
fn library_name() -> &'static str {
    match target_os().as_str() {
        "windows" => "torch_cpu.lib",
        "macos" => "libtorch_cpu.dylib",
        _ => "libtorch_cpu.so",
    }
}

/// The operating system built for, which need not be this one.
fn target_os() -> String {
    env::var("CARGO_CFG_TARGET_OS").unwrap_or_default()
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
    let lib = libtorch.lib.display();
    println!("cargo::rustc-link-search=native={lib}");
    println!("cargo::rustc-link-lib=torch_cpu");
    println!("cargo::rustc-link-lib=c10");
    if target_os() == "linux" {
        // A RUNPATH, unlike an RPATH, comes after LD_LIBRARY_PATH.
        println!("cargo::rustc-link-arg=-Wl,--enable-new-dtags,-rpath,{lib}");
    } else if target_os() == "macos" {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
