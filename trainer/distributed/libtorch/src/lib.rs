//! Where libtorch lies for a build: LIBTORCH, which `.cargo/config.toml` sets to the link that
//! `yolo setup` leaves, with LIBTORCH_INCLUDE and LIBTORCH_LIB for its two halves, as torch-sys
//! reads them. For build scripts: what is looked at is told to cargo, so that a build starts again
//! when libtorch comes, goes, or is another one.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo through stdout")]

use std::env;
use std::path::PathBuf;

/// A header that only a libtorch with headers for the distributed engine has.
const HEADER: &str = "include/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp";

/// Headers and libraries of a libtorch that is there.
#[derive(Debug, Clone)]
pub struct Libtorch {
    /// The folder of headers.
    pub include: PathBuf,
    /// The folder of libraries, with links resolved: a program that was built goes on finding its
    /// libraries when a link moves on.
    pub lib: PathBuf,
}

impl Libtorch {
    /// Looks for libtorch.
    ///
    /// # Errors
    /// One line that says what is missing and what to type.
    pub fn find() -> Result<Self, String> {
        let root = variable("LIBTORCH");
        let include = variable("LIBTORCH_INCLUDE").or_else(|| root.clone());
        let lib = variable("LIBTORCH_LIB").or(root);
        let (Some(include), Some(lib)) = (include, lib) else {
            return Err(missing("LIBTORCH is not set"));
        };
        // A link that now leads to another libtorch shows in these files; one that does not exist
        // counts as changed.
        for file in [include.join(HEADER), lib.join("lib").join(library_name())] {
            println!("cargo::rerun-if-changed={}", file.display());
            if !file.is_file() {
                return Err(missing(&format!("there is no {}", file.display())));
            }
        }
        let lib = lib.join("lib");
        let lib = lib.canonicalize().map_err(|error| format!("{} cannot be read: {error}", lib.display()))?;
        Ok(Self { include: include.join("include"), lib })
    }

    /// Gives the programs of the package that is built the run path of these libraries. It is a
    /// RUNPATH, never an RPATH: LD_LIBRARY_PATH has to win, since `yolo` chooses a variant by it.
    pub fn set_run_path(&self) {
        let lib = self.lib.display();
        match target_os().as_str() {
            "linux" => println!("cargo::rustc-link-arg=-Wl,--enable-new-dtags,-rpath,{lib}"),
            "macos" => println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}"),
            _ => {}
        }
    }
}

fn missing(what: &str) -> String {
    format!(
        "libtorch was not found: {what}. In the yolo checkout run `cargo run --release -- setup`; \
         elsewhere set LIBTORCH to an unpacked libtorch 2.11.0"
    )
}

/// An environment variable whose change starts a build again.
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
