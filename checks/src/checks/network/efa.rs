//! Whether NCCL finds the plugin for Amazon's network adapter, EFA. Without it, the ranks of a run over several machines
//! use TCP sockets, many times slower, without a message.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::checks::shell::infiniband::library_of;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files::{self, Setting};
use crate::remedies::fit::is_of_service;
use crate::remedies::start_container::{Start, start_with};

pub(super) static CHECK: Check = Check {
    question: "Does NCCL find the plugin for Amazon's network adapter?",
    reports: &["network.efa-plugin"],
    preflight: false,
    run,
};

/// The names of the plugin.
const PLUGINS: [&str; 2] = ["libnccl-net.so", "libnccl-net-ofi.so"];
/// Where installers put it.
const FOLDERS: [&str; 7] = [
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/amazon/ofi-nccl/lib64",
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/aws-ofi-nccl/lib",
    "/opt/aws-ofi-nccl/lib",
    "/opt/aws-ofi-nccl/install/lib",
    "/usr/local/aws-ofi-nccl/lib",
];

fn run(host: &Host, intent: &Intent) -> Answer {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    if !intent.has_several_nodes() || !uses_nccl || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let network = nccl_files::setting(host, "NCCL_NET").map(|setting| setting.value.to_ascii_lowercase());
    let Some(port) = host.infiniband_ports().into_iter().find(|port| port.is_efa(host)) else {
        return Ok(Vec::new());
    };
    if network.is_some_and(|name| name == "socket") {
        return Ok(Vec::new());
    }
    let is_found = |name: &str| host.library(name).map(|found| !found.is_empty());
    let named = nccl_files::setting(host, "NCCL_NET_PLUGIN");
    // A plugin of another network, such as an image for another cloud names, or none.
    let other = named.filter(|plugin| !plugin.value.contains("ofi") && !plugin.value.contains('/'));
    let is_installed = PLUGINS.iter().any(|name| is_found(name) == Ok(true));
    // NCCL looks for no other plugin then.
    let is_other_found = |plugin: &Setting| is_found(&library_of(&plugin.value)) == Ok(true);
    if is_installed && other.as_ref().is_none_or(is_other_found) {
        let finding = missing_devices(host, &port.adapter)
            .or_else(|| of_another_build(host, &port.adapter))
            .or_else(|| foreign_devices(host, &port.adapter));
        return Ok(finding.into_iter().collect());
    }
    // Nothing is known about libraries.
    is_found(PLUGINS[0])?;
    let title = format!(
        "NCCL cannot use Amazon's network adapter {}: it does not find the plugin aws-ofi-nccl",
        port.adapter
    );
    let finding = Finding::new("network.efa-plugin", title);
    Ok(vec![with_plugin(host, finding, other.as_ref(), is_installed)])
}

fn with_plugin(host: &Host, finding: Finding, other: Option<&Setting>, is_installed: bool) -> Finding {
    let unset = |finding: Finding| match other {
        Some(plugin) => plugin.command(finding.seen(format!("{} is \"{}\"", plugin.place(), plugin.value))),
        None => finding,
    };
    if is_installed {
        return unset(plugin_off(other, finding));
    }
    let has_plugin = |folder: &&&str| {
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        names.iter().any(|name| name.starts_with("libnccl-net"))
    };
    if let Some(folder) = FOLDERS.iter().find(has_plugin) {
        let list = format!("{folder}:/opt/amazon/efa/lib");
        return unset(
            finding
                .remedy("let the loader find the plugin, on all machines of the run")
                .seen(format!("it is in {folder}"))
                .command(format!(
                    "export {LD_LIBRARY_PATH}={list}${{{LD_LIBRARY_PATH}:+:${LD_LIBRARY_PATH}}}"
                )),
        );
    }
    let finding = finding.remedy(if is_of_service(host) {
        "install Amazon's EFA software with aws-ofi-nccl in the image of this container, or use an image of AWS Deep Learning \
         Containers, on all machines of the run"
    } else if host.is_container() {
        "install Amazon's EFA software with aws-ofi-nccl in the image of this container, or use an image of AWS Deep Learning \
         Containers, on all machines of the run; start the container with the adapter's device files"
    } else {
        "install Amazon's EFA software, which brings aws-ofi-nccl, on all machines of the run"
    });
    let finding = finding
        .command(
            "curl -O https://efa-installer.amazonaws.com/aws-efa-installer-latest.tar.gz && tar -xf \
            aws-efa-installer-latest.tar.gz",
        )
        .command(if host.is_container() {
            "cd aws-efa-installer && ./efa_installer.sh -y --skip-kmod"
        } else {
            "cd aws-efa-installer && sudo ./efa_installer.sh -y"
        });
    let mut finding = unset(finding);
    if let (Some(remedy), Some(_)) = (&mut finding.remedy, other) {
        remedy.text.push_str("; then unset the variable, which names the plugin of another network");
    }
    finding
}

/// The variable keeps NCCL from the plugin.
fn plugin_off(other: Option<&Setting>, finding: Finding) -> Finding {
    match other {
        Some(plugin) if plugin.file.is_some() => plugin.text(finding),
        _ => finding.remedy("unset the variable, which names another plugin, or none"),
    }
}

/// What the loader said of a plugin that is there and does not load: its libraries are of several builds, as where HPC-X, MOFED
/// or conda bring a libibverbs of their own, or /opt/amazon was copied from another image.
fn of_another_build(host: &Host, adapter: &str) -> Option<Finding> {
    const WORDS: [&str; 2] = ["version `IBVERBS_PRIVATE_", "version `EFA_"];
    let texts = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let line = texts.into_iter().find_map(|text| {
        let is_it =
            |line: &&str| line.contains("not found") && WORDS.iter().any(|words| line.contains(words));
        text.lines().find(is_it).map(|line| line.trim().to_owned())
    })?;
    let title = format!(
        "NCCL cannot use Amazon's network adapter {adapter}: the libraries of the plugin aws-ofi-nccl do not fit each other"
    );
    Some(
        Finding::new("network.efa-plugin", title)
            .seen(line)
            .because(
                "the loader finds a library of RDMA of another build (HPC-X, MOFED, conda, or Amazon's software copied from another image), so \
                 that the plugin does not load, and NCCL uses TCP sockets without a message",
            )
            .remedy(
                "let the loader find those of the distribution and of Amazon first, without the folder that the message names; in an image, \
                 run Amazon's installer in its last stage (`efa_installer.sh -y --skip-kmod`) in place of copying /opt/amazon",
            )
            .command(format!(
                "export {LD_LIBRARY_PATH}=/opt/amazon/efa/lib:/opt/amazon/ofi-nccl/lib:${LD_LIBRARY_PATH}"
            )),
    )
}

/// A pod with device files of other adapters too, as a volume of /dev/infiniband gives them: libfabric fails on those.
fn foreign_devices(host: &Host, adapter: &str) -> Option<Finding> {
    let files = host.folder("/dev/infiniband").ok()??;
    let owner = |file: &String| {
        let name = host.text(&format!("/sys/class/infiniband_verbs/{file}/ibdev")).ok()??;
        Some(name.trim().to_owned())
    };
    let efa: Vec<String> = host
        .infiniband_ports()
        .into_iter()
        .filter(|port| port.is_efa(host))
        .map(|port| port.adapter)
        .collect();
    let foreign = files
        .iter()
        .filter(|file| file.starts_with("uverbs"))
        .filter_map(owner)
        .find(|name| !efa.contains(name) && name.starts_with("mlx"))?;
    if host.place() != Place::Pod {
        return None;
    }
    let title = format!(
        "NCCL may not use Amazon's network adapter {adapter}: this pod also has the device file of {foreign}, on which libfabric fails"
    );
    Some(
        Finding::new("network.efa-plugin", title)
            .because(
                "a volume of /dev/infiniband gives a pod the files of all adapters of the node, but not the rights to use them; libfabric then \
                 finds no EFA (`fi_info -p efa` fails), and NCCL uses TCP sockets without a message",
            )
            .remedy("remove the volume of /dev/infiniband from the pod, and request the adapters, which Amazon's EFA device plugin gives to pods")
            .command("resources: { limits: { vpc.amazonaws.com/efa: 1 } }"),
    )
}

/// A container that has the plugin, but not the device files.
fn missing_devices(host: &Host, adapter: &str) -> Option<Finding> {
    const DEVICES: &str = "/dev/infiniband";
    let names = host.folder(DEVICES).ok()?.unwrap_or_default();
    if !host.is_container() || names.iter().any(|name| name.starts_with("uverbs")) {
        return None;
    }
    let title = format!("NCCL cannot use Amazon's network adapter {adapter}: {DEVICES}/uverbs0 is missing");
    let finding = Finding::new("network.efa-plugin", title)
        .remedy("start the container with the device files of the adapters, on all machines of the run");
    Some(match host.place() {
        Place::Pod => finding
            .remedy("request the adapters, which Amazon's EFA device plugin gives to pods")
            .command("resources: { limits: { vpc.amazonaws.com/efa: 1 } }"),
        _ => start_with(host, finding, Start::Infiniband),
    })
}
