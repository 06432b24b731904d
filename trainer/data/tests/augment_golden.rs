//! Geometry and pixels against numbers of the Python original (OpenCV). Its images are BGR, and
//! every step but the change to HSV treats the channels alike, so they are used as they are.

#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may stop at once, and says when it is skipped"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;
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

/// A file of the golden folder, which only some checkouts have.
fn golden(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("YOLO_GOLDEN").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/golden")),
        PathBuf::from,
    );
    let file = folder.join(name);
    if !file.exists() {
        eprintln!("skipped: {} is not there", file.display());
        return None;
    }
    Some(file)
}

fn geometry() -> Option<Value> {
    Some(serde_json::from_reader(File::open(golden("g_geometry.json")?).unwrap()).unwrap())
}

/// The images of g_pixels.npz by name: a zip of `.npy` files, version 1, of bytes.
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

/// Images are equal up to one grey level in at most `share` of the bytes.
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
}

#[test]
fn hsv_tables_and_colours() {
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

/// The canvas of one centre holds most of every tile; put on another centre those tiles must give
/// the original's canvas again, where they are known.
#[test]
fn mosaic_places_tiles_and_labels_as_the_original() {
    let (Some(golden), Some(images)) = (geometry(), pixels()) else { return };
    let canvas = &images["mosaic0_320"];
    let centre: [usize; 2] = [176, 112];
    let (width, height) = (160, 120);
    // Pixels that the first canvas cuts off are grey, and left out of the comparison below.
    let tiles: [Image; 4] = std::array::from_fn(|place| {
        let mut tile = Image::filled(width, height, [114; 3]);
        for y in 0..height {
            for x in 0..width {
                let at_y = (centre[0] + y).checked_sub(if place < 2 { height } else { 0 });
                let at_x = (centre[1] + x).checked_sub(if place % 2 == 0 { width } else { 0 });
                if let (Some(at_x), Some(at_y)) = (at_x, at_y)
                    && at_x < 320
                    && at_y < 320
                {
                    tile.data[(y * width + x) * 3..][..3].copy_from_slice(&canvas.pixel(at_x, at_y));
                }
            }
        }
        tile
    });
    let empty = Sample::default();
    for (i, case) in golden["mosaic"].as_array().unwrap().iter().enumerate() {
        let centre = [number(&case["yc"]) as usize, number(&case["xc"]) as usize];
        let (mut ours, mut labels) = (Image::default(), Vec::new());
        let [a, b, c, d] = tiles.each_ref().map(|tile| (tile, &empty));
        mosaic([a, b, c, d], centre, 160, &mut ours, &mut labels);
        let theirs = &images[&format!("mosaic{i}_320")];
        let step = 320 / theirs.width;
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
    }
}

#[test]
fn enlarging_shrinking_and_padding() {
    let Some(images) = pixels() else { return };
    // The letterboxed image is the original photo at half size; its own half by area is close to
    // the quarter by area, which ties our filters to OpenCV's without the photo.
    let boxed = &images["letterbox_480x640_to_320"];
    let half = Image { width: 320, height: 240, data: boxed.data[40 * 320 * 3..280 * 320 * 3].to_vec() };
    let options = LetterboxOptions::exact([320, 320], true);
    let mut ours = Image::default();
    Letterbox::new(240, 320, &options).apply(&half, &mut ours);
    assert_eq!(&ours, boxed);
    let quarter = resize::area(&half, 160, 120);
    assert_close(&quarter, &images["small_160x120_inter_area"], 0.5);
}
