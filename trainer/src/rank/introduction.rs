//! What a rank says about itself before it joins others whose plans were made elsewhere, and in what two
//! ranks of one run must not differ.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use serde_json::{Value, json};
use yolo_base::env::WORLD_SIZE;
use yolo_plan::RunPlan;
use yolo_plan::options::option_name;
use yolo_plan::run::{TrainTask, opt_yaml};

use crate::error::TrainError;

/// Options that ranks may have of their own: where they run, and where their files are.
const OWN: [&str; 12] = [
    "backend",
    "cache",
    "cfg",
    "data",
    "device",
    "hyp",
    "max_restarts",
    "nccl",
    "nproc_per_node",
    "save_dir",
    "weights",
    "workers",
];

/// What differs is shown up to this length.
const SHOWN: usize = 80;

/// What a rank says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Introduction {
    pub(super) rank: usize,
    pub(super) host: String,
    /// The address at which others reach it.
    pub(super) address: String,
    /// What must be the same on all ranks, by the words that name it.
    pub(super) settings: BTreeMap<String, String>,
    /// Why it cannot join the run of rank 0, if it cannot.
    pub(super) problem: Option<String>,
}

impl Introduction {
    /// What rank `rank` of this plan says.
    ///
    /// # Errors
    /// When the settings cannot be written as text.
    pub(super) fn of(plan: &RunPlan, rank: usize, address: String) -> Result<Self, TrainError> {
        let mut settings = plan.task.train().map_or(Ok(BTreeMap::new()), |task| of_training(plan, task))?;
        settings.insert("yolo version".to_owned(), plan.program.clone());
        settings.insert(WORLD_SIZE.to_owned(), plan.ranks.world_size.to_string());
        let backend = plan.ranks.backend.map_or("none".to_owned(), |backend| backend.to_string());
        settings.insert("--backend".to_owned(), backend);
        Ok(Self { rank, host: host_name(), address, settings, problem: None })
    }

    /// The rank as messages name it.
    pub(super) fn name(&self) -> String {
        format!("rank {} on {}", self.rank, self.host)
    }

    /// What differs between this rank and `first`, which is rank 0, as a complete message.
    pub(super) fn difference(&self, first: &Self) -> Option<String> {
        let names = first.settings.keys().chain(self.settings.keys());
        // They explain every other difference.
        let reasons = ["yolo version".to_owned(), "--resume".to_owned()];
        let name =
            reasons.iter().chain(names).find(|name| self.settings.get(*name) != first.settings.get(*name))?;
        let value = |one: &Self| one.settings.get(name).map_or("nothing".to_owned(), |value| shown(value));
        Some(format!(
            "the ranks of a run must agree, but {} has {name} {}, and {} has {}",
            self.name(),
            value(self),
            first.name(),
            value(first)
        ))
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> Value {
        let Self { rank, host, address, settings, problem } = self;
        json!({ "rank": rank, "host": host, "address": address, "settings": settings, "problem": problem })
    }

    /// From JSON; `None` if another version wrote it in another form.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let settings = value["settings"].as_object()?.iter();
        Some(Self {
            rank: value["rank"].as_u64()?.try_into().ok()?,
            host: text("host")?,
            address: text("address")?,
            settings: settings
                .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect::<Option<_>>()?,
            problem: text("problem"),
        })
    }
}

/// The settings of a training run on which its results depend.
fn of_training(plan: &RunPlan, task: &TrainTask) -> Result<BTreeMap<String, String>, TrainError> {
    let mut settings = BTreeMap::new();
    for (name, value) in opt_yaml(plan, task)? {
        if name == "resume" {
            settings.insert("--resume".to_owned(), (!value.is_null()).to_string());
        } else if !OWN.contains(&name.as_str()) {
            settings.insert(option_name(&name), value.to_string());
        }
    }
    let hyp = serde_json::to_value(&task.hyp)
        .map_err(|error| TrainError::new(format!("cannot write the hyperparameters: {error}")))?;
    for (name, value) in hyp.as_object().into_iter().flatten() {
        settings.insert(format!("the hyperparameter {name}"), value.to_string());
    }
    if let Some(model) = &task.model {
        settings.insert("--cfg".to_owned(), file_name(Path::new(&model.name)));
        let mut content = serde_json::to_value(model)
            .map_err(|error| TrainError::new(format!("cannot write the model: {error}")))?;
        // The name may be the path of its file.
        content["name"] = Value::Null;
        let text = content.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        settings.insert("a model with the checksum".to_owned(), format!("{:016x}", hasher.finish()));
    }
    if task.resume.is_none() {
        let weights = task.weights.as_deref().map_or("none".to_owned(), file_name);
        settings.insert("--weights".to_owned(), weights);
    }
    settings.insert("the class names".to_owned(), task.data.names.join(", "));
    Ok(settings)
}

/// Folders may differ between machines.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &value[..end]),
        None => value.to_owned(),
    }
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    "this machine".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(rank: usize, host: &str, settings: &[(&str, &str)]) -> Introduction {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Introduction {
            rank,
            host: host.to_owned(),
            address: "10.0.0.7".to_owned(),
            settings: settings.collect(),
            problem: None,
        }
    }

    #[test]
    fn a_difference_names_rank_host_and_field() {
        let first = introduction(0, "lab-1", &[("yolo version", "1"), ("--imgsz", "640")]);
        assert_eq!(
            introduction(1, "lab-2", &[("yolo version", "1"), ("--imgsz", "640")]).difference(&first),
            None
        );
        let other = introduction(1, "lab-2", &[("yolo version", "1"), ("--imgsz", "320")]);
        assert_eq!(
            other.difference(&first).unwrap(),
            "the ranks of a run must agree, but rank 1 on lab-2 has --imgsz 320, and rank 0 on lab-1 has 640"
        );
        let newer = introduction(1, "lab-2", &[("yolo version", "2"), ("--imgsz", "320"), ("--new", "1")]);
        assert!(newer.difference(&first).unwrap().contains("has yolo version 2, and rank 0 on lab-1 has 1"));
        let older = introduction(1, "lab-2", &[("yolo version", "1")]);
        assert!(older.difference(&first).unwrap().contains("has --imgsz nothing"));
    }

    #[test]
    fn an_introduction_is_read_as_it_was_written() {
        let own = introduction(3, "lab-2", &[("--imgsz", "640")]);
        assert_eq!(Introduction::from_json(&own.to_json()), Some(own));
        assert_eq!(Introduction::from_json(&json!({ "rank": 3 })), None);
    }
}
