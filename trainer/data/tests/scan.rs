//! The results of scanning a data set: the samples, the counts and the messages. The comparison with the
//! Python original is skipped unless the folder of recorded numbers exists (`YOLO_GOLDEN`, or
//! `shared/golden` next to the checkout).

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

use std::path::{Path, PathBuf};

use yolo_base::Hint as _;
use yolo_base::env::YOLO_GOLDEN;
use yolo_data::error::DataError;
use yolo_data::image::Image;
use yolo_data::image::decode::decode;
use yolo_data::rect_batches::batch_shapes;
use yolo_data::scan::{Scan, ScanOptions, label_path, list_images, parse_labels, scan, verify_image};

/// The folder of recorded numbers; if it is missing, prints that the test is skipped.
fn golden() -> Option<PathBuf> {
    let folder = std::env::var_os(YOLO_GOLDEN)
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"));
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} does not exist", folder.display());
    None
}

fn json(path: PathBuf) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A data set of PNG images with these labels; with `None`, there is no label file.
fn data_set(labels: &[(&str, Option<&str>)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("images/train")).unwrap();
    std::fs::create_dir_all(dir.path().join("labels/train")).unwrap();
    for (name, label) in labels {
        picture(30, 20).save(dir.path().join(format!("images/train/{name}.png"))).unwrap();
        if let Some(label) = label {
            std::fs::write(dir.path().join(format!("labels/train/{name}.txt")), label).unwrap();
        }
    }
    dir
}

fn picture(width: u32, height: u32) -> image::RgbImage {
    image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8 * 3, y as u8 * 5, 90]))
}

fn run(dir: &Path, options: &ScanOptions<'_>) -> Result<Scan, DataError> {
    scan(&[dir.join("images/train")], options)
}

#[test]
fn every_label_case_has_the_result_of_the_original() {
    let Some(golden) = golden() else { return };
    let cases = json(golden.join("g_label_cases.json"));
    // The counts are recorded per case, so each case is scanned alone.
    for (name, case) in cases.as_object().unwrap() {
        let folder = golden.join("g_label_cases/images");
        let image = ["jpg", "png"]
            .iter()
            .map(|extension| folder.join(format!("{name}.{extension}")))
            .find(|path| path.is_file())
            .unwrap_or_else(|| panic!("{name} has no image"));
        let options = ScanOptions { cache: false, require_labels: false, ..ScanOptions::new("val", 80) };
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        match scan(&[image], &options) {
            Err(DataError::AllCorrupt { first, .. }) => {
                assert!(!case["kept"].as_bool().unwrap(), "{name} should be kept: {first}");
                assert!(first.contains(name.as_str()), "{first}");
            }
            Err(error) => panic!("{name}: {error}"),
            Ok(result) => {
                assert!(case["kept"].as_bool().unwrap(), "{name} should be corrupt");
                assert_eq!(
                    [result.found, result.missing, result.empty, result.corrupt],
                    ["found", "missing", "empty", "corrupt"].map(number),
                    "{name}"
                );
                let sample = &result.samples[0];
                let size = &case["shape_wh"];
                assert_eq!(
                    [u64::from(sample.width), u64::from(sample.height)],
                    [size[0].as_u64().unwrap(), size[1].as_u64().unwrap()],
                    "{name}"
                );
                let rows: Vec<Vec<f32>> = serde_json::from_value(case["labels"].clone()).unwrap();
                let ours: Vec<Vec<f32>> = sample.boxes.iter().map(|row| row.to_vec()).collect();
                assert_eq!(ours, rows, "{name}");
                assert_eq!(sample.segments.len(), number("n_segments"), "{name}");
            }
        }
    }
}

#[test]
fn rectangular_shapes_equal_the_original() {
    let Some(golden) = golden() else { return };
    for case in json(golden.join("g_geometry.json"))["rect"].as_array().unwrap() {
        let sizes: Vec<[u32; 2]> = serde_json::from_value(case["wh"].clone()).unwrap();
        let shapes: Vec<[usize; 2]> = serde_json::from_value(case["batch_shapes_hw"].clone()).unwrap();
        let order: Vec<usize> = serde_json::from_value(case["order"].clone()).unwrap();
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        let ours = batch_shapes(
            &sizes,
            number("batch"),
            number("imgsz"),
            number("stride"),
            case["pad"].as_f64().unwrap(),
        );
        assert_eq!(ours.shapes, shapes, "{case}");
        // numpy's sort is not stable, ours is, so the test compares the ratios.
        let ratios = |order: &[usize]| -> Vec<f64> {
            order.iter().map(|&index| f64::from(sizes[index][1]) / f64::from(sizes[index][0])).collect()
        };
        assert_eq!(ratios(&ours.order), ratios(&order));
    }
}

#[test]
fn batches_are_wide_tall_or_square() {
    let sizes = [[400, 100], [100, 400], [300, 300], [400, 200]];
    let rect = batch_shapes(&sizes, 2, 320, 32, 0.0);
    assert_eq!(rect.order, [0, 3, 2, 1]);
    assert_eq!(rect.shapes, [[160, 320], [320, 320]]);
}

#[test]
fn a_scan_counts_and_reports_what_it_ignores() {
    let dir = data_set(&[
        ("a", Some("0 .5 .5 .2 .2\n")),
        ("b", None),
        ("c", Some("")),
        ("d", Some("0 .5 .5 .2 .2\n0 .5 1.5 .2 .2\n")),
        ("e", Some("1 .5 .5 .2 .2\n0 .5 .5 .2 .2\n1 .5 .5 .2 .2\n")),
    ]);
    let images = dir.path().join("images/train");
    std::fs::write(images.join("f.jpg"), "this is text").unwrap();
    std::fs::write(images.join("g.jpg"), "").unwrap();
    std::fs::write(images.join("h.dng"), "II*\0").unwrap();
    picture(9, 30).save(images.join("i.png")).unwrap();
    let whole = std::fs::read(images.join("a.png")).unwrap();
    std::fs::write(images.join("j.png"), &whole[..whole.len() / 2]).unwrap();

    let result = run(dir.path(), &ScanOptions::new("train", 2)).unwrap();
    assert_eq!((result.found, result.missing, result.empty, result.corrupt), (4, 1, 1, 6));
    assert_eq!(result.samples.len(), 4);
    assert_eq!(result.samples[3].boxes, [[0.0, 0.5, 0.5, 0.2, 0.2], [1.0, 0.5, 0.5, 0.2, 0.2]]);
    let assert_reported = |parts: &[&str]| {
        let found = result.messages.iter().any(|message| parts.iter().all(|part| message.contains(part)));
        assert!(found, "{parts:?} in {:#?}", result.messages);
    };
    assert_reported(&["d.txt:2", "center y", "1.5"]);
    assert_reported(&["e.txt: 1 duplicate label removed"]);
    assert_reported(&["f.jpg", "not an image"]);
    assert_reported(&["g.jpg", "empty"]);
    assert_reported(&["h.dng", "DNG", "not supported"]);
    assert_reported(&["i.png", "9x30"]);
    assert_reported(&["j.png"]);
}

#[test]
fn a_class_without_a_name_is_an_error_with_its_line() {
    let dir = data_set(&[("a", Some("0 .5 .5 .2 .2\n\n7 .5 .5 .2 .2\n"))]);
    // The second scan reads the rows from the cache.
    for _ in 0..2 {
        let error = run(dir.path(), &ScanOptions::new("train", 3)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("a.txt:3: class 7") && text.contains("3 classes (0 to 2)"), "{text}");
        assert!(error.hint().is_some());
    }
    let single = ScanOptions { single_cls: true, ..ScanOptions::new("train", 1) };
    assert!(run(dir.path(), &single).unwrap().samples[0].boxes.iter().all(|row| row[0] == 0.0));
}

#[test]
fn training_needs_labels_and_validation_does_not() {
    let dir = data_set(&[("a", None), ("b", Some(""))]);
    let error = run(dir.path(), &ScanOptions::new("train", 3)).unwrap_err();
    assert!(matches!(error, DataError::NoLabels { .. }), "{error}");
    assert_eq!(run(dir.path(), &ScanOptions::new("val", 3)).unwrap().samples.len(), 2);
}

#[test]
fn folders_that_are_missing_or_empty_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let options = ScanOptions::new("val", 3);
    assert!(matches!(scan(&[dir.path().join("no")], &options), Err(DataError::Missing { .. })));
    assert!(matches!(scan(&[dir.path().join("*.jpg")], &options), Err(DataError::Missing { .. })));
    assert!(matches!(scan(&[dir.path().to_path_buf()], &options), Err(DataError::NoImages { .. })));
}

#[test]
fn the_cache_is_used_until_a_file_changes_and_replaced_when_damaged() {
    let dir = data_set(&[("a", Some("0 .5 .5 .2 .2\n")), ("b", Some("3 .1 .1 .9 .1 .5 .8"))]);
    let options = ScanOptions::new("train", 4);
    let first = run(dir.path(), &options).unwrap();
    assert_eq!(first.samples[1].segments[0], [[0.1, 0.1], [0.9, 0.1], [0.5, 0.8]]);
    let cache = dir.path().join("labels/train.yolo-cache");
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let count = |_| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let watched = ScanOptions { progress: Some(&count), ..options };
    let verified = || {
        calls.store(0, std::sync::atomic::Ordering::Relaxed);
        let result = run(dir.path(), &watched).unwrap();
        (result, calls.load(std::sync::atomic::Ordering::Relaxed))
    };
    assert_eq!(verified(), (first.clone(), 0));
    // A damaged or truncated cache is replaced by a new scan.
    let good = std::fs::read(&cache).unwrap();
    for damaged in [&good[..good.len() - 7], &good[..3], b"", &[&good[..60], b"x", &good[61..]].concat()] {
        std::fs::write(&cache, damaged).unwrap();
        assert_eq!(verified(), (first.clone(), 2));
        assert_eq!(std::fs::read(&cache).unwrap(), good);
    }
    std::fs::write(dir.path().join("labels/train/a.txt"), "1 .5 .5 .2 .25\n").unwrap();
    let (changed, files) = verified();
    assert_eq!((changed.samples[0].boxes[0][0], files), (1.0, 2));
}

#[test]
fn images_come_from_folders_lists_and_patterns() {
    let dir = data_set(&[("b", None), ("a", None)]);
    let root = dir.path();
    std::fs::create_dir_all(root.join("images/train/deep")).unwrap();
    std::fs::write(root.join("images/train/deep/c.JPG"), "").unwrap();
    std::fs::write(root.join("images/train/notes.md"), "").unwrap();
    let names = |roots: &[PathBuf]| -> Vec<String> {
        let images = list_images(roots, "train").unwrap();
        images.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[root.join("images")]), ["a.png", "b.png", "c.JPG"]);
    assert_eq!(names(&[root.join("images/*/?.png")]), ["a.png", "b.png"]);
    std::fs::write(root.join("list.txt"), "./images/train/b.png\n\nimages/train/a.png\n").unwrap();
    assert_eq!(names(&[root.join("list.txt")]), ["a.png", "b.png"]);
    assert_eq!(list_images(&[root.join("list.txt")], "train").unwrap()[0], root.join("images/train/a.png"));
    // As the `>` of Windows PowerShell, and Notepad, save it.
    let marked = "\u{feff}./images/train/b.png\r\n./images/train/a.png\r\n";
    for bytes in [marked.encode_utf16().flat_map(u16::to_le_bytes).collect(), marked.as_bytes().to_vec()] {
        std::fs::write(root.join("list.txt"), bytes).unwrap();
        assert_eq!(names(&[root.join("list.txt")]), ["a.png", "b.png"]);
    }
    std::fs::write(root.join("list.txt"), [0xE9, 0x0A]).unwrap();
    let error = list_images(&[root.join("list.txt")], "train").unwrap_err().to_string();
    assert!(error.ends_with("it is neither UTF-8 nor UTF-16 text"), "{error}");
}

#[test]
fn the_label_path_replaces_the_last_images_folder() {
    let label = |image: &str| label_path(Path::new(image)).to_str().unwrap().replace('\\', "/");
    assert_eq!(label("/d/images/train/x.y.jpg"), "/d/labels/train/x.y.txt");
    assert_eq!(label("/images/d/images/x.jpg"), "/images/d/labels/x.txt");
    assert_eq!(label("/d/my-images/x.jpg"), "/d/my-images/x.txt");
}

#[test]
fn images_are_rotated_by_their_exif_orientation() {
    // Orientation 6 means a rotation by 90° clockwise.
    let exif = |orientation: u8| {
        [
            b"\xFF\xE1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(),
            &[orientation, 0, 0, 0],
            &[0; 4],
        ]
        .concat()
    };
    let mut picture = Image::filled(32, 16, [5; 3]);
    for row in picture.data.chunks_mut(32 * 3) {
        row[..16 * 3].fill(250);
    }
    let jpeg = yolo_data::image::encode::jpeg("x.jpg".as_ref(), &picture).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (orientation, size, bright) in [
        (1, (32, 16), (2, 8)),
        (3, (32, 16), (30, 8)),
        (6, (16, 32), (8, 2)),
        (8, (16, 32), (8, 30)),
        (5, (16, 32), (8, 2)),
    ] {
        let path = dir.path().join("x.jpg");
        std::fs::write(&path, [&jpeg[..2], &exif(orientation), &jpeg[2..]].concat()).unwrap();
        assert_eq!(verify_image(&path).unwrap(), size, "orientation {orientation}");
        let Image { width, height, .. } = decode(&path).unwrap();
        assert_eq!((width as u32, height as u32), size, "orientation {orientation}");
        assert!(decode(&path).unwrap().pixel(bright.0, bright.1)[0] > 200, "orientation {orientation}");
    }
}

#[test]
fn gray_transparent_and_16_bit_images_become_rgb() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.png");
    image::GrayImage::from_pixel(12, 12, image::Luma([7])).save(&path).unwrap();
    assert_eq!(decode(&path).unwrap().pixel(3, 3), [7, 7, 7]);
    image::RgbaImage::from_pixel(12, 12, image::Rgba([1, 2, 3, 0])).save(&path).unwrap();
    assert_eq!(decode(&path).unwrap().pixel(3, 3), [1, 2, 3]);
    // OpenCV keeps the upper byte: 0x12FF is 0x12.
    image::ImageBuffer::<image::Luma<u16>, _>::from_pixel(12, 12, image::Luma([0x12FF])).save(&path).unwrap();
    assert_eq!(decode(&path).unwrap().pixel(3, 3), [0x12; 3]);
    let error = decode(&dir.path().join("none.jpg")).unwrap_err().to_string();
    assert!(error.contains("none.jpg"), "{error}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_labels_or_an_error(text in "([0-9.eE+\\- \t\r\n]|nan|inf|x){0,80}") {
        if let Ok(labels) = parse_labels(&text) {
            for row in &labels.boxes {
                proptest::prop_assert!(row[0] >= 0.0 && row[1..].iter().all(|v| (0.0..=1.0).contains(v)));
            }
            proptest::prop_assert!(labels.segments.is_empty() || labels.segments.len() == labels.boxes.len());
        }
    }

    #[test]
    fn any_bytes_are_an_image_or_an_error(mut bytes in proptest::collection::vec(0_u8.., 0..300)) {
        bytes.splice(..0, [0xFF, 0xD8, 0xFF]);
        let _ = yolo_data::image::decode::decode_bytes(&bytes);
        let file = tempfile::NamedTempFile::with_suffix(".jpg").unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let _ = verify_image(file.path());
    }
}
