//! How GNU tools link `yolo.exe`. Wine maps a program from its file only if its sections begin at page boundaries there;
//! otherwise it reads the whole file at each start. The names of functions, which only debuggers use, are left out.

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
