//! A data YAML as it is written, before its images exist: where they belong, and whether a downloaded
//! folder fits.

use std::path::{Path, PathBuf};

use serde_json::Value;
use yolo_base::windows_paths;

use super::Places;
use super::download::{Download, download};
use super::lookup::find_yaml;
use super::names::names;
use super::splits::{Found, Search, Splits, existing};
use crate::error::PlanError;
use crate::yaml;

/// A data YAML, whether its images exist or not.
#[derive(Debug)]
pub struct Description {
    /// The yaml.
    pub yaml: PathBuf,
    /// Class names, indexed by class.
    pub names: Vec<String>,
    /// How to download the images.
    pub download: Download,
    /// The name of the data set's folder: the last part of `path`, or the name of the yaml.
    pub name: String,
    /// The number of classes, if the yaml gives it.
    pub(super) nc: Option<Value>,
    splits: Splits,
    search: Search,
}

impl Description {
    /// Reads a data YAML like [`super::DataSet::load`], without requiring its images.
    ///
    /// # Errors
    /// If the yaml is missing or invalid, or lacks train, val or names.
    pub fn read(data: &str, places: &Places) -> Result<Self, PlanError> {
        let path = find_yaml(data, places)?;
        let value = yaml::read_data_set(&path)?;
        let source = format!("the data set {}", path.display());
        let Value::Object(fields) = &value else {
            return Err(PlanError::new(format!(
                "{source} must be a mapping with train, val and names, not {}",
                yaml::show(&value)
            )));
        };
        let stem = path.file_stem().map_or_else(|| "data".to_owned(), |stem| stem.to_string_lossy().into());
        let folder = fields.get("path").and_then(Value::as_str).map(str::trim);
        let here = folder.and_then(windows_paths::in_file);
        let folder = here.as_deref().or(folder).map(Path::new);
        let name = folder.and_then(Path::file_name).map_or(stem, |name| name.to_string_lossy().into_owned());
        Ok(Self {
            names: names(fields, &source)?,
            download: download(fields.get("download"), path.parent().unwrap_or(Path::new(""))),
            splits: Splits::read(fields, &source)?,
            search: Search::new(fields, &path, places, &source)?,
            nc: fields.get("nc").cloned(),
            yaml: path,
            name,
        })
    }

    /// The images, in the first searched folder that has train and val.
    ///
    /// # Errors
    /// If no folder has them.
    pub(super) fn find(&self, places: &Places) -> Result<Found, PlanError> {
        let found = self.search.roots.iter().find_map(|root| self.splits.resolve(root));
        found.ok_or_else(|| self.search.not_found(&self.splits, &self.download, &self.yaml, places))
    }

    /// Whether train and val exist in one of the searched folders.
    pub fn is_there(&self) -> bool {
        self.root().is_some()
    }

    /// The first searched folder that has train and val.
    pub fn root(&self) -> Option<&Path> {
        self.search.roots.iter().find(|root| self.fits(root)).map(PathBuf::as_path)
    }

    /// Whether `root` has train and val.
    pub fn fits(&self, root: &Path) -> bool {
        self.splits.resolve(root).is_some()
    }

    /// The entries of train and val that `root` lacks, each once, for a message.
    pub fn lacking(&self, root: &Path) -> Vec<String> {
        let mut lacking: Vec<String> = Vec::new();
        for path in self.splits.train.iter().chain(&self.splits.val) {
            if existing(root, path).is_none() && !lacking.contains(path) {
                lacking.push(path.clone());
            }
        }
        lacking
    }

    /// Where the images belong: the absolute `path` of the yaml, or its folder among the data sets.
    pub fn target(&self, places: &Places) -> PathBuf {
        match self.search.roots.first() {
            Some(root) if self.search.absolute => root.clone(),
            _ => places.data_sets.join(&self.name),
        }
    }
}
