//! Whether a library of the user's asks for an executable stack: glibc refuses such a library since 2.41, when
//! the program has no such stack. conda's libtorch of 2025 is one; the libtorch that `yolo` installs is not.

use yolo_base::env::LIBTORCH;

use super::glibc::glibc;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// The first glibc that refuses.
const FIRST_TO_REFUSE: [u32; 2] = [2, 41];
/// The libraries of libtorch that a rank loads.
const OF_LIBTORCH: [&str; 3] = ["libtorch_cpu.so", "libc10.so", "libtorch_cuda.so"];

pub(super) static CHECK: Check = Check {
    question: "Does the C library load the libraries that variables name?",
    reports: &["libraries.executable-stack"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let named = host.named_libtorch()?;
    let of_libtorch = named
        .iter()
        .flat_map(|root| OF_LIBTORCH.iter().map(move |name| (LIBTORCH, format!("{root}/lib/{name}"))));
    let preloaded = host.env("LD_PRELOAD")?.unwrap_or_default();
    let preloaded = preloaded.split([':', ' ']).filter(|path| path.starts_with('/'));
    let files = of_libtorch.chain(preloaded.map(|path| ("LD_PRELOAD", path.to_owned())));
    let asks = |path: &str| {
        host.binary(path).ok().flatten().and_then(|binary| binary.executable_stack) == Some(true)
    };
    let Some((variable, path)) = files.into_iter().find(|(_, path)| asks(path)) else {
        return Ok(Vec::new());
    };
    let version = glibc(host)?;
    if version.is_below(&FIRST_TO_REFUSE) {
        return Ok(Vec::new());
    }
    let title = format!("{path} asks for an executable stack, which glibc {version} refuses");
    let finding = Finding::new("libraries.executable-stack", title).seen(format!("{variable} names it"));
    let finding = finding.command(format!("unset {variable}"));
    Ok(vec![if variable == LIBTORCH { finding.command("yolo setup") } else { finding }])
}
