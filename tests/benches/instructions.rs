//! Instruction counts of the hot paths that need no libtorch: loader, warp, pickle reader, checks.
//! `.ci/instructions` runs them under callgrind and compares the counts with
//! `tests/benches/instructions.txt`. Counts do not depend on how busy a machine is, so CI can hold
//! them to a few per cent.

#![allow(missing_docs, clippy::exit, clippy::unwrap_used, reason = "a benchmark; gungraun's main exits")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gungraun::{library_benchmark, library_benchmark_group, main};
use yolo_checks::{Host, Intent};
use yolo_data::augment::Augment;
use yolo_data::image::{Image, encode::write_jpeg, warp::warp};
use yolo_data::loader::{ImageMemory, LoaderSettings, TrainLoader};
use yolo_data::scan::{ScanOptions, scan};
use yolo_plan::hyp::HyperParameters;

/// A picture with structure at several scales, so that neither decoding nor warping is trivial.
fn picture(width: usize, height: usize, seed: usize) -> Image {
    let mut image = Image::filled(width, height, [0; 3]);
    for (index, pixel) in image.data.chunks_exact_mut(3).enumerate() {
        let (x, y) = (index % width, index / width);
        let noise = ((x * 31 + y * 17 + seed * 101) * 2_654_435_761) >> 7;
        pixel.copy_from_slice(&[(x + seed) as u8, (y * 2) as u8, ((noise & 31) + (x ^ y)) as u8]);
    }
    image
}

/// A loader over four JPEG images of 320×240, each with three boxes.
fn loader() -> TrainLoader {
    let folder = std::env::temp_dir().join(format!("yolo-instructions-{}", std::process::id()));
    let (images, labels) = (folder.join("images"), folder.join("labels"));
    [&images, &labels].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    for index in 0..4 {
        write_jpeg(&images.join(format!("{index}.jpg")), &picture(320, 240, index)).unwrap();
        let boxes = "0 0.3 0.3 0.2 0.2\n1 0.6 0.5 0.3 0.4\n0 0.7 0.8 0.1 0.2\n";
        std::fs::write(labels.join(format!("{index}.txt")), boxes).unwrap();
    }
    let options = ScanOptions { cache: false, ..ScanOptions::new("train", usize::MAX) };
    let samples: Arc<[_]> = scan(&[images], &options).unwrap().samples.into();
    let augment = Augment::from(&HyperParameters::load("scratch-low").unwrap());
    let settings = LoaderSettings {
        image_size: 320,
        stride: 32,
        shares: vec![4],
        balance: None,
        rank: 0,
        seed: 0,
        workers: 0,
        rect: false,
        image_weights: None,
        quad: false,
        cache: None,
        memory: ImageMemory::default(),
        augment,
    };
    TrainLoader::new(samples, settings).unwrap()
}

#[library_benchmark]
#[bench::mosaic_of_four_jpeg_320(setup = loader)]
fn load_an_epoch(mut loader: TrainLoader) -> usize {
    black_box(loader.epoch(0, 0).map(|batch| batch.unwrap().items.len()).sum())
}

fn square() -> Image {
    picture(640, 640, 1)
}

#[library_benchmark]
#[bench::affine_640(setup = square)]
fn warp_an_image(image: Image) -> Image {
    let matrix = [[0.9, 0.1, 12.0], [-0.1, 0.9, 40.0], [0.0, 0.0, 1.0]];
    let mut out = Image::default();
    warp(black_box(&image), &matrix, 640, 640, &mut out);
    out
}

/// A checkpoint that PyTorch wrote.
fn checkpoint() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("trainer/weights/tests/golden/protocol2.pt")
}

#[library_benchmark]
#[bench::protocol_2(setup = checkpoint)]
fn read_a_checkpoint(path: PathBuf) -> usize {
    black_box(torch_checkpoint::read(&path).unwrap().tensors.len())
}

/// A recorded machine with eight GPUs.
fn host() -> Host {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("checks/tests/hosts/bases/linux-8-gpus.json");
    let recording = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    Host::from_value(recording).unwrap().0
}

#[library_benchmark]
#[bench::eight_gpus(setup = host)]
fn run_all_checks(host: Host) -> usize {
    let intent = Intent::default();
    let checks = yolo_checks::checks::all();
    black_box(checks.filter_map(|check| (check.run)(&host, &intent).ok()).map(|found| found.len()).sum())
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [load_an_epoch, warp_an_image, read_a_checkpoint, run_all_checks]
);

main!(library_benchmark_groups = hot_paths);
