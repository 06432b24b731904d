//! What a split of a data set had when it was read. The ranks of a run compare it with what others have, a resumed run
//! with what the run had before, and an evolution with what its other generations had.

use serde::{Deserialize, Serialize};
use yolo_base::format::count;

/// What a split has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// "train" or "val".
    pub split: String,
    /// Its images.
    pub images: usize,
    /// The objects that their labels name.
    pub objects: usize,
    /// A hash of the names and sizes of the images, in their order, and of their labels.
    pub hash: u64,
}

impl SplitSummary {
    /// How the same split differs from what it was `before`.
    fn change(&self, before: &Self) -> Option<String> {
        let Self { split, images, objects, hash } = self;
        if (*images, *objects) != (before.images, before.objects) {
            return Some(format!(
                "the {split} split has {} with {} now, and had {} with {}",
                count(*images, "image"),
                count(*objects, "object"),
                count(before.images, "image"),
                count(before.objects, "object")
            ));
        }
        (*hash != before.hash).then(|| {
            format!("the {split} split has as many images as before, but other ones or other labels")
        })
    }
}

/// How the splits that are both in `now` and in `before` differ, as one phrase; `None` if they do not.
pub fn changed_splits(now: &[SplitSummary], before: &[SplitSummary]) -> Option<String> {
    let change = |now: &SplitSummary| now.change(before.iter().find(|before| before.split == now.split)?);
    let changes: Vec<String> = now.iter().filter_map(change).collect();
    (!changes.is_empty()).then(|| changes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(split: &str, [images, objects]: [usize; 2], hash: u64) -> SplitSummary {
        SplitSummary { split: split.to_owned(), images, objects, hash }
    }

    #[test]
    fn a_change_is_named_with_its_split() {
        let before = [of("train", [16, 20], 1), of("val", [4, 5], 2)];
        assert_eq!(changed_splits(&before, &before), None);
        assert_eq!(changed_splits(&before, &[]), None, "nothing is known");
        let fewer = [of("train", [1, 20], 3), of("val", [4, 5], 9)];
        assert_eq!(
            changed_splits(&fewer, &before).unwrap(),
            "the train split has 1 image with 20 objects now, and had 16 images with 20 objects; the val split has as \
             many images as before, but other ones or other labels"
        );
        assert_eq!(changed_splits(&[of("test", [1, 1], 7)], &before), None);
    }
}
