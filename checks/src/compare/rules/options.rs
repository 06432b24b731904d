//! The options of the planned run, its data set and its weights.

use serde_json::Value as Json;
use yolo_base::format;

use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};
use crate::facts::Fact;
use crate::facts::view::data_set::{DataSet, Described};
use crate::intent::Intent;

/// Class names that are shown; a difference in the others is named.
const SHOWN: usize = 8;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "nnodes",
        what: "--nnodes",
        read: |one| option(one, |run| show(run.nnodes)),
        judge: must_agree,
    },
    Rule {
        id: "master-port",
        what: "--master-port",
        read: |one| option(one, |run| show(run.master_port)),
        judge: must_agree,
    },
    Rule {
        id: "backend",
        what: "--backend",
        read: |one| option(one, |run| run.backend.clone()),
        judge: must_agree,
    },
    Rule { id: "batch", what: "--batch", read: |one| option(one, |run| show(run.batch)), judge: must_agree },
    Rule {
        id: "imgsz",
        what: "--imgsz",
        read: |one| option(one, |run| show(run.image_size)),
        judge: must_agree,
    },
    Rule {
        id: "cfg",
        what: "--cfg",
        read: |one| option(one, |run| run.model.as_deref().map(file_name)),
        judge: must_agree,
    },
    Rule {
        id: "weights",
        what: "--weights",
        read: |one| option(one, |run| run.weights.as_deref().map(file_name)),
        judge: must_agree,
    },
    Rule {
        id: "data",
        what: "--data",
        read: |one| option(one, |run| run.data.as_deref().map(file_name)),
        judge: must_agree,
    },
    Rule {
        id: "batch-split",
        what: "--batch-split",
        read: |one| option(one, |run| run.batch_split.clone()),
        judge: must_agree,
    },
    Rule {
        id: "sync-bn",
        what: "--sync-bn",
        read: |one| option(one, |run| on(run.sync_bn)),
        judge: must_agree,
    },
    Rule {
        id: "multi-scale",
        what: "--multi-scale",
        read: |one| option(one, |run| on(run.multi_scale)),
        judge: must_agree,
    },
    Rule {
        id: "amp",
        what: "mixed precision",
        read: |one| option(one, |run| run.amp.and_then(on)),
        judge: must_agree,
    },
    Rule { id: "class-names", what: "class names", read: classes, judge: judge_classes },
    Rule {
        id: "train-images",
        what: "images to train on",
        read: images,
        judge: |_| {
            Meaning::stops(
                "every rank takes its share of the same list of images",
                "copy the complete data set to all machines",
            )
        },
    },
    Rule {
        id: "cache",
        what: "--cache",
        read: |one| option(one, |run| run.cache.clone()),
        judge: |_| Meaning::harmless("each machine may load its images in its own way"),
    },
    Rule {
        id: "workers",
        what: "--workers",
        read: |one| option(one, |run| show(run.workers)),
        judge: |_| Meaning::harmless("each machine may have its own number of loaders"),
    },
];

fn show(number: Option<impl ToString>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn on(is_on: bool) -> Option<String> {
    is_on.then(|| "on".to_owned())
}

/// The last part of a path: the folders above it may differ between machines.
fn file_name(path: &str) -> String {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

/// An option of the planned run, if one is planned.
fn option(machine: &Machine<'_>, read: fn(&Intent) -> Option<String>) -> Reading {
    if !machine.intent.run {
        return Reading::NotApplicable;
    }
    read(machine.intent).map_or_else(|| Reading::absent("not given"), Reading::text)
}

fn must_agree(_: &Seen<'_>) -> Meaning {
    Meaning::stops(
        "all machines of a run must be given the same options",
        "use the same value on all machines",
    )
}

/// The description of the run's data set; `None` if there is none to read, as for one that `yolo`
/// generates or downloads.
fn data_set(machine: &Machine<'_>) -> Fact<Option<DataSet>> {
    let Some(name) = machine.intent.data.as_deref() else { return Ok(None) };
    Ok(match machine.host.data_set(name)? {
        Described::Yaml(data_set) => Some(data_set),
        _ => None,
    })
}

fn classes(machine: &Machine<'_>) -> Reading {
    Reading::of(data_set(machine), |data_set| {
        let names = data_set.as_ref().and_then(|data_set| data_set.keys.get("names"));
        let names: Vec<String> = match names {
            Some(Json::Array(names)) => names.iter().map(plain).collect(),
            Some(Json::Object(names)) => {
                let mut numbered: Vec<(u64, String)> = names
                    .iter()
                    .filter_map(|(number, name)| Some((number.parse().ok()?, plain(name))))
                    .collect();
                numbered.sort();
                numbered.into_iter().map(|(_, name)| name).collect()
            }
            _ => return Reading::NotApplicable,
        };
        let more = if names.len() > SHOWN { ", …" } else { "" };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        let count = format::count_of(names.len(), "class", "classes");
        Reading::keyed(format!("{count}: {shown}{more}"), names.join("\n"))
    })
}

fn plain(name: &Json) -> String {
    name.as_str().map_or_else(|| name.to_string(), ToOwned::to_owned)
}

fn judge_classes(seen: &Seen<'_>) -> Meaning {
    let lists: Vec<Vec<&str>> = seen.known().map(|(_, value)| value.key.lines().collect()).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let differs = |number: &usize| lists.iter().any(|names| names.get(*number) != lists[0].get(*number));
    let first = (0..longest).find(differs).unwrap_or(0);
    let named = seen.known().zip(&lists).map(|((machine, _), names)| {
        let name = names.get(first).map_or("missing".to_owned(), |name| format!("`{name}`"));
        format!("{name} on {}", machine.name)
    });
    Meaning::stops(
        format!(
            "labels would mean different things: class {first} is {}",
            format::list(&named.collect::<Vec<_>>())
        ),
        "copy the data set's YAML file from one machine to the others",
    )
}

fn images(machine: &Machine<'_>) -> Reading {
    let count = || -> Fact<Option<(usize, bool)>> {
        let Some(data_set) = data_set(machine)? else { return Ok(None) };
        let images = data_set.images(machine.host, "train")?;
        Ok(Some((images.paths.len(), images.is_partial)))
    };
    Reading::of(count(), |found| match found {
        None => Reading::NotApplicable,
        Some((_, true)) => Reading::Unknown("the recording does not list all images".to_owned()),
        Some((number, false)) => Reading::text(number.to_string()),
    })
}
