//! Plays how the machines of a run meet: the production state machines of the master and of the others, in a
//! simulated world of programs, connections, strangers and a clock that a seed drives. Machines come late or never,
//! differ, die, are cut off or suspended, and strangers knock. After each meeting the properties hold that a user
//! relies on. A seed that fails is printed, and replays exactly:
//! `YOLO_SIMULATION_SEED=17 cargo test -p yolo-protocol --test meeting -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod defects;
mod history;
mod master;
mod program;
mod properties;
mod schedule;
mod world;

use defects::Defect;
use schedule::Schedule;

/// Schedules that are played in each run of this test.
const SCHEDULES: u64 = 100_000;

/// Plays one schedule and returns what is wrong.
fn play(seed: u64, defect: Option<Defect>) -> Result<(), String> {
    let schedule = Schedule::from_seed(seed);
    let history = world::World::new(&schedule, defect, false).run();
    properties::check(&schedule, &history)
}

/// The seed to replay.
fn replayed() -> Option<u64> {
    std::env::var("YOLO_SIMULATION_SEED").ok()?.parse().ok()
}

#[test]
fn every_meeting_ends_as_it_should() {
    if let Some(seed) = replayed() {
        let schedule = Schedule::from_seed(seed);
        println!("{schedule:#?}");
        let history = world::World::new(&schedule, None, true).run();
        history.log.iter().for_each(|line| println!("{line}"));
        properties::check(&schedule, &history).unwrap();
        return;
    }
    let failures: Vec<String> = (0..SCHEDULES)
        .filter_map(|seed| play(seed, None).err().map(|why| format!("seed {seed}: {why}")))
        .take(5)
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_schedules_reach_every_end() {
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..5_000 {
        let schedule = Schedule::from_seed(seed);
        for kind in properties::kinds(&world::World::new(&schedule, None, false).run()) {
            *seen.entry(kind).or_default() += 1;
        }
    }
    for kind in properties::KINDS {
        assert!(seen.get(kind).is_some_and(|count| *count >= 10), "{kind}: {seen:?}");
    }
}

#[test]
fn each_known_defect_is_found() {
    for defect in Defect::ALL {
        let found = (0..20_000).find_map(|seed| play(seed, Some(defect)).err().map(|why| (seed, why)));
        let (seed, why) = found.unwrap_or_else(|| panic!("no seed finds {defect:?}"));
        println!("{defect:?}: seed {seed}: {why}");
    }
}
