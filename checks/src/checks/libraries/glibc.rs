//! Whether libtorch runs on the system's C library: it needs glibc 2.28 (2018) or later, and does
//! not support musl, which Alpine Linux uses. A libtorch that LIBTORCH names may need a newer glibc: some of
//! PyTorch's zip files need 2.29 or 2.35 (mlverse/torch#1414).

use yolo_base::env::LIBTORCH;

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

/// The libraries of libtorch that need something of glibc's mathematics.
const OF_LIBTORCH: [&str; 2] = ["libtorch_cpu.so", "libc10.so"];

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
    if let Some(finding) = too_old_for_named(host, &name, &version) {
        return Ok(vec![finding]);
    }
    Ok(vec![Finding::ok("libraries.glibc", format!("glibc {version}"))])
}

/// The libtorch of the user's variable may have been built for a newer system than `yolo`'s own.
fn too_old_for_named(host: &Host, name: &str, version: &Version) -> Option<Finding> {
    let root = host.named_libtorch().ok()??;
    let need = OF_LIBTORCH.iter().filter_map(|library| {
        let path = format!("{root}/lib/{library}");
        Some((host.binary(&path).ok()??.glibc()?, path))
    });
    let (need, path) = need.into_iter().find(|(need, _)| version.is_older_than(need))?;
    let title = format!("{path} needs glibc {need}, but {name} has {version}");
    let finding = Finding::new("libraries.glibc-old", title)
        .because(format!(
            "LIBTORCH names a libtorch that was built for a newer system; the loader fails with \
             `version GLIBC_{need} not found`"
        ))
        .remedy("unset LIBTORCH, so that yolo uses its own libtorch, which needs glibc 2.28");
    Some(finding.command(format!("unset {LIBTORCH}")).command("yolo setup"))
}

/// As the system reports it, else from `ldd`, the library's file name, or the distribution's release.
pub(super) fn glibc(host: &Host) -> Result<Version, Unknown> {
    if let Ok(Some(output)) = host.command(&["getconf", "GNU_LIBC_VERSION"])
        && let Some(version) = Version::find(&output.text())
    {
        return Ok(version);
    }
    // ldd (Ubuntu GLIBC 2.27-3ubuntu1.6) 2.27
    let texts = host.recorded_outputs("ldd").into_iter().map(|(_, output)| output.all_text());
    let first_lines = texts.filter_map(|text| text.lines().next().map(ToOwned::to_owned));
    // Not the libraries of a program, which `ldd FILE` lists.
    let line = first_lines.into_iter().find(|line| line.starts_with("ldd"));
    if let Some(version) = line.and_then(|line| Version::find(line.split(')').next_back()?)) {
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
