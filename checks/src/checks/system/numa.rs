//! Whether this process may use the NUMA nodes of its GPUs: the CPU set of a batch job or container
//! can exclude them. Also whether a node of a GPU has CPUs and memory, which NCCL takes for granted.

use crate::checks::gpu::chosen;
use crate::checks::gpu::peer_access::is_nvlinked;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, pci_device};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;

pub(super) static CHECK: Check = Check {
    question: "Are the GPUs attached to CPUs that this process may use?",
    reports: &["system.numa", "system.numa-uneven"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let online = host.text("/sys/devices/system/node/online")?.map(|text| numbers(&text)).unwrap_or_default();
    if online.len() < 2 {
        return Ok(Vec::new());
    }
    let mut findings: Vec<Finding> = uneven(host, intent, &online).into_iter().collect();
    let status = match host.text("/proc/self/status") {
        Ok(status) => status.unwrap_or_default(),
        Err(_) if !findings.is_empty() => return Ok(findings),
        Err(why) => return Err(why),
    };
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:")).map(numbers);
    let Some(allowed) = allowed.filter(|allowed| !allowed.is_empty()) else { return Ok(findings) };
    for gpu in chosen(host, intent, host.gpus()?) {
        let Ok(node) = gpu.number("numa_node") else { continue };
        if online.contains(&node) && !allowed.contains(&node) {
            let list: Vec<String> = allowed.iter().map(u64::to_string).collect();
            let title = format!(
                "GPU {} is attached to NUMA node {node}, but this process may only use node {}",
                gpu.index,
                list.join(", ")
            );
            findings.push(Finding::new("system.numa", title));
        }
    }
    Ok(findings)
}

/// The variable that makes NCCL share memory in the older way.
const CUMEM_HOST: &str = "NCCL_CUMEM_HOST_ENABLE";
/// The first driver that allocates memory near such a node.
const REPAIRED: u32 = 595;

/// A GPU at a node without CPUs or without memory, beside others at a whole one: since 2.24 NCCL asks the driver for memory
/// at the GPU's own node, and ranks that cannot communicate directly fail to share it (NVIDIA/nccl#2190).
fn uneven(host: &Host, intent: &Intent, online: &[u64]) -> Option<Finding> {
    let is_off = nccl_files::setting(host, CUMEM_HOST).is_some_and(|set| set.value.trim() == "0");
    if intent.cpu || !intent.run || intent.ranks_on_gpus() < 2 || is_off {
        return None;
    }
    let gpus = chosen(host, intent, host.gpus().ok()?);
    if gpus.iter().any(is_nvlinked) || host.driver_version().is_ok_and(|driver| driver.major() >= REPAIRED) {
        return None;
    }
    let flaw = |node: u64| {
        let file =
            |name: &str| host.text(&format!("/sys/devices/system/node/node{node}/{name}")).ok().flatten();
        let cpus = file("cpulist").map(|text| !numbers(&text).is_empty());
        let memory = file("meminfo").and_then(|text| {
            let line = text.lines().find(|line| line.contains("MemTotal:"))?.to_owned();
            line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()
        });
        match (cpus, memory) {
            (Some(false), Some(1..)) => Some("no CPUs"),
            (Some(true), Some(0)) => Some("no memory"),
            _ => None,
        }
    };
    let at: Vec<(usize, u64)> =
        gpus.iter().filter_map(|gpu| Some((gpu.index, node_of(host, gpu)?))).collect();
    let (index, node, what) = at
        .iter()
        .find_map(|&(index, node)| Some((index, node, flaw(node).filter(|_| online.contains(&node))?)))?;
    if at.iter().all(|&(_, other)| flaw(other).is_some()) {
        return None;
    }
    let title = format!(
        "GPU {index} is attached to NUMA node {node}, which has {what}: NCCL may fail to share memory"
    );
    Some(Finding::new("system.numa-uneven", title).command(format!("export {CUMEM_HOST}=0")))
}

/// The NUMA node of a GPU, by its place on the bus.
fn node_of(host: &Host, gpu: &Gpu) -> Option<u64> {
    let of_bus = || {
        let address = pci_device(&gpu.pci_bus_id().ok()?)?;
        let text = host.text(&format!("/sys/bus/pci/devices/{address}/numa_node")).ok()??;
        text.trim().parse().ok()
    };
    of_bus().or_else(|| gpu.number("numa_node").ok())
}

/// `0-1,3`
fn numbers(text: &str) -> Vec<u64> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last.checked_sub(first)? < 1024).then_some(first..=last)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::numbers;

    #[test]
    fn lists_of_nodes_are_read() {
        assert_eq!(numbers("0-1,3\n"), [0, 1, 3]);
        assert!(numbers("x").is_empty());
    }

    proptest! {
        #[test]
        fn any_list_is_read(text in "([0-9]{1,20}|-|,|\\PC){0,10}") {
            let _ = numbers(&text);
        }
    }
}
