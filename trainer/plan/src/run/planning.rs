//! What planning reads and returns: a plan, or all that the run needs and this machine lacks but can
//! fetch or generate. The caller gets it and plans again. What cannot be had is an error instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Part, Planned, Ranks, RunPlan, Task};
use crate::dataset::{self, Description, Download, Places};
use crate::device::Inventory;
use crate::error::PlanError;

/// What planning looks at besides the options.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanContext {
    /// The machine's cores and GPUs.
    pub inventory: Inventory,
    /// Where files are looked for.
    pub places: Places,
    /// The files of fetched weights, by the argument of `--weights` that names them.
    pub fetched: BTreeMap<String, PathBuf>,
    /// Whether the built-in data set has been generated, if `--data` names one.
    pub generated: bool,
    /// Which ranks of the run to plan; `None` for all of them, on this machine.
    pub part: Option<Part>,
    /// Images per step over all ranks that were measured for `--batch -1`; `None` before that.
    pub measured_batch: Option<usize>,
    /// Why pictures and videos could not be fetched, by their addresses. A prediction names and skips them.
    pub unavailable: BTreeMap<String, String>,
}

/// The result of planning.
#[derive(Debug, Clone, PartialEq)]
pub enum Planning {
    /// The run is decided.
    Ready(Box<Planned>),
    /// Files are missing that can be fetched or generated.
    Missing(Vec<Need>),
}

impl Planning {
    /// A decided run. `notes` are about the choice of devices and backend.
    pub(super) fn ready(
        ranks: Ranks,
        run_dir: PathBuf,
        task: Task,
        warnings: Vec<String>,
        notes: Vec<String>,
    ) -> Self {
        let plan = RunPlan::new(ranks, run_dir, task);
        Self::Ready(Box::new(Planned { plan, warnings, notes, in_its_folder: false }))
    }
}

/// A file or data set to fetch or to generate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The built-in data set of this name, to be generated.
    Builtin(String),
    /// The data set that this argument of `--data` names.
    Data(String),
    /// The weights that this argument of `--weights` names.
    Weights(String),
    /// The picture or video at this address.
    Source(String),
}

/// Adds the data set of an argument of `--data` to `missing` if it must be fetched before it can be
/// loaded.
///
/// # Errors
/// When the yaml is invalid.
pub(super) fn need_data_set(
    data: &str,
    context: &PlanContext,
    missing: &mut Vec<Need>,
) -> Result<(), PlanError> {
    let places = &context.places;
    if dataset::is_builtin(data) {
        // Only the generator can tell whether the files of an earlier version are complete.
        if !context.generated {
            missing.push(Need::Builtin(data.to_owned()));
        }
        return Ok(());
    }
    let known = dataset::fetchable(data).filter(|_| !places.working_dir.join(data).is_file());
    if let Some(known) = known {
        let yamls = [places.data_sets.join(data), places.builtin_yaml(known)];
        if !yamls.iter().any(|yaml| yaml.is_file()) {
            missing.push(Need::Data(data.to_owned()));
            return Ok(());
        }
    }
    let description = Description::read(data, places)?;
    let can_be_fetched = known.is_some() || matches!(description.download, Download::Archives(_));
    if can_be_fetched && !description.is_there() {
        missing.push(Need::Data(data.to_owned()));
    }
    Ok(())
}

/// The absolute path of `--nccl`.
///
/// # Errors
/// When there is no such file.
pub(super) fn nccl_library(file: &Path, places: &Places) -> Result<PathBuf, PlanError> {
    let path = places.working_dir.join(file);
    if path.is_file() {
        return Ok(path);
    }
    Err(PlanError::new(format!("--nccl {} does not exist or is not a file", file.display()))
        .with_hint("name a libnccl.so.2, or use --nccl pip for the one of Python's package nvidia-nccl-cu13"))
}
