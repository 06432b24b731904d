//! The table of an evolution, `evolve.csv`: one line per generation with its metrics and its hyperparameters, in
//! YOLOv5's columns and widths, so that either program can continue the table of the other. A line that was being
//! written when the machine stopped is recognized.

use yolo_base::percent_g::percent_g;

use super::genes::Genes;
use crate::error::PlanError;
use crate::event::{Metrics, VALIDATION_COLUMNS as METRICS};

/// The width of a column.
const WIDTH: usize = 20;

/// One generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Of the last epoch; all 0 if the training failed.
    pub metrics: Metrics,
    /// Box, objectness and class, on the validation split.
    pub losses: [f64; 3],
    /// The hyperparameters, in the order of the genes.
    pub values: Vec<f64>,
}

impl Generation {
    /// A generation whose training failed.
    pub fn failed(values: Vec<f64>) -> Self {
        Self { metrics: Metrics::default(), losses: [0.0; 3], values }
    }

    /// What the search raises; 0 if it is not a number.
    pub fn fitness(&self) -> f64 {
        Some(self.metrics.fitness())
            .filter(|fitness| fitness.is_finite())
            .map_or(0.0, |fitness| fitness.max(0.0))
    }

    /// The numbers of its line, before the hyperparameters.
    pub(super) fn results(&self) -> [f64; METRICS.len()] {
        let Metrics { precision, recall, map50, map50_95 } = self.metrics;
        let [bbox, objectness, class] = self.losses;
        [precision, recall, map50, map50_95, bbox, objectness, class]
    }
}

/// All generations so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    genes: Genes,
    rows: Vec<Generation>,
}

impl Table {
    /// A table without generations.
    pub fn new(genes: Genes) -> Self {
        Self { genes, rows: Vec::new() }
    }

    /// The hyperparameters of the search.
    pub fn genes(&self) -> Genes {
        self.genes
    }

    /// The generations in their order.
    pub fn rows(&self) -> &[Generation] {
        &self.rows
    }

    /// Adds a generation.
    pub fn push(&mut self, row: Generation) {
        self.rows.push(row);
    }

    /// The number of the generation with the highest fitness, from 0; of equal ones, the first.
    pub fn best(&self) -> Option<usize> {
        let better = |a: usize, b: usize| if self.rows[b].fitness() > self.rows[a].fitness() { b } else { a };
        (0..self.rows.len()).reduce(better)
    }

    /// The file.
    pub fn to_csv(&self) -> String {
        let header =
            METRICS.into_iter().chain(self.genes.all().iter().map(|gene| gene.key)).map(str::to_owned);
        let line = |row: &Generation| {
            let numbers = row.results().into_iter().chain(row.values.iter().copied());
            cells(numbers.map(|value| percent_g(value, 5)))
        };
        std::iter::once(cells(header)).chain(self.rows.iter().map(line)).collect()
    }

    /// Reads a file of ours or of YOLOv5. `source` names it in messages. The second value is a warning about a last
    /// line that was left out because it is cut short.
    ///
    /// # Errors
    /// When it has other columns, or a line that cannot be read.
    pub fn parse(text: &str, source: &str, genes: Genes) -> Result<(Self, Option<String>), PlanError> {
        let mut lines = text.split_inclusive('\n').zip(1_usize..);
        let (header, _) = lines.next().unwrap_or_default();
        check_columns(header, source, genes)?;
        let mut table = Self::new(genes);
        let mut warning = None;
        for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty() || !line.ends_with('\n')) {
            if is_cut_short(line, genes) {
                warning = Some(format!(
                    "line {number} of {source} is cut short, so its generation is trained again"
                ));
                break;
            }
            table.rows.push(row(line, genes).map_err(|why| {
                PlanError::new(format!("{source} is damaged: line {number} {why}"))
                    .with_hint("correct or delete that line; the generations of the others are kept")
            })?);
        }
        Ok((table, warning))
    }
}

/// A line: as in YOLOv5, every cell is at least 20 wide.
fn cells(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:>WIDTH$}")).collect();
    cells.join(",") + "\n"
}

/// Whether the writer of this line was stopped: it has no end, and too few columns or a last one that is too narrow.
fn is_cut_short(line: &str, genes: Genes) -> bool {
    let whole = METRICS.len() + genes.all().len();
    let cells: Vec<&str> = line.split(',').collect();
    !line.ends_with('\n') && (cells.len() < whole || cells.last().is_none_or(|cell| cell.len() < WIDTH))
}

fn row(line: &str, genes: Genes) -> Result<Generation, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let whole = METRICS.len() + genes.all().len();
    if cells.len() != whole {
        return Err(format!("has {} values instead of {whole}", cells.len()));
    }
    let number = |index: usize, name: &str| {
        let cell = cells[index];
        cell.parse::<f64>()
            .map_err(|_| format!("has \"{}\" as {name}, which is not a number", shortened(cell)))
    };
    let mut results = [0.0; METRICS.len()];
    for (index, result) in results.iter_mut().enumerate() {
        *result = number(index, METRICS[index])?;
    }
    let mut values = Vec::with_capacity(genes.all().len());
    for (index, gene) in (METRICS.len()..).zip(genes.all()) {
        let value = number(index, gene.key)?;
        if !value.is_finite() {
            return Err(format!("has {value} as {}, which cannot be trained", gene.key));
        }
        values.push(value);
    }
    let [precision, recall, map50, map50_95, bbox, objectness, class] = results;
    let metrics = Metrics { precision, recall, map50, map50_95 };
    Ok(Generation { metrics, losses: [bbox, objectness, class], values })
}

/// Fails unless the first line has exactly the columns of the search.
fn check_columns(header: &str, source: &str, genes: Genes) -> Result<(), PlanError> {
    let found: Vec<&str> = header.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
    let wanted: Vec<&str> = METRICS.into_iter().chain(genes.all().iter().map(|gene| gene.key)).collect();
    if found == wanted {
        return Ok(());
    }
    let other = |what: String, hint: &str| {
        Err(PlanError::new(format!("{source} has other columns than this search: {what}")).with_hint(hint))
    };
    if header.trim().is_empty() {
        return Err(PlanError::new(format!("{source} is empty"))
            .with_hint("start a new evolution, without --resume and --resume-evolve"));
    }
    if !METRICS.iter().any(|name| found.contains(name)) {
        return Err(PlanError::new(format!(
            "{source} is no table of an evolution: its first line has no metrics"
        ))
        .with_hint("name the evolve.csv that an evolution has written"));
    }
    const SAME: &str = "continue it with the options that it was started with, or start a new evolution";
    match (found.contains(&"anchors"), wanted.contains(&"anchors")) {
        (true, false) => return other("it has anchors, which --noautoanchor leaves out".to_owned(), SAME),
        (false, true) => {
            return other("it lacks anchors, as with --noautoanchor".to_owned(), "add --noautoanchor");
        }
        _ => {}
    }
    let missing = wanted.iter().find(|name| !found.contains(name));
    let unknown = found.iter().find(|name| !wanted.contains(name));
    const OTHER_VERSION: &str =
        "start a new evolution; the table is of a version of YOLOv5 with other hyperparameters";
    match (missing, unknown) {
        (Some(name), _) => other(format!("it lacks {name}"), OTHER_VERSION),
        (None, Some(name)) => other(format!("\"{}\" is no hyperparameter", shortened(name)), OTHER_VERSION),
        (None, None) => other("their order is another, or one is there twice".to_owned(), OTHER_VERSION),
    }
}

/// A cell for a message.
fn shortened(cell: &str) -> String {
    cell.chars().take(30).collect()
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;
    use crate::hyp::HyperParameters;

    fn table() -> Table {
        let genes = Genes::new(true);
        let mut table = Table::new(genes);
        let values = genes.of_hyp(&HyperParameters::low());
        let metrics =
            Metrics { precision: 0.003_333_33, recall: 1.0, map50: 0.029_265, map50_95: 0.008_779_4 };
        table.push(Generation { metrics, losses: [0.094_688, 0.003_508_3, 0.0], values: values.clone() });
        table.push(Generation::failed(values));
        table
    }

    #[test]
    fn the_file_is_the_one_of_yolov5() {
        let csv = table().to_csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("   metrics/precision,      metrics/recall,     metrics/mAP_0.5,"));
        assert!(lines[0].ends_with("          copy_paste,             anchors"));
        let expected = "           0.0033333,                   1,            0.029265,           0.0087794,            \
                        0.094688,           0.0035083,                   0,                0.01,";
        assert!(lines[1].starts_with(expected), "{}", lines[1]);
        assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [36 * 21 - 1; 3]);
    }

    #[test]
    fn a_file_that_was_written_is_read_again() {
        let csv = table().to_csv();
        let (read, warning) = Table::parse(&csv, "evolve.csv", Genes::new(true)).unwrap();
        assert_eq!((read.to_csv(), warning), (csv.clone(), None));
        assert_eq!(read.best(), Some(0));
        let windows = csv.replace('\n', "\r\n");
        assert_eq!(Table::parse(&windows, "evolve.csv", Genes::new(true)).unwrap().0, read);
    }

    #[test]
    fn a_line_that_is_cut_short_is_trained_again() {
        let csv = table().to_csv();
        let second = csv.lines().take(2).map(|line| line.len() + 1).sum::<usize>();
        for end in second + 1..csv.len() - 1 {
            let (read, warning) = Table::parse(&csv[..end], "evolve.csv", Genes::new(true)).unwrap();
            assert_eq!(read.rows().len(), 1, "{end} bytes");
            assert!(warning.unwrap().starts_with("line 3 of evolve.csv is cut short"));
        }
        // Only the end of the line is missing, as some editors leave it.
        let (read, warning) = Table::parse(csv.trim_end(), "evolve.csv", Genes::new(true)).unwrap();
        assert_eq!((read.rows().len(), warning), (2, None));
    }

    #[test]
    fn a_damaged_line_is_named() {
        let message =
            |text: &str| Table::parse(text, "evolve.csv", Genes::new(true)).unwrap_err().to_string();
        let csv = table().to_csv();
        let third: Vec<&str> = csv.lines().collect();
        let with = |line: &str| format!("{}\n{}\n{line}\n", third[0], third[1]);
        assert_eq!(message(&with("1,2")), "evolve.csv is damaged: line 3 has 2 values instead of 36");
        let word = third[2].replacen("0.937", "x.937", 1);
        assert_eq!(
            message(&with(&word)),
            "evolve.csv is damaged: line 3 has \"x.937\" as momentum, which is not a number"
        );
        let infinite = third[2].replacen("0.937", "inf", 1);
        assert_eq!(
            message(&with(&infinite)),
            "evolve.csv is damaged: line 3 has inf as momentum, which cannot be trained"
        );
    }

    #[test]
    fn other_columns_are_named() {
        let csv = table().to_csv();
        let error = |text: &str, anchors| Table::parse(text, "evolve.csv", Genes::new(anchors)).unwrap_err();
        let other = "evolve.csv has other columns than this search: ";
        assert_eq!(
            error(&csv, false).to_string(),
            format!("{other}it has anchors, which --noautoanchor leaves out")
        );
        let without = Table::new(Genes::new(false)).to_csv();
        assert_eq!(error(&without, true).hint().unwrap(), "add --noautoanchor");
        assert_eq!(error(&csv.replace("mixup", "mixed"), true).to_string(), format!("{other}it lacks mixup"));
        assert_eq!(error("", true).to_string(), "evolve.csv is empty");
        assert_eq!(
            error("epoch,loss\n", true).to_string(),
            "evolve.csv is no table of an evolution: its first line has no metrics"
        );
        let swapped = csv.replace("obj_pw", "#").replace("cls_pw", "obj_pw").replace('#', "cls_pw");
        assert!(error(&swapped, true).to_string().contains("their order is another"));
    }

    #[test]
    fn metrics_that_are_no_numbers_count_as_nothing() {
        let mut row = table().rows()[0].clone();
        row.metrics.map50_95 = f64::NAN;
        assert_eq!(row.fitness(), 0.0);
        let mut table = Table::new(Genes::new(true));
        table.push(row);
        let (read, _) = Table::parse(&table.to_csv(), "evolve.csv", Genes::new(true)).unwrap();
        assert!(read.rows()[0].metrics.map50_95.is_nan());
    }
}
