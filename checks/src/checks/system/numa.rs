//! Whether this process may use the NUMA nodes of its GPUs: the CPU set of a batch job or container
//! can exclude them.

use crate::checks::gpu::chosen;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are the GPUs attached to CPUs that this process may use?",
    reports: &["system.numa"],
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
    let status = host.text("/proc/self/status")?.unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:")).map(numbers);
    let Some(allowed) = allowed.filter(|allowed| !allowed.is_empty()) else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
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
