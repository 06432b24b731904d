//! Whether the processor has AVX2, with which libtorch and the data loader compute on eight numbers at once. Every PC
//! since about 2015 has it, but a virtual machine shows its guest only what the type of its processor lists.

use crate::checks::{Answer, Check};
use crate::facts::{Guest, Host};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check =
    Check { question: "Does the processor have AVX2?", reports: &["system.no-avx2"], preflight: true, run };

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.arch()? != "x86_64" {
        return Ok(Vec::new());
    }
    let Ok(Some(table)) = host.text("/proc/cpuinfo") else { return Ok(Vec::new()) };
    let value = |key: &str| {
        let mut rows = table.lines().filter_map(|line| line.split_once(':'));
        rows.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let Some(flags) = value("flags") else { return Ok(Vec::new()) };
    let has = |flag: &str| flags.split_whitespace().any(|one| one == flag);
    if has("avx2") {
        return Ok(Vec::new());
    }
    let missing = if has("avx") { "no AVX2" } else { "neither AVX nor AVX2" };
    let name = value("model name").map_or(String::new(), |name| format!(" ({name})"));
    let finding = Finding::new("system.no-avx2", format!("this processor has {missing}{name}"));
    Ok(vec![match host.guest() {
        Some(Guest::Cloud(_)) => {
            finding.remedy("rent a type of machine with a newer processor; or accept the slower runs")
        }
        Some(guest) => in_guest(finding, guest),
        None if has("hypervisor") => in_guest(finding, Guest::Qemu),
        None => finding,
    }])
}

fn in_guest(finding: Finding, guest: Guest) -> Finding {
    let finding = finding.because(
        "without AVX2, training on the CPU takes nearly three times as long, and loading images too; a virtual machine shows \
         its guest only what the type of its processor lists, and the processor of the host may have more",
    );
    finding.remedy(match guest {
        Guest::Qemu => {
            "on the host, give this virtual machine the processor type `host` (Proxmox: Hardware, Processors, Type; \
             virt-manager: CPUs, host-passthrough), then shut it down and start it again"
        }
        _ => "on the host, let this virtual machine use all features of the processor, then shut it down and start it again",
    })
}
