//! Whether Podman finds the GPUs by their names. It reads them from a specification (CDI), which NVIDIA's toolkit
//! writes. This is only information, because training outside containers does not need it.

use super::{cdi, toolkit};
use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Can Podman pass GPUs to containers?",
    reports: &["container.cdi-missing"],
    preflight: false,
    run,
};

/// What container programs say about a name that no specification has.
const MESSAGES: [&str; 2] = ["unresolvable CDI devices", "stat nvidia.com/gpu"];
/// The way in which Podman got GPUs before.
const HOOK: &str = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json";
/// The service of toolkits from 1.18 on, which writes the specification when the machine starts.
const SERVICE: &str = "/etc/systemd/system/nvidia-cdi-refresh.service";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux"
        || host.is_container()
        || host.job().is_some()
        || host.nvml_state()? != NvmlState::Ready
    {
        return Ok(Vec::new());
    }
    let said = host.container_outputs();
    let is_message = |line: &&str| MESSAGES.iter().any(|words| line.contains(words));
    let message = said.iter().flat_map(|text| text.lines()).find(is_message).map(str::trim);
    let installed = toolkit::is_installed(host);
    let has_podman = host.exists("/usr/bin/podman") == Ok(true);
    // Distributions bring Podman along; with the toolkit, somebody wants GPUs in containers.
    if message.is_none() && !(has_podman && installed) || host.gpus()?.is_empty() {
        return Ok(Vec::new());
    }
    if host.exists(HOOK) == Ok(true) && message.is_none() {
        return Ok(Vec::new());
    }
    let mut unreadable = None;
    for folder in cdi::FOLDERS {
        // An unknown folder may hold it.
        let Some(names) =
            host.folder(folder).or_else(|why| if message.is_some() { Ok(None) } else { Err(why) })?
        else {
            continue;
        };
        for name in names.iter().filter(|name| name.ends_with(".yaml") || name.ends_with(".json")) {
            let file = format!("{folder}/{name}");
            let closed = host.stat(&file).ok().flatten().is_some_and(|stat| stat.readable == Some(false));
            match host.text(&file) {
                _ if closed => unreadable = Some(file),
                Ok(Some(text)) if !text.contains("nvidia.com/gpu") => {}
                _ if message.is_none() => return Ok(Vec::new()),
                // Podman may look elsewhere, or the name may be one that the specification lacks.
                _ => return Ok(vec![other_name(message.unwrap_or_default())]),
            }
        }
    }
    let finding = match &unreadable {
        Some(file) => Finding::new(
            "container.cdi-missing",
            format!("only root can read {file}, so Podman without root does not find the GPUs"),
        )
        .remedy("nothing if you train outside containers; otherwise let everybody read the file")
        .command(format!("sudo chmod 644 {file}")),
        None => missing(host, installed),
    };
    Ok(vec![message.into_iter().fold(finding, Finding::seen)])
}

fn missing(host: &Host, installed: bool) -> Finding {
    let title = "containers cannot be given GPUs by name: no CDI specification describes them";
    let finding = Finding::new("container.cdi-missing", title);
    if installed && host.exists(SERVICE) == Ok(true) {
        return finding
            .because(
                "`--device nvidia.com/gpu=all` needs a CDI specification; the service nvidia-cdi-refresh writes it when the \
                 machine starts, and fails if the driver is not loaded yet",
            )
            .command("sudo systemctl restart nvidia-cdi-refresh.service");
    }
    let install = if installed { &[] } else { toolkit::install(host) };
    install
        .iter()
        .copied()
        .fold(finding, Finding::command)
        .command("sudo mkdir -p /etc/cdi")
        .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
        .command("nvidia-ctk cdi list")
}

/// There is a specification, in which the program does not find the name.
fn other_name(message: &str) -> Finding {
    let title = "a container was started with a GPU's name that Podman or Docker does not find";
    Finding::new("container.cdi-missing", title)
        .seen(message)
        .because(
            "a specification exists, but either it has other names, or the program does not read it: Podman before 4.1 and \
             Docker before 25 know no specifications, and Docker before 28.2 has to be told by `\"features\": {\"cdi\": true}`",
        )
        .remedy(
            "write the specification again, take a name that it lists, and update Podman or Docker if they are older; their \
             setting `cdi_spec_dirs` must name its folder",
        )
        .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
        .command("nvidia-ctk cdi list")
}
