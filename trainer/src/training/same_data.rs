//! Whether all ranks see the same data set, which may lie in different folders of different machines. Ranks
//! that see other images would train on a mixture, or wait for each other forever.

use yolo_base::format::count;
use yolo_data::scan::Scan;

use crate::error::TrainError;
use crate::rank::context::Context;
use crate::rank::introduction::host_name;

/// Compares the split with those of the other ranks. Every rank gets the same answer.
///
/// # Errors
/// When a rank has other numbers of images or labels than rank 0, or is lost.
pub(super) fn agree(context: &Context, split: &str, found: &Scan) -> Result<(), TrainError> {
    let boxes: usize = found.samples.iter().map(|sample| sample.boxes.len()).sum();
    let own = format!("{}\n{boxes}\n{}", found.samples.len(), host_name());
    let all = context.gather(own.into_bytes())?;
    let all: Vec<String> = all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    match difference(split, &all) {
        Some(message) => Err(TrainError::new(message)
            .with_hint("the data set must be the same on all machines; its folder may be another")),
        None => Ok(()),
    }
}

/// The first rank that differs from rank 0, as a complete message.
fn difference(split: &str, all: &[String]) -> Option<String> {
    let parts = |text: &str| -> Option<(usize, usize, String)> {
        let mut lines = text.splitn(3, '\n');
        Some((lines.next()?.parse().ok()?, lines.next()?.parse().ok()?, lines.next()?.to_owned()))
    };
    let (images, boxes, host) = parts(all.first()?)?;
    for (rank, other) in all.iter().enumerate().skip(1) {
        let (other_images, other_boxes, other_host) = parts(other)?;
        if (images, boxes) != (other_images, other_boxes) {
            return Some(format!(
                "the ranks of a run must agree, but rank {rank} on {other_host} has {} with {} in the {split} split, and \
                 rank 0 on {host} has {} with {}",
                count(other_images, "image"),
                count(other_boxes, "object"),
                count(images, "image"),
                count(boxes, "object")
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_and_machine_with_other_images_are_named() {
        let all = |texts: &[&str]| {
            difference("train", &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(all(&["16\n20\nlab-1", "16\n20\nlab-2"]), None);
        assert_eq!(
            all(&["16\n20\nlab-1", "16\n20\nlab-1", "15\n19\nlab-2"]).unwrap(),
            "the ranks of a run must agree, but rank 2 on lab-2 has 15 images with 19 objects in the train split, and \
             rank 0 on lab-1 has 16 images with 20 objects"
        );
    }
}
