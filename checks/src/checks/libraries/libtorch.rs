//! Whether libtorch is installed, and has CUDA if the machine has GPUs.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, Variant};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is libtorch installed, and can it use the GPUs?",
    reports: &["libraries.libtorch", "libraries.libtorch-missing", "libraries.libtorch-cpu"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(libtorch) = host.libtorch()? else {
        // The version check reports a LIBTORCH that is not usable.
        if host.named_libtorch()?.is_some() {
            return Ok(Vec::new());
        }
        // A run downloads it by itself.
        let title = "libtorch is not installed yet; `yolo setup` or the first run downloads it";
        return Ok(vec![Finding::new("libraries.libtorch-missing", title).command("yolo setup")]);
    };
    let version = libtorch.version.as_ref().map_or("(unknown version)".to_owned(), ToString::to_string);
    let kind = match libtorch.variant {
        Variant::Cpu => "for the CPU".to_owned(),
        Variant::Cuda(Some((major, minor))) => format!("with CUDA {major}.{minor}"),
        Variant::Cuda(None) => "with CUDA".to_owned(),
    };
    let named = host.places()?.libtorch_named.is_some();
    let origin = if named { ", set by LIBTORCH" } else { "" };
    let mut findings = vec![
        Finding::ok("libraries.libtorch", format!("libtorch {version} {kind}{origin}"))
            .seen(format!("libtorch in {}", libtorch.root)),
    ];
    let gpus = host.gpus().map_or(0, |gpus| gpus.len());
    if gpus > 0 && libtorch.variant == Variant::Cpu && !intent.cpu {
        let status = if intent.devices.is_empty() { Status::Warning } else { Status::Error };
        let title =
            format!("this machine has {}, but this libtorch is the CPU build", format::count(gpus, "GPU"));
        let finding = Finding::new("libraries.libtorch-cpu", title).status(status);
        let finding = match libtorch.libraries {
            Ok(_) => finding.seen(format!("{}/lib has no libtorch_cuda", libtorch.root)),
            Err(_) => finding.seen(format!("{} is a CPU build", libtorch.root)),
        };
        findings.push(match super::fitting(host, intent) {
            Some(build) => super::install(
                host,
                build,
                finding.remedy(format!(
                    "use the {} build of libtorch, which supports the driver and the GPUs",
                    build.name
                )),
            ),
            None => finding,
        });
    }
    Ok(findings)
}
