//! Programs, headers and packages that the build of the driver's module needs and does not find, and how to install them.

use crate::facts::Host;
use crate::finding::Finding;

/// Programs and headers that a build needs, each with its package for apt, dnf, zypper and pacman.
const TOOLS: [(&str, [&str; 4]); 8] = [
    ("g++", ["g++", "gcc-c++", "gcc-c++", "gcc"]),
    ("c++", ["g++", "gcc-c++", "gcc-c++", "gcc"]),
    ("make", ["make"; 4]),
    ("ld", ["binutils"; 4]),
    ("flex", ["flex"; 4]),
    ("bison", ["bison"; 4]),
    ("bc", ["bc"; 4]),
    ("gelf.h", ["libelf-dev", "elfutils-libelf-devel", "libelf-devel", "libelf"]),
];

/// The program or header that a line misses: `/bin/sh: line 1: g++: command not found`, `gelf.h: No such file or directory`.
pub(super) fn tool(line: &str) -> Option<&'static (&'static str, [&'static str; 4])> {
    let is_missing = |name: &str| {
        let is_word = |at: usize| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|letter| letter.is_whitespace() || matches!(letter, '<' | '/'))
        };
        [": not found", ": command not found", ": No such file or directory"].iter().any(|end| {
            let is_file = end.ends_with("directory");
            let text = format!("{name}{end}");
            is_file == name.ends_with(".h") && line.match_indices(&text).any(|(at, _)| is_word(at))
        })
    };
    TOOLS.iter().find(|(name, _)| is_missing(name))
}

/// What akmods says is not installed: `gcc-c++ is needed by nvidia-kmod-3:590.48.01-1.fc43.x86_64`.
pub(super) fn needed(log: &str) -> Option<(&str, &str)> {
    log.lines().find_map(|line| {
        let (name, of) = line.split_once(" is needed by ")?;
        of.starts_with("nvidia").then_some((name.trim(), line.trim()))
    })
}

/// What the build needs is in a package of its own, which that of the driver does not ask for.
pub(super) fn with_tool(host: &Host, finding: Finding, line: &str, build: &str) -> Finding {
    let Some((name, packages)) = tool(line) else { return finding.command(build) };
    let finding = finding
        .because(format!("{name}, which the build of the driver's module needs, is not installed"))
        .remedy(format!("install {name}, then build and load the module"));
    let [apt, dnf, zypper, pacman] = packages;
    let install = host.package_command([
        &format!("sudo apt install {apt}"),
        &format!("sudo dnf install {dnf}"),
        &format!("sudo zypper install {zypper}"),
        &format!("sudo pacman -Syu {pacman}"),
    ]);
    install.into_iter().fold(finding, Finding::command).command(build).command("sudo modprobe nvidia")
}

/// Whether packages can be installed with dnf; not in an image, whose maker builds the module.
pub(super) fn has_dnf(host: &Host) -> bool {
    host.package_command(["", "dnf", "", ""]).is_some() && !host.is_image()
}

/// A package that akmods misses; its name may have a version: `kernel-devel-uname-r = 6.17.9`.
pub(super) fn with_needed(finding: Finding, name: &str, kernel: &str) -> Finding {
    finding
        .because(format!("{name}, which the build of the driver's module needs, is not installed"))
        .remedy("install it, then build and load the module")
        .command(format!("sudo dnf install '{name}'"))
        .command(format!("sudo akmods --force --kernels {kernel}"))
        .command("sudo modprobe nvidia")
}
