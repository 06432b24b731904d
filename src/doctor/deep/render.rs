//! The result of the deep test, as text and as JSON: a table of the measurements of each rank, copies between
//! devices, pairs, what the planned run can expect, and what is slow or fails.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use yolo_base::format::count;
use yolo_plan::event::Measure;

use super::judge::{Conclusion, Expectation, Verdict};
use super::observed::{Again, Observed, Rank};
use crate::printer::wrap;

/// Columns of the table: measurement, heading and decimals.
const COLUMNS: [(Measure, &str, usize); 9] = [
    (Measure::MatrixProduct, "TFLOP/s", 2),
    (Measure::LoadedProduct, "in half", 1),
    (Measure::MemoryCopy, "copy GB/s", 1),
    (Measure::PinnedCopy, "pinned GB/s", 1),
    (Measure::PinnedMemory, "MiB", 0),
    (Measure::AllReduce, "sum ms", 1),
    (Measure::AllReduceRate, "sum GB/s", 2),
    (Measure::DiskRead, "disk MB/s", 0),
    (Measure::Decode, "decoded/s", 0),
];

/// The report for people.
pub(super) fn text(seen: &Observed, verdict: &Verdict) -> String {
    let mut text = String::new();
    let is_shown = |measure: Measure| seen.ranks.iter().any(|rank| rank.value(measure).is_some());
    let shown: Vec<_> = COLUMNS.into_iter().filter(|(measure, ..)| is_shown(*measure)).collect();
    if !shown.is_empty() {
        let heading = std::iter::once("rank").chain(shown.iter().map(|(_, heading, _)| *heading));
        let rows = seen.ranks.iter().enumerate().map(|(number, rank)| {
            let cell = |(measure, _, decimals): &(Measure, &str, usize)| {
                rank.value(*measure).map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
            };
            std::iter::once(format!("{number} {}", rank.device)).chain(shown.iter().map(cell)).collect()
        });
        text.push_str(&table(heading.map(str::to_owned).collect(), rows.collect()));
    }
    text.push_str(&strain(&seen.ranks));
    text.push_str(&copies(seen));
    text.push_str(&pairs(seen));
    if let Some(expected) = &verdict.expectation {
        text.push_str(&expectation(expected));
    }
    let mut conclusions = |label: &str, conclusions: &[Conclusion]| {
        for one in conclusions {
            let mut lines = one.text.lines();
            let _ = writeln!(text, "{}", wrap(label, lines.next().unwrap_or_default()));
            lines.for_each(|line| {
                let _ = writeln!(text, "         {line}");
            });
            if let Some(hint) = &one.hint {
                let _ = writeln!(text, "{}", wrap("do       ", hint));
            }
        }
    };
    conclusions("warning  ", &verdict.warnings);
    conclusions("error    ", &verdict.errors);
    let ranks = count(seen.ranks.len(), "rank");
    let links = seen.backend.map_or(String::new(), |backend| format!(", over {backend}"));
    let _ = match verdict.errors.is_empty() {
        true => write!(text, "{ranks}{links}: every result is correct"),
        false => write!(text, "{ranks}{links}: something failed"),
    };
    text
}

/// A table with a name column and numbers, and an empty line after it.
fn table(heading: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heading);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let mut text = String::new();
    // The table pads its last column with spaces.
    table.lines().for_each(|line| {
        let _ = writeln!(text, "{}", line.trim());
    });
    text.push('\n');
    text
}

/// The cards under load.
fn strain(ranks: &[Rank]) -> String {
    let heading = ["under load", "°C", "slows at", "MHz", "of", "fan %", "W", "of"].map(str::to_owned);
    let number = |value: Option<u32>| value.map_or("–".to_owned(), |value| value.to_string());
    let watts = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    let rows: Vec<Vec<String>> = ranks
        .iter()
        .enumerate()
        .filter_map(|(rank, one)| {
            let strain = one.strain.as_ref()?;
            Some(vec![
                format!("{rank} {}", one.device),
                number(strain.temperature),
                number(strain.slows_down_at),
                number(strain.clock),
                number(strain.clock_max),
                number(strain.fan),
                watts(strain.power),
                watts(strain.power_limit),
            ])
        })
        .collect();
    if rows.is_empty() { String::new() } else { table(heading.to_vec(), rows) }
}

/// GB/s of copies, from the rank of the row to that of the column.
fn copies(seen: &Observed) -> String {
    let mut text = String::new();
    for (by_host, how) in [(false, "directly"), (true, "by the host")] {
        let own: Vec<_> = seen.copies.iter().filter(|copy| copy.by_host == by_host).collect();
        if own.is_empty() {
            continue;
        }
        let ranks = 0..seen.ranks.len();
        let heading = std::iter::once(format!("copies {how}, GB/s to"))
            .chain(ranks.clone().map(|rank| rank.to_string()));
        let cell = |from: usize, to: usize| {
            let copy = own.iter().find(|copy| (copy.from, copy.to) == (from, to));
            match copy {
                Some(copy) if copy.wrong > 0 => "wrong".to_owned(),
                Some(copy) => format!("{:.1}", copy.rate),
                None => "–".to_owned(),
            }
        };
        let row = |from: usize| {
            std::iter::once(format!("from {from}")).chain(ranks.clone().map(|to| cell(from, to))).collect()
        };
        text.push_str(&table(heading.collect(), ranks.clone().map(row).collect()));
    }
    text
}

/// Pairs: those that work in one line, the others one by one.
fn pairs(seen: &Observed) -> String {
    let mut text = String::new();
    let untried = seen.pairs.iter().filter(|pair| !pair.tried).count();
    let working = seen.pairs.iter().filter(|pair| pair.tried && pair.failure.is_none()).count();
    if working > 0 {
        let _ = writeln!(text, "{} of ranks exchange sums correctly", count(working, "pair"));
    }
    for pair in seen.pairs.iter().filter(|pair| pair.failure.is_some()) {
        let again = match pair.again {
            Some(Again::Works) => "; without direct copies: ok",
            Some(Again::Fails) => "; without direct copies: failed too",
            None => "",
        };
        let _ = writeln!(text, "ranks {} and {}: failed{again}", pair.ranks.0, pair.ranks.1);
    }
    if untried > 0 {
        let _ = writeln!(text, "{} not tested: out of time", count(untried, "pair"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn expectation(expected: &Expectation) -> String {
    let mut text = wrap("", &format!("What {} can expect, in images per second:", expected.run));
    text.push('\n');
    for bound in &expected.bounds {
        let once = if bound.first_epoch_only { " (first epoch only)" } else { "" };
        let how = format!("at most {:.0}{once}: {}", bound.images_per_second, bound.how);
        let _ = writeln!(text, "{}", wrap(&format!("  {:<9}", bound.part.name()), &how));
    }
    if let Some(rate) = expected.images_per_second {
        let sentence = match expected.bottleneck {
            Some(part) => {
                format!("the {} limits it, at {rate:.0} images/s or less: {}", part.name(), part.advice())
            }
            None => {
                let link = if expected.link_unknown {
                    ", and the link between the ranks was not measured"
                } else {
                    ""
                };
                format!(
                    "less than {rate:.0} images/s; these are upper bounds{link}, so that they do not tell which part \
                     limits it: `yolo bench` with the same options measures real steps"
                )
            }
        };
        let _ = writeln!(text, "{}", wrap("  ", &sentence));
    }
    text.push('\n');
    text
}

/// The report for programs.
pub(super) fn json(seen: &Observed, verdict: &Verdict) -> String {
    let conclusion = |one: &Conclusion| json!({ "text": one.text, "do": one.hint });
    let ranks: Vec<Value> = seen
        .ranks
        .iter()
        .enumerate()
        .map(|(number, rank)| {
            json!({
                "rank": number, "device": rank.device, "card": rank.card, "measured": rank.measured,
                "strain": rank.strain,
            })
        })
        .collect();
    let pairs: Vec<Value> = seen
        .pairs
        .iter()
        .map(|pair| {
            json!({
                "ranks": pair.ranks, "tried": pair.tried,
                "failure": pair.failure.as_ref().map(|failure| &failure.what),
                "without_p2p": pair.again, "rate": pair.rate,
            })
        })
        .collect();
    let object = json!({
        "schema": 1,
        "yolo": env!("CARGO_PKG_VERSION"),
        "ranks": ranks,
        "backend": seen.backend,
        "copies": seen.copies,
        "pairs": pairs,
        "without_p2p": seen.again,
        "host": seen.host,
        "planned": seen.planned,
        "expected": verdict.expectation,
        "warnings": verdict.warnings.iter().map(|one| &one.text).collect::<Vec<_>>(),
        "errors": verdict.errors.iter().map(|one| &one.text).collect::<Vec<_>>(),
        "conclusions": verdict.errors.iter().chain(&verdict.warnings).map(conclusion).collect::<Vec<_>>(),
    });
    format!("{object:#}")
}
