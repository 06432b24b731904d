//! What commands need to know of this machine before they plan: its devices, where files are
//! looked for, and the programs of a run, installed when they are missing.

use std::path::PathBuf;

use yolo_checks::facts::{Fact, Facts, Known, LibtorchFacts};
use yolo_plan::dataset;
use yolo_plan::device::{Gpu, Inventory};

use crate::error::CommandError;
use crate::places::Places;
use crate::printer::{Printer, SetupView};
use crate::setup::{self, Libtorch};

/// The programs of a run, in place.
pub(crate) struct Programs {
    pub(crate) trainer: PathBuf,
    pub(crate) libtorch: Libtorch,
}

/// Finds libtorch and the trainer, installing and building what is missing.
pub(crate) fn programs(places: &Places, printer: &Printer) -> Result<Programs, CommandError> {
    let view = SetupView::new(printer);
    let libtorch = setup::ensure_libtorch(places, setup::checkout_needs_headers(), &view)?;
    let trainer = setup::ensure_trainer(places, &libtorch, &view)?;
    Ok(Programs { trainer, libtorch })
}

/// CPU threads a rank, when the user has set them by `OMP_NUM_THREADS`: then they win over the
/// plan's share of the cores.
pub(crate) fn threads_of_user() -> Option<usize> {
    std::env::var("OMP_NUM_THREADS").ok()?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Where the plan looks for files.
pub(crate) fn plan_places(places: &Places) -> Result<dataset::Places, CommandError> {
    let working_dir = std::env::current_dir().map_err(|source| CommandError::File {
        what: "the working folder cannot be found".to_owned(),
        source,
        hint: Some("change into a folder that exists".to_owned()),
    })?;
    Ok(dataset::Places { working_dir, data_sets: places.data().join("datasets") })
}

/// The facts of this machine, for the doctor.
pub(crate) fn facts(places: &Places) -> Facts {
    Facts::of_this_host(Known {
        libtorch: libtorch_facts(places),
        folders: vec![
            ("libtorch and data sets".to_owned(), places.data().to_owned()),
            ("runs".to_owned(), PathBuf::from("runs")),
        ],
    })
}

fn libtorch_facts(places: &Places) -> Fact<LibtorchFacts> {
    match setup::find_libtorch(places) {
        Ok(Some(found)) => Fact::Known(LibtorchFacts {
            // Under cargo LIBTORCH is always set, to the link that setup keeps: the place tells.
            from_environment: !found.root.starts_with(places.libtorch()),
            folder: Some(found.root),
            version: Some(setup::LIBTORCH_VERSION.to_owned()),
            has_cuda: found.has_cuda,
        }),
        Ok(None) => Fact::Known(LibtorchFacts {
            folder: None,
            version: None,
            has_cuda: false,
            from_environment: false,
        }),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// What a plan may take: cores, GPUs, and whether a libtorch with CUDA is there.
pub(crate) fn inventory(places: &Places) -> Inventory {
    let facts = facts(places);
    let (gpus, no_gpu_reason) = match facts.gpus {
        Fact::Known(known) => {
            let reason = known.gpus.is_empty().then(|| "the NVIDIA driver shows no GPU".to_owned());
            let gpus = known.gpus.into_iter().map(|gpu| Gpu {
                index: gpu.index,
                name: gpu.name.unwrap_or_else(|| "GPU".to_owned()),
                memory: gpu.memory.unwrap_or(0),
            });
            (gpus.collect(), reason)
        }
        Fact::Unknown(why) => (Vec::new(), Some(why)),
    };
    let cuda_libtorch = facts.libtorch.known().is_some_and(|libtorch| libtorch.has_cuda);
    Inventory { cores: facts.system.cores, gpus, no_gpu_reason, cuda_libtorch }
}
