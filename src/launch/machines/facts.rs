//! What must be equal on all machines of a run.

use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest};
use serde_json::Value;
use yolo_data::error::DataError;
use yolo_data::scan::{label_path, list_images};
use yolo_plan::RunPlan;
use yolo_plan::dataset::DataSet;
use yolo_plan::options::{TrainOptions, option_name};
use yolo_protocol::meeting::{Fact, HYPERPARAMETER, NCCL};

/// Options that may differ: what they name is on each machine, or only the master's counts.
const LOCAL: [&str; 9] =
    ["data", "device", "nproc_per_node", "nccl", "workers", "project", "name", "exist_ok", "resume"];
/// Options that name files, whose folders may differ.
const FILES: [&str; 2] = ["weights", "cfg"];
/// Its content is compared, which may come from files of other names.
const HYP: &str = "hyp";

/// The most bytes of a value, because the message with all values is limited.
const LONGEST: usize = 1000;

fn fact(what: &str, value: String) -> Fact {
    Fact { what: what.to_owned(), value: limited(value) }
}

/// What a machine brings to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The number of its ranks.
    pub(super) ranks: usize,
    /// What it knows when it joins.
    pub(super) facts: Vec<Fact>,
    /// In a resumed run, what another machine knows of its data set when the master has sent it the run.
    pub(super) later: Vec<Fact>,
}

/// The libraries of the ranks of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Libraries<'a> {
    /// The variant of libtorch.
    pub(crate) libtorch: &'a str,
    /// The version of NCCL, if it is used and known.
    pub(crate) nccl: Option<String>,
}

impl Facts {
    /// The facts of this machine.
    ///
    /// # Errors
    /// When the images of the data set cannot be listed.
    pub(crate) fn of(
        options: &TrainOptions,
        plan: &RunPlan,
        libraries: Libraries<'_>,
    ) -> Result<Self, DataError> {
        let data = data_facts(plan)?;
        let hyp = hyperparameters(plan);
        let mut facts = Self::of_joining(options, plan.ranks.devices.len(), libraries);
        match options.resume {
            Some(_) => facts.later = data,
            // A resumed run has its own.
            None => facts.facts.extend(hyp.into_iter().chain(data)),
        }
        Ok(facts)
    }

    /// The facts of a machine with this number of ranks that joins a resumed run, which it does not know yet.
    pub(crate) fn of_joining(options: &TrainOptions, ranks: usize, libraries: Libraries<'_>) -> Self {
        let Libraries { libtorch, nccl } = libraries;
        let given = if options.resume.is_some() { "given" } else { "not given" };
        let mut facts = vec![
            fact("the version of yolo", env!("CARGO_PKG_VERSION").to_owned()),
            fact("libtorch", libtorch.to_owned()),
            fact("--resume", given.to_owned()),
        ];
        facts.extend(nccl.map(|version| fact(NCCL, version)));
        facts.extend(options_of(options).into_iter().map(|(option, value)| fact(&option, value)));
        Self { ranks, facts, later: Vec::new() }
    }
}

/// Each hyperparameter, whether it is from `--hyp` or a default.
fn hyperparameters(plan: &RunPlan) -> Vec<Fact> {
    let hyp = plan.task.train().and_then(|task| serde_json::to_value(&task.hyp).ok());
    let Some(Value::Object(mut hyp)) = hyp else { return Vec::new() };
    // The only one that is left out if it is not given.
    hyp.entry("anchors").or_insert_with(|| "not given".into());
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    hyp.iter().map(|(key, value)| fact(&format!("{HYPERPARAMETER}{key}"), shown(value))).collect()
}

/// The facts of the data set of a plan.
///
/// # Errors
/// When its images cannot be listed.
pub(crate) fn data_facts(plan: &RunPlan) -> Result<Vec<Fact>, DataError> {
    let Some(task) = plan.task.train() else { return Ok(Vec::new()) };
    let mut facts = vec![fact("the class names", task.data.names.join(", "))];
    for (split, roots) in splits(&task.data) {
        let Contents { images, labels, hash } = Contents::of(roots, split)?;
        facts.extend([
            fact(&format!("the number of {split} images"), images.to_string()),
            fact(&format!("the number of {split} labels"), labels.to_string()),
            fact(&format!("the names or sizes of the {split} files"), format!("hash {hash}")),
        ]);
    }
    Ok(facts)
}

/// The options that must be equal, as `--name` and value.
fn options_of(options: &TrainOptions) -> Vec<(String, String)> {
    let fields = serde_json::to_value(options).unwrap_or_default();
    let fields = fields.as_object().cloned().unwrap_or_default();
    let shown = |name: &str, value: Value| match value {
        Value::Null | Value::Bool(false) => "not given".to_owned(),
        Value::Bool(true) => "given".to_owned(),
        Value::String(file) if FILES.contains(&name) => {
            Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned())
        }
        Value::String(text) => text,
        other => other.to_string(),
    };
    let equal = fields.into_iter().filter(|(name, _)| name != HYP && !LOCAL.contains(&name.as_str()));
    equal.map(|(name, value)| (option_name(&name), shown(&name, value))).collect()
}

/// A value that may be long, as the names of many classes: its beginning, and a hash of all of it.
fn limited(value: String) -> String {
    if value.len() <= LONGEST {
        return value;
    }
    let end = (0..=LONGEST).rev().find(|&end| value.is_char_boundary(end)).unwrap_or(0);
    format!("{} … (hash {})", &value[..end], &hex::encode(digest(&SHA256, value.as_bytes()))[..12])
}

fn splits(data: &DataSet) -> [(&'static str, &Vec<PathBuf>); 2] {
    [("training", &data.train), ("validation", &data.val)]
}

/// The files of a split.
struct Contents {
    images: usize,
    labels: usize,
    /// Of the names and sizes of images and labels, wherever their folder is.
    hash: String,
}

impl Contents {
    fn of(roots: &[PathBuf], split: &str) -> Result<Self, DataError> {
        let images = list_images(roots, split)?;
        let (mut labels, mut hash) = (0, Context::new(&SHA256));
        let size = |file: &Path| file.metadata().ok().map(|metadata| metadata.len());
        // In the order of training, which must be the same everywhere.
        for image in &images {
            let label = size(&label_path(image));
            labels += usize::from(label.is_some());
            let name = image.file_name().unwrap_or_default().to_string_lossy();
            hash.update(format!("{name} {:?} {label:?}\n", size(image)).as_bytes());
        }
        let hash = hex::encode(hash.finish())[..12].to_owned();
        Ok(Self { images: images.len(), labels, hash })
    }
}

#[cfg(test)]
mod tests {
    use yolo_plan::options::Workers;

    use super::*;

    #[test]
    fn options_with_paths_are_compared_by_name() {
        let options = TrainOptions {
            weights: Some("/a/m.pt".to_owned()),
            workers: Some(Workers::Count(3)),
            ..TrainOptions::default()
        };
        let shown = options_of(&options);
        assert!(shown.contains(&("--weights".to_owned(), "m.pt".to_owned())), "{shown:?}");
        assert!(shown.contains(&("--epochs".to_owned(), "not given".to_owned())));
        assert!(shown.iter().all(|(name, _)| name != "--workers"));
    }

    #[test]
    fn the_name_of_a_file_of_hyperparameters_does_not_matter() {
        let options = TrainOptions { hyp: Some("/a/mine.yaml".to_owned()), ..TrainOptions::default() };
        assert!(options_of(&options).iter().all(|(name, _)| name != "--hyp"));
    }

    #[test]
    fn a_long_value_is_shortened_and_differs_by_its_hash() {
        assert_eq!(limited("red, blue".to_owned()), "red, blue");
        let names = |last: &str| limited("é, ".repeat(10_000) + last);
        assert!(names("cat").len() < 2 * LONGEST);
        assert!(names("cat") == names("cat") && names("cat") != names("dog"));
    }

    #[test]
    fn the_hash_depends_on_names_and_sizes_and_not_on_the_folder() {
        let hash = |label: &str| {
            let folder = tempfile::tempdir().unwrap();
            let images = folder.path().join("images");
            let labels = folder.path().join("labels");
            fs_err::create_dir_all(&images).unwrap();
            fs_err::create_dir_all(&labels).unwrap();
            fs_err::write(images.join("a.bmp"), "pixels").unwrap();
            fs_err::write(labels.join("a.txt"), label).unwrap();
            let contents = Contents::of(&[images], "training").unwrap();
            assert_eq!((contents.images, contents.labels), (1, 1));
            contents.hash
        };
        assert_eq!(hash("0 1 1 1 1"), hash("1 1 1 1 1"), "only the size counts");
        assert_ne!(hash("0 1 1 1 1"), hash(""));
    }
}
