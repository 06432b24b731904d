//! How `yolo.exe` is linked by GNU tools. Windows, and Wine, map a program into memory as it lies in its file if its parts
//! begin at pages; otherwise Wine reads all of it at each start. The names of functions are for debuggers only.

#![allow(clippy::print_stdout, reason = "build scripts talk to cargo through stdout")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "windows" && target("ENV") == "gnu" {
        for option in ["--file-alignment,4096", "--strip-all"] {
            println!("cargo:rustc-link-arg-bins=-Wl,{option}");
        }
    }
}
