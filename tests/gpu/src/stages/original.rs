//! The Python original side by side with `yolo`: they train in turn on the same device, with the same
//! data, sizes and number of loader workers, and with all images in memory. The third archive of the kit
//! has the original; the Python that `python3` starts has its PyTorch.

use std::io;
use std::time::Duration;

use yolo_base::format::{count, duration};

use super::bench;
use super::comparison::{Comparison, Precision, Program, Side};
use crate::invocation::{Ended, Invocation};
use crate::session::Session;
use crate::stage_run::{StageRun, Stop};

/// The exit status of its script when this Python cannot run it.
const CANNOT_RUN: i32 = 3;
/// Data loader threads of `yolo` and processes of the original, as both have by default on many cores.
const WORKERS: usize = 8;
/// Rounds of which the median counts.
const FEWEST: usize = 3;
/// The time that must remain for the end of the stage.
const RESERVE: Duration = Duration::from_secs(3);

/// Why there are no more rounds.
enum End {
    /// All are done.
    Complete,
    /// The time left is too short.
    NoTime(String),
    /// This machine cannot run the original.
    CannotRun(String),
    /// A program failed, which a check says.
    Failed,
}

/// Compares, for as many rounds as the time allows. On the CPU, both are in fp32.
pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    if stage.session.kit.original().is_none() {
        return Err(Stop::CannotRun("the kit was packed without --original".to_owned()));
    }
    make_data_set(stage)?;
    let scale = &stage.session.scale;
    let size = scale.of(640, 64);
    let mut sides = Side::all(scale.of(true, false), !scale.rehearsal);
    if !scale.rehearsal && !scale.full {
        // What the users of both get, in half of the time.
        sides.retain(|side| side.precision == Precision::Amp);
    }
    // The one that uses a GPU best first: time may be short.
    let batches: &[u32] = scale.of(&[64, 16], &[4]);
    let mut comparisons: Vec<Comparison> =
        batches.iter().map(|&batch| Comparison::new(size, batch, sides.clone())).collect();
    let (rounds, fewest) = if scale.full { (5, FEWEST) } else { scale.of((3, FEWEST), (2, 1)) };
    let (end, left_out) = all_rounds(stage, &mut comparisons, rounds)?;
    for (comparison, left_out) in comparisons.iter().zip(&left_out) {
        if comparison.rounds() > 0 {
            comparison.note(stage);
        }
        if let End::NoTime(why) = &end
            && comparison.rounds() < fewest
            && left_out.is_none()
        {
            let what = format!("{}: at least {}", comparison.name(), count(fewest, "round"));
            stage.unfinished(what, format!("{}: {why}", comparison.rounds()));
        }
    }
    let Some(why) = left_out.into_iter().flatten().next() else { return Ok(()) };
    if matches!(end, End::Complete) && comparisons.iter().all(|comparison| comparison.rounds() == 0) {
        return Err(Stop::CannotRun(why));
    }
    // What was compared counts.
    stage.skip("the original is measured with every batch", why);
    Ok(())
}

/// The built-in data set exists once `yolo` has used it.
fn make_data_set(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    if stage.session.data_file().is_file() {
        return Ok(());
    }
    let invocation = bench::invocation(stage.session, "yolov5n", 64, 4, 1, "--synthetic");
    let ended = stage.run(invocation)?;
    stage.require_success("`yolo` makes the built-in data set", &ended)
}

/// Compares until all rounds of each batch are done, or time or a program ends them. A batch that the original cannot train
/// is left out; its place in the second answer says why.
fn all_rounds(
    stage: &mut StageRun<'_>,
    comparisons: &mut [Comparison],
    rounds: usize,
) -> Result<(End, Vec<Option<String>>), Stop> {
    let mut left_out = vec![None; comparisons.len()];
    for (comparison, reason) in comparisons.iter_mut().zip(&mut left_out) {
        for _ in 0..rounds {
            match one_round(stage, comparison)? {
                End::Complete => {}
                End::CannotRun(why) => {
                    *reason = Some(why);
                    break;
                }
                end => return Ok((end, left_out)),
            }
        }
    }
    Ok((End::Complete, left_out))
}

/// Each side once. The round counts only if all sides have ended.
fn one_round(stage: &mut StageRun<'_>, comparison: &mut Comparison) -> Result<End, Stop> {
    let (left, expected) = (stage.time_left(), comparison.expected_time());
    if left < expected + RESERVE {
        let [left, expected] = [left, expected].map(|time| duration(time.as_secs_f64()));
        return Ok(End::NoTime(format!(
            "{left} of the time of this stage is left, and a round takes about {expected}; \
             `--only original` with a higher --limit has more"
        )));
    }
    let mut round = Vec::new();
    for &side in &comparison.sides {
        let limit = stage.time_left().saturating_sub(RESERVE);
        let invocation = match side.program {
            Program::Original => of_original(stage.session, comparison, side.precision),
            Program::Yolo => of_yolo(stage.session, comparison, side.precision),
        };
        let ended = match stage.run_for(invocation, limit) {
            Err(Stop::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(End::CannotRun("there is no `python3`".to_owned()));
            }
            ended => ended?,
        };
        if let Some(end) = why_no_result(stage, comparison, side, &ended) {
            return Ok(end);
        }
        match side.turn(&ended) {
            Ok(turn) => round.push(turn),
            Err(why) => {
                stage.check(comparison.name_of(side), false, why);
                return Ok(End::Failed);
            }
        }
    }
    comparison.add(round);
    Ok(End::Complete)
}

fn why_no_result(
    stage: &mut StageRun<'_>,
    comparison: &Comparison,
    side: Side,
    ended: &Ended,
) -> Option<End> {
    if ended.succeeded() {
        return None;
    }
    if ended.status.is_none() {
        let time = duration(ended.seconds);
        return Some(End::NoTime(format!(
            "{} had not ended after {time}, at the end of the stage",
            side.name()
        )));
    }
    // `yolo` must train what the original has just trained in the same memory.
    if side.program == Program::Original && bench::ran_out_of_memory(ended) {
        return Some(End::CannotRun(format!(
            "batch {} of the original does not fit into the memory of this GPU",
            comparison.batch
        )));
    }
    if side.program == Program::Original && ended.code() == Some(CANNOT_RUN) {
        return Some(End::CannotRun(ended.message().trim_start_matches("error: ").to_owned()));
    }
    stage.check_success(comparison.name_of(side), ended);
    Some(End::Failed)
}

fn of_original(session: &Session, comparison: &Comparison, precision: Precision) -> Invocation {
    let Comparison { size, batch, .. } = comparison;
    let (device, seconds) = (&session.scale.device, seconds(session));
    let folder = session.kit.original().unwrap_or_default();
    session
        .python(&folder.join("site"))
        .arg(folder.join("measure.py"))
        .args(&format!("--device {device} --imgsz {size} --batch-size {batch} --workers {}", workers()))
        .args(&format!("--precision {} --seconds {seconds}", precision.option()))
        .arg("--data")
        .arg(session.data_file())
        .arg("--work")
        .arg(session.work.join("original"))
}

fn of_yolo(session: &Session, comparison: &Comparison, precision: Precision) -> Invocation {
    let Comparison { size, batch, .. } = comparison;
    let (device, seconds) = (&session.scale.device, seconds(session));
    let format = match precision {
        Precision::Fp32 => "fp32",
        Precision::Amp => "fp16",
    };
    session
        .yolo()
        .args(&format!(
            "bench --json --device {device} --imgsz {size} --batch {batch} --workers {}",
            workers()
        ))
        .args(&format!(
            "--cfg yolov5n --weights= --cache ram --training --seconds {seconds} --precision {format}"
        ))
        // The file and not the name `shapes`, which has hyperparameters of its own.
        .arg("--data")
        .arg(session.data_file())
}

fn seconds(session: &Session) -> u32 {
    session.scale.of(4, 1)
}

fn workers() -> usize {
    WORKERS.min(std::thread::available_parallelism().map_or(1, usize::from))
}
