//! What the main thread of a simulated rank does, operation by operation. It follows the trainer: the ranks
//! meet, prepare, train, validate on rank 0, save and finish, and after each step they ask each other
//! whether to stop.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;
use yolo_plan::event::Stage;

use crate::schedule::Schedule;

/// An operation of the main thread.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// Reports a phase.
    Phase { doing: &'static str, steps: bool },
    /// Works for a while, within a batch if a stage is named.
    Work(Duration, Option<Stage>),
    /// Waits for all ranks, and learns whether one should stop.
    Collective,
    /// One batch is done.
    StepDone,
    /// Writes a checkpoint.
    Save,
    /// Reports that everything is done.
    Finished,
    /// Reports that the run is saved.
    Interrupted,
    /// Ends with this status.
    Exit(i32),
}

/// The program of a rank.
pub(crate) fn of_rank(schedule: &Schedule, rank: usize, random: &mut ChaCha8Rng) -> Vec<Op> {
    let mut around = |mean: Duration| mean.mul_f64(random.random_range(0.5..1.5));
    let main = rank == 0;
    let second = Duration::from_secs(1);
    let mut ops = vec![Op::Work(around(second), None)];
    ops.push(Op::Phase { doing: "waiting for the other ranks", steps: false });
    ops.push(Op::Collective);
    ops.push(Op::Phase { doing: "building the model", steps: false });
    ops.push(Op::Work(around(second * 2), None));
    for epoch in 0..schedule.epochs {
        ops.push(Op::Phase { doing: "training", steps: true });
        for step in 0..schedule.steps {
            // The first step is slow: libraries are loaded, kernels are chosen.
            let slow = if epoch + step == 0 { 8 } else { 1 };
            ops.push(Op::Work(around(schedule.step / 4), Some(Stage::Loading)));
            ops.push(Op::Work(around(schedule.step * slow / 2), Some(Stage::Computing)));
            ops.push(Op::Work(Duration::ZERO, Some(Stage::Exchanging)));
            ops.push(Op::Collective);
            ops.push(Op::StepDone);
        }
        if main && schedule.validates {
            ops.push(Op::Phase { doing: "validating", steps: false });
            ops.push(Op::Work(around(second * 40), None));
        }
        if main {
            ops.push(Op::Phase { doing: "writing the checkpoint", steps: false });
            ops.push(Op::Save);
        }
        ops.push(Op::Collective);
    }
    if main {
        ops.push(Op::Phase { doing: "validating best.pt", steps: false });
        ops.push(Op::Work(around(second * 3), None));
        ops.push(Op::Finished);
    }
    ops.push(Op::Exit(0));
    ops
}

/// What a rank does after all have agreed to stop.
pub(crate) fn stop(rank: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    if rank == 0 {
        ops.push(Op::Phase { doing: "saving the interrupted run", steps: false });
        ops.push(Op::Save);
        ops.push(Op::Interrupted);
    }
    ops.push(Op::Collective);
    ops.push(Op::Exit(130));
    ops
}
