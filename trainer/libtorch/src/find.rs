//! Locates libtorch through the environment variables that torch-sys reads, and tells cargo what to
//! watch, so that a build reruns when libtorch appears, disappears or changes.

use std::env;
use std::path::PathBuf;

/// Only a libtorch that ships the headers of its distributed engine has this file.
const HEADER: &str = "include/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp";

/// An installed libtorch with headers.
#[derive(Debug, Clone)]
pub struct Libtorch {
    /// The directory of headers.
    pub include: PathBuf,
    /// The directory of libraries, with symbolic links resolved: a program that is already built
    /// still finds its libraries after a link is redirected.
    pub lib: PathBuf,
}

impl Libtorch {
    /// Looks at `LIBTORCH_INCLUDE` and `LIBTORCH_LIB`, then at `LIBTORCH`.
    ///
    /// # Errors
    /// One line that names what is missing and what to do.
    pub fn find() -> Result<Self, String> {
        let root = variable("LIBTORCH");
        let include = variable("LIBTORCH_INCLUDE").or_else(|| root.clone());
        let lib = variable("LIBTORCH_LIB").or(root);
        let (Some(include), Some(lib)) = (include, lib) else {
            return Err(not_found("LIBTORCH is not set"));
        };
        // If a link is redirected to another libtorch, these files change. Cargo treats a missing
        // file as changed.
        for file in [include.join(HEADER), lib.join("lib").join(library_name())] {
            println!("cargo::rerun-if-changed={}", file.display());
            if !file.is_file() {
                return Err(not_found(&format!("{} does not exist", file.display())));
            }
        }
        let lib = lib.join("lib");
        let lib = lib.canonicalize().map_err(|error| format!("cannot read {}: {error}", lib.display()))?;
        Ok(Self { include: include.join("include"), lib })
    }

    /// Gives the binaries, tests and examples of the package being built a run path to these
    /// libraries. It is a RUNPATH, not an RPATH, so LD_LIBRARY_PATH can select another libtorch.
    pub fn set_run_path(&self) {
        let lib = self.lib.display();
        match target_os().as_str() {
            "linux" => println!("cargo::rustc-link-arg=-Wl,--enable-new-dtags,-rpath,{lib}"),
            "macos" => println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}"),
            _ => {}
        }
    }
}

fn not_found(reason: &str) -> String {
    format!(
        "libtorch was not found: {reason}. In the yolo checkout run `cargo run --release -- setup`; \
         elsewhere set LIBTORCH to the directory of an unpacked libtorch 2.11.0"
    )
}

/// Reads an environment variable and reruns the build when it changes.
fn variable(name: &str) -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The library that every libtorch has.
fn library_name() -> &'static str {
    match target_os().as_str() {
        "windows" => "torch_cpu.lib",
        "macos" => "libtorch_cpu.dylib",
        _ => "libtorch_cpu.so",
    }
}

/// The target operating system, which may differ from the host's.
fn target_os() -> String {
    env::var("CARGO_CFG_TARGET_OS").unwrap_or_default()
}
