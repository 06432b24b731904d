//! `--deep`: what only a run shows. Real ranks of `yolo-trainer` multiply, copy, sum over all ranks
//! and read images on the devices that are named. When the sum fails, it is tried over pairs, so that
//! the bad device or link has a name. It ends within a minute whatever hangs, and kills what it
//! started.

mod pairs;
mod render;
mod trial;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use yolo_data::scan::list_images;
use yolo_plan::dataset::DataSet;
use yolo_plan::device::{self, Device};

use self::trial::{Trial, Trials};
use super::intent;
use crate::cli::DoctorArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::host;
use crate::printer::Printer;
use crate::setup;
use crate::train::make_builtin;

/// All of it; a minute is promised, and the program itself needs a moment.
const LIMIT: Duration = Duration::from_secs(55);
/// What all ranks together may take, so that time is left for pairs.
const TOGETHER: Duration = Duration::from_secs(35);
/// Images that are enough to measure.
const MOST_IMAGES: usize = 512;

/// Tries the devices, and says how it went.
pub(super) fn deep(args: &DoctorArgs, printer: &Printer) -> Result<ExitCode, CommandError> {
    let began = Instant::now();
    let places = YoloDirs::from_env()?;
    let this_host = host::this_host(&places);
    let (devices, note) = devices(args, &host::inventory(&this_host, &places))?;
    note.iter().for_each(|note| printer.say(note));
    let images = images(args, &places, printer)?;
    let missing = |what: &str| CommandError::Misuse {
        what: format!("--deep starts real ranks, and {what} is not there yet"),
        hint: "run `yolo setup` first".to_owned(),
    };
    let libtorch = setup::find_libtorch(&places)?.ok_or_else(|| missing("libtorch"))?;
    let trainer = crate::setup::installed_trainer().ok_or_else(|| missing("the trainer"))?;
    let trials = Trials { trainer: &trainer, libtorch: &libtorch };
    let all: Vec<usize> = (0..devices.len()).collect();
    printer.say(format_args!("starting {} …", super::text::number(devices.len(), "rank")));
    let together = trials.run(&devices, &all, Some(images), TOGETHER, &|rank, doing| {
        if printer.is_terminal() {
            printer.say(format_args!("  rank {rank}: {doing}"));
        }
    });
    let has_failed = together.failure.is_some();
    let pairs = if has_failed && devices.len() > 2 {
        printer.say("trying pairs of ranks …");
        pairs::run(&trials, &devices, began + LIMIT)
    } else {
        Vec::new()
    };
    let host = (!has_failed).then_some(&this_host);
    let result = render::Deep::of(&devices, together, pairs, host);
    printer.result(if args.json { result.json() } else { result.text() });
    Ok(if result.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One device a rank, as `yolo train` would choose them.
fn devices(
    args: &DoctorArgs,
    inventory: &device::Inventory,
) -> Result<(Vec<Device>, Option<String>), CommandError> {
    let (device, ranks) = if args.run.is_empty() {
        (args.device.clone(), args.nproc_per_node)
    } else {
        let options = intent::options_of_words(&args.run);
        (options.device, options.nproc_per_node)
    };
    let choice = device::choose(device.as_deref(), ranks, inventory)?;
    Ok((choice.devices, choice.note))
}

/// Images of the training split, where `--data` names a set.
fn images(
    args: &DoctorArgs,
    places: &YoloDirs,
    printer: &Printer,
) -> Result<Vec<std::path::PathBuf>, CommandError> {
    let word = if args.run.is_empty() { args.data.clone() } else { intent::options_of_words(&args.run).data };
    let Some(word) = word else { return Ok(Vec::new()) };
    let plan_places = host::plan_places(places)?;
    make_builtin(Some(&word), &plan_places, printer)?;
    let set = DataSet::load(&word, &plan_places)?;
    let mut images = list_images(&set.train, "train")?;
    images.truncate(MOST_IMAGES);
    Ok(images)
}

/// One rank's name for people.
fn name_of(rank: usize, devices: &[Device]) -> String {
    format!("rank {rank} ({})", devices.get(rank).map_or("no device".to_owned(), ToString::to_string))
}

/// A trial of two ranks by themselves.
#[derive(Debug)]
struct Pair {
    ranks: (usize, usize),
    /// `None` when there was no time left for it.
    trial: Option<Trial>,
}
