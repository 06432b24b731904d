//! The comparison of runs: their metrics, the settings that differ, and the classes. It is data; the command prints
//! it, as text or as JSON, and [`crate::comparison_page()`] makes a page of it. Runs of YOLOv5 lack what only
//! `report.json` has.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use yolo_base::format::list;
use yolo_plan::event::Metrics;
use yolo_plan::report::RunReport;
use yolo_plan::results::{Row, best, fitness};

use crate::run_files::RunFiles;
use crate::settings::PLACES;

/// Version of the JSON; raised when a field is removed or changes its meaning.
pub(crate) const VERSION: u32 = 1;

/// Runs side by side. Lists with one value per run are in the order of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The version of this JSON; raised when a field is removed or changes its meaning.
    pub version: u32,
    /// The runs, in the order of the command line.
    pub runs: Vec<ComparedRun>,
    /// The settings that differ.
    pub settings: Vec<Differing>,
    /// The mAP50-95 of each class, in the last validation of each run; the largest differences first.
    pub classes: Vec<ComparedClass>,
    /// Why numbers may not be comparable, one sentence each.
    pub warnings: Vec<String>,
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The last two parts of its folder, or all if these are not unique.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// The number of its epochs.
    pub epochs: usize,
    /// Its best epoch, by fitness.
    pub best: Option<EpochMetrics>,
    /// Its last epoch.
    pub last: Option<EpochMetrics>,
    /// The metrics of the validation that its report has.
    pub validated: Option<Metrics>,
    /// How long it took since it was last started.
    pub seconds: Option<f64>,
}

/// The metrics of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpochMetrics {
    /// From 1.
    pub epoch: usize,
    /// Precision, recall and average precision.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// 0.1·mAP50 + 0.9·mAP50-95.
    pub fitness: f64,
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differing {
    /// As in `opt.yaml` and `hyp.yaml`.
    pub name: String,
    /// Its value in each run; `None` in a run that does not say.
    pub values: Vec<Option<String>>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedClass {
    /// Its name.
    pub class: String,
    /// Its mAP50-95 in each run; `None` in a run that did not measure it.
    pub map50_95: Vec<Option<f64>>,
}

impl ComparedClass {
    /// The distance between its lowest and its highest value.
    pub fn spread(&self) -> f64 {
        let values = || self.map50_95.iter().flatten().copied();
        values().fold(0.0, f64::max) - values().fold(f64::INFINITY, f64::min).min(1.0)
    }
}

/// Compares runs.
pub fn compare(runs: &[RunFiles]) -> Comparison {
    let unique = |run: &RunFiles| runs.iter().filter(|other| other.name() == run.name()).count() == 1;
    let name = |run: &RunFiles| if unique(run) { run.name() } else { run.folder.display().to_string() };
    let names: Vec<String> = runs.iter().map(name).collect();
    Comparison {
        version: VERSION,
        warnings: warnings(runs, &names),
        runs: runs.iter().zip(names).map(|(run, name)| compared(run, name)).collect(),
        settings: differing(runs),
        classes: classes(runs),
    }
}

fn compared(run: &RunFiles, name: String) -> ComparedRun {
    let report = run.report.as_ref();
    let validation = report.and_then(|report| report.validations.last());
    ComparedRun {
        name,
        folder: run.folder.display().to_string(),
        epochs: run.results.len(),
        best: best(&run.results).map(metrics_of),
        last: run.results.last().map(metrics_of),
        validated: validation.and_then(|validation| validation.table.rows.first()).map(|all| all.metrics),
        seconds: report.and_then(|report| report.run.as_ref()).map(|run| run.seconds),
    }
}

fn metrics_of(row: &Row) -> EpochMetrics {
    let metrics = Metrics { precision: row[4], recall: row[5], map50: row[6], map50_95: row[7] };
    EpochMetrics { epoch: row[0] as usize + 1, metrics, fitness: fitness(row) }
}

/// The settings that differ between runs which both state them, or that only some state with another value than
/// the default.
fn differing(runs: &[RunFiles]) -> Vec<Differing> {
    let mut names: Vec<&str> = Vec::new();
    for setting in runs.iter().flat_map(|run| run.options.iter().chain(&run.hyp)) {
        if !names.contains(&setting.name.as_str()) && !PLACES.contains(&setting.name.as_str()) {
            names.push(&setting.name);
        }
    }
    let of = |run: &RunFiles, name: &str| {
        let setting = run.options.iter().chain(&run.hyp).find(|setting| setting.name == name);
        setting.map(|setting| (setting.value.clone(), setting.changed))
    };
    let mut differing = Vec::new();
    for name in names {
        let found: Vec<Option<(String, bool)>> = runs.iter().map(|run| of(run, name)).collect();
        let stated: Vec<&(String, bool)> = found.iter().flatten().collect();
        // The same data set may be in another folder on another machine; what it holds is compared for warnings.
        let part = |value: &str| if name == "data" { file_name(value) } else { value.to_owned() };
        let same = stated.windows(2).all(|pair| is_same(&part(&pair[0].0), &part(&pair[1].0)));
        // YOLOv5 and `yolo` have options that the other lacks; such a default is no difference.
        let only_some = stated.len() < runs.len() && stated.iter().any(|(_, changed)| *changed);
        if !same || only_some {
            let values = found.into_iter().map(|value| value.map(|(value, _)| value)).collect();
            differing.push(Differing { name: name.to_owned(), values });
        }
    }
    differing
}

/// The last part of a path.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Whether two values are the same text or number.
fn is_same(one: &str, other: &str) -> bool {
    one == other || one.parse::<f64>().is_ok_and(|one| other.parse() == Ok(one))
}

/// The classes of all runs with a report.
fn classes(runs: &[RunFiles]) -> Vec<ComparedClass> {
    let mut classes: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        let validation = run.report.as_ref().and_then(|report| report.validations.last());
        for row in validation.iter().flat_map(|validation| validation.table.rows.iter().skip(1)) {
            let values = classes.entry(row.class.clone()).or_insert_with(|| vec![None; runs.len()]);
            values[index] = Some(row.metrics.map50_95);
        }
    }
    let mut classes: Vec<ComparedClass> =
        classes.into_iter().map(|(class, map50_95)| ComparedClass { class, map50_95 }).collect();
    classes.sort_by(|a, b| b.spread().total_cmp(&a.spread()));
    classes
}

/// What makes the numbers of runs not comparable.
fn warnings(runs: &[RunFiles], names: &[String]) -> Vec<String> {
    let stem = |text: &str| Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let data: Vec<Option<String>> = runs.iter().map(|run| run.option("data").and_then(stem)).collect();
    let report = |of: &dyn Fn(&RunReport) -> String| -> Vec<Option<String>> {
        runs.iter().map(|run| run.report.as_ref().map(of)).collect()
    };
    let classes = report(&|report| report.names.join("\n"));
    let images = report(&|report| {
        let last = report.validations.last();
        last.map_or_else(String::new, |validation| validation.table.images.to_string())
    });
    let differ = |values: &[Option<String>]| {
        let mut known: Vec<&String> = values.iter().flatten().filter(|value| !value.is_empty()).collect();
        known.sort();
        known.dedup();
        known.len() > 1
    };
    let each = |values: &[Option<String>]| {
        let words = names
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name}: {}", value.as_deref().unwrap_or("unknown")));
        list(&words.collect::<Vec<_>>())
    };
    let why = if differ(&data) {
        each(&data)
    } else if differ(&classes) {
        "their classes differ".to_owned()
    } else if differ(&images) {
        format!("numbers of validated images: {}", each(&images))
    } else {
        return Vec::new();
    };
    vec![format!("the runs have different data sets ({why}), so their metrics cannot be compared")]
}
