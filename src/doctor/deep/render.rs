//! The result of the deep test, as text and as JSON: a table of the measurements of each rank, which
//! ranks are slower than the others, and which failed.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use yolo_base::format::count;
use yolo_checks::Host;
use yolo_plan::device::Device;
use yolo_plan::event::Measure;

use super::pairs::{self, Pair};
use super::trial::{Trial, name_of};
use crate::printer::wrap;

/// A GPU below this fraction of the best GPU of its model is slow.
const SLOW: f64 = 0.7;
/// A link reaches about four fifths of the bandwidth of its lanes; below this fraction something is wrong.
const POOR_LINK: f64 = 0.5;

/// Columns of the table: measurement, heading and decimals.
const COLUMNS: [(Measure, &str, usize); 7] = [
    (Measure::MatrixProduct, "TFLOP/s", 2),
    (Measure::MemoryCopy, "copy GB/s", 1),
    (Measure::PinnedCopy, "pinned GB/s", 1),
    (Measure::AllReduce, "sum ms", 1),
    (Measure::AllReduceRate, "sum GB/s", 2),
    (Measure::DiskRead, "disk MB/s", 0),
    (Measure::Decode, "decoded/s", 0),
];

/// The whole result.
#[derive(Debug)]
pub(super) struct Deep<'a> {
    devices: &'a [Device],
    together: Trial,
    pairs: Vec<Pair>,
    /// One sentence each.
    problems: Vec<String>,
    /// Slow, but working.
    warnings: Vec<String>,
    hint: Option<String>,
}

impl<'a> Deep<'a> {
    /// Draws the conclusions. The host provides the nominal bandwidth of links.
    pub(super) fn of(devices: &'a [Device], together: Trial, pairs: Vec<Pair>, host: Option<&Host>) -> Self {
        let mut problems = Vec::new();
        let mut warnings = together.warnings.clone();
        let hint = together.failure.as_ref().and_then(|failure| failure.hint.clone());
        problems.extend(together.failure.as_ref().map(|failure| failure.what.clone()));
        problems.extend(of_pairs(devices, &pairs));
        warnings.extend(host.into_iter().flat_map(|host| slow(devices, &together, host)));
        Self { devices, together, pairs, problems, warnings, hint }
    }

    /// Whether all ranks completed everything.
    pub(super) fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let shown: Vec<_> = COLUMNS
            .into_iter()
            .filter(|(measure, _, _)| {
                self.together.measured.values().flatten().any(|(seen, _)| seen == measure)
            })
            .collect();
        let heading = shown.iter().map(|(_, heading, _)| (*heading).to_owned());
        table.set_header(std::iter::once("rank".to_owned()).chain(heading).collect::<Vec<_>>());
        for rank in 0..self.devices.len() {
            let cell = |(measure, _, decimals): &(Measure, &str, usize)| {
                value(&self.together, rank, *measure)
                    .map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
            };
            let mut row = vec![format!("{rank} {}", self.devices[rank])];
            row.extend(shown.iter().map(cell));
            table.add_row(row);
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        let mut text = String::new();
        if !shown.is_empty() {
            // The table pads its last column with spaces.
            table.lines().for_each(|line| {
                let _ = writeln!(text, "{}", line.trim());
            });
            text.push('\n');
        }
        for pair in &self.pairs {
            let (one, other) = pair.ranks;
            let how = match &pair.trial {
                None => "not tested: out of time",
                Some(trial) if trial.failure.is_some() => "failed",
                Some(_) => "ok",
            };
            let _ = writeln!(text, "ranks {one} and {other}: {how}");
        }
        self.warnings.iter().for_each(|warning| {
            let _ = writeln!(text, "{}", wrap("warning  ", warning));
        });
        self.problems.iter().for_each(|problem| {
            let mut lines = problem.lines();
            let _ = writeln!(text, "{}", wrap("error    ", lines.next().unwrap_or_default()));
            lines.for_each(|line| {
                let _ = writeln!(text, "         {line}");
            });
        });
        self.hint.iter().for_each(|hint| {
            let _ = writeln!(text, "{}", wrap("do       ", hint));
        });
        let ranks = count(self.devices.len(), "rank");
        let links = self.together.backend.map_or(String::new(), |backend| format!(", over {backend}"));
        let _ = match self.problems.is_empty() {
            true => write!(text, "{ranks}{links}: every result is correct"),
            false => write!(text, "{ranks}{links}: something failed"),
        };
        text
    }

    pub(super) fn json(&self) -> String {
        let ranks: Vec<Value> = (0..self.devices.len())
            .map(|rank| {
                let measured = self.together.measured.get(&rank).into_iter().flatten();
                let measured: serde_json::Map<String, Value> = measured
                    .filter_map(|(measure, value)| {
                        Some((serde_json::to_value(measure).ok()?.as_str()?.to_owned(), json!(value)))
                    })
                    .collect();
                json!({ "rank": rank, "device": self.devices[rank].to_string(), "measured": measured })
            })
            .collect();
        let pairs: Vec<Value> = self
            .pairs
            .iter()
            .map(|pair| {
                let failure =
                    pair.trial.as_ref().map(|trial| trial.failure.as_ref().map(|failure| &failure.what));
                json!({
                    "ranks": [pair.ranks.0, pair.ranks.1],
                    "tried": failure.is_some(),
                    "failure": failure.flatten(),
                })
            })
            .collect();
        let object = json!({
            "schema": 1,
            "yolo": env!("CARGO_PKG_VERSION"),
            "ranks": ranks,
            "pairs": pairs,
            "warnings": self.warnings,
            "errors": self.problems,
        });
        format!("{object:#}")
    }
}

fn value(trial: &Trial, rank: usize, measure: Measure) -> Option<f64> {
    let measured = trial.measured.get(&rank)?;
    measured.iter().find(|(seen, _)| *seen == measure).map(|(_, value)| *value)
}

/// What the pairs show: the rank that fails with every other, or the links that fail.
fn of_pairs(devices: &[Device], tried: &[Pair]) -> Vec<String> {
    let with = |is_bad: bool| -> Vec<(usize, usize)> {
        let failed =
            |pair: &&Pair| pair.trial.as_ref().is_some_and(|trial| trial.failure.is_some() == is_bad);
        tried.iter().filter(failed).map(|pair| pair.ranks).collect()
    };
    let (bad, good) = (with(true), with(false));
    if let Some(rank) = pairs::culprit(&bad, &good) {
        return vec![format!("{} fails with every other rank: run without it", name_of(rank, devices))];
    }
    if bad.is_empty() && !good.is_empty() {
        return vec!["every pair works; only all ranks together fail".to_owned()];
    }
    bad.into_iter()
        .map(|(one, other)| {
            format!("no data passes between {} and {}", name_of(one, devices), name_of(other, devices))
        })
        .collect()
}

/// GPUs that are slower than others of their model, and links far below the bandwidth of their lanes.
fn slow(devices: &[Device], trial: &Trial, host: &Host) -> Vec<String> {
    let gpus = host.gpus().unwrap_or_default();
    let card = |rank: usize| match devices[rank] {
        Device::Cuda(index) | Device::Mig { gpu: index, .. } => gpus.iter().find(|gpu| gpu.index == index),
        Device::Cpu => None,
    };
    let mut warnings = Vec::new();
    for rank in 0..devices.len() {
        let Some((gpu, name)) = card(rank).and_then(|gpu| Some((gpu, gpu.name().ok()?))) else { continue };
        for (measure, unit) in [(Measure::MatrixProduct, "TFLOP/s"), (Measure::MemoryCopy, "GB/s")] {
            let same = (0..devices.len())
                .filter(|&other| card(other).and_then(|gpu| gpu.name().ok()).as_ref() == Some(&name))
                .filter_map(|other| value(trial, other, measure));
            let best = same.fold(0.0, f64::max);
            if let Some(own) = value(trial, rank, measure).filter(|own| *own < best * SLOW) {
                warnings.push(format!(
                    "{} reaches {own:.1} {unit}, another {name} {best:.1}: heat, a power limit or another program slows it down",
                    name_of(rank, devices)
                ));
            }
        }
        let lanes = gpu.number("pcie_generation").ok().zip(gpu.number("pcie_width").ok());
        if let (Some(own), Some((generation, width))) = (value(trial, rank, Measure::PinnedCopy), lanes) {
            // A lane of generation 3 carries 0.985 GB/s; each generation doubles that.
            let expected = 0.985 * 2.0_f64.powi(generation as i32 - 3) * width as f64;
            if own < expected * POOR_LINK {
                warnings.push(format!(
                    "copies to {} reach {own:.1} GB/s; PCIe {generation}.0 x{width} should reach {:.0} GB/s",
                    name_of(rank, devices),
                    expected * 0.8
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use yolo_plan::backend::Backend;

    use super::*;
    use crate::doctor::deep::trial::Failure;

    fn pair(one: usize, other: usize, works: bool) -> Pair {
        let failure = (!works).then(|| Failure { what: "failed".to_owned(), hint: None });
        Pair { ranks: (one, other), trial: Some(Trial { failure, ..Trial::default() }) }
    }

    #[test]
    fn pairs_name_the_device_or_the_link() {
        let devices = [Device::Cuda(0), Device::Cuda(1), Device::Cuda(3)];
        let bad_device = [pair(0, 1, true), pair(0, 2, false), pair(1, 2, false)];
        assert_eq!(
            of_pairs(&devices, &bad_device),
            ["rank 2 (CUDA device 3) fails with every other rank: run without it"]
        );
        let bad_link = [pair(0, 1, false), pair(0, 2, true), pair(1, 2, true)];
        assert_eq!(
            of_pairs(&devices, &bad_link),
            ["no data passes between rank 0 (CUDA device 0) and rank 1 (CUDA device 1)"]
        );
    }

    #[test]
    fn a_table_has_one_row_per_rank() {
        let devices = [Device::Cpu, Device::Cpu];
        let mut trial = Trial { backend: Some(Backend::Gloo), ..Trial::default() };
        for rank in 0..2 {
            let values = vec![(Measure::MatrixProduct, 0.05), (Measure::AllReduceRate, 1.5)];
            trial.measured.insert(rank, values);
        }
        let deep = Deep::of(&devices, trial, Vec::new(), None);
        insta::assert_snapshot!(deep.text(), @r"
        rank   TFLOP/s  sum GB/s
        0 CPU     0.05      1.50
        1 CPU     0.05      1.50

        2 ranks, over gloo: every result is correct
        ");
    }
}
