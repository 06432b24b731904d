//! What the simulations do with seeds: all hold, some reach each end, and each defect is found by one. A seed in
//! `YOLO_SIMULATION_SEED` is replayed instead of playing all.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Schedules that are played in each run of a test.
const SCHEDULES: u64 = 100_000;

/// The seed to replay.
pub(crate) fn replayed() -> Option<u64> {
    std::env::var("YOLO_SIMULATION_SEED").ok()?.parse().ok()
}

/// Fails with the first seeds of which `play` says what is wrong.
#[track_caller]
pub(crate) fn assert_all_hold(play: impl Fn(u64) -> Result<(), String>) {
    let failures: Vec<String> = (0..SCHEDULES)
        .filter_map(|seed| play(seed).err().map(|why| format!("seed {seed}: {why}")))
        .take(5)
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Fails unless the seeds reach each of these kinds.
#[track_caller]
pub(crate) fn assert_reached(kinds: &[&str], kinds_of: impl Fn(u64) -> Vec<&'static str>) {
    let mut seen = BTreeMap::<&str, u32>::new();
    for kind in (0..5_000).flat_map(kinds_of) {
        *seen.entry(kind).or_default() += 1;
    }
    for kind in kinds {
        assert!(seen.get(kind).is_some_and(|count| *count >= 10), "{kind}: {seen:?}");
    }
}

/// Fails unless some seed finds each of these defects, and prints that seed.
#[track_caller]
#[allow(clippy::print_stdout, reason = "the output of a failed test")]
pub(crate) fn assert_each_found<D: Copy + Debug>(defects: &[D], play: impl Fn(u64, D) -> Result<(), String>) {
    for &defect in defects {
        let found = (0..20_000).find_map(|seed| play(seed, defect).err().map(|why| (seed, why)));
        let (seed, why) = found.unwrap_or_else(|| panic!("no seed finds {defect:?}"));
        println!("{defect:?}: seed {seed}: {why}");
    }
}
