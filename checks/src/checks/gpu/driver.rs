//! Whether the NVIDIA driver works, and if not, why: no driver, a module that is not loaded, or
//! different versions of library and module. [`super::kernel_module`] finds out why a module does
//! not run the card; WSL, containers and lost cards have their own checks.

use std::collections::BTreeSet;

use super::lost::LOCKED;
use super::{
    device_files, driver_unsuited, hang_advice, kernel_module, lost, lost_in_sleep, module_of_host, no_card,
    oops, outside_job, pci, windows_host,
};
use crate::checks::libraries::other_libcuda;
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host, NvmlState, Packages, Place, Stat, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::install_driver::{advice, install};
use crate::remedies::restart::{restart, restart_container};
use crate::remedies::{boot_space, grid, image, initramfs, of_two_repositories, of_two_sources, upgrade};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the NVIDIA driver work?",
    reports: &[
        "gpu.driver",
        "gpu.driver-missing",
        "gpu.driver-not-loaded",
        "gpu.driver-mismatch",
        "gpu.driver-silent",
        "gpu.driver-not-built",
        "gpu.driver-unsigned",
        "gpu.nouveau",
        "gpu.switched-off",
        "gpu.driver-unsuited",
        "gpu.no-address-space",
        "gpu.firmware-missing",
        "gpu.selinux",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let needed = !intent.devices.is_empty();
    // Without a card, or for a run on the CPU, a missing driver is not a problem.
    let card = pci::cards(host).into_iter().next();
    let status = if needed || card.is_some() && !intent.cpu { Status::Error } else { Status::Info };
    // An installed driver that fails is a problem, whatever the bus shows.
    let sick = if intent.cpu { Status::Info } else { Status::Error };
    let state = match host.nvml_state() {
        Ok(state) => state,
        Err(why) => {
            let finding = hangs(host, &why.0).map(|finding| finding.status(sick));
            return finding.or_else(|| without_nvml(host, sick)).map(|finding| vec![finding]).ok_or(why);
        }
    };
    if state == NvmlState::Ready {
        let is_empty = host.gpus().is_ok_and(|gpus| gpus.is_empty());
        let why = || {
            kernel_module::switched_off(host)
                .or_else(|| driver_unsuited::find(host).map(|found| found.status(sick)))
        };
        if let Some(finding) = is_empty.then(why).flatten() {
            return Ok(vec![finding]);
        }
        let ignored = driver_unsuited::of_another_card(host, intent).filter(|_| !is_empty && !intent.cpu);
        let crashed = oops::answering(host).filter(|_| !intent.cpu && !is_empty);
        return Ok(ignored.into_iter().chain(crashed).chain([healthy(host)]).collect());
    }
    // WSL has its own checks of the Windows driver, and containers of the GPUs they were given.
    if let Some(finding) = module_of_host::not_loaded(host, &state) {
        return Ok(vec![finding.status(sick)]);
    }
    let of_container = host.is_container() && !matches!(state, NvmlState::Failed(18 | 4));
    if host.is_wsl2().unwrap_or(false) || of_container || !lost::of_log(host).is_empty() {
        return Ok(Vec::new());
    }
    if host.has_gpu_of_windows_host() {
        return Ok(vec![windows_host::silent(host, &state).status(sick)]);
    }
    // The check of the run's GPUs reports that they are in other nodes of a cluster.
    if outside_job::find(host, intent).is_some() {
        return Ok(Vec::new());
    }
    // The check of the device files reports that nothing has made them.
    if state == NvmlState::Failed(9) && device_files::are_missing(host) {
        return Ok(Vec::new());
    }
    let reason = match state {
        NvmlState::Failed(18 | 17 | 4) => None,
        _ => kernel_module::reason(host, &state),
    };
    if let Some(reason) = reason {
        return Ok(vec![reason.status(sick)]);
    }
    // The check of libcuda reports libraries that the loader does not find.
    let is_loaded = || matches!(host.driver_module_version(), Ok(Some(_)));
    if state == NvmlState::NoLibrary && card.is_some() && is_loaded() {
        return Ok(Vec::new());
    }
    let finding = match state {
        NvmlState::NoLibrary => missing(host, card.is_some(), needed, status),
        NvmlState::Failed(9) => {
            let title = "the NVIDIA driver is installed, but its kernel module is not loaded";
            Finding::new("gpu.driver-not-loaded", title)
                .status(sick)
                .command("sudo modprobe nvidia")
                .command("nvidia-smi")
        }
        NvmlState::Failed(18) => mismatch(host).status(sick),
        NvmlState::Failed(4) => forbidden(host).status(sick),
        NvmlState::Failed(code) => {
            let title =
                format!("the NVIDIA driver does not respond: {}", crate::facts::nvml_error_text(code));
            Finding::new("gpu.driver-silent", title).status(sick).command("nvidia-smi")
        }
        NvmlState::Ready => healthy(host),
    };
    Ok(vec![card.into_iter().fold(finding, |finding, card| finding.seen(format!("PCI device {card}")))])
}

fn healthy(host: &Host) -> Finding {
    let version = host.driver_version().map_or("(unknown version)".to_owned(), |version| version.to_string());
    let cuda = host.driver_cuda().map_or(String::new(), |cuda| format!(", CUDA up to {cuda}"));
    let whose = if host.is_wsl2().unwrap_or(false) { "Windows NVIDIA driver" } else { "NVIDIA driver" };
    Finding::ok("gpu.driver", format!("{whose} {version}{cuda}"))
}

/// No driver, which only matters if the machine has a card or the run needs one.
fn missing(host: &Host, has_card: bool, needed: bool, status: Status) -> Finding {
    if let (false, true, Some(finding)) = (has_card, needed, no_card::find(host)) {
        return finding;
    }
    let title = match (has_card, needed) {
        (true, _) => "there is an NVIDIA card, but no driver is installed",
        (false, true) => "the run uses a GPU, but no NVIDIA driver is installed",
        (false, false) => "no NVIDIA driver: runs use the CPU",
    };
    let finding = Finding::new("gpu.driver-missing", title).status(status);
    let installed = |finding| install(host).into_iter().fold(finding, Finding::command);
    if has_card && grid::is_of_azure(host) && host.place() == Place::Machine {
        return finding.remedy(grid::AZURE).command(grid::AZURE_COMMAND);
    }
    match (has_card, needed) {
        (true, _) => match advice(host) {
            Some(advice) if install(host).is_empty() => finding.remedy(advice),
            Some(advice) => restart(host, installed(finding).remedy(advice)),
            // On an unknown distribution, a restart alone installs nothing.
            None if host.is_own_machine() && install(host).is_empty() => finding,
            None => restart(host, installed(finding)),
        },
        (false, true) => installed(
            finding.remedy("install the NVIDIA driver and restart, or train on the CPU with --device cpu"),
        ),
        (false, false) if host.place() == Place::Machine && host.batch_system().is_some() => finding
            .because("training runs on the CPU here, many times slower than on a GPU; the GPUs of a cluster are in other nodes")
            .remedy("nothing on this machine; start runs in a job that asks for a GPU"),
        (false, false) => finding
            .because("training runs on the CPU, many times slower than on a GPU")
            .remedy("nothing on a machine without an NVIDIA card; otherwise install its driver and restart"),
    }
}

/// How a question that got no answer says so.
const SILENT: &str = "no answer within";
/// What the driver logs if it cannot bring up NVLink (NVIDIA/open-gpu-kernel-modules, B200 after 66 days).
const LINKS: &str = "postRxDet";

/// A driver whose calls do not return, because a card or its firmware hangs. Without a sign of that in the kernel
/// log, it may only be slow: it starts each card when it is asked first.
fn hangs(host: &Host, why: &str) -> Option<Finding> {
    let lines = host.kernel_lines(&["Xid (", "blocked for more than", LOCKED, LINKS]);
    let is_of_driver =
        |line: &String| ["Xid (", "nvidia", LOCKED, LINKS].iter().any(|words| line.contains(words));
    let lines: Vec<String> = lines.into_iter().filter(is_of_driver).take(2).collect();
    let log = host.kernel_log().unwrap_or_default();
    let crash = oops::crashed(&log);
    let is_crashed = crash.is_some();
    let trace = crash.or_else(|| oops::stuck(&log)).into_iter().flatten();
    let trace: Vec<String> = trace.filter(|line| !lines.contains(line)).collect();
    let lines = [lines, trace].concat();
    if lines.is_empty() || !super::is_native_linux(host) {
        return None;
    }
    // A recording may have the same of nvidia-smi.
    let of_smi = || {
        let words = [&["nvidia-smi"][..], &["nvidia-smi", "-L"]].into_iter().filter(|_| host.is_recorded());
        words.filter_map(|words| host.command(words).err()).map(|why| why.0).collect()
    };
    let whys: Vec<String> = if why.contains(SILENT) { vec![why.to_owned()] } else { of_smi() };
    let why = whys.iter().find(|why| why.contains(SILENT))?;
    let in_sleep = lost_in_sleep::lines(host, None);
    let has_lost_links = lines.iter().any(|line| line.contains(LINKS));
    let time = why.split(SILENT).last().unwrap_or_default();
    let title = format!("the NVIDIA driver has not answered for{time}");
    let finding = Finding::new("gpu.driver-silent", title);
    if let Some(of_sleep) = in_sleep {
        return Some(lost_in_sleep::explained(host, finding, of_sleep));
    }
    let finding = finding
        .because(match (is_crashed, has_lost_links) {
            (true, _) => "the driver's module crashed in the kernel, and every program that asks it waits for what it had locked, nvidia-smi too",
            (false, true) => {
                "the driver fails to bring up NVLink for a program that starts, as 570.133 does with B200 after about 66 days without a \
                 restart, and every program that asks it waits, nvidia-smi too"
            }
            (false, false) => "a card or its firmware does not respond, and every program that asks the driver waits with it, nvidia-smi too",
        })
        .remedy(match has_lost_links && !is_crashed {
            true => {
                "restart the machine, and update the driver, or this will happen again after about as long; processes that wait \
                 in the kernel \
                 cannot be ended"
            }
            false => {
                "restart the machine, with the power off for a minute if it does not shut down; processes that wait in the \
                 kernel cannot be ended"
            }
        });
    let finding = lines.into_iter().fold(finding, Finding::seen);
    let has_known_reason =
        is_crashed || has_lost_links || finding.evidence.iter().any(|line| line.contains("Xid ("));
    Some(restart(host, if has_known_reason { finding } else { hang_advice::with_prevention(host, finding) }))
}

fn mismatch(host: &Host) -> Finding {
    let module = host.driver_module_version().ok().flatten();
    let library = host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next());
    let (client, of_log) = refused_client(host).unzip();
    // NVML's version lacks the last of the three numbers, which the library's file name has.
    let library = library.and_then(|library| library.version).or(client).or_else(|| of_smi_error(host));
    let module = module.map(|module| module.to_string()).or(of_log);
    let title = match (&module, &library) {
        (Some(module), Some(library)) => {
            format!(
                "the NVIDIA driver's library has version {library}, but its loaded kernel module has \
                     {module}"
            )
        }
        (Some(module), None) => {
            format!("the NVIDIA driver's kernel module has version {module}, but its library has another")
        }
        _ => "the NVIDIA driver's library and kernel module have different versions".to_owned(),
    };
    let finding = Finding::new("gpu.driver-mismatch", title);
    if let Some(finding) =
        module.as_ref().and_then(|module| other_libcuda::of_variable(host, finding.clone(), module))
    {
        return finding;
    }
    if host.is_own_machine() && image::of(host).is_some() && on_disk(host) == module {
        let finding = finding
            .remedy(
                "go back to the image before the last update, whose libraries and module fit each other, and restart; update \
                 again when a newer image is there",
            )
            .command(image::ROLL_BACK);
        return restart(host, finding);
    }
    if let Some(finding) = of_two_repositories::repair(host, finding.clone()) {
        return finding;
    }
    if module.is_some()
        && on_disk(host) == module
        && let Some(finding) = of_two_sources::repair(host, finding.clone())
    {
        return finding;
    }
    match (host.place(), &module) {
        (Place::Machine, Some(module)) if on_disk(host).as_deref() == Some(module) && by_installer(host) => finding
            .remedy(format!(
                "bring libraries and module to the same version: a restart does not help, because the module on the \
                 disk is {module} too; run NVIDIA's installer of {module} for the libraries, without a module"
            ))
            .command(format!("sudo sh NVIDIA-Linux-x86_64-{module}.run --no-kernel-modules")),
        (Place::Machine, Some(module)) if on_disk(host).as_deref() == Some(module) => {
            let finding = finding.remedy(format!(
                "bring the driver's packages to one version: a restart does not help, because the module on \
                 the disk is {module} too; if an update of one of them is not there yet, go back to {module}"
            ));
            // An update that failed to build the module leaves packages that are not configured.
            let finding = match host.family() {
                Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => finding.command("sudo dpkg --configure -a"),
                _ => finding,
            };
            let finding = finding.command(upgrade::packages(host).unwrap_or("modinfo -F version nvidia"));
            boot_space::first(host, finding)
        }
        (Place::Machine, _) => match unconfigured(host) {
            Some(package) => {
                let finding = finding.seen(format!("/var/log/dpkg.log: {package} is half-configured")).remedy(
                    "finish the update of the driver, which stopped while it built the module, then restart",
                );
                let finding = finding.command("sudo dpkg --configure -a");
                let finding = upgrade::packages(host).into_iter().fold(finding, Finding::command);
                restart(host, boot_space::first(host, finding))
            }
            None => {
                let is_stale = is_of_initramfs(host, module.as_deref(), library.as_deref());
                let Some(rebuild) = initramfs::rebuild(host).filter(|_| is_stale) else {
                    return restart(host, finding);
                };
                let finding = finding
                    .because(
                        "the machine was started after the update, and loaded the old module from its initramfs, which has a copy",
                    )
                    .remedy("rebuild the initramfs, so that it has the new module, and restart; a restart alone does not help")
                    .command(rebuild);
                restart(host, boot_space::first(host, finding))
            }
        },
        // The module is the host's: the libraries inside must follow it.
        (Place::Lxc, Some(module)) => finding
            .remedy(format!(
                "install the libraries of version {module}, which the host's module has, in this container, \
                 without a kernel module"
            ))
            .command(format!("sh NVIDIA-Linux-x86_64-{module}.run --no-kernel-module")),
        (Place::Docker | Place::DockerInWsl | Place::Podman | Place::Pod, _) if of_image(host) => finding
            .because(
                "the loader finds libraries of the driver that a package of the image brought, before those of the host that the container \
                 was given",
            )
            .remedy(
                "remove the driver's packages from the image, build it again, and start a new container from it; the container gets the \
                 driver's libraries from its host",
            )
            .command("RUN apt-get purge -y '^libnvidia-.*' '^nvidia-driver.*' '^nvidia-utils.*' '^cuda-drivers.*'  # in the Dockerfile"),
        (Place::Docker | Place::DockerInWsl | Place::Podman, _) => restart_container(
            host,
            finding
                .remedy("restart the container, so that it gets the libraries that fit the host's module"),
        ),
        _ => restart(host, finding),
    }
}

/// Whether a package of this image brought libraries of the driver, which a container gets from its host.
fn of_image(host: &Host) -> bool {
    const PACKAGES: [&str; 3] = ["libnvidia-compute", "libnvidia-ml1", "nvidia-utils"];
    let is_of_driver = |name: &str| PACKAGES.iter().any(|package| name.starts_with(package));
    let files = host.folder("/var/lib/dpkg/info").ok().flatten().unwrap_or_default();
    let is_listed = |text: String| {
        text.lines().any(|line| line.strip_prefix("ii").is_some_and(|rest| is_of_driver(rest.trim_start())))
    };
    let is_left = |name: &str| name.ends_with(".md5sums") || host.is_recorded() && name.ends_with(".list");
    files.iter().any(|name| is_left(name) && is_of_driver(name))
        || host.recorded_outputs("dpkg").into_iter().any(|(_, output)| is_listed(output.text()))
}

/// Whether the module on the disk is the library's, and was there before the machine started: then the old one comes from
/// the initramfs.
fn is_of_initramfs(host: &Host, loaded: Option<&str>, library: Option<&str>) -> bool {
    let is_new =
        on_disk(host).is_some_and(|new| Some(new.as_str()) == library && Some(new.as_str()) != loaded);
    if !is_new {
        return false;
    }
    let started = host.text("/proc/stat").ok().flatten().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<u64>().ok()
    });
    // A clock that is set while the machine starts may be off by a little.
    matches!((started, installed_at(host)), (Some(started), Some(installed)) if installed + 60 < started)
}

/// When the installed driver came to this system. Files of packages keep the time at which the package was made, so the
/// package manager's own files say it, or a module that was built here.
fn installed_at(host: &Host) -> Option<u64> {
    let modified = |path: &str| host.stat(path).ok().flatten()?.modified;
    let named = |folder: &str, start: &str, end: &str| {
        let names = host.folder(folder).ok().flatten()?;
        // Packages that were removed keep their list.
        let own = names.into_iter().filter(|name| name.starts_with(start) && name.ends_with(end));
        own.filter_map(|name| modified(&format!("{folder}/{name}"))).max()
    };
    let built = || {
        let file = host.command(&["modinfo", "-n", "nvidia"]).ok().flatten()?.text().trim().to_owned();
        let is_built_here =
            ["/updates/dkms/", "/extra/", "/updates/"].iter().any(|folder| file.contains(folder));
        modified(&file).filter(|_| is_built_here)
    };
    // An installation of any library changes the folder.
    let folder = || {
        let library = host.library("libnvidia-ml.so.1").ok()?.into_iter().next()?;
        modified(library.real.as_deref().unwrap_or(&library.path).rsplit_once('/')?.0)
    };
    named("/var/lib/dpkg/info", "libnvidia-compute", ".list")
        .or_else(|| named("/var/lib/pacman/local", "nvidia-utils-", ""))
        .or_else(built)
        .or_else(folder)
}

/// The package of the driver that dpkg has not configured: what built its module failed.
fn unconfigured(host: &Host) -> Option<String> {
    if host.distribution().ok()?.packages() != Some(Packages::Apt) {
        return None;
    }
    let log = host.text("/var/log/dpkg.log").ok().flatten()?;
    let mut open = BTreeSet::new();
    for line in log.lines() {
        // 2025-04-29 06:43:11 status half-configured nvidia-dkms-570:amd64 570.133.07-0ubuntu1
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, "status", state, package, ..] = words[..] {
            match state {
                "half-configured" => open.insert(package),
                _ => open.remove(package),
            };
        }
    }
    let package = open.into_iter().find(|package| package.contains("nvidia"))?;
    Some(package.split(':').next().unwrap_or(package).to_owned())
}

/// Whether NVIDIA's installer put the libraries there, not the distribution's packages.
fn by_installer(host: &Host) -> bool {
    let packages = host.recorded_output("dpkg").unwrap_or_default();
    host.exists("/usr/bin/nvidia-uninstall") == Ok(true)
        || packages.contains("ii ") && !packages.contains("nvidia")
}

/// The version of the module that would be loaded at the next start.
fn on_disk(host: &Host) -> Option<String> {
    if let Ok(Some(found)) = host.command(&["modinfo", "-F", "version", "nvidia"]) {
        return Version::find(&found.text()).map(|version| version.to_string());
    }
    let text = host.recorded_output("modinfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("version:"))?;
    Version::find(line).map(|version| version.to_string())
}

/// `NVML library version: 550.144`, below nvidia-smi's error message.
fn of_smi_error(host: &Host) -> Option<String> {
    let said = host.recorded_texts("nvidia-smi").join("\n");
    Version::find(said.split_once("NVML library version:")?.1).map(|version| version.to_string())
}

/// The versions of library and module in the kernel log: `API mismatch: the client has the version
/// 515.48.07, but this kernel module has the version 510.73.05`, over several lines that each start with
/// `NVRM:`.
fn refused_client(host: &Host) -> Option<(String, String)> {
    let log = host.kernel_log().ok()?;
    let mut versions = log.rsplit_once("API mismatch:")?.1.split("the version ").skip(1);
    let mut version = || Version::find(versions.next()?).map(|version| version.to_string());
    Some((version()?, version()?))
}

/// What other facts reveal about the driver if NVML's answer is unknown.
fn without_nvml(host: &Host, sick: Status) -> Option<Finding> {
    if !super::is_native_linux(host) || host.is_container() || !lost::of_log(host).is_empty() {
        return None;
    }
    let finding = match host.driver_module_version().ok()? {
        None => kernel_module::reason(host, &NvmlState::Failed(9))?,
        Some(module) => {
            let library = host.library("libnvidia-ml.so.1").ok()?.into_iter().next()?.version?;
            (Version::find(&library)? != module).then(|| mismatch(host))?
        }
    };
    Some(finding.status(sick))
}

/// No permission for NVML: the device files belong to a group that this user is not in.
fn forbidden(host: &Host) -> Finding {
    let closed = host.stat("/dev/nvidiactl").ok().flatten();
    if let Some(finding) = denied_by_selinux(host, closed.as_ref()) {
        return finding;
    }
    super::forbidden::finding(host, closed.as_ref())
}

/// The mode of the device file lets everybody use it, so a policy forbids it: SELinux, which labels the
/// processes of containers and services.
fn denied_by_selinux(host: &Host, device: Option<&Stat>) -> Option<Finding> {
    let mode = u32::from_str_radix(device?.mode.as_deref()?, 8).ok()?;
    let label = host.text("/proc/self/attr/current").ok().flatten().unwrap_or_default();
    let label = label.trim_end_matches(['\0', '\n']).to_owned();
    // Without SELinux the file is empty, or has another module's word, such as AppArmor's `unconfined`.
    if mode & 0o666 != 0o666 || label.matches(':').count() < 3 {
        return None;
    }
    let title = "SELinux denies access to the NVIDIA driver's device files, whose mode allows it";
    let finding = Finding::new("gpu.selinux", title).seen(format!("label of this process: {label}"));
    Some(match host.place() {
        Place::Podman | Place::Docker => {
            let program = if host.place() == Place::Podman { "podman" } else { "docker" };
            finding
                .remedy(
                    "start the container without SELinux's separation, or allow containers to use devices",
                )
                .command(format!("{program} run --security-opt=label=disable …"))
                .command("sudo setsebool -P container_use_devices true  # on the host")
        }
        // The labels of the files are right: the policy keeps containers from devices.
        Place::Pod => finding
            .remedy(
                "ask the administrator of the node to allow containers to use devices, with the command; or give the pod's container \
                 a type that may use the GPUs: `nvidia_container_t` where NVIDIA's policy module is installed, else `spc_t`, which is \
                 not separated at all",
            )
            .command("sudo setsebool -P container_use_devices true  # on the node")
            .command("securityContext: { seLinuxOptions: { type: nvidia_container_t } }"),
        Place::Lxc => finding
            .remedy("allow containers to use devices, on the host, and restart the container")
            .command("sudo setsebool -P container_use_devices true  # on the host"),
        _ => finding.command("sudo ausearch -m avc -ts recent").command("sudo restorecon -v /dev/nvidia*"),
    })
}
