//! Why a build of NVIDIA's module failed, from the logs of dkms and of Fedora's akmods. Headers, which are the usual
//! remedy, do not help then.

use super::build_tools::{has_dnf, needed, tool, with_needed, with_tool};
use super::{arch, newer_branch, restart::restart};
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// A line of a log by which a fault is known, with the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// The disk was full.
    Space,
    /// The machine had no memory left for the compiler.
    Memory,
    /// A program or header that the build needs is missing.
    Tool,
    /// The compiler is older than the one that built the kernel, and does not know its options; or it is missing.
    Compiler,
    /// The kernel was made for real-time work, which the driver refuses.
    RealTime,
    /// The headers are there in part only.
    Headers,
    /// The compiler crashed.
    Crash,
    /// This version of the compiler crashes at each try.
    CompilerBug,
    /// The kernel is newer than the source of the driver.
    Source,
}

/// The file of the driver at which GCC 16 crashes (NVIDIA/open-gpu-kernel-modules#1213).
const OF_GCC_BUG: &str = "flcn_ls10.c";

/// The line that says why, and what it means. The causes that make others follow come first.
fn fault(log: &str, has_headers: bool) -> Option<(Fault, &str)> {
    // A log with all commands has the rules of make too, with the messages that they would print.
    let is_rule = |line: &str| line.contains("echo ") || line.contains("test -e");
    let find = |texts: &[&str]| {
        let is_it = |line: &&str| texts.iter().any(|text| line.contains(text)) && !is_rule(line);
        log.lines().find(is_it).map(str::trim)
    };
    if let Some(line) = log.lines().find(|line| tool(line).is_some()) {
        return Some((Fault::Tool, line.trim()));
    }
    // Notes about unknown options follow every error; only as an error do they say something.
    const OF_COMPILER: [&str; 15] = [
        "error: unrecognized command-line option",
        "error: unrecognized command line option",
        "Compiler version check failed",
        "Failed CC version check",
        "Failed CC sanity check",
        "cc: not found",
        "gcc: not found",
        "gcc: command not found",
        "cc: command not found",
        // A kernel that was built with LLVM.
        "clang: not found",
        "clang: command not found",
        "ld.lld: not found",
        "ld.lld: command not found",
        "llvm-ar: not found",
        "llvm-nm: not found",
    ];
    const REAL_TIME: [&str; 2] = ["is a PREEMPT_RT kernel", "Failed PREEMPT_RT sanity check"];
    const HEADERS: [&str; 2] = ["Kernel configuration is invalid", "include/generated/autoconf.h or"];
    const CRASH: [&str; 3] = [
        "internal compiler error",
        "Segmentation fault signal terminated",
        "Segmentation fault (core dumped)",
    ];
    const SPACE: [&str; 1] = ["No space left on device"];
    const MEMORY: [&str; 4] = [
        "Killed signal terminated program",
        "Cannot allocate memory",
        "virtual memory exhausted",
        "out of memory allocating",
    ];
    const SOURCE: [&str; 3] = [": error: ", ": fatal error: ", "ERROR: modpost:"];
    let crash = find(&CRASH);
    let is_bug = |line: &&str| line.contains(OF_GCC_BUG) && line.contains("internal compiler error");
    if let Some(line) = crash.filter(is_bug) {
        return Some((Fault::CompilerBug, line));
    }
    let groups: [(Fault, &[&str]); 7] = [
        (Fault::Space, &SPACE),
        (Fault::Memory, &MEMORY),
        (Fault::Compiler, &OF_COMPILER),
        (Fault::RealTime, &REAL_TIME),
        (Fault::Headers, &HEADERS),
        (Fault::Crash, &CRASH),
        (Fault::Source, &SOURCE),
    ];
    // The kernel's build says that of headers which it does not understand, too.
    let headers = find(&HEADERS).filter(|_| has_headers).map(|line| (Fault::Source, line));
    let of_log = groups.into_iter().filter(|(fault, _)| !has_headers || *fault != Fault::Headers);
    of_log.into_iter().find_map(|(fault, texts)| Some((fault, find(texts)?))).or(headers)
}

/// The finding that the module is missing, if a build of it was tried and failed.
pub(super) fn failed_build(host: &Host, finding: Finding, kernel: &str) -> Option<Finding> {
    let (file, version, log) = of_dkms(host, kernel).or_else(|| of_akmods(host, kernel))?;
    // That akmods' log is there says already that the build failed; it is long, and not every user may read it.
    let is_of_akmods = file.ends_with(".failed.log");
    if let Some((name, line)) = needed(&log).filter(|_| is_of_akmods && has_dnf(host)) {
        return Some(with_needed(finding.seen(format!("{file}: {line}")), name, kernel));
    }
    let folder = format!("/lib/modules/{kernel}/build/include");
    let has_headers = ["generated/autoconf.h", "config/auto.conf"]
        .iter()
        .all(|file| host.exists(&format!("{folder}/{file}")) == Ok(true));
    let known = fault(&log, has_headers);
    let (fault, line) = known.or(is_of_akmods.then_some((Fault::Source, "the build failed")))?;
    let finding = finding.seen(format!("{file}: {line}"));
    let build = if is_of_akmods {
        format!("sudo akmods --force --kernels {kernel}")
    } else {
        "sudo dkms autoinstall".to_owned()
    };
    Some(match fault {
        Fault::Space => finding
            .because("the disk was full while the module was built: this is no fault of the driver or the kernel")
            .remedy(
                "make room, then build and load the module: the first command shows which file system is full (the build needs room \
                 in /tmp and /var, the module in /lib/modules); in a cloud, enlarge the volume and then its partition (growpart) and \
                 file system (resize2fs or xfs_growfs)",
            )
            .command("df -h / /tmp /var /lib/modules /boot")
            .command(build)
            .command("sudo modprobe nvidia"),
        Fault::Memory => finding
            .because("the machine had no memory left for the compiler: this is no fault of the driver or the kernel")
            .remedy(
                "end other programs or add swap, then build and load the module; a machine with little memory needs about 4 GB with \
                 its swap",
            )
            .command(build)
            .command("sudo modprobe nvidia"),
        Fault::Tool => with_tool(host, finding, line, &build),
        Fault::CompilerBug => of_compiler_bug(host, finding, &build),
        Fault::Source if has_headers && line.contains("onfiguration is invalid") && is_of_clang(host, &log) => {
            with_clang(host, finding, kernel, is_of_akmods)
        }
        Fault::Compiler if is_of_clang(host, &log) => with_clang(host, finding, kernel, is_of_akmods),
        Fault::Compiler => with_compiler(host, finding, &build),
        Fault::RealTime => of_real_time(host, finding, kernel, is_of_akmods),
        Fault::Headers => {
            let finding = finding
                .because("the headers of this kernel are not complete, so no module can be built")
                .remedy("install the headers of this kernel again, then build and load the module");
            let again = match host.family() {
                Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => {
                    let package = super::kernel_headers::of_apt(kernel);
                    Some(format!("sudo apt install --reinstall {package}"))
                }
                Some(Family::Fedora | Family::RedHat | Family::Amazon) => {
                    let package = super::kernel_headers::devel_package(host, kernel, kernel);
                    Some(format!("sudo dnf reinstall {package}"))
                }
                _ => None,
            };
            let finding = again.into_iter().fold(finding, Finding::command);
            finding.command(build).command("sudo modprobe nvidia")
        }
        Fault::Crash => finding
            .because("the compiler crashed while it built the module: this is not a fault of the driver")
            .remedy(
                "build the module again; if the compiler crashes again, at another place, test the machine's memory (memtest86+) and \
                 turn off its overclocking",
            )
            .command(build),
        Fault::Source => of_source(host, finding, &version, kernel),
    })
}

/// It is no fault of the memory if the same line crashes it each time.
fn of_compiler_bug(host: &Host, finding: Finding, build: &str) -> Finding {
    let finding = finding.because(format!(
        "GCC 16 has a fault that crashes it at this file of the driver ({OF_GCC_BUG}) each time; the memory of the machine is not at \
         fault"
    ));
    match host.family() {
        Some(Family::Arch) => finding
            .remedy(
                "use the distribution's ready module, which needs no build (nvidia-open for the kernel linux, linux-cachyos-nvidia-open \
                 for linux-cachyos), or upgrade the system, which brings a newer compiler or driver, and build the module again",
            )
            .command("sudo pacman -Syu")
            .command(build),
        _ => finding
            .remedy("install the updates of the compiler and the driver, or an older version of gcc (CC=gcc-15), and build the module again")
            .command(build),
    }
}

/// The log of a build by dkms, with its file and the version of the driver.
fn of_dkms(host: &Host, kernel: &str) -> Option<(String, String, String)> {
    module_lines(host).iter().find_map(|line| {
        let (name, version) = line.split([',', ':']).next()?.trim().split_once('/')?;
        let file = format!("/var/lib/dkms/{name}/{version}/build/make.log");
        let log = host.text(&file).ok().flatten().filter(|text| text.contains(kernel))?;
        Some((file, version.to_owned(), log))
    })
}

/// The log of a build by akmods: `/var/cache/akmods/nvidia/580.105.08-1-for-6.17.9-300.fc43.x86_64.failed.log`. One that
/// succeeded later has removed it.
fn of_akmods(host: &Host, kernel: &str) -> Option<(String, String, String)> {
    ["nvidia", "nvidia-580xx", "nvidia-470xx", "nvidia-open"].iter().find_map(|kind| {
        let folder = format!("/var/cache/akmods/{kind}");
        let end = format!("-for-{kernel}.failed.log");
        let name = host.folder(&folder).ok().flatten()?.into_iter().find(|name| name.ends_with(&end))?;
        let version = name.trim_end_matches(&end);
        let version = version.rsplit_once('-').map_or(version, |(version, _)| version).to_owned();
        let file = format!("{folder}/{name}");
        Some((file.clone(), version, host.text(&file).ok().flatten().unwrap_or_default()))
    })
}

/// The lines of `dkms status` about the driver.
pub(super) fn module_lines(host: &Host) -> Vec<String> {
    let status =
        host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text()).unwrap_or_default();
    status.lines().map(str::trim).filter(|line| line.starts_with("nvidia")).map(ToOwned::to_owned).collect()
}

/// The compiler that built the kernel, as the kernel names it: `gcc-12`.
fn compiler_of_kernel(host: &Host) -> Option<String> {
    let version = host.text("/proc/version").ok().flatten()?;
    let name =
        version.split([' ', '(', ')']).find(|word| word.contains("gcc-") && !word.starts_with("gcc-("))?;
    let number: String = name.rsplit_once("gcc-")?.1.chars().take_while(char::is_ascii_digit).collect();
    (!number.is_empty()).then(|| format!("gcc-{number}"))
}

/// Whether clang built the kernel, as the kernel or the build itself says.
fn is_of_clang(host: &Host, log: &str) -> bool {
    let version = host.text("/proc/version").ok().flatten().unwrap_or_default();
    let of_kernel = |line: &&str| line.contains("The kernel was built by:");
    version.contains("clang version")
        || log.lines().find(of_kernel).is_some_and(|line| line.contains("clang"))
        || !version.contains("gcc") && log.contains("clang: ") && log.contains("not found")
}

/// Modules of such a kernel need its compiler and linker, which no package of the driver brings.
fn with_clang(host: &Host, finding: Finding, kernel: &str, is_of_akmods: bool) -> Finding {
    let finding = finding.because(
        "clang and its linker (LLVM) built this kernel, which have to build its modules too: gcc does not know the options of \
         clang",
    );
    let is_of_cachy = kernel.contains("cachyos") && host.family() == Some(Family::Arch);
    let other = if is_of_cachy {
        let package = arch::package(host, kernel);
        format!(
            "CachyOS also has the ready module, in {package}-nvidia-open, or start a kernel that gcc has built"
        )
    } else {
        "or start the distribution's own kernel, which gcc has built".to_owned()
    };
    let steps = match host.family() {
        Some(Family::Arch) => {
            "install clang, lld and llvm together with an update of the system, build the module with them, and restart; if the \
             update \
             brings a new kernel and the module is missing after that, build it once more"
        }
        _ => {
            "install clang, lld and llvm, then build the module with them, and load it; a recent dkms finds out by itself that \
             it has \
             to"
        }
    };
    let finding = finding.remedy(format!("{steps}; {other}"));
    let install = host.package_command([
        "sudo apt install clang lld llvm",
        "sudo dnf install clang lld llvm",
        "sudo zypper install clang lld llvm",
        "sudo pacman -Syu clang lld llvm",
    ]);
    let build = if is_of_akmods {
        format!("sudo akmods --force --kernels {kernel}")
    } else {
        "sudo LLVM=1 CC=clang LD=ld.lld dkms autoinstall".to_owned()
    };
    let finding = install.into_iter().fold(finding, Finding::command);
    let finding = finding.command(build);
    // The upgrade may have replaced the kernel that runs.
    match host.family() {
        Some(Family::Arch) => restart(host, finding),
        _ => finding.command("sudo modprobe nvidia"),
    }
}

fn with_compiler(host: &Host, finding: Finding, build: &str) -> Finding {
    let compiler = compiler_of_kernel(host);
    let name = compiler.clone().unwrap_or_else(|| "the version of gcc that /proc/version names".to_owned());
    let finding = finding
        .because(format!(
            "modules are built with the compiler of the kernel ({name}); the default one here is older, and does not know its \
            options, or is missing"
        ))
        .remedy(format!("install {name} and make it the default, then build and load the module"));
    let finding = match (compiler, host.family()) {
        (Some(compiler), Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian)) => finding
            .command(format!("sudo apt install {compiler}"))
            .command(format!("sudo update-alternatives --install /usr/bin/gcc gcc /usr/bin/{compiler} 60")),
        (_, Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian)) => {
            finding.command("sudo apt install build-essential")
        }
        (_, Some(Family::Fedora | Family::RedHat | Family::Amazon)) => {
            finding.command("sudo dnf install gcc make")
        }
        (_, Some(Family::Arch)) => finding.command("sudo pacman -Syu base-devel"),
        _ => finding,
    };
    finding.command(build).command("sudo modprobe nvidia")
}

fn of_real_time(host: &Host, finding: Finding, kernel: &str, is_of_akmods: bool) -> Finding {
    let finding = finding
        .because("the running kernel is one for real-time work (PREEMPT_RT), for which NVIDIA's driver is not built unless \
            it is told to");
    // akmods passes no variable on to the build.
    if is_of_akmods {
        return finding.remedy("install the distribution's standard kernel and select it at boot");
    }
    let finding = finding
        .remedy(
            "start the distribution's ordinary kernel; or build the module for this one all the same, which NVIDIA does not support \
             (`sudo IGNORE_PREEMPT_RT_PRESENCE=1 dkms autoinstall`)",
        );
    let ordinary = match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) => Some("sudo apt install linux-generic".to_owned()),
        Some(Family::Debian) => {
            Some(format!("sudo apt install {}", super::kernel_headers::ordinary_of_debian(kernel)))
        }
        _ => None,
    };
    match ordinary {
        Some(command) => restart(host, finding.command(command)),
        None => finding.command("sudo IGNORE_PREEMPT_RT_PRESENCE=1 dkms autoinstall"),
    }
}

fn of_source(host: &Host, finding: Finding, version: &str, kernel: &str) -> Finding {
    // The kernel before, for which the module was built.
    let lines = module_lines(host);
    let installed = lines.iter().find(|line| line.contains("installed"));
    let before = installed.and_then(|line| line.split(',').nth(1)).map(str::trim);
    let builder = if lines.is_empty() { "akmods" } else { "dkms" };
    let finding = finding.because(format!(
        "the kernel is newer than the source of driver {version}, so {builder} could not build it"
    ));
    newer_branch::instead(host, finding, version, kernel, before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cause_is_known_by_its_line() {
        for (line, expected) in [
            ("gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'", Fault::Compiler),
            (
                "gcc: error: unrecognized command-line option \u{2018}-fmin-function-alignment=16\u{2019}",
                Fault::Compiler,
            ),
            ("/bin/sh: 1: cc: not found", Fault::Compiler),
            ("/bin/sh: line 1: g++: command not found", Fault::Tool),
            ("/bin/sh: 1: ld: not found", Fault::Tool),
            ("tools/objtool/elf.h:10:10: fatal error: gelf.h: No such file or directory", Fault::Tool),
            (
                "../common/nvswitch/kernel/ls10/flcn_ls10.c:271:1: internal compiler error: Segmentation fault",
                Fault::CompilerBug,
            ),
            ("/bin/sh: line 1: ld.lld: command not found", Fault::Compiler),
            ("make[1]: clang: not found", Fault::Compiler),
            ("*** Failed PREEMPT_RT sanity check. Bailing out! ***", Fault::RealTime),
            ("ERROR: Kernel configuration is invalid.", Fault::Headers),
            ("cc1: internal compiler error: Segmentation fault", Fault::Crash),
            ("nvidia/nv.c:26:10: fatal error: os-interface.h: No such file or directory", Fault::Source),
            ("ERROR: modpost: nvidia: sizeof(struct of_device_id)=196 is not a modulo", Fault::Source),
            ("nvidia/nv-mmap.c: error: implicit declaration of function", Fault::Source),
        ] {
            assert_eq!(fault(line, false), Some((expected, line)), "{line}");
        }
        let note = "cc1: note: unrecognized command-line option '-Wno-x' may have been intended to silence earlier diagnostics";
        let log = format!("nvidia/nv.c:1: error: implicit declaration\n{note}");
        assert_eq!(fault(&log, false).map(|(fault, _)| fault), Some(Fault::Source));
        assert_eq!(fault("warning: the compiler differs from the one used to build the kernel", false), None);
        // A rule of make is printed before it is run, and complete headers have another cause.
        let rule = "test -e include/generated/autoconf.h or || (echo >&2 \"ERROR: Kernel configuration is invalid.\"; )";
        assert_eq!(fault(rule, false), None);
        let invalid = "ERROR: Kernel configuration is invalid.";
        assert_eq!(fault(invalid, true), Some((Fault::Source, invalid)));
        let log = format!("{invalid}\nnvidia/nv.c:1: error: implicit declaration");
        assert_eq!(
            fault(&log, true).map(|(_, line)| line),
            Some("nvidia/nv.c:1: error: implicit declaration")
        );
    }

    #[test]
    fn akmods_names_what_it_needs() {
        let line = "gcc-c++ is needed by nvidia-kmod-3:590.48.01-1.fc43.x86_64";
        assert_eq!(
            needed(&format!("error: Failed build dependencies:\n\t{line}\n")),
            Some(("gcc-c++", line))
        );
        assert_eq!(needed("gcc is needed by another-1.0"), None);
    }

    #[test]
    fn the_compiler_of_a_kernel_is_in_its_version() {
        let of = |version: &str| {
            let host = json!({ "version": 1, "os": "linux", "files": { "/proc/version": version } });
            compiler_of_kernel(&Host::from_value(host).unwrap().0)
        };
        let ubuntu = "Linux version 6.5.0-18-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0, GNU ld";
        assert_eq!(of(ubuntu).as_deref(), Some("gcc-12"));
        assert_eq!(of("Linux version 6.12 (debian-kernel@lists.debian.org) (x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0").as_deref(), Some("gcc-14"));
        assert_eq!(
            of("Linux version 6.18.2-arch2-1 (linux@archlinux) (gcc (GCC) 15.2.1 20251112, GNU ld"),
            None
        );
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(gcc|cc|: |error|fatal |ERROR|modpost:|not found|PREEMPT_RT|\\PC|\n){0,40}") {
            let _ = (fault(&log, false), fault(&log, true), needed(&log));
        }
    }
}
