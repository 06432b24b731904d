//! Whether ranks can start on this operating system and processor.

use crate::facts::Facts;
use crate::finding::{Finding, Status};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let system = &facts.system;
    let wsl = system.wsl.map_or(String::new(), |version| format!(", WSL {version}"));
    let title = format!("{}{wsl}, {}, {} cores", system.name, system.architecture, system.cores);
    let fits = system.family == "linux" && system.architecture == "x86_64" && system.wsl != Some(1);
    let status = if fits { Status::Ok } else { Status::Error };
    let finding = Finding::new("system.os", status, title).seen(format!("kernel {}", system.kernel));
    vec![if system.wsl == Some(1) { finding.command("wsl --set-version <distribution> 2") } else { finding }]
}
