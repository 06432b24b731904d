//! `--deep`: problems that only a run shows. Real ranks of `yolo-trainer` multiply matrices, copy
//! memory, all-reduce and read images on the given devices. If the all-reduce fails, it is repeated
//! over pairs of ranks, to identify the bad device or link. It ends within a minute whatever hangs,
//! and kills what it started.

mod pairs;
mod render;
mod trial;

use std::time::{Duration, Instant};

use yolo_base::exit;
use yolo_base::format::count;
use yolo_data::scan::list_images;
use yolo_plan::backend::{Backend, Connection};
use yolo_plan::dataset::DataSet;
use yolo_plan::device::{self, Device};
use yolo_plan::options::TrainOptions;

use self::trial::Trials;
use super::intent;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::fetch::Silent;
use crate::machine;
use crate::printer::Printer;
use crate::setup::{self, NcclPluginStatus, data::make_builtin};

/// The time for everything: the help promises a minute, and the program itself needs a moment.
const LIMIT: Duration = Duration::from_secs(55);
/// The time for all ranks together, which leaves some for pairs.
const TOGETHER: Duration = Duration::from_secs(35);
/// Enough images for a measurement.
const MAX_IMAGES: usize = 512;

/// Tests the devices and returns the exit status.
pub(super) fn deep(args: &DoctorArgs, printer: &Printer) -> Result<u8, CommandError> {
    let started = Instant::now();
    let dirs = YoloDirs::from_env()?;
    let this_host = machine::this_host(&dirs);
    let (devices, mut connection, note) = devices(args, &machine::inventory(&this_host, &dirs))?;
    note.iter().chain(&connection.notes).for_each(|note| printer.say(note));
    // The test uses NCCL as a run on these devices would.
    let variables = &mut connection.variables;
    machine::avoid_nccl_traps(&this_host, connection.backend, &devices, devices.len(), variables)
        .iter()
        .for_each(|note| printer.say(note));
    let images = images(args, &dirs, printer)?;
    let missing = |what: &str| CommandError::Failed {
        what: format!("--deep starts real ranks, and {what} is not installed"),
        hint: "run `yolo setup` first".to_owned(),
    };
    let libtorch = setup::find_libtorch(&dirs)?.ok_or_else(|| missing("libtorch"))?;
    let trainer = setup::installed_trainer().ok_or_else(|| missing("the trainer"))?;
    if connection.backend == Some(Backend::Nccl)
        && !matches!(setup::nccl_plugin_status(Some(&libtorch))?, NcclPluginStatus::Installed(_))
    {
        return Err(missing("the NCCL plugin"));
    }
    let trials = Trials { programs: machine::started_with(trainer, &libtorch), connection };
    let all: Vec<usize> = (0..devices.len()).collect();
    printer.say(format_args!("starting {} …", count(devices.len(), "rank")));
    let together = trials.run(&devices, &all, Some(images), TOGETHER, &|rank, doing| {
        if printer.is_terminal() {
            printer.say(format_args!("  rank {rank}: {doing}"));
        }
    });
    let has_failed = together.failure.is_some();
    let pairs = if has_failed && devices.len() > 2 {
        printer.say("testing pairs of ranks …");
        pairs::run(&trials, &devices, started + LIMIT)
    } else {
        Vec::new()
    };
    let host = (!has_failed).then_some(&this_host);
    let result = render::Deep::of(&devices, together, pairs, host);
    printer.result(if args.json { result.json() } else { result.text() });
    Ok(if result.is_ok() { exit::SUCCESS } else { exit::FAILURE })
}

/// One device per rank and what connects them, as `yolo train` would choose them, and why.
fn devices(
    args: &DoctorArgs,
    inventory: &device::Inventory,
) -> Result<(Vec<Device>, Connection, Option<String>), CommandError> {
    let options = if args.run.is_empty() {
        TrainOptions {
            device: args.device.clone(),
            nproc_per_node: args.nproc_per_node,
            ..TrainOptions::default()
        }
    } else {
        intent::options_of(&args.run)
    };
    let choice = device::choose(options.device.as_deref(), options.nproc_per_node, inventory)?;
    let wanted = options.backend.unwrap_or_default();
    let nccl = setup::with_named_nccl(&options)?.nccl;
    let connection = Connection::choose(wanted, nccl, &choice.devices, inventory)?;
    Ok((choice.devices, connection, choice.note))
}

/// Images of the training split of `--data`, if it is given.
fn images(
    args: &DoctorArgs,
    dirs: &YoloDirs,
    printer: &Printer,
) -> Result<Vec<std::path::PathBuf>, CommandError> {
    let data = if args.run.is_empty() { args.data.clone() } else { intent::options_of(&args.run).data };
    let Some(data) = data else { return Ok(Vec::new()) };
    let plan_places = machine::plan_places(dirs)?;
    let context = setup::Context::new(dirs, true, &Silent);
    if let Some(folder) = make_builtin(Some(&data), &plan_places, &context)? {
        printer.say(format_args!("created the built-in data set in {}", folder.display()));
    }
    let set = DataSet::load(&data, &plan_places)?;
    let mut images = list_images(&set.train, "train")?;
    images.truncate(MAX_IMAGES);
    Ok(images)
}
