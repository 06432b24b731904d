//! The description of a data set: YOLOv5's data YAML (spec §7), read, checked and resolved to paths
//! that exist, or a built-in data set. `yolo-data` reads the images.

mod clean;
mod description;
mod download;
mod images;
mod lookup;
mod names;
mod splits;
mod summary;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use yolo_base::format;

pub use description::Description;
pub use download::Download;
pub use images::{IMAGE_EXTENSIONS, is_image, path_in_list};
pub use lookup::{FETCHABLE, Places, check_argument, fetchable, is_builtin, is_file};
pub use summary::{SplitSummary, changed_splits};

use crate::error::PlanError;
use crate::yaml::show;

/// The class name of a run with `--single-cls` on a data set of several classes, as in YOLOv5.
const SINGLE_CLASS: &str = "item";

/// A data set whose images exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// The yaml.
    pub yaml: PathBuf,
    /// Folders, list files or globs of training images, absolute.
    pub train: Vec<PathBuf>,
    /// The same for validation.
    pub val: Vec<PathBuf>,
    /// The same for the test split, if there is one.
    pub test: Vec<PathBuf>,
    /// Class names, indexed by class.
    pub names: Vec<String>,
}

impl DataSet {
    /// Reads a data YAML and finds the folders of its images.
    ///
    /// # Errors
    /// If the yaml is missing or invalid, lacks train, val or names, or its images do not exist.
    pub fn load(data: &str, places: &Places) -> Result<Self, PlanError> {
        Self::load_with_warnings(data, places).map(|(data_set, _)| data_set)
    }

    /// The data set of a run and warnings about it. `single_cls` merges its classes into one.
    pub(crate) fn load_for_run(
        data: &str,
        single_cls: bool,
        places: &Places,
    ) -> Result<(Self, Vec<String>), PlanError> {
        let (mut data_set, warnings) = Self::load_with_warnings(data, places)?;
        if single_cls {
            data_set.merge_classes();
        }
        Ok((data_set, warnings))
    }

    /// Like [`Self::load`], with warnings for the user.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn load_with_warnings(data: &str, places: &Places) -> Result<(Self, Vec<String>), PlanError> {
        let description = Description::read(data, places)?;
        let found = description.find(places)?;
        let Description { yaml, names, nc, .. } = description;
        let mut warnings = Vec::new();
        if let Some(nc) = nc.filter(|nc| nc.as_u64() != Some(names.len() as u64)) {
            warnings.push(format!(
                "the data set {}: nc is {} but names has {}; using {}",
                yaml.display(),
                show(&nc),
                format::count_of(names.len(), "class", "classes"),
                names.len()
            ));
        }
        for path in &found.missing_test {
            let (yaml, path) = (yaml.display(), path.display());
            warnings.push(format!("the data set {yaml}: the test images {path} do not exist"));
        }
        Ok((Self { yaml, train: found.train, val: found.val, test: found.test, names }, warnings))
    }

    /// Whether its validation images are those of COCO 2017, whose categories, annotations and thresholds YOLOv5
    /// knows.
    pub fn is_coco(&self) -> bool {
        self.val.iter().any(|path| path.ends_with("coco/val2017.txt"))
    }

    /// Merges all classes into one, for `--single-cls`. A single class keeps its name.
    pub(crate) fn merge_classes(&mut self) {
        if self.names.len() != 1 {
            self.names = vec![SINGLE_CLASS.to_owned()];
        }
    }
}
