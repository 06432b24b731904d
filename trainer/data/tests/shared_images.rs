//! Several loaders that share decoded images in memory, as the ranks of a machine do: their batches are those of a
//! loader with images of its own, each image is kept once, and the budget is one for all. Some of them are processes
//! of their own, which this program starts and kills.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/painted.rs"]
mod painted;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use painted::{painted, settings};
use yolo_base::env::{RANK, YOLO_IMAGES_FD};
use yolo_data::loader::{Batch, ImageMemory, Kept, LoaderSettings, TrainLoader};
use yolo_data::scan::Sample;
use yolo_plan::options::Cache;

const IMAGES: usize = 22;
/// The settings of tests have images of 64 pixels: two thirds of them are 64x43 or 43x64, the others are square.
const BYTES: u64 = (15 * 64 * 43 + 7 * 64 * 64) * 3;

/// The loader of a rank of two.
fn loader(samples: &Arc<[Sample]>, rank: usize, memory: ImageMemory, workers: usize) -> TrainLoader {
    let settings =
        LoaderSettings { rank, shares: vec![2, 2], cache: Some(Cache::Ram), memory, ..settings(workers) };
    TrainLoader::new(Arc::clone(samples), settings).unwrap()
}

fn shared(file: &File) -> ImageMemory {
    ImageMemory::of_rank(2, Some(file.try_clone().unwrap()))
}

fn batches(loader: &mut TrainLoader, epochs: u64) -> Vec<Batch> {
    (0..epochs).flat_map(|epoch| loader.epoch(epoch, 0).map(Result::unwrap).collect::<Vec<_>>()).collect()
}

#[test]
fn ranks_that_share_images_load_the_batches_of_ranks_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), IMAGES);
    let alone = [0, 1].map(|rank| batches(&mut loader(&samples, rank, ImageMemory::default(), 0), 3));
    for workers in [0, 2] {
        let file = ImageMemory::shareable().unwrap();
        let together: Vec<(Vec<Batch>, Kept)> = std::thread::scope(|scope| {
            let ranks = [0, 1].map(|rank| {
                let mut loader = loader(&samples, rank, shared(&file), workers);
                scope.spawn(move || (batches(&mut loader, 3), loader.kept()))
            });
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for ((ours, _), expected) in together.iter().zip(&alone) {
            assert!(ours == expected, "with {workers} workers");
        }
        let kept = loader(&samples, 0, shared(&file), 0).kept();
        assert_eq!((kept.ranks, kept.images, kept.of, kept.bytes), (2, IMAGES, IMAGES, BYTES));
    }
}

#[test]
fn an_image_is_decoded_once_on_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), IMAGES);
    let file = ImageMemory::shareable().unwrap();
    // One after the other, because ranks that need an image at the same moment both decode it.
    let decoded = [0, 1].map(|rank| {
        let mut loader = loader(&samples, rank, shared(&file), 0);
        batches(&mut loader, 3);
        loader.kept().decoded
    });
    assert_eq!(decoded, [IMAGES as u64; 2]);
    let own = [0, 1].map(|rank| {
        let mut loader = loader(&samples, rank, ImageMemory::of_rank(2, None), 0);
        batches(&mut loader, 3);
        assert_eq!((loader.kept().ranks, loader.kept().bytes), (1, BYTES));
        loader.kept().decoded
    });
    assert_eq!(own, [IMAGES as u64; 2], "without the file, once by each");
}

#[test]
fn a_budget_below_the_data_is_one_for_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), IMAGES);
    let expected = batches(&mut loader(&samples, 1, ImageMemory::default(), 0), 2);
    let file = ImageMemory::shareable().unwrap();
    let mut ranks = [0, 1].map(|rank| loader(&samples, rank, shared(&file), 1));
    assert_eq!(ranks[0].memory_to_come(), BYTES);
    ranks[0].keep_at_most(64 * 64 * 3 * 4);
    assert_eq!(ranks[1].memory_to_come(), 64 * 64 * 3 * 4);
    batches(&mut ranks[0], 2);
    assert!(batches(&mut ranks[1], 2) == expected);
    let Kept { images, bytes, decoded, .. } = ranks[0].kept();
    assert!((4..8).contains(&images) && bytes <= 64 * 64 * 3 * 4, "{images} images of {bytes} bytes");
    assert!(decoded > IMAGES as u64, "the others are decoded each time");
}

#[test]
fn without_cache_all_ranks_together_keep_what_one_would() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), IMAGES);
    let to_come = |memory: ImageMemory| {
        TrainLoader::new(Arc::clone(&samples), LoaderSettings { memory, ..settings(0) })
            .unwrap()
            .memory_to_come()
    };
    let one = to_come(ImageMemory::default());
    let file = ImageMemory::shareable().unwrap();
    assert_eq!(to_come(shared(&file)), one);
    assert_eq!(to_come(ImageMemory::of_rank(4, None)), one, "a quarter for each");
}

/// Starts a rank as a process, which writes a checksum of its batches into a file of its number.
fn start(folder: &Path, file: &File, rank: usize) -> Child {
    let inherited = file.try_clone().unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "a_rank"]).current_dir(folder).stdout(Stdio::null());
    command.env(RANK, rank.to_string()).env(YOLO_IMAGES_FD, inherited.as_raw_fd().to_string());
    command.spawn().unwrap()
}

#[test]
#[ignore = "a process that other tests start"]
fn a_rank() {
    let (Ok(rank), Ok(number)) = (std::env::var(RANK), std::env::var(YOLO_IMAGES_FD)) else { return };
    let samples = painted(Path::new(&format!("rank{rank}")), IMAGES);
    let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{number}")).unwrap();
    // Each rank has painted the images for itself, so that none reads a file that another one is writing.
    let relative: Vec<Sample> = samples
        .iter()
        .map(|sample| Sample {
            image: sample.image.strip_prefix(format!("rank{rank}")).unwrap().into(),
            ..sample.clone()
        })
        .collect();
    std::env::set_current_dir(format!("rank{rank}")).unwrap();
    let mut loader = loader(&relative.into(), rank.parse().unwrap(), shared(&file), 2);
    let found = batches(&mut loader, 3);
    assert_eq!(loader.take_warnings(), [""; 0]);
    std::fs::write("checksum", checksum(&found).to_string()).unwrap();
}

fn checksum(batches: &[Batch]) -> u64 {
    let bytes = batches.iter().flat_map(|batch| &batch.pixels);
    bytes.fold(14_695_981_039_346_656_037, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    })
}

#[test]
fn processes_share_images_also_with_one_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), IMAGES);
    (0..2).for_each(|rank| std::fs::create_dir(folder.path().join(format!("rank{rank}"))).unwrap());
    let expected =
        [0, 1].map(|rank| checksum(&batches(&mut loader(&samples, rank, ImageMemory::default(), 0), 3)));
    let file = ImageMemory::shareable().unwrap();
    // Wherever it is when it is killed, the others neither wait for it nor see a half of what it wrote.
    let mut killed = start(folder.path(), &file, 0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ranks = [0, 1].map(|rank| start(folder.path(), &file, rank));
    assert!(ranks.into_iter().all(|mut rank| rank.wait().unwrap().success()));
    let found: [u64; 2] = [0, 1].map(|rank| {
        std::fs::read_to_string(folder.path().join(format!("rank{rank}/checksum"))).unwrap().parse().unwrap()
    });
    assert_eq!(found, expected);
}
