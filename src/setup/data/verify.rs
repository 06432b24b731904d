//! Verifies a data set by the trainer's rules and summarizes it: images, boxes, classes and problems.

use yolo_data::error::DataError;
use yolo_data::scan::{ScanOptions, check_classes, scan};
use yolo_plan::dataset::{self, DataSet};

use super::stamp::Installed;
use super::summary::{SplitSummary, Summary};
use super::voc::LeftOut;
use crate::fetch::printable;
use crate::setup::error::SetupError;

/// Verifies an installed data set. If setup installed it, the summary is stored with it and reused until
/// a file changes.
///
/// # Errors
/// When its yaml is invalid, or none of its images can be used.
pub fn verify_data_set(
    argument: &str,
    places: &dataset::Places,
    installed: Option<Installed>,
) -> Result<Summary, SetupError> {
    let Some(installed) = installed else { return Ok(verify(&DataSet::load(argument, places)?)?) };
    let data = DataSet::load(argument, places)?;
    let seen = installed.state(&data.yaml);
    if let Some(summary) = installed.summary.clone().filter(|_| installed.seen == seen) {
        return Ok(summary);
    }
    let mut summary = verify(&data)?;
    for LeftOut { split, why } in &installed.left_out {
        if let Some(split) = summary.splits.iter_mut().find(|of| Some(&of.name) == split.as_ref()) {
            split.corrupt += 1;
        }
        summary.wrong.push(printable(why));
    }
    let root = installed.root.clone();
    Installed { summary: Some(summary.clone()), seen, ..installed }.write(&root)?;
    Ok(summary)
}

/// Verifies all splits.
fn verify(data: &DataSet) -> Result<Summary, DataError> {
    let mut summary = Summary { splits: Vec::new(), classes: Vec::new(), wrong: Vec::new(), refused: None };
    let mut counts = vec![0; data.names.len()];
    for (name, roots) in [("train", &data.train), ("val", &data.val), ("test", &data.test)] {
        // Splits with the same images are verified once.
        let earlier = [("train", &data.train), ("val", &data.val)];
        let again =
            earlier.iter().take_while(|(before, _)| *before != name).any(|(_, before)| *before == roots);
        if roots.is_empty() || again {
            continue;
        }
        // A class index that is out of range is reported with all other problems.
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
