//! Whether the CPU has AVX2, with which libtorch and the data loader compute on eight numbers at once. Cheap CPUs were
//! made without it into the 2020s, and a virtual machine sees only the features of its CPU model.

use crate::checks::{Answer, Check};
use crate::facts::{Guest, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_of_service;

pub(super) static CHECK: Check =
    Check { question: "Does the CPU have AVX2?", reports: &["system.no-avx2"], preflight: true, run };

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
    let finding = Finding::new("system.no-avx2", format!("this CPU has {missing}{name}"));
    Ok(vec![match host.guest() {
        // WSL is a virtual machine too, but it has all features of the PC's CPU.
        _ if host.wsl()?.is_some() => finding,
        Some(Guest::Cloud(_)) => {
            finding.remedy("choose a machine type with a newer CPU, or accept slower runs")
        }
        None if !has("hypervisor") => finding,
        guest => in_guest(finding, guest, is_of_service(host)),
    }])
}

fn in_guest(finding: Finding, guest: Option<Guest>, is_of_service: bool) -> Finding {
    let finding = finding.because(
        "a virtual machine sees only the features of its CPU model, and the host's CPU may have AVX2; without it, training \
         on the CPU took almost three times the CPU time in one measurement",
    );
    finding.remedy(match guest {
        _ if is_of_service => "choose another machine, if training on the CPU matters",
        Some(Guest::Qemu) => {
            "on the host, set the CPU type of this virtual machine to host (Proxmox: Hardware > Processors > Type; \
             virt-manager: CPUs > host-passthrough), then shut it down and start it again"
        }
        _ => "let the virtual machine use all features of the host's CPU, or ask its provider",
    })
}
