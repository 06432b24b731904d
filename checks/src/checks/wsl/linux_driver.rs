//! Whether a Linux driver is installed inside WSL. The packages `cuda` and `cuda-drivers` install
//! it; it hides the Windows driver's libraries and cannot work, because WSL has no NVIDIA kernel
//! module.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Library, NvmlState, Packages};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

/// Packages that contain part of the driver; the toolkit is not one of them.
const DRIVERS: [&str; 10] = [
    "libnvidia-compute",
    "libnvidia-gl",
    "nvidia-utils",
    "nvidia-driver",
    "nvidia-dkms",
    "nvidia-kernel",
    "nvidia-headless",
    "nvidia-open",
    "cuda-drivers",
    "libcuda1",
];

/// The driver's tool, which the package nvidia-utils brings.
const TOOL: &str = "/usr/bin/nvidia-smi";
/// In bytes; those of all drivers for WSL have some hundred thousand.
const SMALLEST_TOOL: u64 = 65_536;

pub(super) static CHECK: Check = Check {
    question: "Is a Linux driver installed inside WSL?",
    reports: &["wsl.linux-driver"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? || host.is_container() || intent.cpu {
        return Ok(Vec::new());
    }
    let Traces { libraries: found, files, packages } = traces(host);
    let named = match (found.first(), packages.first(), files.first()) {
        (Some(library), _, _) => library.real.clone().unwrap_or_else(|| library.path.clone()),
        (None, Some(package), _) => format!("the package {package}"),
        (None, None, Some(file)) => (*file).to_owned(),
        (None, None, None) => {
            host.library("libcuda.so.1")?;
            return Ok(copied_tool(host, intent).into_iter().collect());
        }
    };
    let title = format!("a Linux NVIDIA driver is installed inside WSL: {named}");
    let mut finding = Finding::new("wsl.linux-driver", title);
    // A file that no package brought was copied by hand; copies of Windows' own libraries age.
    let copied = found.first().filter(|_| packages.is_empty()).and_then(|library| library.real.as_deref());
    let copied = copied.filter(|real| real.ends_with(".so") || real.ends_with(".so.1"));
    if let Some(path) = copied {
        return Ok(vec![
            finding
                .because(format!(
                    "{path} belongs to no driver package, so somebody copied it; the Windows driver brings the \
                     library that fits it, in {}, and the loader finds this copy first",
                    super::LIBRARIES
                ))
                .remedy(format!("delete the copy, so that the loader finds {}", super::LIBRARIES))
                .command(format!("sudo rm {}", quote(path)))
                .command("sudo ldconfig"),
        ]);
    }
    for library in &found {
        finding = finding.seen(format!("the loader finds {}", library.path));
    }
    for package in &packages {
        finding = finding.seen(format!("package {package}"));
    }
    let is_of_apt = host.distribution().ok().and_then(|distribution| distribution.packages());
    if is_of_apt.is_some_and(|packages| packages != Packages::Apt) {
        finding = finding.remedy(
            "remove its packages, then shut WSL down; CUDA's toolkit for compiling has to be one without a driver (NVIDIA's \
             repository for WSL is for Ubuntu and Debian)",
        );
    }
    Ok(vec![finding.command(removal(host, &packages)).command("sudo ldconfig").command(super::SHUTDOWN)])
}

/// Whether nvidia-smi in /usr/bin is another one than that of Windows' driver.
pub(super) fn has_own_tool(host: &Host) -> bool {
    let is_there = host.exists(TOOL) == Ok(true) && !leads_to_windows(host, TOOL);
    let leads_to_drive = || host.link(TOOL).ok().flatten().is_some_and(|target| target.starts_with("/mnt/"));
    let size = |path: &str| host.stat(path).ok().flatten()?.size;
    // A script that starts the one of Windows is small.
    let is_other = || {
        let of_windows = size(&format!("{}/nvidia-smi", super::LIBRARIES));
        size(TOOL).is_none_or(|here| here >= SMALLEST_TOOL && Some(here) != of_windows)
    };
    is_there && !leads_to_drive() && is_other()
}

/// An older guide of NVIDIA for WSL told to copy nvidia-smi there. The copy hides nothing but the newer one.
fn copied_tool(host: &Host, intent: &Intent) -> Option<Finding> {
    if !has_own_tool(host) {
        return None;
    }
    let fails = host.nvml_state().is_ok_and(|state| matches!(state, NvmlState::Failed(18)))
        || host
            .recorded_texts("nvidia-smi")
            .iter()
            .any(|text| ["version mismatch", "Segmentation fault"].iter().any(|words| text.contains(words)));
    // A run does without the tool, and need not wait for the package manager.
    if intent.run && !fails {
        return None;
    }
    let manager = host.distribution().ok().and_then(|distribution| distribution.packages());
    let owner = match manager {
        Some(Packages::Apt) => "dpkg -S",
        Some(Packages::Dnf | Packages::Zypper) => "rpm -qf",
        Some(Packages::Pacman) => "pacman -Qo",
        None => "",
    };
    let words: Vec<&str> = owner.split_whitespace().chain([TOOL]).collect();
    let asked = if owner.is_empty() { None } else { host.command(&words).ok().flatten() };
    if asked.as_ref().is_some_and(|output| output.succeeded()) {
        return None;
    }
    let title = format!("{TOOL} is probably an old copy, and hides the one of Windows' driver");
    let finding = Finding::new("wsl.linux-driver", title)
        .status(if fails { Status::Warning } else { Status::Info })
        .because(format!(
            "no package is known to bring it, so somebody probably copied it from {}, where WSL shows the tool that fits the \
             present Windows driver; an old copy prints `Driver/library version mismatch` or crashes, while CUDA itself works",
            super::LIBRARIES
        ));
    let then = format!("so that `nvidia-smi` is the one in {}", super::LIBRARIES);
    Some(if asked.is_some() {
        finding.remedy(format!("delete it, {then}")).command(format!("sudo rm {TOOL}"))
    } else if owner.is_empty() {
        finding
            .remedy(format!("if no package brought it, delete it, {then}"))
            .command(format!("ls -l {TOOL}"))
    } else {
        finding
            .remedy(format!("if the command below names no package, delete it (`sudo rm {TOOL}`), {then}"))
            .command(format!("{owner} {TOOL}"))
    })
}

/// Files that a Linux driver installs.
struct Traces {
    libraries: Vec<Library>,
    files: Vec<&'static str>,
    packages: Vec<String>,
}

fn traces(host: &Host) -> Traces {
    let libraries: Vec<Library> = ["libcuda.so.1", "libnvidia-ml.so.1"]
        .iter()
        .flat_map(|name| host.library(name).unwrap_or_default())
        .filter(is_foreign)
        .collect();
    let files: Vec<&str> = [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        "/usr/lib64/libcuda.so.1",
    ]
    .into_iter()
    .filter(|path| host.exists(path) == Ok(true) && !leads_to_windows(host, path))
    .collect();
    // Asking the package manager is slow: a live machine is only asked if files suggest a driver.
    let has_tool = host.exists(TOOL) == Ok(true) && !leads_to_windows(host, TOOL);
    let is_traceless = libraries.is_empty() && files.is_empty() && !has_tool && !host.is_recorded();
    let packages = if is_traceless { Vec::new() } else { packages(host) };
    Traces { libraries, files, packages }
}

/// Whether a Linux driver is installed, which explains why the Windows driver does not respond.
pub(super) fn is_installed(host: &Host) -> bool {
    let traces = traces(host);
    !(traces.libraries.is_empty() && traces.files.is_empty() && traces.packages.is_empty())
}

/// Whether a driver library is not the one from Windows.
fn is_foreign(library: &Library) -> bool {
    let real = library.real.as_ref().unwrap_or(&library.path);
    !real.starts_with("/usr/lib/wsl/")
        && !library.path.starts_with("/usr/lib/wsl/")
        && !real.contains("/stubs/")
}

/// Some users link the Windows driver into the usual folders, which is fine.
fn leads_to_windows(host: &Host, path: &str) -> bool {
    host.link(path).ok().flatten().is_some_and(|target| target.contains("/wsl/"))
}

/// Installed driver packages, however `dpkg` was asked.
fn packages(host: &Host) -> Vec<String> {
    let ask = [
        "dpkg-query",
        "-W",
        "-f",
        "${db:Status-Abbrev} ${Package} ${Version}\\n",
        "*nvidia*",
        "cuda-drivers*",
        "libcuda1*",
    ];
    let mut text = host.command(&ask).ok().flatten().map(|output| output.text()).unwrap_or_default();
    for line in host.recorded_texts("dpkg") {
        text.push('\n');
        text.push_str(&line);
    }
    let mut packages: Vec<String> = text.lines().filter_map(installed).collect();
    packages.sort();
    packages.dedup();
    packages
}

/// `ii  libnvidia-compute-535:amd64  535.183.01-0ubuntu1  amd64 …` names an installed package.
fn installed(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let state = words.next()?;
    let name = words.next()?.split(':').next()?;
    let is_driver = DRIVERS.iter().any(|driver| name.starts_with(driver));
    // A package with only configuration left, or a library of the toolkit, is not a driver.
    (state == "ii" && is_driver && !name.contains("container")).then(|| name.to_owned())
}

fn removal(host: &Host, packages: &[String]) -> String {
    let release = host.text("/etc/os-release").ok().flatten().unwrap_or_default();
    let is =
        |name: &str| release.lines().any(|line| line.starts_with("ID") && line.to_lowercase().contains(name));
    if !packages.is_empty() {
        format!("sudo apt purge {}", packages.join(" "))
    } else if is("arch") {
        "sudo pacman -Rns nvidia-utils".to_owned()
    } else if is("fedora") || is("rhel") {
        "sudo dnf remove '*nvidia*' cuda-drivers".to_owned()
    } else {
        "sudo apt purge 'libnvidia-compute-*' 'nvidia-utils-*' 'nvidia-driver-*' 'cuda-drivers*'".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::installed;

    #[test]
    fn a_toolkit_is_not_a_driver() {
        assert_eq!(
            installed(
                "ii  libnvidia-compute-535:amd64  535.183.01-0ubuntu1  amd64  NVIDIA libcompute package"
            )
            .as_deref(),
            Some("libnvidia-compute-535")
        );
        assert_eq!(installed("rc  nvidia-utils-510  510.108.03-0ubuntu1  amd64"), None);
        assert_eq!(installed("ii  cuda-toolkit-12-8  12.8.0-1  amd64"), None);
        assert_eq!(installed("ii  nvidia-container-toolkit  1.17.4-1  amd64"), None);
        assert_eq!(installed("un  nvidia-driver-550  <none>  <none>"), None);
    }
}
