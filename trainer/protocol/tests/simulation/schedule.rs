//! What happens in a simulated run, drawn from a seed: the ranks, their work, and the faults.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Something that goes wrong, or that a user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A rank is killed by this signal from outside.
    Signal(usize, i32),
    /// A rank exits with status 3, without a word.
    Exit(usize),
    /// A rank exits with success in the middle of the work.
    LeaveEarly(usize),
    /// A rank reports an error of its own.
    Error(usize),
    /// The main thread of a rank hangs; its heartbeats go on.
    Hang(usize),
    /// A rank hangs in the kernel: no signal ends it.
    Unkillable(usize),
    /// A rank is stopped by SIGSTOP.
    Stop(usize),
    /// Checkpoints cannot be written any more.
    DiskFull,
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, sent twice at once, as `timeout` does.
    TerminateTwice,
    /// SIGTERM and at once SIGHUP, as systemd sends them.
    TerminateAndHangUp,
    /// Ctrl-Z, and `fg` after these seconds.
    Suspend(u64),
    /// The machine sleeps for these seconds.
    Sleep(u64),
    /// The supervisor is killed by SIGKILL.
    SupervisorKilled,
    /// The agent on a machine is killed by SIGKILL.
    AgentKilled(usize),
    /// A machine loses its power.
    MachineGone(usize),
    /// A machine is cut off: nothing arrives, and nobody is told.
    Cut(usize),
    /// The connection between a machine and the master breaks, and both notice.
    Broken(usize),
    /// What a machine and the master send each other takes these seconds.
    Delayed(usize, u64),
    /// Ctrl-C on a machine that is not the master.
    InterruptOn(usize),
}

/// A simulated run.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// The number of ranks on each machine. The first is the master.
    pub(crate) machines: Vec<usize>,
    /// Ranks on all machines.
    pub(crate) ranks: usize,
    pub(crate) epochs: usize,
    pub(crate) steps: usize,
    /// The mean time of a step.
    pub(crate) step: Duration,
    /// Whether rank 0 validates.
    pub(crate) validates: bool,
    /// How late an event may reach the supervisor.
    pub(crate) latency: Duration,
    pub(crate) restarts: u32,
    /// A rank that does not end after the work.
    pub(crate) stays: Option<usize>,
    pub(crate) faults: Vec<(Duration, Fault)>,
}

impl Schedule {
    /// The schedule of a seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let machines: Vec<usize> = match random.random_range(1..=3) {
            1 => vec![random.random_range(1..=4)],
            several => (0..several).map(|_| random.random_range(1..=2)).collect(),
        };
        let ranks = machines.iter().sum();
        let epochs = random.random_range(1..=3);
        let steps = random.random_range(2..=8);
        let step = Duration::from_millis(random.random_range(50..3000));
        let length = step * (epochs * steps) as u32 + Duration::from_secs(15);
        let count = [0, 1, 1, 1, 1, 2, 2, 3][random.random_range(0..8)];
        let mut faults: Vec<_> = (0..count)
            .map(|_| {
                (length.mul_f64(random.random_range(0.0..1.1)), fault(&mut random, ranks, machines.len()))
            })
            .collect();
        // Some users press Ctrl-C again, at once or later.
        if let Some((at, Fault::Interrupt)) = faults.last().copied()
            && random.random_bool(0.5)
        {
            faults.push((at + Duration::from_millis(random.random_range(50..5000)), Fault::Interrupt));
        }
        faults.sort_by_key(|(at, _)| *at);
        Self {
            seed,
            machines,
            ranks,
            epochs,
            steps,
            step,
            validates: random.random_bool(0.7),
            latency: Duration::from_millis([0, 5, 200][random.random_range(0..3)]),
            restarts: if random.random_bool(0.2) { random.random_range(1..3) } else { 0 },
            stays: random.random_bool(0.03).then(|| random.random_range(0..ranks)),
            faults,
        }
    }

    /// The machine of a rank.
    pub(crate) fn machine_of(&self, rank: usize) -> usize {
        let mut end = 0;
        self.machines.iter().take_while(|ranks| (end += **ranks, end <= rank).1).count()
    }

    /// The ranks of a machine.
    pub(crate) fn ranks_of(&self, machine: usize) -> std::ops::Range<usize> {
        let first = self.machines[..machine].iter().sum();
        first..first + self.machines[machine]
    }

    /// Whether a fault of this kind happens.
    pub(crate) fn has(&self, kind: impl Fn(Fault) -> bool) -> bool {
        self.faults.iter().any(|(_, fault)| kind(*fault))
    }
}

fn fault(random: &mut ChaCha8Rng, ranks: usize, machines: usize) -> Fault {
    if machines > 1 && random.random_bool(0.4) {
        let machine = random.random_range(1..machines);
        return match random.random_range(0..6) {
            0 => Fault::AgentKilled(machine),
            1 => Fault::MachineGone(machine),
            2 => Fault::Cut(machine),
            3 => Fault::Broken(machine),
            4 => Fault::Delayed(machine, random.random_range(1..20)),
            _ => Fault::InterruptOn(machine),
        };
    }
    let rank = random.random_range(0..ranks);
    match random.random_range(0..18) {
        0 | 1 => Fault::Signal(rank, [9, 9, 11, 7, 6][random.random_range(0..5)]),
        2 => Fault::Exit(rank),
        3 => Fault::LeaveEarly(rank),
        4 | 5 => Fault::Error(rank),
        6 | 7 => Fault::Hang(rank),
        8 => Fault::Unkillable(rank),
        9 => Fault::Stop(rank),
        10 => Fault::DiskFull,
        11..=13 => Fault::Interrupt,
        14 if random.random_bool(0.3) => Fault::TerminateAndHangUp,
        14 => Fault::TerminateTwice,
        15 => Fault::Suspend(random.random_range(1..400)),
        16 => Fault::Sleep(random.random_range(1..4000)),
        _ => Fault::SupervisorKilled,
    }
}
