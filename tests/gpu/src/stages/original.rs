//! The Python original side by side with `yolo`: they train in turn on the same device, with the same
//! data, sizes and number of loader workers, and with all images in memory. The third archive of the kit
//! has the original; the Python that `python3` starts has its PyTorch.

use std::io;
use std::time::Duration;

use yolo_base::format::duration;

use super::bench;
use super::comparison::{Comparison, Precision, Program, Side};
use crate::invocation::{Ended, Invocation};
use crate::session::Session;
use crate::stage_run::{StageRun, Stop};

/// What is skipped if it cannot be compared.
const WHAT: &str = "the Python original side by side";
/// The exit status of its script when this Python cannot run it.
const CANNOT_RUN: i32 = 3;
/// Data loader threads of `yolo` and processes of the original, as both have by default on many cores.
const WORKERS: usize = 8;
/// The time that must remain for the end of the stage.
const RESERVE: Duration = Duration::from_secs(3);

/// Why there are no more rounds.
enum End {
    /// All are done.
    Complete,
    /// The time left is too short, or this machine cannot run the original.
    Because(String),
    /// A program failed, which a check says.
    Failed,
}

/// Compares, for as many rounds as the time allows. On the CPU, both are in fp32.
pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    if stage.session.kit.original().is_none() {
        stage.skip(WHAT, "the kit was packed without --original");
        return Ok(());
    }
    let scale = &stage.session.scale;
    let size = scale.of(640, 64);
    let sides = Side::all(scale.of(true, false), !scale.rehearsal);
    let batches: &[u32] = scale.of(&[16, 64], &[4]);
    let mut comparisons: Vec<Comparison> =
        batches.iter().map(|&batch| Comparison::new(size, batch, sides.clone())).collect();
    let rounds = if scale.full { 5 } else { scale.of(3, 2) };
    let end = all_rounds(stage, &mut comparisons, rounds)?;
    for comparison in comparisons.iter().filter(|comparison| comparison.rounds() > 0) {
        comparison.note(stage);
    }
    if let End::Because(why) = end
        && comparisons.iter().any(|comparison| comparison.rounds() == 0)
    {
        stage.skip(WHAT, why);
    }
    Ok(())
}

fn all_rounds(stage: &mut StageRun<'_>, comparisons: &mut [Comparison], rounds: usize) -> Result<End, Stop> {
    for _ in 0..rounds {
        for comparison in &mut *comparisons {
            match one_round(stage, comparison)? {
                End::Complete => {}
                end => return Ok(end),
            }
        }
    }
    Ok(End::Complete)
}

/// Each side once. The round counts only if all sides have ended.
fn one_round(stage: &mut StageRun<'_>, comparison: &mut Comparison) -> Result<End, Stop> {
    let (left, expected) = (stage.time_left(), comparison.expected_time());
    if left < expected + RESERVE {
        let [left, expected] = [left, expected].map(|time| duration(time.as_secs_f64()));
        return Ok(End::Because(format!(
            "{left} of the time of this stage is left, and a round takes about {expected}; \
             `--only speed` has more, with --full and a higher --limit even more"
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
                return Ok(End::Because("there is no `python3`".to_owned()));
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
        return Some(End::Because(format!(
            "{} had not ended after {time}, at the end of the stage",
            side.name()
        )));
    }
    if bench::ran_out_of_memory(ended) {
        return Some(End::Because(format!(
            "batch {} does not fit into the memory of this GPU",
            comparison.batch
        )));
    }
    if side.program == Program::Original && ended.code() == Some(CANNOT_RUN) {
        return Some(End::Because(ended.message().trim_start_matches("error: ").to_owned()));
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
