//! What a run needs that is not on this machine but can be fetched. Planning reports all of it at
//! once, so that the caller fetches it and plans again. What cannot be fetched is an error instead.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Planned;
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
}

/// The result of planning.
#[derive(Debug, Clone, PartialEq)]
pub enum Planning {
    /// The run is decided.
    Ready(Box<Planned>),
    /// Files are missing that can be fetched.
    Missing(Vec<Need>),
}

/// A file or data set to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The data set that this argument of `--data` names.
    Data(String),
    /// The weights that this argument of `--weights` names.
    Weights(String),
}

/// The data set to fetch before `data` can be loaded, if there is one.
///
/// # Errors
/// When the yaml is invalid.
pub(super) fn data_set(data: &str, places: &Places) -> Result<Option<Need>, PlanError> {
    if dataset::is_builtin(data) {
        return Ok(None);
    }
    let need = || Some(Need::Data(data.to_owned()));
    let known = dataset::fetchable(data).filter(|_| !places.working_dir.join(data).is_file());
    if let Some(known) = known {
        let yamls = [places.data_sets.join(data), places.builtin_yaml(known)];
        if !yamls.iter().any(|yaml| yaml.is_file()) {
            return Ok(need());
        }
    }
    let description = Description::read(data, places)?;
    let can_be_fetched = known.is_some() || matches!(description.download, Download::Archives(_));
    Ok(if can_be_fetched && !description.is_there() { need() } else { None })
}
