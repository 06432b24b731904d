//! Rounds in which the Python original and `yolo` train in turn, and what they say about the speed of
//! both. Speeds change from minute to minute, so a ratio is that of two neighbors of one round.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use yolo_base::format::count;

use crate::invocation::Ended;
use crate::stage_run::StageRun;

/// What a run takes at least: it loads PyTorch, warms up, and measures.
const SHORTEST_ORIGINAL: Duration = Duration::from_secs(6);
const SHORTEST_YOLO: Duration = Duration::from_secs(3);

/// Who trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Original,
    Yolo,
}

/// The precision of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Fp32,
    Amp,
}

/// A program that trains with a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) program: Program,
    pub(super) precision: Precision,
}

/// What one side measured in a round.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    rate: f64,
    took: Duration,
    conditions: String,
}

/// The rounds of one image size and batch size.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Pixels.
    pub(super) size: u32,
    /// Images per step.
    pub(super) batch: u32,
    /// In their order.
    pub(super) sides: Vec<Side>,
    /// One per side.
    turns: Vec<Vec<Turn>>,
}

impl Precision {
    /// The value of the option `--precision`.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Amp => "amp",
        }
    }
}

impl Side {
    /// The sides, in turn: both in fp32, and where the original can use AMP, the original with it. It has
    /// no option for that, so its users get AMP. `yolo` joins if it has mixed precision.
    pub(super) fn all(original_has_amp: bool, yolo_has_amp: bool) -> Vec<Self> {
        let mut sides =
            vec![Self::of(Program::Original, Precision::Fp32), Self::of(Program::Yolo, Precision::Fp32)];
        if original_has_amp {
            sides.push(Self::of(Program::Original, Precision::Amp));
        }
        if yolo_has_amp {
            sides.push(Self::of(Program::Yolo, Precision::Amp));
        }
        sides
    }

    fn of(program: Program, precision: Precision) -> Self {
        Self { program, precision }
    }

    /// `the original with AMP`.
    pub(super) fn name(self) -> String {
        let program = match self.program {
            Program::Original => "the original",
            Program::Yolo => "yolo",
        };
        match self.precision {
            Precision::Fp32 => format!("{program} in fp32"),
            Precision::Amp => format!("{program} with AMP"),
        }
    }

    /// What a run that succeeded has measured, or why its output is no result.
    pub(super) fn turn(self, ended: &Ended) -> Result<Turn, String> {
        let no_result = |why: String| format!("`{}` printed no result: {why}", ended.shown);
        // Libraries of the original print lines of their own before it.
        let at = ended.stdout.rfind("\n{").map_or(0, |at| at + 1);
        let report: Value =
            serde_json::from_str(&ended.stdout[at..]).map_err(|error| no_result(error.to_string()))?;
        let training = match self.program {
            Program::Original => &report,
            Program::Yolo => &report["measurements"][0],
        };
        let rate = training["images_per_second"].as_f64().filter(|rate| rate.is_normal() && *rate > 0.0);
        let rate = rate.ok_or_else(|| no_result("images_per_second is missing".to_owned()))?;
        Ok(Turn { rate, took: Duration::from_secs_f64(ended.seconds), conditions: self.conditions(&report) })
    }

    /// What a reader must know to compare, as this run reported it.
    fn conditions(self, report: &Value) -> String {
        let text = |field: &str| report[field].as_str().unwrap_or("?").to_owned();
        match self.program {
            Program::Original => format!(
                "the original: yolov5 {}, PyTorch {}, numpy {}, OpenCV {}, {}, {} algorithms, TF32 in convolutions {}",
                text("version"),
                text("torch"),
                text("numpy"),
                text("opencv"),
                workers(&report["workers"], "loader process", "loader processes"),
                if report["deterministic"] == true { "deterministic" } else { "any" },
                if report["tf32"] == true { "allowed" } else { "off" },
            ),
            Program::Yolo => format!(
                "yolo: {}, {}",
                text("program"),
                workers(&report["measurements"][0]["workers"], "loader thread", "loader threads"),
            ),
        }
    }
}

fn workers(number: &Value, one: &str, many: &str) -> String {
    match number.as_u64() {
        Some(1) => format!("1 {one}"),
        number => format!("{} {many}", number.unwrap_or(0)),
    }
}

impl Comparison {
    /// A comparison without rounds.
    pub(super) fn new(size: u32, batch: u32, sides: Vec<Side>) -> Self {
        Self { size, batch, sides, turns: Vec::new() }
    }

    /// The number of complete rounds.
    pub(super) fn rounds(&self) -> usize {
        self.turns.len()
    }

    /// Adds a complete round: a turn per side.
    pub(super) fn add(&mut self, round: Vec<Turn>) {
        self.turns.push(round);
    }

    /// How long the next round may take: as long as the longest runs so far.
    pub(super) fn expected_time(&self) -> Duration {
        let of_side = |(index, side): (usize, &Side)| {
            let shortest = match side.program {
                Program::Original => SHORTEST_ORIGINAL,
                Program::Yolo => SHORTEST_YOLO,
            };
            self.turns.iter().map(|round| round[index].took).max().unwrap_or(shortest)
        };
        self.sides.iter().enumerate().map(of_side).sum()
    }

    /// What a side is called in checks and figures.
    pub(super) fn name_of(&self, side: Side) -> String {
        format!("{}: {}", self.name(), side.name())
    }

    /// What all sides have in common.
    pub(super) fn name(&self) -> String {
        format!("yolov5n, {} px, batch {}, images in memory", self.size, self.batch)
    }

    /// Notes the speed of each side and how they compare, with the conditions.
    pub(super) fn note(&self, stage: &mut StageRun<'_>) {
        let conditions: BTreeSet<&str> =
            self.turns.iter().flatten().map(|turn| turn.conditions.as_str()).collect();
        let conditions = conditions.into_iter().collect::<Vec<_>>().join("; ");
        let rounds = count(self.rounds(), "round");
        stage.check(
            format!("{}: the original and yolo train in turn", self.name()),
            true,
            format!("{rounds}; {conditions}"),
        );
        for (index, &side) in self.sides.iter().enumerate() {
            let rates = self.turns.iter().map(|round| round[index].rate).collect();
            note(stage, &self.name_of(side), "speed", rates, "images/s");
        }
        for (one, other) in self.pairs() {
            let ratios = self.turns.iter().map(|round| round[one].rate / round[other].rate).collect();
            let [one, other] = [one, other].map(|index| self.sides[index].name());
            let pair = format!("{}: {one}, compared with {other}", self.name());
            note(stage, &pair, "ratio", ratios, "times as fast");
        }
        stage.figure(format!("{}: rounds", self.name()), self.rounds() as f64, "");
    }

    /// The sides to compare, by index: `yolo` with the original in the same precision. An original without
    /// a counterpart is compared with `yolo` in the precision that it has.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let find =
            |program, precision| self.sides.iter().position(|&side| side == Side { program, precision });
        let mut pairs = Vec::new();
        for precision in [Precision::Fp32, Precision::Amp] {
            let yolo = find(Program::Yolo, precision).or_else(|| find(Program::Yolo, Precision::Fp32));
            if let (Some(yolo), Some(original)) = (yolo, find(Program::Original, precision)) {
                pairs.push((yolo, original));
            }
        }
        pairs
    }
}

/// The median of all rounds, and if there are several, how far they are apart.
fn note(stage: &mut StageRun<'_>, of: &str, what: &str, mut values: Vec<f64>, unit: &str) {
    values.sort_by(f64::total_cmp);
    stage.figure_of(of, what, median(&values), unit);
    if let [lowest, .., highest] = values[..] {
        stage.figure_of(of, "spread of the rounds", (highest - lowest) / median(&values) * 100.0, "%");
    }
}

/// Of at least one sorted value.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(original_has_amp: bool, yolo_has_amp: bool) -> Vec<(String, String)> {
        let comparison = Comparison::new(640, 16, Side::all(original_has_amp, yolo_has_amp));
        let name = |index: usize| comparison.sides[index].name();
        comparison.pairs().into_iter().map(|(yolo, original)| (name(yolo), name(original))).collect()
    }

    #[test]
    fn each_precision_of_the_original_has_a_counterpart() {
        let same = ("yolo in fp32".to_owned(), "the original in fp32".to_owned());
        assert_eq!(names(false, false), std::slice::from_ref(&same));
        let unlike = ("yolo in fp32".to_owned(), "the original with AMP".to_owned());
        assert_eq!(names(true, false), [same.clone(), unlike]);
        let amp = ("yolo with AMP".to_owned(), "the original with AMP".to_owned());
        assert_eq!(names(true, true), [same, amp]);
    }

    #[test]
    fn the_next_round_is_expected_to_take_as_long_as_the_longest() {
        let mut comparison = Comparison::new(640, 16, Side::all(false, false));
        assert_eq!(comparison.expected_time(), SHORTEST_ORIGINAL + SHORTEST_YOLO);
        let turn =
            |seconds| Turn { rate: 1.0, took: Duration::from_secs(seconds), conditions: String::new() };
        comparison.add(vec![turn(5), turn(40)]);
        comparison.add(vec![turn(7), turn(2)]);
        assert_eq!((comparison.rounds(), comparison.expected_time()), (2, Duration::from_secs(47)));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!([median(&[3.0]), median(&[1.0, 2.0]), median(&[1.0, 2.0, 9.0])], [3.0, 1.5, 2.0]);
    }
}
