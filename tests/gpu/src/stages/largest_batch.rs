//! The largest batch that fits into the memory of the GPU: found by trial, because what a batch needs
//! depends on the algorithms that cuDNN chooses.

use std::time::{Duration, Instant};

use super::bench;
use crate::stage_run::{StageRun, Stop};

/// The model.
pub(super) const MODEL: &str = "yolov5n";
/// The first batch that is tried on a GPU, and the largest.
const GPU: (u32, u32) = (128, 4096);
/// The same in a rehearsal.
const REHEARSAL: (u32, u32) = (4, 8);
/// A batch is a multiple of this on a GPU.
const MULTIPLE: u32 = 16;
/// The search ends when the next batch would be larger by less than this part.
const PART: u32 = 8;
/// No trial begins with less time.
const TIME_OF_A_TRIAL: Duration = Duration::from_secs(20);

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Search {
    /// The largest batch that was seen to fit.
    pub(super) best: Option<u32>,
    /// The smallest batch that was seen not to fit.
    pub(super) too_large: Option<u32>,
    /// Whether all was tried. If not, time was over, or a trial failed for another reason, which a check reports.
    pub(super) is_over: bool,
}

/// Searches for at most this long.
pub(super) fn find(stage: &mut StageRun<'_>, time: Duration) -> Result<Search, Stop> {
    let (first, last) = stage.session.scale.of(GPU, REHEARSAL);
    let multiple = stage.session.scale.of(MULTIPLE, 1);
    let until = Instant::now() + time;
    search(first, last, multiple, |batch| {
        let left = stage.time_left().min(until.saturating_duration_since(Instant::now()));
        if left < TIME_OF_A_TRIAL {
            return Ok(None);
        }
        trial(stage, batch)
    })
}

/// Whether a step with this batch fits; `None` if the trial failed for another reason.
fn trial(stage: &mut StageRun<'_>, batch: u32) -> Result<Option<bool>, Stop> {
    let size = stage.session.scale.of(640, 64);
    // The GPU is asked, and not the estimate of the preflight checks.
    let options = "--synthetic --precision fp32 --no-preflight";
    let ended = stage.run(bench::invocation(stage.session, MODEL, size, batch, 1, options))?;
    if ended.succeeded() || bench::ran_out_of_memory(&ended) {
        return Ok(Some(ended.succeeded()));
    }
    stage.check_success(format!("{MODEL}, {size} px, batch {batch}: it fits, or memory runs out"), &ended);
    Ok(None)
}

/// Doubles `first` until a batch does not fit or `last` is reached, or halves it until one fits, and then
/// narrows the gap. A `fits` that answers `None` ends the search with what is known.
fn search<E>(
    first: u32,
    last: u32,
    multiple: u32,
    mut fits: impl FnMut(u32) -> Result<Option<bool>, E>,
) -> Result<Search, E> {
    let (mut batch, mut best, mut too_large) = (first, None, None);
    while let Some(next) = next(batch, best, too_large, last, multiple) {
        batch = next;
        match fits(batch)? {
            Some(true) => best = Some(batch),
            Some(false) => too_large = Some(batch),
            None => return Ok(Search { best, too_large, is_over: false }),
        }
    }
    Ok(Search { best, too_large, is_over: true })
}

/// The next batch to try; `None` if the search is over.
fn next(batch: u32, best: Option<u32>, too_large: Option<u32>, last: u32, multiple: u32) -> Option<u32> {
    match (best, too_large) {
        (None, None) => Some(batch),
        (None, Some(too_large)) => Some(too_large / 2).filter(|&half| half > 0),
        (Some(best), None) => Some((best * 2).min(last)).filter(|&double| double > best),
        (Some(best), Some(too_large)) => {
            let middle = (best + too_large) / 2 / multiple * multiple;
            let is_worth_it = too_large - best > best / PART;
            Some(middle).filter(|&middle| is_worth_it && middle > best)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where `limit` images fit, and returns what was tried too.
    fn searched(limit: u32, trials: usize) -> (Search, Vec<u32>) {
        let mut tried = Vec::new();
        let found = search::<()>(128, 4096, 16, |batch| {
            tried.push(batch);
            Ok((tried.len() <= trials).then_some(batch <= limit))
        });
        (found.unwrap(), tried)
    }

    fn over(best: Option<u32>, too_large: Option<u32>) -> Search {
        Search { best, too_large, is_over: true }
    }

    #[test]
    fn the_batch_is_doubled_and_then_narrowed() {
        let (found, tried) = searched(700, 99);
        assert_eq!(tried, [128, 256, 512, 1024, 768, 640, 704]);
        assert_eq!(found, over(Some(640), Some(704)));
    }

    #[test]
    fn on_a_small_gpu_the_batch_is_halved() {
        let (found, tried) = searched(20, 99);
        assert_eq!(tried, [128, 64, 32, 16]);
        assert_eq!(found, over(Some(16), Some(32)));
        assert_eq!(searched(0, 99).0, over(None, Some(1)));
    }

    #[test]
    fn a_batch_that_always_fits_ends_the_search() {
        assert_eq!(searched(u32::MAX, 99).0, over(Some(4096), None));
    }

    #[test]
    fn what_is_known_counts_when_time_is_over() {
        let stopped = |best, too_large| Search { best, too_large, is_over: false };
        assert_eq!(searched(700, 2).0, stopped(Some(256), None));
        assert_eq!(searched(700, 0).0, stopped(None, None));
        // Not a GPU on which nothing fits.
        assert_eq!(searched(20, 2).0, stopped(None, Some(64)));
    }
}
