//! What commands need to know of this machine before they plan: its devices, where files are
//! looked for, and the programs of a run, installed when they are missing.

use std::path::PathBuf;

use yolo_checks::Host;
use yolo_checks::libtorch_choice::{Card, Machine};
use yolo_plan::dataset;
use yolo_plan::device::{Gpu, Inventory};

use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, SetupView};
use crate::setup::{self, Chosen, Context, Libtorch, Variant};

/// The programs of a run, in place.
pub(crate) struct Programs {
    pub(crate) trainer: PathBuf,
    pub(crate) libtorch: Libtorch,
}

/// Finds libtorch and the trainer, installing and building what is missing.
pub(crate) fn programs(
    places: &YoloDirs,
    offline: bool,
    printer: &Printer,
) -> Result<Programs, CommandError> {
    let view = SetupView::new(printer);
    let context = Context::new(places, offline, &view);
    let choose = || {
        let chosen = chosen_for_this_machine(places);
        chosen.reasons.iter().chain(&chosen.unserved).for_each(|reason| printer.say(reason));
        chosen
    };
    let libtorch = setup::ensure_libtorch(&context, choose, setup::checkout_needs_headers())?;
    let trainer = setup::ensure_trainer(places, &libtorch, &view)?;
    Ok(Programs { trainer, libtorch })
}

/// The variant of libtorch that fits the driver and the GPUs.
pub(crate) fn chosen_for_this_machine(places: &YoloDirs) -> Chosen {
    chosen_from(&this_host(places))
}

fn chosen_from(host: &Host) -> Chosen {
    let cards = host.gpus().unwrap_or_default().into_iter().map(|gpu| Card {
        index: gpu.index,
        name: gpu.name().unwrap_or_else(|_| "GPU".to_owned()),
        capability: gpu.capability().ok(),
    });
    let driver = match host.gpus() {
        Err(why) => Err(why.to_string()),
        Ok(_) => host
            .driver_version()
            .map(|version| version.to_string())
            .map_err(|_| "the NVIDIA driver does not tell its version".to_owned()),
    };
    let family = host.os().unwrap_or_default();
    let architecture = host.arch().unwrap_or_default();
    let cards = cards.collect();
    Chosen::for_machine(&Machine { family, architecture, driver, cards })
}

/// CPU threads a rank, when the user has set them by `OMP_NUM_THREADS`: then they win over the
/// plan's share of the cores.
pub(crate) fn threads_of_user() -> Option<usize> {
    std::env::var("OMP_NUM_THREADS").ok()?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Where the plan looks for files.
pub(crate) fn plan_places(places: &YoloDirs) -> Result<dataset::Places, CommandError> {
    let working_dir = std::env::current_dir().map_err(|source| CommandError::File {
        what: "the working folder cannot be found".to_owned(),
        source,
        hint: Some("change into a folder that exists".to_owned()),
    })?;
    Ok(dataset::Places { working_dir, data_sets: places.data_sets() })
}

/// This machine, for the doctor and for plans: nothing is asked of it yet.
pub(crate) fn this_host(places: &YoloDirs) -> Host {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let found = setup::find_libtorch(places).ok().flatten().map(|found| found.root);
    // Under cargo LIBTORCH is always set, to the link that setup keeps: the place tells.
    let named = found.as_ref().filter(|root| !root.starts_with(places.libtorch()));
    Host::of_this_machine(&yolo_checks::Places {
        data: Some(text(places.data())),
        cache: Some(text(places.cache())),
        config: Some(text(places.config())),
        working: std::env::current_dir().ok().map(|folder| text(&folder)),
        program: std::env::current_exe().ok().map(|program| text(&program)),
        trainer: setup::installed_trainer().map(|program| text(&program)),
        libtorch_named: named.map(|root| text(root)),
        libtorch: found.as_ref().map(|root| text(root)),
    })
}

/// What a plan may take: cores, GPUs, and whether a libtorch with CUDA is there.
pub(crate) fn inventory(host: &Host, places: &YoloDirs) -> Inventory {
    let (gpus, no_gpu_reason) = match host.gpus() {
        Ok(found) => {
            let reason = found.is_empty().then(|| "the NVIDIA driver shows no GPU".to_owned());
            let gpus = found.iter().filter(|gpu| gpu.lost().is_none()).map(|gpu| Gpu {
                index: gpu.index,
                name: gpu.name().unwrap_or_else(|_| "GPU".to_owned()),
                memory: gpu.memory().map_or(0, |memory| memory.total),
            });
            (gpus.collect(), reason)
        }
        Err(why) => (Vec::new(), Some(why.to_string())),
    };
    // Where nothing is installed yet, setup will bring what fits the machine.
    let cuda_libtorch = match setup::find_libtorch(places).ok().flatten() {
        Some(found) => found.has_cuda,
        None => chosen_from(host).variant != Variant::Cpu,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Inventory { cores, gpus, no_gpu_reason, cuda_libtorch }
}
