//! Ends a build without libtorch in one line. Cargo runs first what most packages wait for, and so
//! this package stands among the dependencies of all that is tested: its answer comes minutes
//! before that of torch-sys, which is a page of C++ errors.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo through stdout")]

#[allow(dead_code, unreachable_pub, reason = "the build scripts of others use the rest")]
#[path = "src/lib.rs"]
mod installed;

fn main() {
    if let Err(message) = installed::Libtorch::find() {
        println!("cargo::error={message}");
    }
}
