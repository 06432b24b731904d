//! Images a second of the training loader alone: mosaics with default augmentation.
//! `YOLO_BENCH_DATA=bccd/images/train cargo bench -p yolo-data --bench loader` prints one line
//! per number of threads, with the first epoch, which decodes, and the later ones separately.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use yolo_data::augment::Augment;
use yolo_data::loader::{LoaderSettings, TrainLoader};
use yolo_data::scan::{ScanOptions, scan};
use yolo_plan::hyp::HyperParameters;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = std::env::var_os("YOLO_BENCH_DATA").map(PathBuf::from) else {
        return Err("set YOLO_BENCH_DATA to a folder of images with YOLO labels".into());
    };
    let samples: Arc<[_]> =
        scan(&[folder], &ScanOptions { cache: false, ..ScanOptions::new("train", usize::MAX) })?
            .samples
            .into();
    let augment = Augment::from(&HyperParameters::load("scratch-low")?);
    for workers in [0, 1, 2, 4] {
        let settings = LoaderSettings {
            image_size: 320,
            stride: 32,
            shares: vec![16],
            balance: None,
            rank: 0,
            seed: 0,
            workers,
            rect: false,
            cache: None,
            augment: augment.clone(),
        };
        let started = Instant::now();
        let mut loader = TrainLoader::new(Arc::clone(&samples), settings)?;
        let recycler = loader.recycler();
        let mut first_batch = None;
        let mut rates = Vec::new();
        for epoch in 0..4 {
            let epoch_started = Instant::now();
            let mut images = 0;
            for batch in loader.epoch(epoch, 0) {
                let batch = batch?;
                first_batch.get_or_insert_with(|| started.elapsed());
                images += batch.items.len();
                recycler.give(batch.pixels);
            }
            rates.push(images as f64 / epoch_started.elapsed().as_secs_f64());
        }
        let later = rates[1..].iter().sum::<f64>() / (rates.len() - 1) as f64;
        #[expect(clippy::print_stdout, reason = "the result of the benchmark")]
        {
            println!(
                "{workers} workers: {:.0} images/s in the first epoch, {later:.0} later; first batch after {:.0} ms",
                rates[0],
                first_batch.unwrap_or_default().as_secs_f64() * 1e3
            );
        }
    }
    Ok(())
}
