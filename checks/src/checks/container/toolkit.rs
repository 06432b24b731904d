//! Whether Docker on this machine can pass GPUs to containers. This is only information, because
//! training outside containers does not need it.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState, Packages};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::service;

pub(super) static CHECK: Check = Check {
    question: "Can Docker pass GPUs to containers?",
    reports: &["container.toolkit-missing"],
    preflight: false,
    run,
};

/// Programs of the toolkit; any of them shows that it is installed.
const PROGRAMS: [&str; 3] =
    ["/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook", "/usr/bin/nvidia-container-cli"];

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
    if host.os()? != "linux" || host.is_container() || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let said = answers(host);
    let has_docker = !said.is_empty() || host.exists("/usr/bin/docker").unwrap_or(false);
    if host.gpus()?.is_empty() || !has_docker {
        return Ok(Vec::new());
    }
    let refusal = REFUSALS.into_iter().find(|words| said.iter().any(|text| text.contains(words)));
    if is_of_docker_desktop(host) {
        return Ok(refusal
            .filter(|words| words.contains("untime"))
            .map(without_runtime)
            .into_iter()
            .collect());
    }
    let refused = refusal.is_some();
    let installed = PROGRAMS.iter().any(|program| host.exists(program).unwrap_or(false));
    let configured = host.text("/etc/docker/daemon.json").ok().flatten();
    let known = said
        .into_iter()
        .chain(configured)
        .any(|text| text.contains("nvidia-container-runtime") || text.contains("\"nvidia\""));
    if !refused && (installed || known) {
        return Ok(Vec::new());
    }
    let title = if installed {
        "Docker does not use the NVIDIA Container Toolkit, which is installed: containers get no GPU"
    } else {
        "Docker is installed, but not the NVIDIA Container Toolkit: containers get no GPU"
    };
    let finding = Finding::new("container.toolkit-missing", title);
    let finding = match refusal {
        Some(words) => finding.seen(format!("docker: {words}")),
        None => finding,
    };
    let finding = match installed {
        true => finding.remedy(
            "nothing if you train outside containers; otherwise make the toolkit known to Docker and restart Docker (a reload is \
             not enough)",
        ),
        false => finding,
    };
    let install = match host.distribution().ok().and_then(|distribution| distribution.packages()) {
        Some(Packages::Apt) => &[
            "curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | sudo gpg --dearmor \
             -o /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
            "curl -fsSL https://nvidia.github.io/libnvidia-container/stable/deb/nvidia-container-toolkit.list | sed \
             's#deb https://#deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] https://#' | sudo \
             tee /etc/apt/sources.list.d/nvidia-container-toolkit.list",
            "sudo apt update",
            "sudo apt install nvidia-container-toolkit",
        ][..],
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
    };
    // Installed but still refused: Docker was not configured or not restarted.
    let install = if installed { &[] } else { install };
    let finding = install.iter().copied().fold(finding, Finding::command);
    let finding = finding.command("sudo nvidia-ctk runtime configure --runtime=docker");
    // Docker 29 gives containers GPUs by the list that this writes.
    let finding = match refusal.is_some_and(|words| words.contains("CDI")) {
        true => finding.command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
        false => finding,
    };
    Ok(vec![finding.command(service::restart(host, "docker"))])
}

/// What Docker said. Its own answers list at least the runtime `runc`, or name its daemon; a message of a proxy or shell
/// does not.
fn answers(host: &Host) -> Vec<String> {
    let outputs = ["docker", "docker-compose"].into_iter().flat_map(|program| host.recorded_outputs(program));
    let is_dockers =
        |text: &String| ["runc", "docker:", "from daemon"].iter().any(|words| text.contains(words));
    outputs.map(|(_, output)| output.all_text()).filter(is_dockers).collect()
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

/// Docker Desktop brings its own toolkit: its client in a distribution of WSL is a link, or mounted.
fn is_of_docker_desktop(host: &Host) -> bool {
    const PLACE: &str = "/mnt/wsl/docker-desktop";
    let leads_there =
        |path: &str| host.link(path).ok().flatten().is_some_and(|target| target.starts_with(PLACE));
    leads_there("/usr/bin/docker")
        || leads_there("/var/run/docker.sock")
        || host.is_wsl2().unwrap_or(false) && host.exists(PLACE).unwrap_or(false)
}
