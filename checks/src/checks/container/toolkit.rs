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

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_container() || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    // Docker's own answer lists at least the runtime `runc`; a message of a proxy or shell does not.
    let is_dockers = |text: &String| text.contains("runc") || text.contains("docker:");
    let info = host.recorded_output("docker").filter(is_dockers);
    let has_docker = info.is_some() || host.exists("/usr/bin/docker").unwrap_or(false);
    if host.gpus()?.is_empty() || !has_docker || is_of_docker_desktop(host) {
        return Ok(Vec::new());
    }
    let refused = info.as_ref().is_some_and(|text| text.contains("could not select device driver"));
    let installed = PROGRAMS.iter().any(|program| host.exists(program).unwrap_or(false));
    let configured = host.text("/etc/docker/daemon.json").ok().flatten();
    let known = [info, configured]
        .into_iter()
        .flatten()
        .any(|text| text.contains("nvidia-container-runtime") || text.contains("\"nvidia\""));
    if !refused && (installed || known) {
        return Ok(Vec::new());
    }
    let title = "Docker is installed, but not the NVIDIA Container Toolkit: containers get no GPU";
    let finding = Finding::new("container.toolkit-missing", title);
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
    Ok(vec![
        finding
            .command("sudo nvidia-ctk runtime configure --runtime=docker")
            .command(service::restart(host, "docker")),
    ])
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
