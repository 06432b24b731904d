//! The built-in data set has the same bytes everywhere and enough variety to train on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use yolo_data::error::DataError;
use yolo_data::scan::{ScanOptions, scan};
use yolo_data::shapes::{BYTES, NAMES, generate};

/// The SHA-256 of the path and the content of every file, sorted by path.
const SHA256: &str = "4bb0118e3289942242f169dbfa47ce2d3b12351ba135c5d16a9de955eb673890";

/// The hash of all files, and their size in bytes.
fn hash(dir: &Path) -> (String, u64) {
    fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    let mut paths = Vec::new();
    files(dir, &mut paths);
    paths.sort();
    let (mut hash, mut size) = (Sha256::new(), 0);
    for path in paths {
        let name = path.strip_prefix(dir).unwrap().to_str().unwrap().replace('\\', "/");
        hash.update(format!("{name}\0"));
        let bytes = std::fs::read(&path).unwrap();
        size += bytes.len() as u64;
        hash.update(bytes);
    }
    (hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), size)
}

#[test]
fn the_bytes_are_fixed_and_the_objects_vary() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("shapes");
    let yaml = generate(&set, &|_| {}).unwrap();
    assert_eq!(yaml, set.join("shapes.yaml"));
    assert_eq!(hash(&set), (SHA256.to_owned(), BYTES));

    let mut classes = vec![0; NAMES.len()];
    let (mut least, mut most) = (f32::MAX, 0_f32);
    let (mut cut, mut overlaps, mut empty) = (0, 0, 0);
    for (split, images) in [("train", 512), ("val", 128)] {
        let options = ScanOptions { cache: false, ..ScanOptions::new(split, NAMES.len()) };
        let scan = scan(&[set.join("images").join(split)], &options).unwrap();
        assert_eq!((scan.samples.len(), scan.corrupt, scan.missing), (images, 0, 0));
        assert_eq!(scan.messages, Vec::<String>::new());
        empty += scan.empty;
        for sample in &scan.samples {
            let edges: Vec<[f32; 4]> = sample
                .boxes
                .iter()
                .map(|&[_, x, y, w, h]| [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0])
                .collect();
            for (row, edge) in sample.boxes.iter().zip(&edges) {
                classes[row[0] as usize] += 1;
                least = least.min(row[3].max(row[4]));
                most = most.max(row[3].max(row[4]));
                assert!(edge.iter().all(|value| (-1e-5..=1.0 + 1e-5).contains(value)), "{row:?}");
                cut += usize::from(
                    edge[..2].iter().any(|v| *v < 1e-5) || edge[2..].iter().any(|v| *v > 1.0 - 1e-5),
                );
            }
            for (index, a) in edges.iter().enumerate() {
                overlaps += edges[..index]
                    .iter()
                    .filter(|b| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3])
                    .count();
            }
        }
    }
    let objects: usize = classes.iter().sum();
    eprintln!(
        "{objects} objects {classes:?}, sides {least} to {most}, {cut} cut, {overlaps} overlaps, {empty} empty"
    );
    assert!(classes.iter().all(|&count| count * 10 > objects), "{classes:?}");
    assert!(most / least >= 6.0, "{least} to {most}");
    assert!(cut * 20 > objects, "{cut} of {objects} boxes are cut by the border");
    assert!(overlaps * 20 > objects, "{overlaps} overlaps");
    assert!(empty > 10, "{empty} images without an object");
}

#[test]
fn a_complete_set_is_reused_and_an_incomplete_one_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("data/shapes");
    let drawn = AtomicUsize::new(0);
    let count = |_| {
        drawn.fetch_add(1, Ordering::Relaxed);
    };
    generate(&set, &count).unwrap();
    assert_eq!(drawn.swap(0, Ordering::Relaxed), 640);
    generate(&set, &count).unwrap();
    assert_eq!(drawn.swap(0, Ordering::Relaxed), 0);
    std::fs::remove_file(set.join("images/val/0003.bmp")).unwrap();
    generate(&set, &count).unwrap();
    assert_eq!(drawn.swap(0, Ordering::Relaxed), 640);
    assert!(set.join("images/val/0003.bmp").is_file());
    // The staging folder is gone.
    assert_eq!(std::fs::read_dir(dir.path().join("data")).unwrap().count(), 1);
}

#[test]
fn a_folder_with_other_files_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "mine").unwrap();
    let error = generate(dir.path(), &|_| {}).unwrap_err();
    assert!(matches!(error, DataError::Occupied { .. }), "{error}");
    assert!(dir.path().join("thesis.txt").is_file());
}
