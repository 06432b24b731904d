//! The plan of a setup, made before anything changes: for each step its source, the bytes to download,
//! the bytes on the disk afterwards, and the disk. The steps are then carried out in order.

use std::path::{Path, PathBuf};

use serde::Serialize;
use yolo_base::format;
use yolo_plan::dataset;

use super::context::Context;
use super::data::{DataStatus, PendingData, Summary, data_statuses, generate, verify_data_set};
use super::error::{DataSetError, NcclError, SetupError};
use super::libtorch::installation::{LIBTORCH_VERSION, Libtorch};
use super::libtorch::installed::{SELECTED, in_use, select};
use super::libtorch::status::{LibtorchStatus, PendingLibtorch, libtorch_status};
use super::libtorch::variant::{Chosen, Variant};
use super::nccl_plugin::{NcclPluginStatus, ensure_nccl_plugin, nccl_plugin_status};
use super::noted::noted;
use super::trainer::checkout_needs_headers;
use super::trainer::{TrainerStatus, ensure_trainer, trainer_status};
use super::weights::{PendingWeights, TakenPlaces, Weights, WeightsStatus, weights_status};
use crate::fetch::{
    FetchError, FolderLock, MARGIN, ProgressEvent, Redacted, Staging, folder_size, free_bytes, mount_of,
    staging_dir,
};
use crate::undo::Entry;

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct SetupRequest {
    /// libtorch and the trainer.
    pub programs: bool,
    /// The NCCL plugin, also for a libtorch without CUDA.
    pub nccl: bool,
    /// The variant, if the user named one or `auto`.
    pub variant: Option<Chosen>,
    /// The values of `--weights`.
    pub weights: Vec<String>,
    /// The values of `--data`.
    pub data: Vec<String>,
}

/// What a step has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Nothing: it is installed.
    #[serde(rename = "there")]
    Installed,
    /// Download it.
    Fetch,
    /// Build it from the checkout.
    Build,
    /// Generate it.
    Make,
}

/// One step, as messages and `--json` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupStep {
    /// "libtorch", "trainer", "nccl", "weights", "data".
    pub kind: &'static str,
    /// What it installs.
    pub what: String,
    /// What there is to do.
    pub state: StepState,
    /// The source and the addresses, without credentials.
    pub from: Vec<String>,
    /// Bytes to download, not counting what an interrupted run has; absent if a server does not report
    /// sizes in advance.
    pub transfer: Option<u64>,
    /// Bytes on the disk afterwards; absent if unknown.
    pub size: Option<u64>,
    /// Bytes of archives that are on the disk in addition while the step runs.
    #[serde(rename = "beside")]
    pub temporary: u64,
    /// Bytes of both that an earlier run already left on the disk.
    pub begun: u64,
    /// Whether the source is a file on this machine, which is copied rather than downloaded.
    #[serde(skip)]
    pub local: bool,
    /// Where it is or will be installed.
    pub place: PathBuf,
    /// Why this one was chosen.
    pub reasons: Vec<String>,
    /// What it does not support, such as a GPU that is too old.
    pub unserved: Vec<String>,
}

/// A disk and what the steps need on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that the steps need, archives and contents together, as far as known.
    pub need: u64,
}

/// All steps.
#[derive(Debug)]
pub struct SetupPlan {
    steps: Vec<(SetupStep, Action)>,
}

/// How a step is carried out.
#[derive(Debug)]
enum Action {
    Nothing,
    Libtorch(Box<PendingLibtorch>),
    UseLibtorch(Libtorch),
    Trainer,
    /// Whether a failure ends the setup.
    NcclPlugin(bool),
    HaveNcclPlugin,
    Weights(PendingWeights),
    HaveWeights(Weights),
    MakeData(PathBuf, String),
    Data(Box<PendingData>),
    Verify(String, Option<super::data::Installed>),
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// A libtorch.
    Libtorch {
        /// Its folder.
        root: PathBuf,
        /// Its variant.
        variant: String,
    },
    /// The trainer.
    Trainer {
        /// The program.
        path: PathBuf,
    },
    /// The NCCL plugin.
    NcclPlugin {
        /// The library.
        path: PathBuf,
    },
    /// Weights.
    Weights(Weights),
    /// A data set.
    Data {
        /// Its name.
        name: String,
        /// The summary of its images and labels.
        summary: Summary,
    },
}

impl SetupPlan {
    /// Checks the status of everything requested. Nothing is changed.
    ///
    /// # Errors
    /// When something is neither installed nor available from a source.
    pub fn make(
        request: &SetupRequest,
        context: &Context<'_>,
        places: &dataset::Places,
        choose: impl FnOnce() -> Chosen,
    ) -> Result<Self, SetupError> {
        let mut steps = Vec::new();
        if request.programs {
            let found = libtorch_status(context, request.variant.clone(), choose, checkout_needs_headers())?;
            let libtorch = match &found {
                LibtorchStatus::Installed(libtorch) => Some(libtorch.clone()),
                LibtorchStatus::Missing(_) => None,
            };
            let has_cuda = match &found {
                LibtorchStatus::Installed(libtorch) => libtorch.has_cuda,
                LibtorchStatus::Missing(pending) => pending.chosen().variant != Variant::Cpu,
            };
            steps.push(libtorch_step(found, request.variant.as_ref()));
            steps.push(trainer_step(trainer_status(context.dirs, libtorch.as_ref())?));
            if request.nccl || has_cuda {
                steps.extend(nccl_step(nccl_plugin_status(libtorch.as_ref())?, request.nccl)?);
            }
        }
        let mut taken = TakenPlaces::new();
        for argument in &request.weights {
            steps.push(weights_step(argument, weights_status(context, argument, &mut taken)?));
        }
        for (argument, status) in data_statuses(context, &request.data, places)? {
            steps.push(data_step(argument, status, places));
        }
        for (step, _) in steps.iter_mut().filter(|(step, _)| step.state == StepState::Fetch) {
            let begun = folder_size(&staging_dir(&step.place));
            // An archive that was just unpacked may still be there next to its contents.
            step.begun = begun.min(step.size.unwrap_or(0) + step.temporary);
        }
        Ok(Self { steps })
    }

    /// The steps in order.
    pub fn steps(&self) -> impl Iterator<Item = &SetupStep> {
        self.steps.iter().map(|(step, _)| step)
    }

    /// Whether everything is installed.
    pub fn is_done(&self) -> bool {
        self.steps().all(|step| step.state == StepState::Installed)
    }

    /// The disks that the steps write to.
    ///
    /// # Errors
    /// When the free space of a disk cannot be read.
    pub fn disks(&self) -> Result<Vec<Disk>, SetupError> {
        let mut disks: Vec<Disk> = Vec::new();
        for step in self.steps().filter(|step| step.state != StepState::Installed) {
            let need = step.size.unwrap_or(0) + step.temporary - step.begun;
            let mount = mount_of(&step.place);
            match disks.iter_mut().find(|disk| disk.mount == mount) {
                Some(disk) => disk.need += need,
                None => disks.push(Disk { free: free_bytes(&step.place)?, mount, need }),
            }
        }
        // Downloads always leave some space free.
        for disk in disks.iter_mut().filter(|disk| disk.need > 0) {
            disk.need += MARGIN;
        }
        Ok(disks)
    }

    /// Rejects a plan that does not fit on its disks.
    ///
    /// # Errors
    /// When one of them is too small.
    pub fn check_room(&self) -> Result<(), SetupError> {
        match self.disks()?.into_iter().find(|disk| disk.need > disk.free) {
            None => Ok(()),
            Some(Disk { mount, free, need }) => {
                let (free, need) = (format::bytes(free), format::bytes(need));
                Err(FetchError::Space { path: mount, free, need }.into())
            }
        }
    }

    /// Carries out the steps in order. Each result is passed to `report` and appended to `outcomes`.
    ///
    /// # Errors
    /// The first failure. The results of the steps before it are kept.
    pub fn run(
        self,
        context: &Context<'_>,
        places: &dataset::Places,
        outcomes: &mut Vec<StepOutcome>,
        mut report: impl FnMut(&SetupStep, &StepOutcome),
    ) -> Result<(), SetupError> {
        let mut libtorch = None;
        for (step, action) in self.steps {
            if step.state == StepState::Installed && step.kind != "trainer" {
                tidy(&step.place, context)?;
            }
            let outcome = match action {
                Action::Nothing => StepOutcome::Trainer { path: step.place.clone() },
                Action::UseLibtorch(found) => {
                    if let Some(variant) = Variant::named(&found.variant)
                        && found.root.starts_with(context.dirs.libtorch())
                        && in_use(context.dirs) != Some(variant)
                    {
                        let selected = context.dirs.libtorch().join(SELECTED);
                        let what = format!("made runs use libtorch ({})", variant.name());
                        let name = variant.name().as_bytes();
                        let describe = |entry: &mut Entry| entry.file(&selected, Some(name));
                        noted((context.dirs, context.progress), what, describe, || {
                            select(context.dirs, variant)
                        })?;
                    }
                    libtorch_outcome(libtorch.insert(found))
                }
                Action::Libtorch(pending) => libtorch_outcome(libtorch.insert(pending.run(context)?)),
                Action::Trainer => match &libtorch {
                    Some(libtorch) => {
                        let path = ensure_trainer(context.dirs, libtorch, context.progress)?;
                        StepOutcome::Trainer { path }
                    }
                    // In a plan, libtorch always precedes the trainer.
                    None => continue,
                },
                Action::HaveNcclPlugin => StepOutcome::NcclPlugin { path: step.place.clone() },
                Action::NcclPlugin(required) => match &libtorch {
                    Some(libtorch) => match ensure_nccl_plugin(context, libtorch) {
                        Ok(path) => StepOutcome::NcclPlugin { path },
                        Err(error) if required => return Err(error),
                        // One GPU needs no plugin, and several can use gloo.
                        Err(error) => {
                            let text = format!("warning: {error}; several GPUs need it, or --backend gloo");
                            context.progress.event(ProgressEvent::Note { text: &text });
                            continue;
                        }
                    },
                    // In a plan, libtorch always precedes the plugin.
                    None => continue,
                },
                Action::HaveWeights(weights) => StepOutcome::Weights(weights),
                Action::Weights(pending) => StepOutcome::Weights(pending.run(context)?),
                Action::MakeData(folder, argument) => {
                    generate(&argument, &folder, true, context)?;
                    data_outcome(&argument, verify_data_set(&argument, places, None)?)
                }
                Action::Data(pending) => data_outcome(pending.name(), pending.run(context)?),
                Action::Verify(argument, installed) => {
                    data_outcome(&argument, verify_data_set(&argument, places, installed)?)
                }
            };
            report(&step, &outcome);
            let refused = match &outcome {
                StepOutcome::Data { name, summary } => summary.refused.clone().map(|why| (name.clone(), why)),
                _ => None,
            };
            outcomes.push(outcome);
            if let Some((name, why)) = refused {
                return Err(DataSetError::Untrainable { name, why }.into());
            }
        }
        Ok(())
    }
}

/// Removes the staging directory of a run that was killed right after publishing.
fn tidy(place: &Path, context: &Context<'_>) -> Result<(), SetupError> {
    // The path of a data set is its yaml, which is in its folder.
    let is_yaml = place.extension().is_some_and(|extension| extension == "yaml");
    let place = if is_yaml { place.parent().unwrap_or(place) } else { place };
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return Ok(()) };
    let left = staging_dir(place);
    if left.exists() {
        let lock = FolderLock::acquire(folder, context.progress)?;
        Staging::open(&lock, &name.to_string_lossy())?.discard();
    }
    Ok(())
}

fn libtorch_outcome(libtorch: &Libtorch) -> StepOutcome {
    StepOutcome::Libtorch { root: libtorch.root.clone(), variant: libtorch.variant.clone() }
}

fn data_outcome(name: &str, summary: Summary) -> StepOutcome {
    StepOutcome::Data { name: name.to_owned(), summary }
}

/// A step with nothing to do.
fn installed_step(kind: &'static str, what: String, place: &Path) -> SetupStep {
    SetupStep {
        kind,
        what,
        state: StepState::Installed,
        from: Vec::new(),
        transfer: Some(0),
        size: None,
        temporary: 0,
        begun: 0,
        local: false,
        place: place.to_owned(),
        reasons: Vec::new(),
        unserved: Vec::new(),
    }
}

fn libtorch_step(status: LibtorchStatus, chosen: Option<&Chosen>) -> (SetupStep, Action) {
    match status {
        LibtorchStatus::Installed(libtorch) => {
            let what = format!("libtorch {LIBTORCH_VERSION} ({})", libtorch.variant);
            let mut step = installed_step("libtorch", what, &libtorch.root);
            if let Some(chosen) = chosen {
                (step.reasons, step.unserved) = (chosen.reasons.clone(), chosen.unserved.clone());
                if libtorch.variant != chosen.variant.name() {
                    let name = chosen.variant.name();
                    step.reasons.push(format!("LIBTORCH names this one, so {name} is not installed"));
                }
            }
            (step, Action::UseLibtorch(libtorch))
        }
        LibtorchStatus::Missing(pending) => {
            let headers = if pending.headers() { ", with headers to build the trainer" } else { "" };
            let name = pending.chosen().variant.name();
            let step = SetupStep {
                what: format!("libtorch {LIBTORCH_VERSION} ({name}{headers})"),
                state: StepState::Fetch,
                from: [pending.source().to_owned()].into_iter().chain(pending.addresses()).collect(),
                transfer: pending.transfer(),
                size: Some(pending.unpacked()),
                temporary: pending.temporary(),
                reasons: pending.chosen().reasons.clone(),
                unserved: pending.chosen().unserved.clone(),
                ..installed_step("libtorch", String::new(), pending.target())
            };
            (step, Action::Libtorch(pending))
        }
    }
}

fn trainer_step(status: TrainerStatus) -> (SetupStep, Action) {
    let what = "yolo-trainer".to_owned();
    match status {
        TrainerStatus::Installed(path) => (installed_step("trainer", what, &path), Action::Nothing),
        TrainerStatus::Build(path) => {
            let from = vec!["the checkout, built with cargo".to_owned()];
            (
                SetupStep { state: StepState::Build, from, ..installed_step("trainer", what, &path) },
                Action::Trainer,
            )
        }
    }
}

/// The step of the NCCL plugin; `None` if it is missing and not required.
fn nccl_step(status: NcclPluginStatus, required: bool) -> Result<Option<(SetupStep, Action)>, SetupError> {
    let what = "NCCL plugin".to_owned();
    Ok(match status {
        NcclPluginStatus::Installed(path) => {
            Some((installed_step("nccl", what, &path), Action::HaveNcclPlugin))
        }
        NcclPluginStatus::Build(path) => {
            let from = vec!["the checkout, built with headers from the package index".to_owned()];
            let step = SetupStep { state: StepState::Build, from, ..installed_step("nccl", what, &path) };
            Some((step, Action::NcclPlugin(required)))
        }
        NcclPluginStatus::Missing(plugin) if required => return Err(NcclError::Missing { plugin }.into()),
        NcclPluginStatus::Missing(_) => None,
    })
}

fn weights_step(argument: &str, status: WeightsStatus) -> (SetupStep, Action) {
    let what = format!("weights {}", Redacted::new(argument));
    match status {
        WeightsStatus::Installed(weights) => {
            let step =
                SetupStep { size: Some(weights.size), ..installed_step("weights", what, &weights.path) };
            (step, Action::HaveWeights(weights))
        }
        WeightsStatus::Missing(pending) => {
            let step = SetupStep {
                state: StepState::Fetch,
                from: pending.sources(),
                transfer: pending.transfer(),
                size: pending.length(),
                local: pending.is_local(),
                ..installed_step("weights", what, pending.target())
            };
            (step, Action::Weights(pending))
        }
    }
}

fn data_step(argument: &str, status: DataStatus, places: &dataset::Places) -> (SetupStep, Action) {
    let what = format!("data set {argument}");
    match status {
        DataStatus::Installed { yaml, installed } => {
            let size = installed.as_ref().map(|installed| installed.bytes);
            let step = SetupStep { size, ..installed_step("data", what, &yaml) };
            (step, Action::Verify(argument.to_owned(), installed.map(|installed| *installed)))
        }
        DataStatus::Generate(folder) => {
            let from = vec!["generated by yolo".to_owned()];
            let size = Some(yolo_data::shapes::BYTES);
            let step =
                SetupStep { state: StepState::Make, from, size, ..installed_step("data", what, &folder) };
            (step, Action::MakeData(places.builtin_yaml(argument).with_file_name(""), argument.to_owned()))
        }
        DataStatus::Missing(pending) => {
            let step = SetupStep {
                state: StepState::Fetch,
                from: pending.sources(),
                transfer: pending.transfer(),
                size: pending.unpacked(),
                temporary: pending.archives().unwrap_or(0),
                reasons: pending.reasons(),
                ..installed_step("data", what, pending.target())
            };
            (step, Action::Data(pending))
        }
    }
}
