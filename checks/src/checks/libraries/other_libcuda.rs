//! A libcuda that is not the driver's: a stub, one from `cuda-compat` that this driver or card does not work with, or one
//! of another version of the driver. nvidia-smi works with all of them, but CUDA does not.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::facts::{Gpu, Host, Library, Place, Version, Via, library_version};
use crate::finding::Finding;
use crate::remedies::fit::is_of_service;
use crate::shell_quote::quote;

/// Where files add folders to the loader's list.
const LISTS: &str = "/etc/ld.so.conf.d";

/// What is wrong with the libcuda that the loader finds first.
pub(super) fn find(host: &Host, first: &Library) -> Option<Finding> {
    if lies_in(first, "stubs") {
        let title =
            format!("the loader finds the toolkit's stub {} instead of the driver's libcuda", first.path);
        return Some(without_folder(host, Finding::new("libraries.libcuda-stub", title), first));
    }
    let driver = host.driver_version().ok();
    if lies_in(first, "compat") {
        return of_compat(host, first, driver.as_ref());
    }
    let (version, driver) = (version(first)?, driver?);
    // In a recording written by hand, both libraries may be those of the machine that it starts from.
    let is_of_nvml = || {
        let found = host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next());
        found.and_then(|library| self::version(&library)).is_some_and(|other| other == version)
    };
    if host.is_wsl2() == Ok(true)
        || is_same(&version, &driver)
        || is_of_nvml()
        || may_be_compat(host, first, &version, &driver)
    {
        return None;
    }
    let title = format!("the loader finds libcuda {version}, but the driver is {driver}");
    let finding = Finding::new("libraries.libcuda-stub", title).seen(first.path.clone()).because(
        "CUDA works only with the libcuda of the driver's own version; with another, it fails with `system has unsupported display \
         driver / cuda driver combination` (error 803 or 804), although nvidia-smi works",
    );
    if is_in_variable(host, first) {
        return Some(without_folder(host, finding, first));
    }
    Some(match host.place() {
        Place::Machine | Place::Lxc | Place::Wsl | Place::Windows | Place::Mac => finding
            .remedy(format!(
                "remove this copy, which another package or NVIDIA's installer has left, or bring it to version {driver}; delete the \
                 file if the command names no package"
            ))
            .command(match host.package_command(["dpkg -S", "rpm -qf", "rpm -qf", "pacman -Qo"]) {
                Some(owner) => format!("{owner} {}", quote(first.real.as_deref().unwrap_or(&first.path))),
                None => format!("ls -l {}", quote(&first.path)),
            })
            .command("sudo ldconfig"),
        // An image that cannot be changed where it runs.
        Place::Apptainer | Place::Enroot => finding.remedy(
            "build the image again without the driver's packages, because the libraries come from the host (`--nv` of Apptainer): \
             in its definition, install the CUDA toolkit without the driver",
        ),
        _ => {
            let purge = "apt purge '^libnvidia-compute-.*' '^nvidia-driver-.*' && ldconfig";
            let purge = host.package_command([purge, "", "", ""]);
            let finding = finding
                .remedy(if is_of_service(host) {
                    "remove the driver's packages, which the notebook or the image has installed, because the libraries come from \
                     the machine; or start a new session"
                } else {
                    "remove the driver's packages from the image, because the libraries come from the host, and start a new \
                     container: in its Dockerfile, install the CUDA toolkit without the driver"
                });
            purge.into_iter().filter(|command| !command.is_empty()).fold(finding, Finding::command)
        }
    })
}

/// The finding that library and module differ, if a folder of the variable has a copy of the driver's libraries, and those
/// that fit the module are elsewhere: neither a restart nor an update repairs that.
pub(in crate::checks) fn of_variable(host: &Host, finding: Finding, module: &str) -> Option<Finding> {
    const NAME: &str = "libnvidia-ml.so.1";
    const OF_NIXOS: &str = "/run/opengl-driver/lib";
    let found = host.library(NAME).ok()?;
    let (first, others) = found.split_first()?;
    if first.via != Some(Via::LdLibraryPath) || !is_in_variable(host, first) {
        return None;
    }
    let is_of_nixos = || {
        let names = host.folder(OF_NIXOS).ok().flatten().unwrap_or_default();
        names.contains(&format!("libnvidia-ml.so.{module}"))
    };
    let fits = |library: &Library| library.version.as_deref() == Some(module);
    if fits(first) || !(others.iter().any(fits) || is_of_nixos()) {
        return None;
    }
    let finding = finding
        .seen(first.path.clone())
        .because(
            "a folder of LD_LIBRARY_PATH has a copy of the driver's libraries, which the loader finds before those that fit the module; \
             neither a restart nor an update changes that",
        )
        .remedy(
            "take that folder out of LD_LIBRARY_PATH, also where it is set: a shell's start file, an environment, a shell.nix; the driver's \
             libraries must come from the system, so put no copy of them and no `nvidia_x11` of Nix into an environment (on NixOS they are \
             in /run/opengl-driver/lib; elsewhere nixGL finds the system's for programs of Nix)",
        );
    Some(without_folder(host, finding, first))
}

/// One of `cuda-compat`, if it does not work here.
fn of_compat(host: &Host, first: &Library, driver: Option<&Version>) -> Option<Finding> {
    let version = version(first).or_else(|| beside(host, first));
    let is_older = match (&version, driver) {
        (Some(version), Some(driver)) => version.major() < driver.major(),
        _ => false,
    };
    let is_equal = version.as_ref().zip(driver).is_some_and(|(version, driver)| is_same(version, driver));
    let path = &first.path;
    let title = if let (true, Some(version), Some(driver)) = (is_older, &version, driver) {
        format!("the loader finds libcuda {version} of cuda-compat, which is older than the driver {driver}")
    } else if let (Some(card), false) = (without_compat(host), is_equal) {
        let kind =
            if card.contains("GeForce") { "GeForce cards".to_owned() } else { format!("this card ({card})") };
        format!("the loader finds {path} from cuda-compat, which does not work with {kind}")
    } else {
        return None;
    };
    let finding = Finding::new("libraries.libcuda-stub", title);
    let finding = if is_older {
        finding.seen(path.clone()).because(
            "cuda-compat is for drivers that are older than it; with a newer one, CUDA fails with `system has unsupported display \
             driver / cuda driver combination` (error 803), although nvidia-smi works",
        )
    } else {
        finding
    };
    if is_in_variable(host, first) {
        return Some(without_folder(
            host,
            finding.remedy("take the folder of cuda-compat out of the variable"),
            first,
        ));
    }
    Some(match list_of(host, first) {
        Some(list) => finding
            .remedy("take the folder of cuda-compat out of the loader's list")
            .command(format!("sudo rm {LISTS}/{list}"))
            .command("sudo ldconfig"),
        None => without_folder(
            host,
            finding.remedy(format!(
                "take the folder of cuda-compat out of LD_LIBRARY_PATH and of the files in {LISTS}, or remove the package \
                 cuda-compat"
            )),
            first,
        ),
    })
}

/// The file that puts the folder of a library on the loader's list, if it has no other folder.
fn list_of(host: &Host, library: &Library) -> Option<String> {
    let real = library.real.as_deref().and_then(|real| Some(real.rsplit_once('/')?.0));
    let is_own = |line: &str| {
        line.trim_end_matches('/') == folder(library) || Some(line.trim_end_matches('/')) == real
    };
    host.folder(LISTS).ok().flatten()?.into_iter().find(|name| {
        let text = host.text(&format!("{LISTS}/{name}")).ok().flatten().unwrap_or_default();
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        lines.peek().is_some() && lines.all(is_own)
    })
}

/// Whether a libcuda that is not the driver's may be one for forward compatibility, wherever it lies: conda has such
/// libraries too. They are of a later branch, and for the cards of data centers. In a folder of the system, a driver that
/// another package or installer has left is more likely, which has libnvidia-ml as well.
fn may_be_compat(host: &Host, first: &Library, version: &Version, driver: &Version) -> bool {
    let has_cards = host.gpus().is_ok_and(|gpus| !gpus.is_empty());
    let may_have = version.major() > driver.major() && has_cards && without_compat(host).is_none();
    let path = first.real.as_deref().unwrap_or(&first.path);
    let is_of_system =
        ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].iter().any(|folder| path.starts_with(folder));
    let is_alone = || {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        names.contains(&format!("libnvidia-ptxjitcompiler.so.{version}"))
            && !names.iter().any(|name| name.starts_with("libnvidia-ml.so"))
    };
    may_have && (!is_of_system || is_alone())
}

/// The name of a card that does not support `cuda-compat`, which is made for data center cards. The largest cards for
/// workstations are sold for servers as well, and may support it.
pub(super) fn without_compat(host: &Host) -> Option<String> {
    const UNSUPPORTED: [&str; 4] = ["GeForce", "TITAN", "Quadro P", "Quadro T"];
    const WORKSTATION: [&str; 11] = [
        "RTX A2000",
        "RTX A3000",
        "RTX A4000",
        "RTX A4500",
        "RTX A5000",
        "RTX 2000",
        "RTX 4000",
        "RTX 4500",
        "RTX 5000",
        "Quadro RTX 3000",
        "Quadro RTX 4000",
    ];
    let is = |gpu: &Gpu| {
        let name = gpu.name().ok()?;
        let known = UNSUPPORTED.iter().chain(&WORKSTATION).any(|word| name.contains(word));
        known.then_some(name)
    };
    host.gpus().ok()?.iter().find_map(is)
}

/// Whether a library is in a folder of this name, or links to one.
pub(super) fn lies_in(library: &Library, folder: &str) -> bool {
    let real = library.real.as_deref().unwrap_or_default();
    [library.path.as_str(), real].iter().any(|path| path.split('/').any(|part| part == folder))
}

/// The version in the file's real name, `libcuda.so.580.65.06`, or the one that was found otherwise.
pub(super) fn version(library: &Library) -> Option<Version> {
    let of_name = library.real.as_deref().and_then(library_version);
    let version = of_name.or_else(|| library.version.clone().filter(|version| version.contains('.')))?;
    // A driver has at least three digits before the point.
    Version::find(&version).filter(|version| version.major() >= 100)
}

/// The version of the only file with one in the folder of a library.
fn beside(host: &Host, library: &Library) -> Option<Version> {
    let target = host.link(&library.path).ok().flatten().and_then(|target| library_version(&target));
    let listed = || {
        let names = host.folder(folder(library)).ok().flatten().unwrap_or_default();
        names.iter().filter(|name| name.starts_with("libcuda.so.")).find_map(|name| library_version(name))
    };
    Version::find(&target.or_else(listed)?).filter(|version| version.major() >= 100)
}

/// Whether two versions are one of which the last number may be missing.
fn is_same(first: &Version, second: &Version) -> bool {
    let (first, second) = (first.to_string(), second.to_string());
    let starts = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    starts(&first, &second) || starts(&second, &first)
}

fn folder(library: &Library) -> &str {
    library.path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn kept(host: &Host, library: &Library) -> (String, Option<String>) {
    let variable = host.env(LD_LIBRARY_PATH).ok().flatten().unwrap_or_default();
    let folder = folder(library);
    let kept: Vec<&str> = variable.split(':').filter(|entry| entry.trim_end_matches('/') != folder).collect();
    let is_there = kept.len() < variable.split(':').count();
    let kept = is_there.then(|| kept.join(":"));
    (variable, kept)
}

fn is_in_variable(host: &Host, library: &Library) -> bool {
    kept(host, library).1.is_some()
}

/// The variable without the folder of the library.
fn without_folder(host: &Host, finding: Finding, library: &Library) -> Finding {
    match kept(host, library) {
        (_, Some(kept)) => finding.command(format!("export {LD_LIBRARY_PATH}={}", quote(&kept))),
        (variable, None) => finding.seen(format!("LD_LIBRARY_PATH is \"{variable}\"")),
    }
}
