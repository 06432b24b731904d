//! Images a second of the training loader alone: mosaics of 640 px with default augmentation, first with every image
//! decoded each time, then with all of them in memory.
//! `YOLO_BENCH_DATA=bccd/images/train taskset -c 0 cargo bench -p yolo-data --bench loader` prints one line
//! for each. The first epoch is not counted. Arguments: the image size, the number of timed epochs, and the number of
//! threads, of which 0 means the caller's. On Linux, seconds are those of the processor, of all threads together, so that
//! other programs on the machine matter less; with threads, the rate by the clock is printed too.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use yolo_data::augment::Augment;
use yolo_data::loader::{ImageMemory, LoaderSettings, TrainLoader};
use yolo_data::scan::{ScanOptions, scan};
use yolo_plan::hyp::HyperParameters;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = std::env::var_os("YOLO_BENCH_DATA").map(PathBuf::from) else {
        return Err("set YOLO_BENCH_DATA to a folder of images with YOLO labels".into());
    };
    // Cargo adds `--bench`.
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let image_size = numbers.first().copied().unwrap_or(640);
    let epochs = numbers.get(1).copied().unwrap_or(3) as u64;
    let workers = numbers.get(2).copied().unwrap_or(0);
    let samples: Arc<[_]> =
        scan(&[folder], &ScanOptions { cache: false, ..ScanOptions::new("train", usize::MAX) })?
            .samples
            .into();
    let start = Instant::now();
    for (name, keep) in [("decoding each image", 0), ("all images in memory", usize::MAX)] {
        let settings = LoaderSettings {
            image_size,
            stride: 32,
            shares: vec![16],
            balance: None,
            rank: 0,
            seed: 0,
            workers,
            rect: false,
            image_weights: None,
            quad: false,
            cache: None,
            memory: ImageMemory::default(),
            augment: Augment::from(&HyperParameters::load("scratch-low")?),
        };
        let mut loader = TrainLoader::new(Arc::clone(&samples), settings)?;
        loader.keep_at_most(keep);
        let recycler = loader.recycler();
        let (mut rates, mut by_the_clock) = (Vec::new(), Vec::new());
        let mut sum = 0_u64;
        for epoch in 0..=epochs {
            let (started, began) = (processor_time(start), Instant::now());
            let mut images = 0;
            for batch in loader.epoch(epoch, 0) {
                let batch = batch?;
                images += batch.items.len();
                sum += batch.pixels.iter().step_by(997).map(|&byte| u64::from(byte)).sum::<u64>();
                recycler.give(batch.pixels);
            }
            rates.push(images as f64 / (processor_time(start) - started).as_secs_f64());
            by_the_clock.push(images as f64 / began.elapsed().as_secs_f64());
        }
        let [timed, by_the_clock] = [rates, by_the_clock]
            .map(|rates| rates[1..].iter().map(|rate| format!("{rate:.1}")).collect::<Vec<_>>().join(", "));
        let by_the_clock =
            if workers == 0 { String::new() } else { format!(", by the clock {by_the_clock}") };
        #[expect(clippy::print_stdout, reason = "the result of the benchmark")]
        {
            println!("{name}, {image_size} px: {timed} images/s{by_the_clock} (checksum {sum})");
        }
    }
    Ok(())
}

/// The time that all threads have used on the processor, or else the time since `start`.
fn processor_time(start: Instant) -> Duration {
    let text = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads == 1 {
        // In nanoseconds, but only of this thread.
        let nanoseconds =
            text("/proc/self/schedstat").split(' ').next().and_then(|number| number.parse().ok());
        return nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos);
    }
    // User and system time of the process, in hundredths of a second, after the name in parentheses.
    let stat = text("/proc/self/stat");
    let numbers = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: Vec<u64> = numbers.skip(11).take(2).filter_map(|number| number.parse().ok()).collect();
    if ticks.is_empty() { start.elapsed() } else { Duration::from_millis(10 * ticks.iter().sum::<u64>()) }
}
