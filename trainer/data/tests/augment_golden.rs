//! Compares geometry and pixels with those of the Python original, which uses OpenCV. The recorded
//! images are BGR. Every step except the conversion to HSV treats the channels alike, so the tests
//! use the images as they are.

#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says what it skips"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;
use yolo_base::env::YOLO_GOLDEN;
use yolo_data::augment::label::Label;
use yolo_data::augment::mixup::mixup;
use yolo_data::augment::mosaic::mosaic;
use yolo_data::augment::perspective::perspective;
use yolo_data::augment::transform::{Draws, Transform};
use yolo_data::image::hsv::{HsvTables, from_rgb};
use yolo_data::image::letterbox::{Letterbox, LetterboxOptions};
use yolo_data::image::{Image, resize};
use yolo_data::rect_batches::batch_shapes;
use yolo_data::scan::Sample;

/// A file of recorded numbers, if this machine has them.
fn golden(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(YOLO_GOLDEN).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/golden")),
        PathBuf::from,
    );
    let file = folder.join(name);
    if !file.exists() {
        eprintln!("skipped: {} does not exist", file.display());
        return None;
    }
    Some(file)
}

fn geometry() -> Option<Value> {
    Some(serde_json::from_reader(File::open(golden("g_geometry.json")?).unwrap()).unwrap())
}

/// The images of g_pixels.npz by name. The file is a zip of `.npy` files, version 1, of bytes.
fn pixels() -> Option<HashMap<String, Image>> {
    let mut archive = zip::ZipArchive::new(File::open(golden("g_pixels.npz")?).unwrap()).unwrap();
    let mut images = HashMap::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let header_end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = std::str::from_utf8(&bytes[10..header_end]).unwrap();
        assert!(header.contains("'|u1'") && header.contains("'fortran_order': False"), "{header}");
        let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
        let shape: Vec<usize> = shape.split(',').map(|side| side.trim().parse().unwrap()).collect();
        let name = file.name().trim_end_matches(".npy").to_owned();
        let data = bytes[header_end..].to_vec();
        images.insert(name, Image { width: shape[1], height: shape[0], data });
    }
    Some(images)
}

/// Asserts that at most `share` of the bytes differ, by one gray level.
#[track_caller]
fn assert_close(ours: &Image, theirs: &Image, share: f64) {
    assert_eq!((ours.width, ours.height), (theirs.width, theirs.height));
    let differences = ours.data.iter().zip(&theirs.data).map(|(a, b)| a.abs_diff(*b));
    let most = differences.clone().max().unwrap();
    let count = differences.filter(|&d| d > 0).count() as f64 / ours.data.len() as f64;
    assert!(most <= 1 && count <= share, "differs by up to {most} in {count:.5} of the bytes");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn numbers<const N: usize>(value: &Value) -> [f64; N] {
    std::array::from_fn(|i| number(&value[i]))
}

fn sizes<const N: usize>(value: &Value) -> [usize; N] {
    numbers(value).map(|n| n as usize)
}

#[test]
fn letterbox_arithmetic() {
    let Some(golden) = geometry() else { return };
    for case in golden["letterbox"].as_array().unwrap() {
        let target = match &case["new_shape"] {
            Value::Array(_) => sizes(&case["new_shape"]),
            side => [number(side) as usize; 2],
        };
        let flag = |name: &str| case[name].as_bool().unwrap();
        let options = LetterboxOptions {
            target,
            auto: flag("auto"),
            scale_fill: flag("scaleFill"),
            scale_up: flag("scaleup"),
            stride: number(&case["stride"]) as usize,
        };
        let [height, width] = sizes(&case["hw"]);
        let ours = Letterbox::new(height, width, &options);
        assert_eq!(ours.size(), sizes(&case["out_hw"]), "{case}");
        let [rw, rh] = numbers(&case["ratio_w_h"]);
        assert!((ours.ratio[0] - rh).abs() < 1e-12 && (ours.ratio[1] - rw).abs() < 1e-12, "{case}");
        assert_eq!(ours.pad, numbers(&case["pad_dw_dh"]), "{case}");
        let borders = ["top", "bottom", "left", "right"].map(|side| number(&case[side]) as usize);
        assert_eq!(ours.borders, borders, "{case}");
    }
}

#[test]
fn rectangular_batches() {
    let Some(golden) = geometry() else { return };
    for case in golden["rect"].as_array().unwrap() {
        let wh: Vec<[u32; 2]> =
            case["wh"].as_array().unwrap().iter().map(|s| sizes(s).map(|side: usize| side as u32)).collect();
        let size = |name: &str| number(&case[name]) as usize;
        let rect = batch_shapes(&wh, size("batch"), size("imgsz"), size("stride"), number(&case["pad"]));
        let shapes: Vec<[usize; 2]> = case["batch_shapes_hw"].as_array().unwrap().iter().map(sizes).collect();
        assert_eq!(rect.shapes, shapes, "{case}");
    }
    // Two batches of photos of 640×480.
    let shapes: Vec<[usize; 2]> =
        golden["rect_digits_val_imgsz320_pad0.5_bs16"].as_array().unwrap().iter().map(sizes).collect();
    assert_eq!(batch_shapes(&[[640, 480]; 24], 16, 320, 32, 0.5).shapes, shapes);
    // The first image of the first of them, with its scale and padding: native size, ratio, padding.
    let item = &golden["val_item0"];
    let letterbox = Letterbox::new(240, 320, &LetterboxOptions::exact(shapes[0], false));
    assert_eq!([3, letterbox.size()[0], letterbox.size()[1]], sizes(&item["shape"]));
    let [x, y] = letterbox.pad;
    let theirs = format!("((480, 640), ((0.5, 0.5), (np.float64({x:?}), np.float64({y:?}))))");
    assert_eq!(item["shapes"], theirs);
}

#[test]
fn hsv_tables_and_colors() {
    let (Some(golden), Some(images)) = (geometry(), pixels()) else { return };
    for case in golden["hsv_lut"].as_array().unwrap() {
        let tables = HsvTables::new(numbers(&case["gains"]));
        for (name, table) in [("hue", tables.hue), ("sat", tables.saturation), ("val", tables.value)] {
            let theirs: [usize; 256] = sizes(&case[name]);
            assert_eq!(table.map(usize::from), theirs, "{name} of {}", case["gains"]);
        }
    }
    let small = &images["small_160x120_inter_linear"];
    let map = |change: &dyn Fn([u8; 3]) -> [u8; 3], back: bool| {
        let data = small.data.chunks_exact(3).flat_map(|p| {
            let [r, g, b] = change([p[2], p[1], p[0]]);
            if back { [b, g, r] } else { [r, g, b] }
        });
        Image { data: data.collect(), ..small.clone() }
    };
    assert_eq!(map(&from_rgb, false), images["bgr2hsv"]);
    for (name, u) in [
        ("hsv0_u_0.5_-0.7_0.9", [0.5, -0.7, 0.9]),
        ("hsv1_u_-1_1_-1.0", [-1.0, 1.0, -1.0]),
        ("hsv2_u_0_0_0", [0.0, 0.0, 0.0]),
    ] {
        let gains = [u[0] * 0.015 + 1.0, u[1] * 0.7 + 1.0, u[2] * 0.4 + 1.0];
        let tables = HsvTables::new(gains);
        assert_close(&map(&|rgb| tables.apply(rgb), true), &images[name], 0.02);
    }
}

#[test]
fn perspective_matrices_boxes_and_pixels() {
    let (Some(golden), Some(images)) = (geometry(), pixels()) else { return };
    for (i, case) in golden["random_perspective"].as_array().unwrap().iter().enumerate() {
        let drawn = |k: usize| number(&case["uniform_calls"][k][3]);
        let draws = Draws {
            perspective: [drawn(0), drawn(1)],
            angle: drawn(2),
            scale: drawn(3),
            shear: [drawn(4), drawn(5)],
            translate: [drawn(6), drawn(7)],
        };
        let mut image = images["small_160x120_inter_linear"].clone();
        let output = sizes(&case["out_hw"]);
        let transform = Transform::new(&draws, [image.height, image.width], output);
        for (row, line) in case["M"].as_array().into_iter().flatten().enumerate() {
            for (column, theirs) in line.as_array().unwrap().iter().enumerate() {
                assert!((transform.matrix[row][column] - number(theirs)).abs() < 1e-9, "case {i}");
            }
        }
        let label = |v: &Value| {
            let [class, l, t, r, b] = numbers(v).map(|n| n as f32);
            Label { class, corners: [l, t, r, b], polygon: Vec::new() }
        };
        let mut labels: Vec<Label> =
            case["in_boxes_cls_xyxy"].as_array().unwrap().iter().map(label).collect();
        let expected: Vec<Label> = case["out_boxes"].as_array().unwrap().iter().map(label).collect();
        perspective(&draws, output, &mut image, &mut Image::default(), &mut labels);
        assert_eq!(labels.len(), expected.len(), "case {i}");
        for (ours, theirs) in labels.iter().zip(&expected) {
            assert_eq!(ours.class, theirs.class);
            for (a, b) in ours.corners.iter().zip(theirs.corners) {
                assert!((a - b).abs() < 1e-3, "case {i}: {ours:?}, {theirs:?}");
            }
        }
        assert_close(&image, &images[&format!("rp{i}")], 0.06);
    }
}

#[test]
fn mixup_truncates() {
    let Some(images) = pixels() else { return };
    let mut image = images["small_160x120_inter_linear"].clone();
    let mut data = Vec::new();
    for y in 0..image.height {
        data.extend((0..image.width).rev().flat_map(|x| image.pixel(x, y)));
    }
    let flipped = Image { data, ..image.clone() };
    mixup(0.4321, &mut image, &mut Vec::new(), &flipped, Vec::new());
    assert_eq!(image, images["mixup_r0.4321_small_linear_with_flipped"]);
}

/// The recorded mosaics put the same four tiles around different centers. The tiles themselves are not
/// recorded, so this test cuts their pixels out of the first mosaic, and their labels out of the second, which shows
/// them whole, and places them again around every recorded center. It compares all edges of all labels, clipped ones
/// included, and the pixels that the first mosaic does not cut off.
#[test]
fn mosaic_places_tiles_and_labels_as_the_original() {
    let (Some(golden), Some(images)) = (geometry(), pixels()) else { return };
    let cases = golden["mosaic"].as_array().unwrap();
    let canvas = &images["mosaic0_320"];
    let (width, height, side) = (160, 120, 320);
    let center_of = |case: &Value| ["yc", "xc"].map(|key| number(&case[key]) as usize);
    let labels_of = |case: &Value| -> Vec<[f32; 5]> {
        let rows = case["labels_cls_xyxy_clipped"].as_array().unwrap();
        rows.iter().map(|row| numbers(row).map(|n| n as f32)).collect()
    };
    let first = center_of(&cases[0]);
    // Where a mosaic has the top left pixel of a tile, y and x, outside the canvas if cut off.
    let corner = |center: [usize; 2], quadrant: usize| {
        let [y, x] = center.map(|center| center as f64);
        [
            y - if quadrant < 2 { height as f64 } else { 0.0 },
            x - if quadrant.is_multiple_of(2) { width as f64 } else { 0.0 },
        ]
    };
    let tiles: [Image; 4] = std::array::from_fn(|quadrant| {
        let [top, left] = corner(first, quadrant).map(|at| at as isize);
        let mut tile = Image::filled(width, height, [114; 3]);
        for y in 0..height {
            for x in 0..width {
                let (at_y, at_x) = (top + y as isize, left + x as isize);
                if (0..side).contains(&at_y) && (0..side).contains(&at_x) {
                    let pixel = canvas.pixel(at_x as usize, at_y as usize);
                    tile.data[(y * width + x) * 3..][..3].copy_from_slice(&pixel);
                }
            }
        }
        tile
    });
    let whole = center_of(&cases[1]);
    let known = labels_of(&cases[1]);
    let mut samples: [Sample; 4] = Default::default();
    for &[class, l, t, r, b] in &known {
        let below = usize::from((t + b) / 2.0 > whole[0] as f32);
        let right = usize::from((l + r) / 2.0 > whole[1] as f32);
        let quadrant = 2 * below + right;
        let [top, left] = corner(whole, quadrant).map(|at| at as f32);
        let (w, h) = (width as f32, height as f32);
        let [cx, cy] = [((l + r) / 2.0 - left) / w, ((t + b) / 2.0 - top) / h];
        samples[quadrant].boxes.push([class, cx, cy, (r - l) / w, (b - t) / h]);
    }
    let mut edges = 0;
    for (i, case) in cases.iter().enumerate() {
        let (mut ours, mut labels) = (Image::default(), Vec::new());
        let tiles = std::array::from_fn(|quadrant| (&tiles[quadrant], &samples[quadrant]));
        mosaic(tiles, center_of(case), 160, &mut ours, &mut labels);
        let theirs = &images[&format!("mosaic{i}_320")];
        let step = side as usize / theirs.width;
        let mut compared = 0;
        for y in 0..theirs.height {
            for x in 0..theirs.width {
                let pixel = ours.pixel(x * step, y * step);
                if pixel != [114; 3] {
                    assert_eq!(pixel, theirs.pixel(x, y), "mosaic {i} at {x}, {y}");
                    compared += 1;
                }
            }
        }
        assert!(compared > theirs.width * theirs.height / 3, "only {compared} pixels compared");

        let expected = labels_of(case);
        assert_eq!(labels.len(), expected.len(), "mosaic {i}");
        for (j, (ours, theirs)) in labels.iter().zip(&expected).enumerate() {
            assert_eq!(ours.class, theirs[0], "mosaic {i}, label {j}");
            for edge in 0..4 {
                let (ours, theirs) = (ours.corners[edge], theirs[1 + edge]);
                assert!((ours - theirs).abs() < 1e-3, "mosaic {i}, label {j}: {ours}, {theirs}");
                edges += 1;
            }
        }
    }
    assert!(edges > 200, "only {edges} edges compared");
}

/// Every byte equals OpenCV's. `resize.rs` has many more sizes.
#[test]
fn linear_resizing_equals_the_original() {
    let Some(images) = pixels() else { return };
    let small = &images["small_160x120_inter_linear"];
    assert_eq!(resize::linear(small, 101, 77), images["small_101x77_linear"]);
    assert_eq!(resize::linear(small, 240, 180), images["up_240x180_linear"]);
}

/// The photo behind the recorded images is not recorded itself. The letterboxed image holds it at half
/// size. Halving that again rounds twice where the original rounds once, and a half is rounded up, so a
/// quarter of the bytes is larger by one.
#[test]
fn letterboxing_and_halving_agree_with_the_original() {
    let Some(images) = pixels() else { return };
    let boxed = &images["letterbox_480x640_to_320"];
    let half = Image { width: 320, height: 240, data: boxed.data[40 * 320 * 3..280 * 320 * 3].to_vec() };
    let options = LetterboxOptions::exact([320, 320], true);
    let mut ours = Image::default();
    Letterbox::new(240, 320, &options).apply(&half, &mut ours);
    assert_eq!(&ours, boxed);
    let quarter = resize::area(&half, 160, 120);
    assert_close(&quarter, &images["small_160x120_inter_area"], 0.26);
}
