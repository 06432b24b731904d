//! Whether libtorch is there, and whether it can use the GPUs that are.

use super::skipped;
use crate::facts::{Fact, Facts};
use crate::finding::{Finding, Status};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let known = match &facts.libtorch {
        Fact::Known(known) => known,
        Fact::Unknown(why) => return vec![skipped("libtorch.installed", why)],
    };
    let Some(folder) = &known.folder else {
        return vec![
            Finding::new("libtorch.installed", Status::Warning, "libtorch is not installed yet")
                .command("yolo setup"),
        ];
    };
    let version = known.version.as_deref().unwrap_or("of unknown version");
    let kind = if known.has_cuda { "with CUDA" } else { "for the CPU" };
    let origin = if known.from_environment { ", named by LIBTORCH" } else { "" };
    let mut findings = vec![
        Finding::new("libtorch.installed", Status::Ok, format!("libtorch {version} {kind}{origin}"))
            .seen(folder.display().to_string()),
    ];
    let gpus = facts.gpus.known().map_or(0, |known| known.gpus.len());
    if gpus > 0 && !known.has_cuda {
        findings.push(Finding::new(
            "libtorch.cuda",
            Status::Warning,
            format!(
                "libtorch is the CPU build, and this machine has {gpus} GPU{}",
                if gpus == 1 { "" } else { "s" }
            ),
        ));
    }
    findings
}
