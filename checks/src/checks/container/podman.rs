//! Whether Podman finds the GPUs by their names. It reads them from a specification (CDI), which NVIDIA's toolkit
//! writes. This is only information, because training outside containers does not need it.

use super::{cdi, toolkit};
use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::lxc;

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
/// Where that service has the options with which it writes the specification.
const OPTIONS: &str = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env";
/// What the toolkit has to leave out, so that an older program reads the specification.
const WITHOUT_GROUPS: &str = "no-additional-gids-for-device-nodes";

fn run(host: &Host, _: &Intent) -> Answer {
    Ok(found(host)?.into_iter().map(|finding| lxc::inside(host, finding)).collect())
}

fn found(host: &Host) -> Answer {
    if host.os()? != "linux"
        || !host.may_start_containers()
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
    if (has_podman || message.is_some())
        && let Some(finding) = newer_than_podman(host)
    {
        return Ok(vec![message.into_iter().fold(finding, Finding::seen)]);
    }
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

/// A specification that this Podman does not read: it takes none with a field that it does not know, and then has no names.
fn newer_than_podman(host: &Host) -> Option<Finding> {
    let files = cdi::FOLDERS.iter().flat_map(|folder| {
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        names.into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let is_new = |file: &String| {
        let text = host.text(file).ok().flatten().unwrap_or_default();
        text.contains("nvidia.com/gpu") && is_of_0_7(&text)
    };
    let mut new: Vec<String> =
        files.filter(|file| file.ends_with(".yaml") || file.ends_with(".json")).filter(is_new).collect();
    let said = host.container_outputs();
    let refusal = said.iter().flat_map(|text| text.lines()).find(|line| is_refusal(line)).map(str::trim);
    // The message names a file that this user, or a recording, does not show.
    if let (true, Some(line)) = (new.is_empty(), refusal) {
        let mut words = line.split(['"', '\\']);
        new.extend(
            words.find(|word| word.ends_with(".yaml") || word.ends_with(".json")).map(ToOwned::to_owned),
        );
    }
    let file = new.first()?.clone();
    let version = podman_version(host);
    // Podman 5.0 was the first to read CDI 0.7.
    let is_old = match &version {
        Some(version) => version.is_below(&[5]),
        None => refusal.is_some() || is_of_old_release(host),
    };
    if !is_old {
        return None;
    }
    let podman = version.map_or("this Podman".to_owned(), |version| format!("Podman {version}"));
    let title = format!("{podman} cannot read {file}, which is a CDI specification of version 0.7");
    let finding = Finding::new("container.cdi-missing", title).because(
        "NVIDIA's toolkit from 1.19 on writes the groups of device files into it (`additionalGids`), which only Podman 5 \
         and later know; an older one takes nothing of the file and says `unresolvable CDI devices`",
    );
    let finding = finding.remedy(
        "nothing if you train outside containers; otherwise update Podman to 5 or later (Ubuntu 25.04 and Debian 13 have it), \
         or have the toolkit write the specification without them; toolkits before 1.19, such as 1.18.2, never write them \
         (`sudo apt-mark hold nvidia-container-toolkit nvidia-container-toolkit-base` keeps one)"
    );
    let finding = refusal.into_iter().fold(finding, |finding, line| finding.seen(line));
    // The service writes the file of each start anew.
    let is_of_service = |file: &str| file.starts_with(cdi::FOLDERS[1]) || file.starts_with("/run/cdi");
    let finding = if host.exists(SERVICE) == Ok(true) || new.iter().any(|file| is_of_service(file)) {
        finding
            .command(format!(
                "echo NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS={WITHOUT_GROUPS} | sudo tee -a {OPTIONS}"
            ))
            .command("sudo systemctl restart nvidia-cdi-refresh.service")
    } else {
        finding
    };
    let own = new.iter().filter(|file| !is_of_service(file));
    Some(
        own.fold(finding, |finding, file| {
            finding.command(format!(
                "sudo nvidia-ctk cdi generate --feature-flag={WITHOUT_GROUPS} --output={file}"
            ))
        })
        .command("podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi"),
    )
}

/// Whether a specification needs a reader of CDI 0.7: `cdiVersion: 0.7.0`, also in JSON, or a field of that version.
fn is_of_0_7(text: &str) -> bool {
    let is_stated = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_version = name.trim().trim_matches('"') == "cdiVersion";
        is_version.then(|| Version::find(value)).flatten().map(|version| !version.is_below(&[0, 7]))
    };
    text.contains("additionalGids") || text.split(['\n', ',', '{']).find_map(is_stated) == Some(true)
}

/// What Podman says of such a file with `--log-level=debug`.
fn is_refusal(line: &str) -> bool {
    line.contains("CDI Spec") && (line.contains("additionalGids") || line.contains("additionalGIDs"))
}

/// A distribution's Podman is asked for its version only where a specification may be too new for it.
fn podman_version(host: &Host) -> Option<Version> {
    // Starting it takes longer than all checks together.
    if !host.is_recorded() && !is_of_old_release(host) {
        return None;
    }
    if let Some(version) = host.command(&["podman", "--version"]).ok().flatten() {
        return Version::find(&version.text());
    }
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some("ii") && words.next() == Some("podman");
        is_it.then(|| Version::find(words.next()?)).flatten()
    };
    let of_podman = host.recorded_outputs("podman").into_iter().find_map(|(line, output)| {
        let text = output.text();
        let named =
            || text.lines().find_map(|line| line.trim().strip_prefix("Version:").map(ToOwned::to_owned));
        if line.contains("version") { Version::find(&named().unwrap_or_else(|| text.clone())) } else { None }
    });
    let of_packages = || {
        let outputs = ["dpkg", "apt", "dpkg-query"].into_iter().flat_map(|name| host.recorded_outputs(name));
        outputs.map(|(_, output)| output.text()).find_map(|text| text.lines().find_map(of_line))
    };
    of_podman.or_else(of_packages)
}

/// Whether the distribution is a release whose Podman is older than 5.
fn is_of_old_release(host: &Host) -> bool {
    let Ok(distribution) = host.distribution() else { return false };
    let below =
        |numbers: &[u32]| distribution.version.as_ref().is_some_and(|version| version.is_below(numbers));
    match distribution.id.as_str() {
        "ubuntu" | "pop" => below(&[24, 10]),
        "debian" => below(&[13]),
        _ => false,
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_version_of_a_specification_is_in_yaml_and_json() {
        for text in [
            "---\ncdiVersion: 0.7.0\nkind: nvidia.com/gpu\n",
            "{\"cdiVersion\":\"0.8.0\",\"kind\":\"nvidia.com/gpu\"}",
            "cdiVersion: 0.5.0\n    additionalGids:\n    - 44\n",
        ] {
            assert!(is_of_0_7(text), "{text}");
        }
        for text in ["cdiVersion: 0.6.0\n", "cdiVersion: \"0.5.0\"\n", "kind: nvidia.com/gpu\n"] {
            assert!(!is_of_0_7(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_specification_is_read(text in "(cdiVersion|\"|: |0\\.7|,|\\{|\n|\\PC){0,12}") {
            let _ = (is_of_0_7(&text), is_refusal(&text));
        }
    }
}
