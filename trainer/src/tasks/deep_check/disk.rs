//! Images of the data set: how fast the disk reads them and one thread decodes them. Each rank takes
//! its share. Broken images are skipped; the data checks report them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use yolo_data::image::decode::decode_bytes;
use yolo_plan::event::Measure;

use super::measure::report;
use crate::rank::context::Context;

/// Time limit for reading, and for decoding.
const LONGEST: Duration = Duration::from_secs(2);

pub(super) fn measure(context: &Context, images: &[PathBuf]) {
    let mine: Vec<&PathBuf> = images.iter().skip(context.rank).step_by(context.world).collect();
    if mine.is_empty() {
        return;
    }
    context.reporter.phase("reading images from the disk");
    let began = Instant::now();
    let mut read = Vec::new();
    for path in mine {
        read.extend(from_disk(path));
        if began.elapsed() > LONGEST {
            break;
        }
    }
    let bytes: usize = read.iter().map(Vec::len).sum();
    if read.is_empty() {
        context.reporter.warning("no image of the data set could be read");
        return;
    }
    report(context, Measure::DiskRead, bytes as f64 / began.elapsed().as_secs_f64() / 1e6);
    report(context, Measure::ImageBytes, bytes as f64 / read.len() as f64);
    context.reporter.phase("decoding images");
    let began = Instant::now();
    let mut decoded = 0_u32;
    for bytes in &read {
        decoded += u32::from(decode_bytes(bytes).is_ok());
        if began.elapsed() > LONGEST {
            break;
        }
    }
    if decoded == 0 {
        context.reporter.warning("no image of the data set could be decoded");
        return;
    }
    report(context, Measure::Decode, f64::from(decoded) / began.elapsed().as_secs_f64());
}

/// The bytes of a file, read from the disk: where the system allows it, its cached pages are dropped
/// first.
fn from_disk(path: &PathBuf) -> Option<Vec<u8>> {
    #[cfg(target_os = "linux")]
    {
        let file = fs_err::File::open(path).ok()?;
        // If the system keeps the pages, the rate is that of its cache.
        let _ = rustix::fs::fadvise(file.file(), 0, None, rustix::fs::Advice::DontNeed);
    }
    fs_err::read(path).ok()
}
