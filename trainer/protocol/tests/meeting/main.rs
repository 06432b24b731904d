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
#[path = "../support/seeds.rs"]
mod seeds;
mod world;

use defects::Defect;
use schedule::Schedule;

/// Plays one schedule and returns what is wrong.
fn play(seed: u64, defect: Option<Defect>) -> Result<(), String> {
    let schedule = Schedule::from_seed(seed);
    let history = world::World::new(&schedule, defect, false).run();
    properties::check(&schedule, &history)
}

#[test]
fn every_meeting_ends_as_it_should() {
    if let Some(seed) = seeds::replayed() {
        let schedule = Schedule::from_seed(seed);
        println!("{schedule:#?}");
        let history = world::World::new(&schedule, None, true).run();
        history.log.iter().for_each(|line| println!("{line}"));
        properties::check(&schedule, &history).unwrap();
        return;
    }
    seeds::assert_all_hold(|seed| play(seed, None));
}

#[test]
fn the_schedules_reach_every_end() {
    seeds::assert_reached(&properties::KINDS, |seed| {
        properties::kinds(&world::World::new(&Schedule::from_seed(seed), None, false).run())
    });
}

#[test]
fn each_known_defect_is_found() {
    seeds::assert_each_found(&Defect::ALL, |seed, defect| play(seed, Some(defect)));
}
