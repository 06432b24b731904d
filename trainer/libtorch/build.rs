//! Fails the build with one line when libtorch is missing. Every package that links libtorch builds
//! this one first, so the error appears before torch-sys prints a page of C++ errors.

#![allow(clippy::print_stdout, reason = "build scripts talk to cargo through stdout")]

#[allow(dead_code, unreachable_pub, reason = "other build scripts use the rest")]
#[path = "src/find.rs"]
mod find;

fn main() {
    if let Err(message) = find::Libtorch::find() {
        println!("cargo::error={message}");
    }
}
