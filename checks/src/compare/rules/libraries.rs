//! libtorch, its variant, NCCL, and the driver under them.

use yolo_base::format;

use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};
use crate::facts::{Libtorch, Variant};
use crate::foreign_library::{self, ForeignLibrary};
use crate::libtorch_builds::{self, Build, Capability};

const MISSING: &str = "not installed";
const CPU: &str = "cpu";
const OWN: &str = "libtorch's own";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "libtorch-version",
        what: "libtorch",
        read: |machine| {
            Reading::of(machine.host.libtorch(), |libtorch| {
                Reading::if_any(libtorch.and_then(|libtorch| libtorch.version).map(|found| found.to_string()))
            })
        },
        judge: |_| {
            Meaning::stops(
                "the ranks of a run communicate through c10d, which differs between versions of libtorch",
                "unset LIBTORCH where it is set, then run `yolo setup` there",
            )
        },
    },
    Rule { id: "libtorch-variant", what: "libtorch variant", read: variant, judge: judge_variant },
    Rule {
        id: "nccl",
        what: "NCCL",
        read: nccl,
        judge: |_| {
            Meaning::stops(
                "NCCL refuses ranks with another version of NCCL",
                "use libtorch's own NCCL on all machines: unset LD_PRELOAD and LD_LIBRARY_PATH",
            )
        },
    },
    Rule {
        id: "driver",
        what: "NVIDIA driver",
        read: |machine| {
            if machine.has_no_driver() {
                return Reading::NotApplicable;
            }
            Reading::of(machine.host.driver_version(), |version| Reading::text(version.to_string()))
        },
        judge: judge_driver,
    },
];

fn variant(machine: &Machine<'_>) -> Reading {
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    Reading::of(machine.host.libtorch(), |libtorch| match libtorch {
        None => Reading::absent(MISSING),
        // That there is no GPU is a row of its own, and the reason for this variant.
        Some(libtorch) if libtorch.variant == Variant::Cpu && machine.has_no_driver() => {
            Reading::NotApplicable
        }
        Some(libtorch) => Reading::text(name(&libtorch)),
    })
}

fn name(libtorch: &Libtorch) -> String {
    match libtorch.variant {
        Variant::Cpu => CPU.to_owned(),
        Variant::Cuda(Some((major, minor))) => format!("cu{major}{minor}"),
        Variant::Cuda(None) => "CUDA of unknown version".to_owned(),
    }
}

fn judge_variant(seen: &Seen<'_>) -> Meaning {
    if seen.is_on_cpus() {
        return Meaning::harmless("the run uses only CPUs, on which every variant works");
    }
    if seen.has(CPU) {
        return Meaning::stops(
            format!(
                "the CPU variant on {} cannot use GPUs, and its ranks cannot join ranks on GPUs",
                format::list(&seen.with(CPU))
            ),
            to_common(seen),
        );
    }
    if seen.has(MISSING) {
        let missing = format::list(&seen.with(MISSING));
        let option = common(seen).map_or(String::new(), |build| format!(" --libtorch {}", build.name));
        return Meaning::slows(
            format!("the other machines wait until {missing} has downloaded libtorch"),
            format!("run `yolo setup{option}` on {missing}"),
        );
    }
    Meaning::slows(
        "the variants are built for different versions of CUDA, so equal GPUs may differ in speed and in the last \
         digits of results",
        to_common(seen),
    )
}

/// How to get the same variant on all machines.
fn to_common(seen: &Seen<'_>) -> String {
    match (common(seen), hardware(seen)) {
        (Some(build), _) => {
            format!("run `yolo setup --libtorch {}` where another variant is installed", build.name)
        }
        (None, Some(_)) => {
            "update the older drivers, or train only on machines that can use the same variant".to_owned()
        }
        (None, None) => "install one variant on all machines with `yolo setup --libtorch VARIANT`".to_owned(),
    }
}

/// The newest variant that all drivers and all GPUs can use, if they are known.
fn common(seen: &Seen<'_>) -> Option<&'static Build> {
    let (cards, driver) = hardware(seen)?;
    libtorch_builds::best_for(&cards, driver)
}

/// The GPUs of all machines and the branch of the oldest driver, if they are known.
fn hardware(seen: &Seen<'_>) -> Option<(Vec<Capability>, u32)> {
    let mut cards = Vec::new();
    let mut oldest = u32::MAX;
    for machine in seen.machines {
        for gpu in machine.host.gpus().ok().filter(|gpus| !gpus.is_empty())? {
            cards.push(gpu.capability().ok()?);
        }
        oldest = oldest.min(machine.host.driver_version().ok()?.major());
    }
    Some((cards, oldest))
}

fn nccl(machine: &Machine<'_>) -> Reading {
    let host = machine.host;
    let Ok(Some(own)) = foreign_library::own_folders(host, machine.intent) else {
        return Reading::NotApplicable;
    };
    // An error is the missing fact; what exists is judged below.
    if let Err(why) = host.library(foreign_library::NCCL) {
        return Reading::Unknown(why.0);
    }
    match foreign_library::find(host, &own, foreign_library::NCCL) {
        None => Reading::text(OWN),
        Some(ForeignLibrary::Preloaded(path, _)) => {
            Reading::text(crate::facts::library_version(&path).unwrap_or_else(|| "preloaded".to_owned()))
        }
        Some(ForeignLibrary::Found(library)) => {
            Reading::text(library.version.unwrap_or_else(|| "not libtorch's own".to_owned()))
        }
    }
}

/// Drivers may differ, unless one of them is too old for the libtorch of another machine.
fn judge_driver(seen: &Seen<'_>) -> Meaning {
    let mut newest: Option<(&str, &Build)> = None;
    for (machine, _) in seen.known() {
        let build = machine.host.libtorch().ok().flatten().and_then(|libtorch| libtorch.build());
        if let Some(build) = build.filter(|build| newest.is_none_or(|(_, known)| build.cuda > known.cuda)) {
            newest = Some((machine.name, build));
        }
    }
    let Some((owner, build)) = newest else {
        return Meaning::harmless("ranks use libtorch's own CUDA libraries");
    };
    let is_too_old = |machine: &Machine<'_>| {
        machine.host.driver_version().is_ok_and(|driver| !build.runs_on(driver.major()))
    };
    let too_old: Vec<&str> =
        seen.known().filter(|(machine, _)| is_too_old(machine)).map(|(machine, _)| machine.name).collect();
    if too_old.is_empty() {
        return Meaning::harmless("all of them run the libtorch variants that are installed");
    }
    let old = format::list(&too_old);
    let least = build.least_driver();
    Meaning::slows(
        format!("{}, the variant on {owner}, needs driver {least} or newer; {old} is older", build.name),
        match common(seen) {
            Some(common) => format!(
                "update the driver on {old}, or run `yolo setup --libtorch {}` on all machines",
                common.name
            ),
            None => format!("update the driver on {old}"),
        },
    )
}
