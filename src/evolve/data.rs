//! What the data set of an evolution has, which its folder keeps: the metrics of a table are comparable only if all
//! generations had the same images and labels, so a generation that had others says so.

use std::path::Path;

use yolo_plan::dataset::{SplitSummary, changed_splits};

/// The file, with a summary of each split.
pub(crate) const DATA: &str = "data.json";

/// What the splits had in the generation before.
#[derive(Debug)]
pub(crate) struct KnownData(Vec<SplitSummary>);

impl KnownData {
    /// What the folder of an evolution keeps. One of YOLOv5, or of an older `yolo`, has no such file.
    pub(crate) fn of(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join(DATA)).unwrap_or_default();
        Self(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Keeps what a split has now. Returns a warning if that is not what it had.
    pub(crate) fn see(&mut self, now: &SplitSummary) -> Option<String> {
        let change = changed_splits(std::slice::from_ref(now), &self.0);
        self.0.retain(|known| known.split != now.split);
        self.0.push(now.clone());
        change.map(|change| {
            format!(
                "the data set has changed since the generations before: {change}; metrics of generations are comparable \
                 only with the same data set"
            )
        })
    }

    /// The text of the file.
    pub(crate) fn to_json(&self) -> String {
        format!("{:#}\n", serde_json::json!(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_said_once_and_again_when_the_evolution_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let of = |split: &str, hash| SplitSummary { split: split.to_owned(), images: 4, objects: 5, hash };
        let mut known = KnownData::of(folder.path());
        assert_eq!((known.see(&of("train", 1)), known.see(&of("val", 2))), (None, None));
        std::fs::write(folder.path().join(DATA), known.to_json()).unwrap();
        assert_eq!(known.see(&of("train", 1)), None);
        let warning = known.see(&of("train", 3)).unwrap();
        assert!(
            warning.starts_with("the data set has changed since the generations before: the train split")
        );
        assert_eq!(known.see(&of("train", 3)), None);
        let mut continued = KnownData::of(folder.path());
        assert_eq!(continued.see(&of("val", 2)), None);
        assert!(continued.see(&of("train", 3)).is_some());
    }
}
