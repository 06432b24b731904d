//! A data set looked through with the trainer's own rules: how many images and boxes, of which
//! classes, and what is wrong where.

use serde::{Deserialize, Serialize};
use yolo_data::error::DataError;
use yolo_data::scan::{ScanOptions, check_classes, scan};
use yolo_plan::dataset::DataSet;

use crate::fetch::printable;

/// What lies in a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// One line a split.
    pub splits: Vec<SplitSummary>,
    /// Boxes of each class over all splits, by name, in the order of the classes.
    pub classes: Vec<(String, usize)>,
    /// What is wrong, one message a file.
    pub wrong: Vec<String>,
    /// Why a training would refuse the whole set: its first label of a class beyond the names.
    #[serde(default)]
    pub refused: Option<String>,
}

/// What lies in one split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// "train", "val" or "test".
    pub name: String,
    /// Images that can be used.
    pub images: usize,
    /// Objects in them.
    pub boxes: usize,
    /// Images without an object.
    pub background: usize,
    /// Images left out, because they or their labels are corrupt.
    pub corrupt: usize,
}

/// Looks through all splits.
pub(super) fn verify(data: &DataSet) -> Result<Summary, DataError> {
    let mut summary = Summary { splits: Vec::new(), classes: Vec::new(), wrong: Vec::new(), refused: None };
    let mut counts = vec![0; data.names.len()];
    for (name, roots) in [("train", &data.train), ("val", &data.val), ("test", &data.test)] {
        // Several names for the same images are looked through once.
        let earlier = [("train", &data.train), ("val", &data.val)];
        let again =
            earlier.iter().take_while(|(before, _)| *before != name).any(|(_, before)| *before == roots);
        if roots.is_empty() || again {
            continue;
        }
        // A class beyond the names is told with all else that is wrong.
        let scan = scan(roots, &ScanOptions::new(name, usize::MAX))?;
        if let (None, Err(error)) = (&summary.refused, check_classes(&scan.samples, data.names.len())) {
            summary.refused = Some(printable(&error.to_string()));
        }
        let boxes = scan.samples.iter().map(|sample| sample.boxes.len()).sum();
        for row in scan.samples.iter().flat_map(|sample| &sample.boxes) {
            if let Some(count) = counts.get_mut(row[0] as usize) {
                *count += 1;
            }
        }
        summary.splits.push(SplitSummary {
            name: name.to_owned(),
            images: scan.samples.len(),
            boxes,
            background: scan.samples.iter().filter(|sample| sample.boxes.is_empty()).count(),
            corrupt: scan.corrupt,
        });
        summary.wrong.extend(scan.messages.iter().map(|message| printable(message)));
    }
    summary.classes = data.names.iter().cloned().zip(counts).collect();
    Ok(summary)
}
