//! Fingerprints of images and labels, by which machines find out whether they have the same, and a resumed run whether
//! they have changed. Of an image, the name and the size count; its folder and its pixels do not.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::Sample;

/// A fingerprint of each sample, of the name and size of its image and its labels.
pub fn fingerprints(samples: &[Sample]) -> Vec<u64> {
    samples.par_iter().map(of_sample).collect()
}

/// One fingerprint of all.
pub fn fingerprint_of_all(each: &[u64]) -> u64 {
    let mut hash = Sha256::new();
    each.iter().for_each(|one| hash.update(one.to_le_bytes()));
    first_bytes(hash)
}

fn of_sample(sample: &Sample) -> u64 {
    let mut hash = Sha256::new();
    let mut text = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    text(sample.image.file_name().unwrap_or_default().as_encoded_bytes());
    text(&[sample.width, sample.height].map(u32::to_le_bytes).concat());
    text(&bytes(sample.boxes.as_flattened()));
    for segment in &sample.segments {
        text(&bytes(segment.as_flattened()));
    }
    first_bytes(hash)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn first_bytes(hash: Sha256) -> u64 {
    let bytes: [u8; 32] = hash.finalize().into();
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(image: &str, class: f32) -> Sample {
        Sample { image: image.into(), boxes: vec![[class, 0.5, 0.5, 0.1, 0.1]], ..Sample::default() }
    }

    #[test]
    fn names_sizes_and_labels_count_and_folders_do_not() {
        let of = |image, class| fingerprints(&[sample(image, class)])[0];
        assert_eq!(of("/a/1.jpg", 0.0), of("/b/1.jpg", 0.0));
        assert_ne!(of("/a/1.jpg", 0.0), of("/a/2.jpg", 0.0));
        assert_ne!(of("/a/1.jpg", 0.0), of("/a/1.jpg", 1.0));
        assert_ne!(fingerprints(&[Sample { width: 9, ..sample("/a/1.jpg", 0.0) }])[0], of("/a/1.jpg", 0.0));
        let polygon = Sample { segments: vec![vec![[0.1, 0.2]]], ..sample("/a/1.jpg", 0.0) };
        assert_ne!(fingerprints(&[polygon])[0], of("/a/1.jpg", 0.0));
    }

    #[test]
    fn the_order_of_samples_counts() {
        assert_eq!(fingerprint_of_all(&[1, 2]), fingerprint_of_all(&[1, 2]));
        assert_ne!(fingerprint_of_all(&[1, 2]), fingerprint_of_all(&[2, 1]));
    }
}
