//! What happens in a simulated meeting, drawn from a seed: when each machine starts, and what goes wrong.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// What is wrong with a program that joins, or what happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its options differ from the master's.
    OtherOptions,
    /// It is of another version.
    OtherVersion,
    /// It was told another number of machines.
    OtherCount,
    /// It gives the number of a machine that is there already.
    Twin,
    /// It cannot start its ranks.
    CannotStart,
    /// Its user presses Ctrl-C when it is ready.
    InterruptedWhenReady,
    /// It is killed at this time.
    Killed(Duration),
    /// Its machine loses its power at this time.
    Gone(Duration),
    /// It cannot be reached any more from this time on, and nobody is told.
    Cut(Duration),
    /// It is suspended from this time on for a while.
    Suspended(Duration, Duration),
}

/// A program that joins the run.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The number that its user gave.
    pub(crate) machine: usize,
    pub(crate) ranks: usize,
    pub(crate) start: Duration,
    /// How long it prepares after it got its part.
    pub(crate) plans: Duration,
    pub(crate) fault: Option<Fault>,
}

/// What is wrong with the master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MasterFault {
    Killed(Duration),
    Gone(Duration),
    Suspended(Duration, Duration),
    /// It finds, when it knows all machines, that there can be no run.
    CannotPlan,
}

/// Something that connects to the master's port and is not `yolo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It says something else.
    Talks(Duration),
    /// It says nothing.
    Silent(Duration),
}

/// A simulated meeting.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Machines of the run, the master included.
    pub(crate) machines: usize,
    pub(crate) own_ranks: usize,
    pub(crate) patience: Duration,
    pub(crate) latency: Duration,
    /// When the master opens its port, when it looks at it, and how long it plans when all are there.
    pub(crate) opens: Duration,
    pub(crate) looks: Duration,
    pub(crate) plans: Duration,
    pub(crate) master_fault: Option<MasterFault>,
    /// In the order of their starts. A machine may have none, or several one after the other.
    pub(crate) programs: Vec<Program>,
    pub(crate) strangers: Vec<Stranger>,
}

impl Schedule {
    /// The schedule of a seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let machines = random.random_range(2..=4);
        let patience = Duration::from_secs(random.random_range(4..=40));
        let mut within = |part: f64| patience.mul_f64(random.random_range(0.0..part));
        let opens = within(0.6);
        let looks = opens + within(0.4);
        let plans = within(0.2);
        let mut programs = Vec::new();
        for machine in 1..machines {
            let late = random.random_bool(0.15);
            if random.random_bool(0.05) {
                // It never comes.
                continue;
            }
            let start = patience.mul_f64(random.random_range(0.0..if late { 2.0 } else { 0.7 }));
            let fault = random.random_bool(0.2).then(|| fault(&mut random, start, patience));
            let plans = patience.mul_f64(random.random_range(0.0..0.3));
            let program = Program { machine, ranks: random.random_range(1..=3), start, plans, fault };
            // A machine whose program was killed, or refused, is started again by its user.
            let again = match fault {
                Some(Fault::Killed(at)) => Some(at),
                Some(Fault::OtherVersion | Fault::OtherCount) => Some(start),
                _ => None,
            };
            if let Some(at) = again.filter(|_| random.random_bool(0.6)) {
                let start = at + patience.mul_f64(random.random_range(0.05..0.2));
                programs.push(Program { start, fault: None, ..program.clone() });
            }
            if random.random_bool(0.05) {
                let start = start + patience.mul_f64(random.random_range(0.0..0.5));
                programs.push(Program { start, fault: Some(Fault::Twin), ..program.clone() });
            }
            programs.push(program);
        }
        programs.sort_by_key(|program| program.start);
        let strangers = (0..[0, 0, 1, 3][random.random_range(0..4)]).map(|_| {
            let at = opens + patience.mul_f64(random.random_range(0.0..1.0));
            if random.random_bool(0.5) { Stranger::Talks(at) } else { Stranger::Silent(at) }
        });
        let strangers = strangers.collect();
        let master_fault = random.random_bool(0.15).then(|| {
            let at = opens + patience.mul_f64(random.random_range(0.0..1.0));
            match random.random_range(0..5) {
                0 => MasterFault::Killed(at),
                1 => MasterFault::Gone(at),
                2 => MasterFault::CannotPlan,
                _ => {
                    let time = if random.random_bool(0.5) { 30 } else { 100 };
                    MasterFault::Suspended(at, Duration::from_secs(random.random_range(1..time)))
                }
            }
        });
        Self {
            machines,
            own_ranks: random.random_range(1..=3),
            patience,
            latency: Duration::from_millis([0, 5, 200][random.random_range(0..3)]),
            opens,
            looks,
            plans,
            master_fault,
            programs,
            strangers,
        }
    }
}

fn fault(random: &mut ChaCha8Rng, start: Duration, patience: Duration) -> Fault {
    let at = start + patience.mul_f64(random.random_range(0.0..1.0));
    match random.random_range(0..11) {
        0 => Fault::OtherOptions,
        1 => Fault::OtherVersion,
        2 => Fault::OtherCount,
        3 => Fault::CannotStart,
        4 => Fault::InterruptedWhenReady,
        5 | 6 => Fault::Killed(at),
        7 => Fault::Gone(at),
        8 => Fault::Cut(at),
        _ => Fault::Suspended(at, Duration::from_secs(random.random_range(1..60))),
    }
}
