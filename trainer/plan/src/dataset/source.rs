//! How a data set whose images are missing can be had: what its `download:` says, where its folders
//! would have to be, and whether a folder that has just been unpacked is what the yaml describes.
//! A download that is code is put into words and never run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Places, Search, Splits, find_yaml, names, what_it_does};
use crate::error::PlanError;
use crate::yaml;

/// What a yaml's `download:` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Download {
    /// There is none.
    Nothing,
    /// Archives to unpack, by address.
    Archives(Vec<String>),
    /// A program, which is not run.
    Code {
        /// "Python script" or "shell command".
        kind: &'static str,
        /// What it would have done, in words: "would fetch …".
        would: String,
    },
}

/// A data yaml that was read, whether its images are there or not.
#[derive(Debug)]
pub struct Description {
    /// The yaml.
    pub yaml: PathBuf,
    /// Class names; the index is the class.
    pub names: Vec<String>,
    /// How the images can be had.
    pub download: Download,
    /// The folder's own name: the last part of `path`, or the yaml's name.
    pub name: String,
    splits: Splits,
    search: Search,
}

impl Description {
    /// Reads a data yaml as [`super::DataSet::load`] does, and does not ask for its images.
    ///
    /// # Errors
    /// When the yaml is missing or is not one, or lacks train, val or names.
    pub fn read(data: &str, places: &Places) -> Result<Self, PlanError> {
        let path = find_yaml(data, places)?;
        let value = yaml::read(&path, "data set")?;
        let source = format!("the data set {}", path.display());
        let Value::Object(given) = &value else {
            return Err(PlanError::new(format!(
                "{source}: this is {}, not a table with train, val and names",
                yaml::show(&value)
            )));
        };
        let stem = path.file_stem().map_or_else(|| "data".to_owned(), |stem| stem.to_string_lossy().into());
        let folder = given.get("path").and_then(Value::as_str).map(|path| Path::new(path.trim()));
        let name = folder.and_then(Path::file_name).map_or(stem, |name| name.to_string_lossy().into_owned());
        Ok(Self {
            names: names(given, &source)?,
            download: download(given.get("download"), &source)?,
            splits: Splits::read(given, &source)?,
            search: Search::new(given, &path, places, &source)?,
            yaml: path,
            name,
        })
    }

    /// Whether train and val lie in one of the places where they are looked for.
    pub fn is_there(&self) -> bool {
        self.search.roots.iter().any(|root| self.fits(root))
    }

    /// Whether train and val lie below `root`.
    pub fn fits(&self, root: &Path) -> bool {
        self.splits.resolve(root).is_some()
    }

    /// The entries of train and val, for a message.
    pub fn wanted(&self) -> Vec<String> {
        self.splits.train.iter().chain(&self.splits.val).cloned().collect()
    }

    /// Where the images go: the absolute `path` of the yaml, or a folder of its name among the data
    /// sets.
    pub fn target(&self, places: &Places) -> PathBuf {
        match self.search.roots.first() {
            Some(root) if self.search.absolute => root.clone(),
            _ => places.data_sets.join(&self.name),
        }
    }
}

fn download(value: Option<&Value>, source: &str) -> Result<Download, PlanError> {
    let is_address = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    match value {
        None | Some(Value::Null) => Ok(Download::Nothing),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Download::Nothing),
        Some(Value::String(text)) => {
            let text = text.trim();
            if is_address(text) && !text.contains(char::is_whitespace) {
                return Ok(Download::Archives(vec![text.to_owned()]));
            }
            let kind = if text.starts_with("bash ") { "shell command" } else { "Python script" };
            Ok(Download::Code { kind, would: what_it_does(text) })
        }
        Some(Value::Array(list)) => {
            let addresses = list.iter().map(|one| one.as_str().filter(|text| is_address(text)));
            let addresses: Option<Vec<String>> = addresses.map(|one| one.map(str::to_owned)).collect();
            addresses.filter(|list| !list.is_empty()).map(Download::Archives).ok_or_else(|| {
                PlanError::new(format!("{source}: download is a list, but not one of addresses"))
                    .with_hint("write each as https://…")
            })
        }
        Some(other) => Err(PlanError::new(format!(
            "{source}: download is {}, not an address or a list of them",
            yaml::show(other)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_told_from_code() {
        let read = |value: Value| download(Some(&value), "x").unwrap();
        assert_eq!(read(json!("https://h/a.zip")), Download::Archives(vec!["https://h/a.zip".into()]));
        assert_eq!(read(json!(["https://h/a.zip", "http://h/b.tar.gz"])), {
            Download::Archives(vec!["https://h/a.zip".into(), "http://h/b.tar.gz".into()])
        });
        assert_eq!(read(json!("")), Download::Nothing);
        let Download::Code { kind, .. } = read(json!("bash data/get.sh")) else { panic!("code") };
        assert_eq!(kind, "shell command");
        let script = "import os\nos.system('curl https://h/a.zip')";
        let Download::Code { kind, would } = read(json!(script)) else { panic!("code") };
        assert!(kind == "Python script" && would.contains("https://h/a.zip"), "{would}");
        assert!(matches!(read(json!("https://h/a.zip && rm -rf /")), Download::Code { .. }));
        assert!(download(Some(&json!(7)), "x").is_err());
        assert!(download(Some(&json!(["rm"])), "x").is_err());
    }
}
