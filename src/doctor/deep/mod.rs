//! `--deep`: problems that only a run shows. Real ranks of `yolo-trainer` multiply matrices, copy
//! memory, all-reduce and read images on the given devices, while the driver is asked how the cards bear it. Then
//! bytes are copied between all devices and compared, and pairs of ranks are tested, if a sum fails also without
//! direct copies. It ends within a minute whatever hangs, and kills what it started. What was seen is data
//! ([`observed`]); [`judge`] draws the conclusions.

mod judge;
mod observed;
mod pairs;
mod planned;
mod render;
mod trial;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use yolo_base::exit;
use yolo_base::format::count;
use yolo_checks::facts::Place;
use yolo_checks::{Host, StrainMonitor};
use yolo_data::scan::list_images;
use yolo_plan::backend::{Backend, Connection};
use yolo_plan::dataset::DataSet;
use yolo_plan::device::{self, Device};
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{DeepCheckTask, DeepPart};

use self::observed::{Administrator, Again, HostFacts, Observed, Planned, Rank, key};
use self::trial::{Trial, Trials, Wanted, links_only};
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
/// The time for all ranks together, which leaves some for copies and pairs.
const TOGETHER: Duration = Duration::from_secs(25);
/// The time for copies between devices.
const COPIES: Duration = Duration::from_secs(12);
/// Less time than this is not worth another start.
const AGAIN: Duration = Duration::from_secs(4);
/// Milliseconds for which GPUs compute without a pause.
const LOAD: u64 = 5_000;
/// Bytes of page-locked memory that are tried at most, where the system has no known limit.
const MOST_PINNED: u64 = 2 << 30;
/// Enough images for a measurement.
const MAX_IMAGES: usize = 512;

/// Tests the devices and returns the exit status.
pub(super) fn deep(args: &DoctorArgs, printer: &Printer) -> Result<u8, CommandError> {
    let started = Instant::now();
    let dirs = YoloDirs::from_env()?;
    let this_host = machine::this_host(&dirs);
    let inventory = machine::inventory(&this_host, &dirs);
    let (devices, mut connection, note) = devices(args, &inventory)?;
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
    let mut seen = Observed {
        ranks: ranks(&devices, &this_host),
        backend: trials.connection.backend,
        host: host_facts(&this_host, &devices, &images),
        planned: planned::of(args, devices.len()),
        ..Observed::default()
    };
    let pinned = pinned_wanted(seen.planned.as_ref(), devices.len(), inventory.page_lockable);
    seen.host.pinned_wanted = (pinned >> 20) as f64;
    let strain = StrainMonitor::start(devices.iter().filter_map(gpu_of).collect());
    let all: Vec<usize> = (0..devices.len()).collect();
    let show = |rank: usize, doing: &str| {
        if printer.is_terminal() {
            printer.say(format_args!("  rank {rank}: {doing}"));
        }
    };
    printer.say(format_args!("starting {} …", count(devices.len(), "rank")));
    let task = DeepCheckTask { part: DeepPart::Everything, images, pinned, load: LOAD };
    let wanted = Wanted { ranks: &all, task, without_p2p: false, limit: TOGETHER };
    seen.take_together(trials.run(&devices, wanted, &show));
    let strain = strain.seen();
    for (rank, device) in seen.ranks.iter_mut().zip(&devices) {
        rank.strain = gpu_of(device).and_then(|gpu| strain.get(&gpu).cloned());
    }
    let uses_p2p = seen.backend == Some(Backend::Nccl);
    let left = || (started + LIMIT).saturating_duration_since(Instant::now());
    if devices.len() > 1 && !devices.iter().any(|device| matches!(device, Device::Mig { .. })) {
        printer.say("copying between devices …");
        let task = DeepCheckTask { part: DeepPart::Copies, images: Vec::new(), pinned: 0, load: 0 };
        // A processor is slow, but no driver hangs there.
        let limit = if devices.contains(&Device::Cpu) { left() } else { COPIES.min(left()) };
        let copied = trials.run(&devices, Wanted { ranks: &all, task, without_p2p: false, limit }, &show);
        (seen.copies, seen.copies_failure) = (copied.copies, copied.failure);
    }
    if devices.len() > 2 {
        printer.say("testing pairs of ranks …");
        seen.pairs = pairs::run(&trials, &devices, uses_p2p, started + LIMIT);
    } else if uses_p2p && seen.failure.is_some() && left() > AGAIN {
        printer.say("trying again without direct copies …");
        let wanted = Wanted { ranks: &all, task: links_only(), without_p2p: true, limit: left() };
        let again = trials.run(&devices, wanted, &show);
        seen.again = Some(if again.failure.is_some() { Again::Fails } else { Again::Works });
    }
    let verdict = judge::judge(&seen);
    printer.result(if args.json { render::json(&seen, &verdict) } else { render::text(&seen, &verdict) });
    Ok(if verdict.errors.is_empty() { exit::SUCCESS } else { exit::FAILURE })
}

/// The number of a GPU.
fn gpu_of(device: &Device) -> Option<usize> {
    match device {
        Device::Cuda(index) | Device::Mig { gpu: index, .. } => Some(*index),
        Device::Cpu => None,
    }
}

/// The ranks with their devices. Nothing is measured yet.
fn ranks(devices: &[Device], host: &Host) -> Vec<Rank> {
    let gpus = host.gpus().unwrap_or_default();
    let card = |device: &Device| {
        let gpu = gpu_of(device)?;
        gpus.iter().find(|one| one.index == gpu)
    };
    let rank = |device: &Device| Rank {
        device: device.to_string(),
        card: card(device).and_then(|card| card.name().ok()),
        address: card(device).and_then(|card| card.pci_bus_id().ok()),
        ..Rank::default()
    };
    devices.iter().map(rank).collect()
}

fn host_facts(host: &Host, devices: &[Device], images: &[PathBuf]) -> HostFacts {
    let mut links = BTreeMap::new();
    for (one, first) in devices.iter().enumerate() {
        for (other, second) in devices.iter().enumerate().skip(one + 1) {
            let link =
                gpu_of(first).zip(gpu_of(second)).and_then(|(one, other)| host.gpu_link(one, other).ok());
            links.extend(link.map(|link| (format!("{one},{other}"), link)));
        }
    }
    let folder = images.first().and_then(|image| image.parent());
    let system = folder.and_then(|folder| host.file_system(&folder.to_string_lossy()).ok());
    HostFacts {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        is_wsl: host.is_wsl2().unwrap_or(false),
        administrator: administrator(host),
        links,
        file_system: system.as_ref().and_then(|system| system.kind.clone()),
        mount: system.and_then(|system| system.mount),
        pinned_wanted: 0.0,
    }
}

fn administrator(host: &Host) -> Administrator {
    if let Some(job) = host.job() {
        return Administrator::Job(job.name().to_owned());
    }
    if let Some(rental) = host.rental() {
        return Administrator::Service(rental.name().to_owned());
    }
    match host.place() {
        Place::Machine | Place::Windows | Place::Mac => Administrator::User,
        // The driver is that of Windows.
        Place::Wsl | Place::DockerInWsl => Administrator::Windows,
        Place::Docker | Place::Podman | Place::Lxc => Administrator::Host,
        Place::Apptainer | Place::Enroot => Administrator::Machine,
        Place::Pod => Administrator::Node,
        Place::Colab => Administrator::Service("Colab".to_owned()),
        Place::Kaggle => Administrator::Service("Kaggle".to_owned()),
    }
}

/// Bytes of page-locked memory that the loader of a rank wants: some batches of the planned run, within what a run
/// may page-lock.
fn pinned_wanted(planned: Option<&Planned>, ranks: usize, lockable: Option<u64>) -> u64 {
    /// Batches that are on their way to the device.
    const BATCHES: u64 = 4;
    let most = lockable.map_or(MOST_PINNED, |bytes| bytes / 2) / ranks.max(1) as u64;
    let needed = planned.map(|planned| {
        let image = 3 * (planned.image_size * planned.image_size) as u64;
        BATCHES * (planned.batch / ranks.max(1)) as u64 * image
    });
    needed.unwrap_or(most).min(most)
}

impl Observed {
    /// Adds what all ranks together have measured.
    fn take_together(&mut self, trial: Trial) {
        for (rank, measured) in trial.measured {
            if let Some(rank) = self.ranks.get_mut(rank) {
                rank.measured.extend(measured.into_iter().map(|(measure, value)| (key(measure), value)));
            }
        }
        self.warnings.extend(trial.warnings);
        self.failure = trial.failure;
    }
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
