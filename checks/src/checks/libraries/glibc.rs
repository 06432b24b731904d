//! Whether libtorch runs on the system's C library: it needs glibc 2.28 (2018) or later, and does
//! not support musl, which Alpine Linux uses.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Unknown, Version};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does libtorch run on this system's C library?",
    reports: &["libraries.glibc", "libraries.glibc-old", "libraries.musl"],
    preflight: true,
    run,
};

/// PyTorch's wheels of 2.11 are manylinux_2_28.
const LEAST: [u32; 2] = [2, 28];

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let name = host.system().ok().and_then(|system| system.name).unwrap_or_else(|| "this system".to_owned());
    if host.is_musl() {
        let title = format!("{name} has the C library musl, but libtorch needs glibc");
        return Ok(vec![Finding::new("libraries.musl", title)]);
    }
    let version = glibc(host)?;
    if version.is_below(&LEAST) {
        let title = format!("{name} has glibc {version}, but libtorch needs 2.28 or later");
        return Ok(vec![Finding::new("libraries.glibc-old", title)]);
    }
    Ok(vec![Finding::ok("libraries.glibc", format!("glibc {version}"))])
}

/// As the system reports it, else from `ldd`, the library's file name, or the distribution's release.
fn glibc(host: &Host) -> Result<Version, Unknown> {
    if let Ok(Some(output)) = host.command(&["getconf", "GNU_LIBC_VERSION"])
        && let Some(version) = Version::find(&output.text())
    {
        return Ok(version);
    }
    // ldd (Ubuntu GLIBC 2.27-3ubuntu1.6) 2.27
    if let Some(text) = host.recorded_output("ldd")
        && let Some(version) =
            text.lines().next().and_then(|line| Version::find(line.split(')').next_back()?))
    {
        return Ok(version);
    }
    let library = host.library("libc.so.6").ok().and_then(|found| found.into_iter().next());
    let real = library.and_then(|library| library.real).unwrap_or_default();
    if let Some(version) = real.rsplit_once("libc-").and_then(|(_, rest)| Version::find(rest)) {
        return Ok(version);
    }
    let distribution = host.distribution()?;
    let of_release = distribution.version.and_then(|version| {
        RELEASES.iter().find(|(id, last, _)| *id == distribution.id && version.major() <= *last)
    });
    of_release
        .and_then(|(_, _, glibc)| Version::find(glibc))
        .ok_or_else(|| Unknown::because("the version of glibc is unknown"))
}

/// The glibc of each distribution, up to the listed release.
const RELEASES: [(&str, u32, &str); 14] = [
    ("centos", 7, "2.17"),
    ("rhel", 7, "2.17"),
    ("amzn", 2, "2.26"),
    ("debian", 8, "2.19"),
    ("debian", 9, "2.24"),
    ("debian", 10, "2.28"),
    ("debian", 11, "2.31"),
    ("debian", 12, "2.36"),
    ("ubuntu", 14, "2.19"),
    ("ubuntu", 16, "2.23"),
    ("ubuntu", 18, "2.27"),
    ("ubuntu", 20, "2.31"),
    ("ubuntu", 22, "2.35"),
    ("ubuntu", 24, "2.39"),
];
