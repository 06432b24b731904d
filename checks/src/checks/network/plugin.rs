//! Whether NCCL loads a plugin for networks that nobody named. It takes any library of that name which the loader finds, as
//! images and nodes of clouds bring it, and a plugin that does not fit the version of NCCL or the network stops a run over
//! several machines.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does NCCL load a suitable network plugin?",
    reports: &["network.nccl-plugin"],
    preflight: false,
    run,
};

/// The name under which NCCL looks for one.
const PLUGIN: &str = "libnccl-net.so";
/// Parts of folders in which Google's clusters have theirs.
const OF_GOOGLE: [&str; 5] =
    ["/tcpx", "/fastrak", "/gib", "/usr/local/nvidia/lib64", "/home/kubernetes/bin/nvidia/lib64"];
/// What such a plugin says when it fails.
const FAILURES: [&str; 4] =
    ["NET/GPUDirectTCPX failed", "NET/FasTrak failed", "tcpxResult_t", "SHARP coll init error"];

fn run(host: &Host, intent: &Intent) -> Answer {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    if !intent.has_several_nodes() || !uses_nccl || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let is_set =
        |name: &str| nccl_files::setting(host, name).is_some_and(|setting| !setting.value.is_empty());
    // The check of Amazon's adapter speaks of the plugin that it needs.
    if is_set("NCCL_NET_PLUGIN")
        || is_set("NCCL_NET")
        || host.infiniband_ports().iter().any(|port| port.is_efa(host))
    {
        return Ok(Vec::new());
    }
    let Ok(found) = host.library(PLUGIN) else { return Ok(Vec::new()) };
    let Some(plugin) = found.into_iter().next() else { return Ok(Vec::new()) };
    let failure = host.recorded_commands().into_iter().find_map(|(_, output)| failure(&output.all_text()));
    let is_of_google = OF_GOOGLE.iter().any(|part| plugin.path.contains(part));
    let title = format!("NCCL loads the network plugin {}, which no setting asks for", plugin.path);
    let finding = Finding::new("network.nccl-plugin", title);
    let finding = match &failure {
        Some(line) => finding.status(Status::Warning).seen(line.clone()),
        None => finding,
    };
    let finding = if is_of_google {
        finding.remedy(
            "if a run ends or hangs when it starts, do without the plugin, on all machines; Google's plugin needs the version of NCCL that \
             its installer brings, its variables, and its helper (RxDM) beside the run",
        )
    } else {
        finding
    };
    Ok(vec![finding.command("export NCCL_NET_PLUGIN=none")])
}

fn failure(text: &str) -> Option<String> {
    let line = text.lines().find(|line| FAILURES.iter().any(|words| line.contains(words)))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn failures_of_plugins_are_known_by_their_words() {
        let line = "node1:88:99 [0] NCCL WARN NET/GPUDirectTCPX failed to connect";
        assert_eq!(failure(&format!("first\n{line}\n")), Some(line.to_owned()));
        assert_eq!(failure("NET/IB : Using [0]mlx5_0:1/IB"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(tcpxResult_t|\n|\\PC){0,8}") {
            let _ = failure(&text);
        }
    }
}
