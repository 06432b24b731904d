//! Suppression of recorded or generated outputs, for a comparison with another program on the same numbers. It reads
//! paths of files from stdin, each with the outputs of images as rows of 85 float32 numbers, 25,200 to an image, and
//! prints for each file the seconds, the processor seconds, and the detections. The threads are those of
//! `RAYON_NUM_THREADS`.
//!
//!     cargo bench -p yolo-trainer --bench suppression

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use yolo_trainer::detection::{NmsSettings, Suppressor};

const CLASSES: usize = 80;
const ROWS: usize = 25_200;

fn main() -> std::io::Result<()> {
    let settings = NmsSettings {
        conf_thres: 0.001,
        iou_thres: 0.6,
        multi_label: true,
        agnostic: false,
        classes: None,
        max_det: 300,
    };
    // The threads start before the time does.
    rayon::broadcast(|_| ());
    for path in std::io::stdin().lock().lines() {
        let bytes = std::fs::read(path?)?;
        let numbers: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        let (began, used) = (Instant::now(), processor_time());
        let found: Vec<usize> = numbers
            .par_chunks_exact(ROWS * (5 + CLASSES))
            .map_init(Suppressor::default, |suppressor, rows| {
                suppressor.suppress(rows, CLASSES, &[], &settings).len()
            })
            .collect();
        let (wall, used) = (began.elapsed(), processor_time().saturating_sub(used));
        println!("{} {} {}", wall.as_secs_f64(), used.as_secs_f64(), found.iter().sum::<usize>());
    }
    Ok(())
}

/// The processor time of all threads that run now, on Linux; zero elsewhere.
fn processor_time() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let of_thread = |thread: std::fs::DirEntry| {
        let file = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        file.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    threads.flatten().filter_map(of_thread).sum()
}
