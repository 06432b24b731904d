//! Whether NVIDIA's setting `no-cgroups` fits the Docker of this machine. With it, nobody allows containers to use the
//! devices that they are given: right for a Docker without root, which cannot allow it, and wrong for any other.

use crate::checks::{Answer, Check};
use crate::facts::{Daemon, Host, NvmlState, Place, RUNTIME_CONFIG};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::{lxc, service};

pub(super) static CHECK: Check = Check {
    question: "Does the NVIDIA Container Toolkit let containers use the GPUs?",
    reports: &["container.no-cgroups"],
    preflight: false,
    run,
};

/// The sockets of a Docker with root.
const SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/docker.sock"];
/// What a Docker without root, or in LXC, says if it is asked to allow devices.
const DENIED: [&str; 2] =
    ["bpf_prog_query(BPF_CGROUP_DEVICE) failed", "devices.allow: operation not permitted"];

/// What a Docker without root needs to know CDI devices.
const CDI_SETTING: &str = "with Docker 25 or later, which before 28.3 needs `\"features\": {\"cdi\": true}` in ~/.config/docker/daemon.json";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || !host.may_start_containers() || host.job().is_some() {
        return Ok(Vec::new());
    }
    let set = host.runtime_config().map(|config| config.no_cgroups.unwrap_or(false));
    let daemon = host.docker_daemon();
    let said = host.container_outputs();
    let denied = said
        .iter()
        .flat_map(|text| text.lines())
        .find(|line| DENIED.iter().any(|words| line.contains(words)));
    if host.place() == Place::Lxc {
        return in_lxc(host, set, denied);
    }
    if let Some(line) = denied.filter(|_| set != Some(true)) {
        return Ok(vec![rootless(host).seen(line.trim())]);
    }
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let has_root = has_socket(host) || host.docker_info().is_some();
    Ok(match (set, daemon) {
        (Some(true), Daemon::System) if has_root => vec![rooted(host)],
        (Some(false), Daemon::Rootless) if !has_specification(host) => vec![rootless(host)],
        _ => Vec::new(),
    })
}

/// LXC, in which the one who sets rules for devices is the host: an unprivileged container may not, and then `no-cgroups`
/// has to be true for its own containers.
fn in_lxc(host: &Host, set: Option<bool>, denied: Option<&str>) -> Answer {
    let may_not = || -> Result<bool, crate::facts::Unknown> {
        let is_set_up = set == Some(false) && has_socket(host) && !has_specification(host);
        Ok(is_set_up && host.has_mapped_root() && host.nvml_state()? == NvmlState::Ready)
    };
    if set == Some(true) || denied.is_none() && !may_not()? {
        return Ok(Vec::new());
    }
    let title = "Docker in this LXC container may not give GPUs to its containers: no-cgroups is not true";
    let finding = Finding::new("container.no-cgroups", title)
        .because(
            "only the host of an LXC container that is not privileged may set who can use a device, so `docker run --gpus` fails \
             with `failed to add device rules` or `devices.allow: operation not permitted`",
        )
        .remedy(
            "nothing if you train outside Docker; otherwise set no-cgroups to true in this LXC container, whose own rules decide \
             about the devices; it also needs nesting (Proxmox: `pct set <number> --features nesting=1`, LXD and Incus: \
             `security.nesting=true`) and the driver's libraries in the version of the host (`NVIDIA-Linux-….run \
             --no-kernel-modules`)",
        )
        .command("sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups=true --in-place")
        .command(service::restart(host, "docker"));
    let finding = denied.into_iter().fold(finding, |finding, line| finding.seen(line.trim()));
    Ok(vec![lxc::inside(host, finding)])
}

/// A Docker with root, whose containers see the device files and may not use them.
fn rooted(host: &Host) -> Finding {
    let title = "NVIDIA's runtime does not let containers use the GPUs: no-cgroups is true";
    Finding::new("container.no-cgroups", title)
        .seen(format!("{RUNTIME_CONFIG}: no-cgroups = true"))
        .command("sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place")
        .command(service::restart(host, "docker"))
}

/// Whether the finding about a Docker without root beside one with root says already how its containers get GPUs.
pub(super) fn is_reported(host: &Host) -> bool {
    let is_off = host.runtime_config().is_some_and(|config| config.no_cgroups != Some(true));
    has_socket(host) && is_off && host.docker_daemon() == Daemon::Rootless && !has_specification(host)
}

pub(super) fn has_socket(host: &Host) -> bool {
    SOCKETS.iter().any(|path| host.exists(path) == Ok(true))
}

/// A Docker without root, which the kernel does not let change who may use a device.
fn rootless(host: &Host) -> Finding {
    let title =
        "this Docker runs without root, and NVIDIA's runtime is not set up for that: no-cgroups is not true";
    let finding = Finding::new("container.no-cgroups", title).because(
        "a Docker without root may not change which devices a container can use, so `docker run --gpus` fails with \
         `failed to add device rules`",
    );
    rootless_commands(host, finding)
}

/// The finding, with the commands that let the containers of a Docker without root use the GPUs: by CDI, if a Docker with
/// root needs the setting as it is.
pub(super) fn rootless_commands(host: &Host, finding: Finding) -> Finding {
    // Two ways, of which the first would break the containers of a Docker with root.
    let by_cdi = has_socket(host);
    let finding = finding.remedy(if by_cdi {
        format!(
            "nothing if you train outside containers; otherwise name the GPUs as CDI devices ({CDI_SETTING}): no-cgroups has to stay \
             false, because there is a Docker with root as well, whose containers need that"
        )
    } else {
        format!(
            "nothing if you train outside containers; otherwise set no-cgroups to true, or name the GPUs as CDI devices, which do \
             not need it (`--device nvidia.com/gpu=all`, after `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` and a \
             restart, {CDI_SETTING})"
        )
    });
    let finding = finding.command(if by_cdi {
        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    } else {
        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups=true --in-place"
    });
    // Without systemd, the user starts this daemon in a way of their own.
    let finding = match host.has_systemd() {
        false => finding,
        true => finding.command("systemctl --user restart docker"),
    };
    // A job does not start containers of Docker.
    if by_cdi && host.job().is_none() {
        finding.command("docker run --device nvidia.com/gpu=all --ipc=host …")
    } else {
        finding
    }
}

fn has_specification(host: &Host) -> bool {
    super::cdi::FOLDERS.iter().any(|folder| {
        host.folder(folder)
            .ok()
            .flatten()
            .is_some_and(|names| names.iter().any(|name| name.contains("nvidia")))
    })
}
