//! Whether Docker on this machine can pass GPUs to containers. This is only information, because
//! training outside containers does not need it.

use super::{enroot, no_cgroups, ordering_cycle, refused};
use crate::checks::{Answer, Check};
use crate::facts::{Daemon, Host, NvmlState, Packages, RUNTIME_CONFIG};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::{lxc, service};

pub(super) static CHECK: Check = Check {
    question: "Can Docker pass GPUs to containers?",
    reports: &["container.toolkit-missing"],
    preflight: false,
    run,
};

/// Programs of the toolkit; any of them shows that it is installed.
const PROGRAMS: [&str; 3] =
    ["/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook", "/usr/bin/nvidia-container-cli"];
/// Where Docker's client is, except the one of snap.
const CLIENTS: [&str; 2] = ["/usr/bin/docker", "/usr/local/bin/docker"];
const OF_SNAP: [&str; 2] = ["/snap/bin/docker", "/var/snap/docker"];

/// The settings of a Docker with root.
const SETTINGS: &str = "/etc/docker/daemon.json";

/// What Docker says when it knows no way to give a container NVIDIA's GPUs: before version 29, if the start names the
/// runtime, and from version 29 on.
const REFUSALS: [&str; 5] = [
    "could not select device driver",
    "unknown or invalid runtime name: nvidia",
    "Unknown runtime specified nvidia",
    "AMD CDI spec not found",
    "failed to discover GPU vendor from CDI",
];

fn run(host: &Host, _: &Intent) -> Answer {
    if let Some(finding) = enroot::find(host) {
        return Ok(vec![finding]);
    }
    if !host.may_start_containers() {
        return Ok(Vec::new());
    }
    Ok(found(host)?.into_iter().map(|finding| lxc::inside(host, finding)).collect())
}

fn found(host: &Host) -> Answer {
    if let Some(finding) = refused::find(host) {
        return Ok(vec![in_job(host, finding)]);
    }
    if host.os()? != "linux" || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    if let Some(finding) = ordering_cycle::find(host).filter(|_| host.job().is_none()) {
        return Ok(vec![finding]);
    }
    // Docker's own answer lists at least the runtime `runc`; a message of a proxy or shell does not.
    let is_dockers = |text: &String| text.contains("runc") || text.contains("docker:");
    let outputs = host.docker_outputs();
    let said: Vec<String> = outputs.iter().filter(|text| is_dockers(text)).cloned().collect();
    let there = |path: &&str| host.exists(path) == Ok(true);
    let of_snap = is_of_snap(host);
    let has_docker = !said.is_empty() || of_snap || CLIENTS.iter().any(there);
    if host.gpus()?.is_empty() || !has_docker {
        return Ok(Vec::new());
    }
    let refusal = REFUSALS.into_iter().find(|words| outputs.iter().any(|text| text.contains(words)));
    if is_of_docker_desktop(host) {
        let refusal = refusal.filter(|words| words.contains("untime"));
        return Ok(refusal.map(without_runtime).into_iter().collect());
    }
    // Podman finds the GPUs in a specification, about which another check says what is missing.
    if refusal.is_none() && host.docker_reaches_podman() {
        return Ok(Vec::new());
    }
    // Batch systems start containers in other ways.
    let is_job = host.job().is_some();
    if is_job && refusal.is_none() {
        return Ok(Vec::new());
    }
    if !is_job && host.docker_daemon() == Daemon::Desktop && host.wsl().is_ok_and(|wsl| wsl.is_none()) {
        return Ok(vec![of_desktop(host)]);
    }
    if !is_job && of_snap {
        return Ok(vec![snap(host)]);
    }
    let installed = is_installed(host);
    let settings = settings(host);
    let names = settings.as_ref().is_ok_and(|text| text.as_ref().is_some_and(|text| text.contains("nvidia")));
    let listed = said.iter().any(|text| lists_nvidia(text));
    let known = names || listed;
    if no_cgroups::is_reported(host) {
        return Ok(Vec::new());
    }
    if installed && refusal.is_none() && !known && is_without_runtime(host, &said, settings.is_ok()) {
        let lists = said.iter().any(|text| names_runtimes(text));
        return Ok(vec![if lists { unconfigured(host, None) } else { without_name(host) }]);
    }
    if installed && !is_job && names && !listed {
        let lists = said.iter().any(|text| names_runtimes(text));
        let is_unknown = refusal.filter(|words| words.contains("untime"));
        if let Some(seen) = is_unknown
            .map(|words| format!("docker: {words}"))
            .or_else(|| lists.then(|| "docker info lists no runtime nvidia".to_owned()))
            .or_else(|| changed_later(host).filter(|_| refusal.is_none()))
        {
            return Ok(vec![not_restarted(host, seen)]);
        }
    }
    if refusal.is_none() && (installed || known) {
        return Ok(cdi_mode(host).filter(|_| !is_job).into_iter().collect());
    }
    if installed {
        return Ok(vec![in_job(host, unconfigured(host, refusal))]);
    }
    let title = "Docker is installed, but not the NVIDIA Container Toolkit: containers get no GPU";
    let finding = install(host)
        .iter()
        .copied()
        .fold(Finding::new("container.toolkit-missing", title), Finding::command);
    Ok(vec![in_job(host, configure(host, finding))])
}

/// In a job, a container was started and refused, and only an administrator can repair that.
fn in_job(host: &Host, mut finding: Finding) -> Finding {
    const FOR_OTHERS: &str = "nothing if you train outside containers; otherwise ";
    if let Some(remedy) = finding.remedy.as_mut().filter(|_| host.job().is_some())
        && let Some(rest) = remedy.text.strip_prefix(FOR_OTHERS)
    {
        remedy.text = rest.to_owned();
    }
    finding
}

pub(super) fn is_installed(host: &Host) -> bool {
    let is_listed = |text: String| {
        text.lines().any(|line| line.starts_with("ii") && line.contains(" nvidia-container-toolkit "))
    };
    PROGRAMS.iter().any(|program| host.exists(program).unwrap_or(false))
        || host.recorded_outputs("nvidia-ctk").iter().any(|(_, output)| output.exit == 0)
        || host.recorded_output("dpkg").is_some_and(is_listed)
}

/// The commands that install the toolkit, by NVIDIA's guide.
pub(super) fn install(host: &Host) -> &'static [&'static str] {
    match host.distribution().ok().and_then(|distribution| distribution.packages()) {
        Some(Packages::Apt) => &[
            "curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | sudo gpg --dearmor \
             -o /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
            "curl -fsSL https://nvidia.github.io/libnvidia-container/stable/deb/nvidia-container-toolkit.list | sed \
             's#deb https://#deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] https://#' | sudo \
             tee /etc/apt/sources.list.d/nvidia-container-toolkit.list",
            "sudo apt update",
            "sudo apt install nvidia-container-toolkit",
        ],
        Some(Packages::Dnf) => &[
            "curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo | sudo \
             tee /etc/yum.repos.d/nvidia-container-toolkit.repo",
            "sudo dnf install nvidia-container-toolkit",
        ],
        Some(Packages::Zypper) => &[
            "sudo zypper addrepo https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo",
            "sudo zypper install nvidia-container-toolkit",
        ],
        Some(Packages::Pacman) => &["sudo pacman -Syu nvidia-container-toolkit"],
        None => &[],
    }
}

/// The finding, with the commands that tell Docker about the toolkit. A daemon without root has settings of its own.
fn configure(host: &Host, finding: Finding) -> Finding {
    if host.docker_daemon() == Daemon::Rootless {
        // Beside a Docker with root, this runtime could start no container.
        return if no_cgroups::has_socket(host) {
            no_cgroups::rootless_commands(host, finding)
        } else {
            let text = finding.remedy.as_ref().map(|remedy| remedy.text.clone()).unwrap_or_default();
            let finding = finding.command(
                "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
            );
            no_cgroups::rootless_commands(host, finding).remedy(text)
        };
    }
    finding
        .command("sudo nvidia-ctk runtime configure --runtime=docker")
        .command(service::restart(host, "docker"))
}

/// The settings of the daemon that this user's Docker reaches.
fn settings(host: &Host) -> crate::facts::Fact<Option<String>> {
    let home = host.env("HOME").ok().flatten().unwrap_or_default();
    match host.docker_daemon() {
        Daemon::Rootless => host.text(&format!("{home}/.config/docker/daemon.json")),
        Daemon::System | Daemon::Desktop => host.text(SETTINGS),
    }
}

/// Whether an output of Docker names NVIDIA's runtime: ` Runtimes: io.containerd.runc.v2 nvidia runc`.
fn lists_nvidia(text: &str) -> bool {
    let is_listed = |line: &str| {
        line.trim_start().starts_with("Runtimes:") && line.split_whitespace().any(|word| word == "nvidia")
    };
    text.contains("nvidia-container-runtime") || text.contains("\"nvidia\"") || text.lines().any(is_listed)
}

/// Whether Docker is known to lack NVIDIA's runtime, and no CDI specification does its work.
fn is_without_runtime(host: &Host, said: &[String], has_settings: bool) -> bool {
    let lists = said.iter().any(|text| names_runtimes(text));
    let has_specification = super::cdi::FOLDERS.iter().any(|folder| {
        host.folder(folder)
            .ok()
            .flatten()
            .is_some_and(|names| names.iter().any(|name| name.contains("nvidia")))
    });
    (lists || has_settings) && !has_specification
}

/// Whether an output of Docker lists its runtimes.
fn names_runtimes(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("Runtimes:"))
}

/// Whether Docker's settings are younger than the Docker that runs, which has read the older ones.
fn changed_later(host: &Host) -> Option<String> {
    const STARTED: &str = "/run/docker.pid";
    if host.docker_daemon() != Daemon::System {
        return None;
    }
    let modified = |path: &str| host.stat(path).ok().flatten()?.modified;
    let is_later = modified(SETTINGS)? > modified(STARTED)?;
    is_later.then(|| format!("{SETTINGS} is newer than {STARTED}, which Docker writes when it starts"))
}

/// The settings name the runtime, and the daemon that runs does not know it.
fn not_restarted(host: &Host, seen: String) -> Finding {
    let title = "Docker's settings name NVIDIA's runtime, and were changed after Docker started";
    let finding = Finding::new("container.toolkit-missing", title)
        .because("Docker reads its settings when it starts; if NVIDIA's runtime was added since, containers fail with `unknown or invalid runtime \
             name: nvidia`")
        .seen(seen)
        .remedy(
            "nothing if you train outside containers; otherwise restart Docker, which also ends its containers unless they are set to \
             start again",
        );
    match host.docker_daemon() {
        Daemon::Rootless => finding.command("systemctl --user restart docker"),
        Daemon::System | Daemon::Desktop => finding.command(service::restart(host, "docker")),
    }
}

/// The toolkit is there, and Docker's settings do not name it. `--gpus` can work all the same.
fn without_name(host: &Host) -> Finding {
    let title = "the NVIDIA Container Toolkit is installed, but Docker's settings do not name its runtime";
    let finding = Finding::new("container.toolkit-missing", title)
        .because(
            "containers with `runtime: nvidia` (`--runtime=nvidia`) fail with `unknown or invalid runtime name: nvidia` until \
             the settings name it; `docker run --gpus` does without where Docker finds NVIDIA's hook",
        )
        .remedy(
            "nothing if you train outside containers, or if `docker run --gpus all` works and is what you use; otherwise \
             configure Docker and restart it (a reload is not enough)",
        );
    configure(host, finding)
}

/// The toolkit is there, and Docker has not been told.
fn unconfigured(host: &Host, refusal: Option<&str>) -> Finding {
    let title = "the NVIDIA Container Toolkit is installed, but Docker is not configured to use it";
    let finding = Finding::new("container.toolkit-missing", title)
        .because(
            "Docker learns about the toolkit from its settings and when it starts: until then containers with `runtime: \
             nvidia` fail with `unknown or invalid runtime name: nvidia`, and `docker run --gpus` with `could not select \
             device driver`",
        )
        .remedy(
            "nothing if you train outside containers; otherwise configure Docker and restart it (a reload is not enough)",
        );
    let finding = match refusal {
        Some(words) => finding.seen(format!("docker: {words}")),
        None => finding,
    };
    // Docker 29 gives containers GPUs by the list that this writes.
    let needs_list = refusal.is_some_and(|words| words.contains("CDI"))
        && !(host.docker_daemon() == Daemon::Rootless && no_cgroups::has_socket(host));
    let finding = if needs_list {
        finding.command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    } else {
        finding
    };
    configure(host, finding)
}

/// Docker Desktop has the toolkit, but no runtime of this name.
fn without_runtime(words: &str) -> Finding {
    let title = "Docker Desktop has no runtime named nvidia, which the start of a container asks for";
    Finding::new("container.toolkit-missing", title)
        .because("Docker Desktop gives containers GPUs by `--gpus`, and has no runtime of that name")
        .seen(format!("docker: {words}"))
        .remedy(
            "start the container with `--gpus all` instead of `--runtime=nvidia`; in a compose file, replace `runtime: nvidia` with \
             `deploy: resources: reservations: devices:` and there `driver: nvidia`, `count: all`, `capabilities: [gpu]`",
        )
        .command("docker run --gpus all …")
}

/// In this mode NVIDIA's hook, which `--gpus` calls, refuses to work.
fn cdi_mode(host: &Host) -> Option<Finding> {
    let mode = host.runtime_config()?.mode.filter(|mode| mode == "cdi")?;
    let title = "NVIDIA's container runtime is in the mode cdi, in which `docker run --gpus` can fail";
    Some(
        Finding::new("container.toolkit-missing", title)
            .seen(format!("{RUNTIME_CONFIG}: mode = \"{mode}\""))
            .because(
                "Docker's option `--gpus` calls NVIDIA's hook directly, which this mode does not support: `invoking the \
                 NVIDIA Container Runtime Hook directly … is not supported`",
            )
            .remedy(
                "nothing if you train outside containers; otherwise name the GPUs as CDI devices instead of `--gpus`, or set \
                 the mode back to auto",
            )
            .command("docker run --device nvidia.com/gpu=all --ipc=host …")
            .command("sudo nvidia-ctk config --set nvidia-container-runtime.mode=auto --in-place"),
    )
}

/// Docker of snap cannot see the toolkit, and reads neither its settings nor folders outside of home.
fn snap(host: &Host) -> Finding {
    let title =
        "Docker was installed from snap, which cannot use the NVIDIA Container Toolkit of this machine";
    let finding = Finding::new("container.toolkit-missing", title)
        .because(
            "the snap is closed off: it does not read /etc/docker/daemon.json, does not find NVIDIA's runtime (`could not \
             select device driver`), and containers see folders of the home folder only",
        )
        .remedy(
            "nothing if you train outside containers; otherwise replace the snap by Docker Engine, which removes its containers \
             and images, and install the toolkit",
        )
        .command("sudo snap remove docker");
    let engine = ["sudo apt install docker.io", "", "sudo zypper install docker", "sudo pacman -Syu docker"];
    let finding = host.package_command(engine).into_iter().fold(finding, Finding::command);
    with_toolkit(host, finding)
}

fn is_of_snap(host: &Host) -> bool {
    let is_root = host.docker_info().is_some_and(|text| text.contains("Docker Root Dir: /var/snap/docker"));
    let there = |path: &&str| host.exists(path) == Ok(true);
    is_root || OF_SNAP.iter().any(there) && CLIENTS.iter().all(|path| host.exists(path) == Ok(false))
}

/// Docker Desktop on Linux: its containers run in a virtual machine without the card, whatever is installed.
fn of_desktop(host: &Host) -> Finding {
    let title = "Docker Desktop runs containers in a virtual machine, which has no GPU";
    let finding = Finding::new("container.toolkit-missing", title)
        .because(
            "on Linux, Docker Desktop cannot pass a card to its virtual machine: `docker run --gpus` fails with `could not \
             select device driver`, although toolkit and driver work",
        )
        .remedy(
            "nothing if you train outside containers; otherwise use Docker Engine (docker-ce) beside Docker Desktop, with the \
             context `default`, and the NVIDIA Container Toolkit",
        )
        .command("docker context use default");
    with_toolkit(host, finding)
}

/// The finding, with the toolkit for a Docker Engine that is new.
fn with_toolkit(host: &Host, finding: Finding) -> Finding {
    let finding = if is_installed(host) {
        finding
    } else {
        install(host).iter().copied().fold(finding, Finding::command)
    };
    finding
        .command("sudo nvidia-ctk runtime configure --runtime=docker")
        .command(service::restart(host, "docker"))
}

/// Docker Desktop brings its own toolkit to WSL: its client in a distribution of WSL is a link, or mounted.
fn is_of_docker_desktop(host: &Host) -> bool {
    const PLACE: &str = "/mnt/wsl/docker-desktop";
    let leads_there =
        |path: &str| host.link(path).ok().flatten().is_some_and(|target| target.starts_with(PLACE));
    leads_there("/usr/bin/docker")
        || leads_there("/var/run/docker.sock")
        || host.is_wsl2().unwrap_or(false) && host.exists(PLACE).unwrap_or(false)
}
