//! The GPUs of each machine. All ranks wait for each other at every step and get equal shares of the
//! batch, so the slowest GPU sets the pace and the smallest limits the batch.

use std::collections::BTreeSet;

use yolo_base::format;

use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};
use crate::facts::{Fact, Gpu};
use crate::libtorch_builds::{self, Capability};

const NONE: &str = "none";
/// NVML's error for a feature that a GPU lacks.
const NOT_SUPPORTED: i64 = 3;

pub(super) const RULES: &[Rule] = &[
    Rule { id: "gpu-count", what: "number of GPUs", read: count, judge: judge_count },
    Rule {
        id: "gpu-model",
        what: "GPU model",
        read: |machine| details(machine, |gpus| Some(Reading::text(names(gpus)?.join(", ")))),
        judge: |_| {
            Meaning::slows(
                "all ranks wait for the slowest GPU at every step",
                "use GPUs of one model, or expect the speed of the slowest one on all of them",
            )
        },
    },
    Rule { id: "gpu-memory", what: "smallest GPU memory", read: memory, judge: judge_memory },
    Rule { id: "compute-capability", what: "compute capability", read: capability, judge: judge_capability },
    Rule {
        id: "mig",
        what: "MIG",
        read: |machine| {
            details(machine, |gpus| {
                let is_on = |gpu: &Gpu| match gpu.error("mig_mode") {
                    Some(NOT_SUPPORTED) => Some(false),
                    _ => gpu.mig().ok(),
                };
                let on = gpus.iter().map(is_on).collect::<Option<Vec<bool>>>()?;
                Some(if on.contains(&true) { Reading::text("on") } else { Reading::absent("off") })
            })
        },
        judge: |_| {
            Meaning::slows(
                "a MIG instance is a part of a GPU, for which the ranks on whole GPUs wait",
                "turn MIG off on all machines: `sudo nvidia-smi -mig 0`",
            )
        },
    },
    Rule {
        id: "pcie",
        what: "slowest GPU link",
        read: pcie,
        judge: |_| {
            Meaning::slows(
                "images and, without NVLink, gradients take longer over the slower link",
                "put the GPU into a slot with more lanes, if there is one",
            )
        },
    },
    Rule { id: "power-limit", what: "lowest GPU power limit", read: power, judge: judge_power },
];

/// The GPUs that work, of those that the run names.
fn usable(machine: &Machine<'_>) -> Fact<Vec<Gpu>> {
    if machine.has_no_driver() {
        return Ok(Vec::new());
    }
    let devices = &machine.intent.devices;
    let is_of_run = |gpu: &Gpu| devices.is_empty() || devices.contains(&gpu.index);
    Ok(machine.host.gpus()?.into_iter().filter(|gpu| gpu.lost().is_none() && is_of_run(gpu)).collect())
}

fn count(machine: &Machine<'_>) -> Reading {
    Reading::of(usable(machine), |gpus| match gpus.len() {
        0 => Reading::absent(NONE),
        number => Reading::text(number.to_string()),
    })
}

fn judge_count(seen: &Seen<'_>) -> Meaning {
    if seen.is_on_cpus() {
        return Meaning::harmless("the run uses only CPUs");
    }
    if seen.has(NONE) {
        let without = format::list(&seen.with(NONE));
        return Meaning::stops(
            format!("ranks on the CPUs of {without} cannot join ranks on GPUs"),
            format!("train without {without}, or on CPUs everywhere with `--device cpu`"),
        );
    }
    Meaning::harmless("each GPU is one rank with an equal share of the batch")
}

/// A fact about the GPUs of a machine that has some; unknown if a GPU does not report it.
fn details(machine: &Machine<'_>, read: impl FnOnce(&[Gpu]) -> Option<Reading>) -> Reading {
    Reading::of(usable(machine), |gpus| match gpus.as_slice() {
        [] => Reading::NotApplicable,
        gpus => read(gpus).unwrap_or_else(|| Reading::Unknown("the driver does not report it".to_owned())),
    })
}

/// The models, each once.
fn names(gpus: &[Gpu]) -> Option<Vec<String>> {
    let names = gpus.iter().map(|gpu| gpu.name().ok()).collect::<Option<BTreeSet<String>>>()?;
    Some(names.into_iter().collect())
}

fn memory(machine: &Machine<'_>) -> Reading {
    details(machine, |gpus| {
        let sizes = gpus.iter().map(|gpu| Some(gpu.memory().ok()?.total)).collect::<Option<Vec<u64>>>()?;
        let least = sizes.into_iter().min()?;
        Some(Reading::amount(least as f64, format::memory(least)))
    })
}

fn judge_memory(seen: &Seen<'_>) -> Meaning {
    let smallest = seen.least().map_or("", |(name, _)| name);
    Meaning::slows(
        "every rank gets an equal share of the batch, so the smallest GPU limits the batch of all",
        format!("choose a batch whose share fits into the GPUs of {smallest}"),
    )
}

fn capabilities(gpus: &[Gpu]) -> Option<BTreeSet<Capability>> {
    gpus.iter().map(|gpu| gpu.capability().ok()).collect()
}

fn capability(machine: &Machine<'_>) -> Reading {
    details(machine, |gpus| {
        let found = capabilities(gpus)?;
        let shown: Vec<String> = found.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        Some(Reading::text(shown.join(", ")))
    })
}

fn judge_capability(seen: &Seen<'_>) -> Meaning {
    let all: BTreeSet<Capability> =
        seen.known().filter_map(|(machine, _)| capabilities(&usable(machine).ok()?)).flatten().collect();
    let all: Vec<Capability> = all.into_iter().collect();
    if libtorch_builds::best_for(&all, u32::MAX).is_some() {
        return Meaning::harmless("one variant of libtorch has kernels for all of these GPUs");
    }
    Meaning::slows(
        "no single variant of libtorch has kernels for all of these GPUs",
        "train only on machines whose GPUs can use the same variant",
    )
}

fn pcie(machine: &Machine<'_>) -> Reading {
    details(machine, |gpus| {
        let link =
            |gpu: &Gpu| Some((gpu.number("pcie_generation_max").ok()?, gpu.number("pcie_width_max").ok()?));
        let links = gpus.iter().map(link).collect::<Option<Vec<(u64, u64)>>>()?;
        // Each generation doubles the rate of a lane.
        let rate = |&(generation, width): &(u64, u64)| width << generation.min(16);
        let slowest = links.into_iter().min_by_key(rate)?;
        let (generation, width) = slowest;
        Some(Reading::amount(rate(&slowest) as f64, format!("PCIe {generation}, {width} lanes")))
    })
}

fn power(machine: &Machine<'_>) -> Reading {
    details(machine, |gpus| {
        let limits = gpus.iter().map(|gpu| gpu.number("power_limit").ok()).collect::<Option<Vec<u64>>>()?;
        let least = limits.into_iter().min()?;
        Some(Reading::amount(least as f64, format!("{} W", least / 1000)))
    })
}

fn judge_power(seen: &Seen<'_>) -> Meaning {
    let models: BTreeSet<Vec<String>> =
        seen.known().filter_map(|(machine, _)| names(&usable(machine).ok()?)).collect();
    if models.len() != 1 {
        return Meaning::harmless("each model has its own limit");
    }
    Meaning::slows(
        "a GPU with a lower power limit runs at lower clocks, and all ranks wait for it",
        "set the same limit on all machines: `sudo nvidia-smi -pl WATTS`",
    )
}
