//! Runs the supervisor, the agents on other machines and the ranks' protocol in a simulated world: processes,
//! pipes, connections, signals and a clock that a seed drives, with deaths, hangs, late messages, lost
//! machines, signals and full disks. After each run the
//! properties hold that a user relies on. A seed that fails is printed, and replays exactly:
//! `YOLO_SIMULATION_SEED=17 cargo test -p yolo-protocol --test simulation -- --nocapture`.

mod defects;
mod faults;
mod history;
mod machines;
mod network;
mod process;
mod program;
mod properties;
mod ranks;
mod schedule;
#[path = "../support/seeds.rs"]
mod seeds;
mod world;

use defects::Defect;
use schedule::Schedule;

/// Plays one schedule and returns what is wrong.
fn play(seed: u64, defect: Option<Defect>) -> Result<(), String> {
    let schedule = Schedule::from_seed(seed);
    let history = world::World::new(&schedule, defect).run();
    properties::check(&schedule, &history)
}

#[test]
fn every_schedule_ends_as_it_should() {
    if let Some(seed) = seeds::replayed() {
        let schedule = Schedule::from_seed(seed);
        println!("{schedule:#?}");
        let history = world::World::new(&schedule, None).run();
        history.log.iter().for_each(|line| println!("{line}"));
        println!("{:?}", history.verdict);
        properties::check(&schedule, &history).unwrap();
        return;
    }
    seeds::assert_all_hold(|seed| play(seed, None));
}

#[test]
fn the_schedules_reach_every_verdict_and_notice() {
    seeds::assert_reached(&properties::KINDS, |seed| {
        properties::kinds(&world::World::new(&Schedule::from_seed(seed), None).run())
    });
}

#[test]
fn each_known_defect_is_found() {
    seeds::assert_each_found(&Defect::ALL, |seed, defect| play(seed, Some(defect)));
}
