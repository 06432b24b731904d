//! Compiles and links the C++ shim of a crate that calls libtorch through a C ABI. All shims use
//! the same flags and the headers in `include/shim/`.

use std::env;
use std::path::{Path, PathBuf};

use crate::find::Libtorch;

/// Extra compiler flags for shims only, for example `-Werror` or `-fsanitize=address`. `CXXFLAGS`
/// would rebuild torch-sys as well.
const EXTRA_FLAGS: &str = "LIBTORCH_SHIM_CXXFLAGS";

/// The OpenMP run time that libtorch brings and computes with.
const OPENMP: &str = "libgomp.so.1";

/// All that the build script of a crate with a shim does: finds libtorch, compiles
/// `csrc/SOURCE.cpp` for each source and links the result. `configure` adds what only this shim needs.
/// Without libtorch the build fails with one line.
///
/// `namespace` is described at [`Libtorch::shim`].
pub fn build_shim(namespace: &str, sources: &[&str], configure: impl FnOnce(&mut cc::Build)) {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc");
    let libtorch = match Libtorch::find() {
        Ok(libtorch) => libtorch,
        Err(message) => return println!("cargo::error={message}"),
    };
    let mut build = libtorch.shim(namespace);
    build.files(sources.iter().map(|name| format!("csrc/{name}.cpp")));
    configure(&mut build);
    build.compile(&format!("{namespace}_shim"));
    libtorch.link();
}

impl Libtorch {
    /// A C++ compiler with libtorch's include path and ABI. Warnings are on for the shim and off
    /// for libtorch's headers.
    ///
    /// `namespace` is the C++ namespace in which the shim includes `shim/error.h` and
    /// `shim/tensors.h`. It must be unique in the final program, because each shim keeps its own
    /// error text.
    #[must_use]
    pub fn shim(&self, namespace: &str) -> cc::Build {
        let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        println!("cargo::rerun-if-changed={}", headers.display());
        println!("cargo::rerun-if-env-changed=LIBTORCH_CXX11_ABI");
        let abi = env::var("LIBTORCH_CXX11_ABI").unwrap_or_else(|_| "1".to_owned());
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .pic(true)
            .warnings(true)
            .extra_warnings(true)
            .define("_GLIBCXX_USE_CXX11_ABI", abi.as_str())
            .define("SHIM_NAMESPACE", namespace)
            .include(headers);
        for directory in [self.include.clone(), self.include.join("torch/csrc/api/include")] {
            system_include(&mut build, directory);
        }
        // Without it, `at::parallel_for` in libtorch's headers is a loop on one thread.
        if self.has_openmp() {
            build.flag("-fopenmp");
        }
        for flag in extra_flags() {
            build.flag(flag);
        }
        build
    }

    /// Whether shims can share libtorch's threads: both must use GCC's OpenMP. With another one, the program would
    /// have two sets of threads.
    fn has_openmp(&self) -> bool {
        let compiler = cc::Build::new().cpp(true).try_get_compiler();
        self.lib.join(OPENMP).is_file() && compiler.is_ok_and(|compiler| compiler.is_like_gnu())
    }

    /// Links libtorch, and gives the tests and examples of the package being built a run path to
    /// it. A program that depends on the package must set its own run path.
    pub fn link(&self) {
        println!("cargo::rustc-link-search=native={}", self.lib.display());
        println!("cargo::rustc-link-lib=torch_cpu");
        println!("cargo::rustc-link-lib=c10");
        if self.has_openmp() {
            println!("cargo::rustc-link-lib=dylib:+verbatim={OPENMP}");
        }
        // Cargo offers no flag that reaches the linker without rebuilding everything, so the
        // sanitizer's run-time library is linked like any other. Preload it to run the program.
        if extra_flags().iter().any(|flag| flag.starts_with("-fsanitize=address")) {
            println!("cargo::rustc-link-lib=asan");
        }
        self.set_run_path();
    }
}

/// Adds an include directory whose headers give no warnings.
fn system_include(build: &mut cc::Build, directory: PathBuf) {
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "msvc") {
        build.flag("/external:W0").flag(format!("/external:I{}", directory.display()));
    } else {
        build.flag("-isystem").flag(directory);
    }
}

fn extra_flags() -> Vec<String> {
    println!("cargo::rerun-if-env-changed={EXTRA_FLAGS}");
    env::var(EXTRA_FLAGS).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
