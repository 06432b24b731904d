//! `report.json`: the facts of a run that its report shows and that no other file of the run folder has.
//! Rank 0 writes what it knows of the data set and of the last validation; `yolo` adds the run itself. The
//! file is part of the program's interface: a field is never removed and never changes its meaning without a
//! new [`VERSION`]. [docs/reports.md](../../../docs/reports.md) describes it for users.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::event::ValTable;

/// The name of the file in the run folder.
pub const REPORT_FILE: &str = "report.json";
/// The name of the page that is made of it.
pub const PAGE_FILE: &str = "report.html";
/// Version of the file; a program reads no later one.
pub const VERSION: u32 = 1;

/// The facts of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunReport {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The names of the classes.
    pub names: Vec<String>,
    /// The size of the model in words.
    pub model: Option<String>,
    /// The splits of the data set that the run has read.
    pub splits: Vec<SplitFacts>,
    /// The last validation of training, or one for each weights file of `yolo val`.
    pub validations: Vec<ValidationFacts>,
    /// The run, once it has ended.
    pub run: Option<RunFacts>,
    /// The time of all its starts. Those that have not ended by themselves, such as by a kill, are missing.
    #[serde(default)]
    pub spent: Spent,
}

/// The time of all starts of a run: a run that is resumed has several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// The number of starts that are counted.
    pub starts: usize,
    /// As in [`RunFacts`], summed up.
    pub seconds: f64,
    /// As in [`RunFacts`], summed up.
    pub phases: Vec<Phase>,
    /// As in [`RunFacts`], with images and seconds summed up.
    pub ranks: Vec<RankFacts>,
}

impl Spent {
    /// Adds a start that has ended.
    pub fn add(&mut self, run: &RunFacts) {
        self.starts += 1;
        self.seconds += run.seconds;
        for phase in &run.phases {
            match self.phases.iter_mut().find(|known| known.doing == phase.doing) {
                Some(known) => known.seconds += phase.seconds,
                None => self.phases.push(phase.clone()),
            }
        }
        for rank in &run.ranks {
            match self.ranks.iter_mut().find(|known| known.rank == rank.rank) {
                Some(known) => {
                    known.images += rank.images;
                    known.seconds.iter_mut().zip(rank.seconds).for_each(|(sum, seconds)| *sum += seconds);
                }
                None => self.ranks.push(rank.clone()),
            }
        }
    }
}

/// A split of a data set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SplitFacts {
    /// `train`, `val` or `test`.
    pub split: String,
    /// Usable images.
    pub images: usize,
    /// Images without a label file.
    pub missing: usize,
    /// Images with an empty label file.
    pub empty: usize,
    /// Images that are ignored because they or their labels are corrupt.
    pub corrupt: usize,
    /// The number of boxes of each class.
    pub boxes: Vec<usize>,
    /// The number of images with each class.
    pub images_with: Vec<usize>,
    /// Width and height in pixels of the smallest, the median and the largest image, by area.
    pub image_sizes: Option<[[u32; 2]; 3]>,
    /// The 10th, 50th and 90th percentile of the side of a box, √(width · height), in pixels of the image file.
    pub box_sides: Option<[f64; 3]>,
    /// What the scan says about single files; at most [`MESSAGES`].
    pub messages: Vec<String>,
    /// The number of all messages.
    pub all_messages: usize,
}

/// The most messages of a scan that a report keeps.
pub const MESSAGES: usize = 50;

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationFacts {
    /// What was validated: `best.pt`, `epoch 3`.
    pub title: String,
    /// The printed table with a row for every class, and the speed.
    pub table: ValTable,
    /// The curves of each class that has labels.
    pub curves: Vec<ClassCurves>,
    /// How often each class, or at last nothing, was predicted (rows) for the objects of each class, or at last for
    /// the background (columns), row by row.
    pub confusion: Vec<u64>,
    /// The images with the most mistakes, the worst first.
    pub worst: Vec<WorstImage>,
}

/// The curves of a class, each with [`CURVE_POINTS`] values from 0 to 1 of what they are over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassCurves {
    /// Index of the class.
    pub class: usize,
    /// Precision over confidence.
    pub precision: Vec<f64>,
    /// Recall over confidence.
    pub recall: Vec<f64>,
    /// F1 over confidence.
    pub f1: Vec<f64>,
    /// Precision over recall at IoU 0.5.
    pub precision_by_recall: Vec<f64>,
}

/// The number of points of a curve.
pub const CURVE_POINTS: usize = 101;

/// An image on which the detector makes mistakes. Boxes are left, top, right and bottom as fractions of the image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstImage {
    /// The file.
    pub path: String,
    /// Width and height in pixels of [`Self::jpeg`].
    pub size: [usize; 2],
    /// The image, scaled down, as JPEG in base64.
    pub jpeg: String,
    /// The labels.
    pub labels: Vec<LabelBox>,
    /// The detections with a confidence above 0.25.
    pub detections: Vec<DetectionBox>,
    /// Labels that no detection overlaps.
    pub missed: usize,
    /// Detections that overlap no label.
    pub unfounded: usize,
    /// Detections that overlap a label of another class.
    pub confused: usize,
}

impl WorstImage {
    /// The number of all mistakes.
    pub fn mistakes(&self) -> usize {
        self.missed + self.unfounded + self.confused
    }
}

/// A label of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelBox {
    /// The box.
    pub corners: [f32; 4],
    /// Index of the class.
    pub class: usize,
    /// Whether a detection overlaps it, of whatever class.
    pub found: bool,
}

/// A detection on an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectionBox {
    /// The box.
    pub corners: [f32; 4],
    /// Index of the class.
    pub class: usize,
    /// 0 to 1.
    pub confidence: f32,
    /// Whether it overlaps a label of its class, of another one, or none.
    pub verdict: Verdict,
}

/// What a detection is compared with the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It overlaps a label of its class.
    Correct,
    /// It overlaps a label of another class.
    Confused,
    /// It overlaps no label.
    Unfounded,
}

/// What `yolo` knows about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// What was done: `training`, `validating`.
    pub task: String,
    /// The version of `yolo`.
    pub program: String,
    /// How it ended.
    pub end: End,
    /// Why it failed.
    pub failure: Option<String>,
    /// Seconds since 1970 at which it, or the continuation of an interrupted run, began.
    pub began: u64,
    /// Seconds from then to its end.
    pub seconds: f64,
    /// The command line, one argument each, without the program.
    pub arguments: Vec<String>,
    /// The folder in which it was started.
    pub folder: String,
    /// Commands for a POSIX shell that repeat or continue the run, each after what it does.
    pub commands: Vec<(String, String)>,
    /// The seconds of rank 0 in each phase, in the order of their first beginning.
    pub phases: Vec<Phase>,
    /// The ranks, in their order.
    pub ranks: Vec<RankFacts>,
    /// What the machine is, by what it says: `CPU`, `memory`, `GPU 0`.
    pub machine: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All was done.
    Finished,
    /// Training ended early, because nothing improved.
    StoppedEarly,
    /// The user interrupted it.
    Interrupted,
    /// A rank failed.
    Failed,
}

/// A part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What was done: `training`, `validating`, `reading labels`.
    pub doing: String,
    /// How long, in seconds.
    pub seconds: f64,
}

/// What a rank did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RankFacts {
    /// Its number.
    pub rank: usize,
    /// Its device: `cpu`, `cuda:1`.
    pub device: String,
    /// CPU threads of the network.
    pub threads: usize,
    /// Images that it has trained on.
    pub images: u64,
    /// Seconds of its training steps in the stages loading, computing, and exchanging.
    pub seconds: [f64; 3],
}

impl RunReport {
    /// An empty report about a data set with these classes.
    pub fn new(names: &[String]) -> Self {
        Self { version: VERSION, names: names.to_vec(), ..Self::default() }
    }

    /// The time of the starts before this one, of the report that the run folder has. One that cannot be read has none.
    pub fn spent_before(run_dir: &Path) -> Spent {
        let Ok(Some(report)) = Self::read(run_dir) else { return Spent::default() };
        let mut spent = report.spent;
        // Reports of older versions have no sums.
        if let (0, Some(run)) = (spent.starts, &report.run) {
            spent.add(run);
        }
        spent
    }

    /// Completes the report with the run, which has ended.
    pub fn end(&mut self, run: RunFacts) {
        self.spent.add(&run);
        self.run = Some(run);
    }

    /// Reads the report of a run folder; `None` if it has none.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is of a later version.
    pub fn read(run_dir: &Path) -> io::Result<Option<Self>> {
        let bytes = match std::fs::read(run_dir.join(REPORT_FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A later version may have other fields, so its number is looked at first.
        let report: serde_json::Value = serde_json::from_slice(&bytes)?;
        if let Some(version) = report["version"].as_u64().filter(|version| *version > VERSION.into()) {
            return Err(io::Error::other(format!(
                "it has version {version}, but this program reads only version {VERSION}"
            )));
        }
        Ok(Some(serde_json::from_value(report)?))
    }

    /// Writes the report into a run folder. The file is replaced by one rename.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(&self, run_dir: &Path) -> io::Result<()> {
        publish(&run_dir.join(REPORT_FILE), serde_json::to_string(self)?.as_bytes())
    }
}

/// Writes a file of a report. Invariant: a file that exists under its final name is complete.
///
/// # Errors
/// When the folder cannot be written.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".part");
    std::fs::write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, path)).inspect_err(|_| {
        // The error of the removal would hide the error of the write.
        let _ = std::fs::remove_file(&unfinished);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64, phases: &[(&str, f64)], images: u64) -> RunFacts {
        let phases = phases.iter().map(|&(doing, seconds)| Phase { doing: doing.to_owned(), seconds });
        let rank = RankFacts { images, seconds: [1.0, seconds, 0.0], ..RankFacts::default() };
        RunFacts {
            task: "training".to_owned(),
            program: "0.1.0".to_owned(),
            end: End::Interrupted,
            failure: None,
            began: 0,
            seconds,
            arguments: Vec::new(),
            folder: String::new(),
            commands: Vec::new(),
            phases: phases.collect(),
            ranks: vec![rank],
            machine: Vec::new(),
        }
    }

    #[test]
    fn the_time_of_a_resumed_run_is_that_of_all_starts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(RunReport::spent_before(folder.path()), Spent::default());
        let mut first = RunReport::new(&[]);
        first.end(run(10.0, &[("reading labels", 2.0), ("training", 7.0)], 100));
        first.write(folder.path()).unwrap();
        let mut second = RunReport { spent: RunReport::spent_before(folder.path()), ..RunReport::new(&[]) };
        // A start that is killed leaves the sums of those before.
        second.write(folder.path()).unwrap();
        assert_eq!(RunReport::spent_before(folder.path()).starts, 1);
        second.end(run(20.0, &[("reading labels", 1.0), ("training", 15.0), ("validating", 3.0)], 300));
        let Spent { starts, seconds, phases, ranks } = second.spent;
        assert_eq!((starts, seconds, ranks[0].images), (2, 30.0, 400));
        assert_eq!(ranks[0].seconds, [2.0, 30.0, 0.0]);
        let phases: Vec<_> = phases.iter().map(|phase| (phase.doing.as_str(), phase.seconds)).collect();
        assert_eq!(phases, [("reading labels", 3.0), ("training", 22.0), ("validating", 3.0)]);
        assert_eq!(second.run.unwrap().seconds, 20.0);
    }
}
