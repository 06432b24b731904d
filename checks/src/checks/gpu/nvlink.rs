//! Whether the NVLinks between the GPUs of a run are active: a bridge that is not pushed in has contact with a part of its
//! links, and a card on a board may have lost some. The run then is slower, or its first exchange hangs.

use yolo_base::env::NCCL_P2P_DISABLE;

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are the NVLinks between the GPUs active?",
    reports: &["gpu.nvlink-down"],
    preflight: false,
    run,
};

/// Cards that a bridge connects with all of their links.
const BRIDGED: [&str; 10] = [
    "RTX 2080 Ti",
    "RTX 2080 SUPER",
    "RTX 3090",
    "RTX A6000",
    "RTX A5500",
    "RTX A5000",
    "RTX A4500",
    "Quadro RTX",
    "TITAN RTX",
    "A40",
];
/// Modules that some boards connect in a ring or a mesh of unequal sides. On later boards all have the same number of links.
const UNEQUAL: [&str; 2] = ["P100", "V100"];

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_native_linux(host) {
        return Ok(Vec::new());
    }
    let gpus = match super::of_run(host, intent) {
        Ok(gpus) if gpus.len() > 1 => gpus,
        _ => return Ok(Vec::new()),
    };
    let links: Vec<(&Gpu, Links)> = gpus.iter().filter_map(|gpu| Some((gpu, Links::of(gpu)?))).collect();
    Ok(seated(&links).or_else(|| on_board(&links)).into_iter().collect())
}

/// How many links a card has, and how many of them are active.
#[derive(Clone, Copy)]
struct Links {
    all: usize,
    active: usize,
}

impl Links {
    fn of(gpu: &Gpu) -> Option<Self> {
        let links = gpu.nvlinks().ok().filter(|links| !links.is_empty())?;
        // Instances of a card do not use its links.
        let is_divided = gpu.mig() == Ok(true);
        (!is_divided)
            .then(|| Self { all: links.len(), active: links.iter().filter(|active| **active).count() })
    }

    fn text(self) -> String {
        format!("{} of {} NVLinks are active", self.active, self.all)
    }
}

fn is_of(gpu: &Gpu, kinds: &[&str]) -> bool {
    let name = gpu.name().unwrap_or_default();
    kinds.iter().any(|kind| name.contains(kind)) && !name.contains("NVL") && !super::is_of_grace(&name)
}

/// A bridge that has contact with a part of the links. Without a bridge, none is active.
fn seated(links: &[(&Gpu, Links)]) -> Option<Finding> {
    let is_partial = |(gpu, links): &&(&Gpu, Links)| {
        is_of(gpu, &BRIDGED) && links.active > 0 && links.active < links.all && links.all <= 4
    };
    let (gpu, links) = links.iter().find(is_partial)?;
    let title = format!("the NVLink bridge of {} is not seated: {}", super::label(gpu), links.text());
    Some(
        Finding::new("gpu.nvlink-down", title)
            .remedy(
                "switch the machine off and push the bridge into both cards until it snaps in; a shroud or a water block may keep it \
                 out; until then, if runs hang, disable direct traffic (P2P)",
            )
            .command("nvidia-smi nvlink -s")
            .command(format!("export {NCCL_P2P_DISABLE}=1")),
    )
}

/// A card with fewer active links than another of its kind.
fn on_board(links: &[(&Gpu, Links)]) -> Option<Finding> {
    let is_equal = |gpu: &Gpu| {
        let name = gpu.name().unwrap_or_default();
        gpu.is_module() && !super::is_of_grace(&name) && !UNEQUAL.iter().any(|kind| name.contains(kind))
    };
    let links: Vec<_> = links.iter().filter(|(gpu, _)| is_equal(gpu)).collect();
    let most = links.iter().map(|(_, links)| links.active).max()?;
    let (gpu, least) = links.iter().min_by_key(|(_, links)| links.active)?;
    // All of them may be off on purpose.
    if least.active == most {
        return None;
    }
    let title = format!(
        "{} has {} active NVLinks of {}; another GPU of its kind has {most}",
        super::label(gpu),
        least.active,
        least.all
    );
    Some(
        Finding::new("gpu.nvlink-down", title)
            .remedy(
                "restart the machine, which trains the links anew; if it happens again, or the driver logs Xid 74 or 149, the board \
                 has to be repaired; until then, leave this GPU out of runs",
            )
            .command("nvidia-smi nvlink -s"),
    )
}
