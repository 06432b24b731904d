//! Whether libtorch is available for this operating system and CPU.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Wsl};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is libtorch available for this operating system and CPU?",
    reports: &["system.platform", "system.unsupported"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let (os, arch) = (host.os()?, host.arch()?);
    let system = host.system().unwrap_or_default();
    let name = system.name.or_else(|| distribution_name(host)).unwrap_or_else(|| os.clone());
    let wsl = match host.wsl() {
        Ok(Some(Wsl::One)) => " in WSL 1",
        Ok(Some(Wsl::Two)) => " in WSL 2",
        _ => "",
    };
    let cores = system
        .cores
        .map_or(String::new(), |cores| format!(", {}", yolo_base::format::count(cores as usize, "core")));
    let title = format!("{name}{wsl}, {arch}{cores}");
    let finding = if arch == "x86_64" && (os == "linux" || os == "windows") {
        Finding::ok("system.platform", title)
    } else {
        Finding::new("system.unsupported", format!("libtorch is not available for this system: {title}"))
    };
    let kernel = host.kernel_release().map(|kernel| format!("kernel {kernel}"));
    Ok(vec![kernel.into_iter().fold(finding, Finding::seen)])
}

/// The name of the distribution, as it reports it.
fn distribution_name(host: &Host) -> Option<String> {
    let text = host.text("/etc/os-release").ok()??;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}
