//! Whether all ranks see the same data set, which may lie in different folders of different machines. Ranks
//! that see other images would train on a mixture, or wait for each other forever; other labels would spoil the
//! result without a word.

use yolo_base::format::count;
use yolo_data::scan::{Sample, Scan, fingerprint_of_all, fingerprints};
use yolo_plan::dataset::SplitSummary;

use crate::error::TrainError;
use crate::rank::context::Context;
use crate::rank::introduction::host_name;

/// Compares the split with those of the other ranks. Every rank gets the same answer.
///
/// # Errors
/// When a rank has other images or labels than rank 0, or is lost.
pub(super) fn agree(context: &Context, split: &str, found: &Scan) -> Result<(), TrainError> {
    if context.world == 1 {
        return Ok(());
    }
    let each = fingerprints(&found.samples);
    let SplitSummary { images, objects, hash, .. } = summary_of(split, &found.samples, &each);
    let own = Summary { images, objects, hash, host: host_name() };
    let all = texts(&context.gather(own.to_text().into_bytes())?);
    let all: Option<Vec<Summary>> = all.iter().map(|text| Summary::from_text(text)).collect();
    let all = all.unwrap_or_default();
    let message = match difference(split, &all) {
        None => return Ok(()),
        Some(Difference::Counts(message)) => message,
        Some(Difference::Labels(rank)) => other_labels(context, (split, rank), &all, &each, &found.samples)?,
    };
    Err(TrainError::new(message)
        .with_hint("the data set must be the same on all machines; its folder may be another"))
}

/// What a split has.
pub(crate) fn summary(split: &str, samples: &[Sample]) -> SplitSummary {
    summary_of(split, samples, &fingerprints(samples))
}

fn summary_of(split: &str, samples: &[Sample], each: &[u64]) -> SplitSummary {
    SplitSummary {
        split: split.to_owned(),
        images: samples.len(),
        objects: samples.iter().map(|sample| sample.boxes.len()).sum(),
        hash: fingerprint_of_all(each),
    }
}

/// What a rank says about its split.
struct Summary {
    images: usize,
    objects: usize,
    hash: u64,
    host: String,
}

impl Summary {
    fn to_text(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.images, self.objects, self.hash, self.host)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.splitn(4, '\n');
        Some(Self {
            images: lines.next()?.parse().ok()?,
            objects: lines.next()?.parse().ok()?,
            hash: lines.next()?.parse().ok()?,
            host: lines.next()?.to_owned(),
        })
    }
}

/// How the first rank that differs from rank 0 does.
#[derive(Debug, PartialEq, Eq)]
enum Difference {
    /// A complete message.
    Counts(String),
    /// In a name or a label, which is still to be found.
    Labels(usize),
}

fn difference(split: &str, all: &[Summary]) -> Option<Difference> {
    let first = all.first()?;
    let counts = |one: &Summary| (one.images, one.objects);
    let others = || all.iter().enumerate().skip(1);
    if let Some((rank, other)) = others().find(|(_, other)| counts(other) != counts(first)) {
        return Some(Difference::Counts(format!(
            "the ranks of a run must agree, but rank {rank} on {} has {} with {} in the {split} split, and \
             rank 0 on {} has {} with {}",
            other.host,
            count(other.images, "image"),
            count(other.objects, "object"),
            first.host,
            count(first.images, "image"),
            count(first.objects, "object")
        )));
    }
    others().find(|(_, other)| other.hash != first.hash).map(|(rank, _)| Difference::Labels(rank))
}

/// The message about the first image of which `rank` has another name, another size or other labels than rank 0. Every
/// rank calls this.
fn other_labels(
    context: &Context,
    (split, rank): (&str, usize),
    all: &[Summary],
    each: &[u64],
    samples: &[Sample],
) -> Result<String, TrainError> {
    let prints = context.gather(each.iter().flat_map(|print| print.to_le_bytes()).collect())?;
    let index = first_difference(&prints[0], &prints[rank]);
    let name = samples.get(index).and_then(|sample| sample.image.file_name()).unwrap_or_default();
    let names = texts(&context.gather(name.to_string_lossy().into_owned().into_bytes())?);
    let (here, there) = (&all[rank].host, &all[0].host);
    let (name, expected) = (&names[rank], &names[0]);
    Ok(if name == expected {
        format!(
            "the ranks of a run must agree, but rank {rank} on {here} has another {name} or other labels for it in the {split} \
             split than rank 0 on {there}"
        )
    } else {
        format!(
            "the ranks of a run must agree, but rank {rank} on {here} has the image {name} in the {split} split where \
             rank 0 on {there} has {expected}"
        )
    })
}

/// The index of the first fingerprint that differs.
fn first_difference(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    pairs.take_while(|(one, other)| one == other).count()
}

fn texts(all: &[Vec<u8>]) -> Vec<String> {
    all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[&str]) -> Option<Difference> {
        let all: Vec<Summary> = all.iter().map(|text| Summary::from_text(text).unwrap()).collect();
        difference("train", &all)
    }

    #[test]
    fn the_rank_and_machine_with_other_images_are_named() {
        assert_eq!(found(&["16\n20\n7\nlab-1", "16\n20\n7\nlab-2"]), None);
        let message = "the ranks of a run must agree, but rank 2 on lab-2 has 15 images with 19 objects in the train \
                       split, and rank 0 on lab-1 has 16 images with 20 objects";
        assert_eq!(
            found(&["16\n20\n7\nlab-1", "16\n20\n7\nlab-1", "15\n19\n8\nlab-2"]),
            Some(Difference::Counts(message.to_owned()))
        );
    }

    #[test]
    fn other_labels_are_looked_for_where_the_counts_are_equal() {
        let one = ["16\n20\n7\nlab-1", "16\n20\n8\nlab-1", "16\n20\n7\nlab-2"];
        assert_eq!(found(&one), Some(Difference::Labels(1)));
        let counts = found(&["16\n20\n7\nlab-1", "16\n20\n8\nlab-1", "15\n20\n9\nlab-2"]);
        assert!(matches!(counts, Some(Difference::Counts(message)) if message.contains("rank 2")));
        let prints = |each: [u64; 3]| each.map(u64::to_le_bytes).concat();
        assert_eq!(first_difference(&prints([1, 2, 3]), &prints([1, 9, 9])), 1);
    }
}
