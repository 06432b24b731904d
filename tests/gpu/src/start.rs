//! From the command line to the exit status: opens the kit, runs the stages within the time limit, and
//! writes the report after each, so that an interrupted run leaves what it has found.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser as _;
use nvml_wrapper::error::NvmlError;
use tempfile::TempDir;
use yolo_base::exit;

use crate::cli::{Cli, Command, RunArgs};
use crate::error::KitError;
use crate::gpus::GpuMonitor;
use crate::kit::Kit;
use crate::machine::Machine;
use crate::report::{self, Report, StageReport, VERSION};
use crate::scale::Scale;
use crate::session::{Session, TEMPORARY};
use crate::stage::Stage;
use crate::{interrupt, libtorch, print, processes, redact, room, stages};

/// How much longer a rehearsed stage may take: it proves nothing about speed, and a busy machine must not
/// fail it.
const PATIENCE: u32 = 4;
/// The exit status when no stage could run.
const NOTHING_RAN: u8 = 3;
/// The exit status when nothing failed, but something was not proven.
const INCOMPLETE: u8 = 4;

/// Runs the kit and returns its exit status.
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Fails only if stdout or stderr is closed.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
        }
    };
    let done = match cli.command {
        Some(Command::Merge { reports, out }) => merge(&reports, &out),
        None => run(&cli.run),
    };
    done.unwrap_or_else(|error| {
        print::error(&error);
        match error {
            KitError::Unable(_) | KitError::Incomplete { .. } => NOTHING_RAN,
            KitError::NothingSelected => exit::USAGE,
            _ => exit::FAILURE,
        }
    })
}

fn merge(reports: &[PathBuf], out: &std::path::Path) -> Result<u8, KitError> {
    let joined = report::merge(reports)?;
    report::write(&joined, out, &[])?;
    print::written(&joined, out);
    Ok(status(&joined))
}

fn run(args: &RunArgs) -> Result<u8, KitError> {
    let began = Instant::now();
    if Stage::ALL.iter().all(|&stage| !is_selected(stage, args)) {
        return Err(KitError::NothingSelected);
    }
    let kit = Kit::open(&root()?)?;
    let scale = Scale::new(&kit, args.device, args.rehearse, args.full);
    let monitor = match args.rehearse {
        true => None,
        false => Some(Arc::new(GpuMonitor::open(args.device).map_err(|error| no_gpu(args.device, &error))?)),
    };
    let libtorch = libtorch::find(!args.rehearse).map_err(KitError::Unable)?;
    let work = working_folder()?;
    room::check(work.path())?;
    let mut report = Report {
        version: VERSION,
        kit: kit.manifest.clone(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        rehearsal: args.rehearse,
        machine: Machine::this(monitor.as_deref(), libtorch.version.clone()),
        stages: Vec::new(),
    };
    let mark = format!("{}-{}", std::process::id(), report.date);
    let session = Session {
        kit,
        scale,
        libtorch,
        python: PathBuf::from("python3"),
        monitor,
        work: work.path().to_owned(),
        mark,
        log: Cell::new(0),
    };
    // Ten minutes later would be too late to notice that the folder cannot be written.
    let hidden = redact::places(&session.work);
    let write = |report: &Report| report::write(report, &args.out, &hidden);
    write(&report).map_err(|error| {
        KitError::Unable(format!("the report cannot be written: {error}; --out selects another folder"))
    })?;
    let marks = vec![session.mark.clone(), session.mark_of_daemons()];
    interrupt::stop_everything_on_signals(marks, session.work.clone())?;
    let deadline = began + Duration::from_secs(args.limit.into());
    for stage in Stage::ALL {
        let done = one(stage, args, &session, deadline);
        interrupt::do_not_go_on_while_stopping();
        report.stages.push(done);
        write(&report)?;
    }
    processes::kill_all(&session.mark);
    copy_recording(&session, args)?;
    interrupt::do_not_go_on_while_stopping();
    if args.keep {
        print::kept(&work.keep());
    }
    print::written(&report, &args.out);
    Ok(status(&report))
}

/// A folder for runs, logs and the temporary files of all programs. It is deleted with this value.
fn working_folder() -> Result<TempDir, KitError> {
    let place = std::path::absolute(std::env::temp_dir())?;
    let made = tempfile::Builder::new().prefix("yolo-gpu-kit-").tempdir_in(&place).map_err(|error| {
        KitError::Unable(format!(
            "a working folder cannot be made in {}: {error}; set TMPDIR to an existing folder",
            place.display()
        ))
    })?;
    for folder in ["logs", TEMPORARY] {
        fs_err::create_dir(made.path().join(folder))?;
    }
    Ok(made)
}

fn is_selected(stage: Stage, args: &RunArgs) -> bool {
    (args.only.is_empty() || args.only.contains(&stage)) && !args.skip.contains(&stage)
}

/// Why the GPU cannot be used, and what to do.
fn no_gpu(index: u32, error: &NvmlError) -> KitError {
    KitError::Unable(match error {
        NvmlError::LibloadingError(_) | NvmlError::FailedToLoadSymbol(_) => {
            "the NVIDIA driver is not installed, or this container was started without GPUs \
             (libnvidia-ml.so.1 cannot be loaded); `--rehearse` tests the kit without a GPU"
                .to_owned()
        }
        NvmlError::InvalidArg | NvmlError::NotFound => {
            format!("there is no GPU {index}; `nvidia-smi -L` lists the GPUs, and --device selects one")
        }
        other => format!("the NVIDIA driver cannot open GPU {index}: {other}; run `yolo doctor`"),
    })
}

/// The kit's folder: this program is in its `bin`.
fn root() -> Result<PathBuf, KitError> {
    let program = std::env::current_exe()?;
    let root = program.parent().and_then(|bin| bin.parent());
    root.map(ToOwned::to_owned)
        .ok_or(KitError::Incomplete { what: "folder above its programs", path: program.clone() })
}

fn one(stage: Stage, args: &RunArgs, session: &Session, deadline: Instant) -> StageReport {
    if !is_selected(stage, args) {
        return StageReport::skipped(stage, "left out by --only or --skip");
    }
    let now = Instant::now();
    let (left, least) = (deadline.saturating_duration_since(now), stage.least(args.full));
    if left < least {
        let why = format!(
            "only {} s of the {} s of --limit were left, and it needs {} s; run it first with `--only {}`",
            left.as_secs(),
            args.limit,
            least.as_secs(),
            stage.name()
        );
        return StageReport::not_begun(stage, why);
    }
    let own = own_limit(stage, args);
    let limit = time_for(stage, args, left);
    print::begin(stage, limit, args.rehearse);
    let report = stages::perform(stage, session, now + limit);
    let report = if limit < own { report.cut_short(args.limit) } else { report };
    print::end(&report);
    report
}

/// What a stage may take at most, unless `--only` names it.
fn own_limit(stage: Stage, args: &RunArgs) -> Duration {
    stage.limit(args.full) * if args.rehearse { PATIENCE } else { 1 }
}

/// What a stage may take of the time that is left. One that `--only` names gets all that those after it do not need:
/// whoever names it wants all that it can measure.
fn time_for(stage: Stage, args: &RunArgs, left: Duration) -> Duration {
    let own = own_limit(stage, args);
    if !args.only.contains(&stage) {
        return own.min(left);
    }
    let later = Stage::ALL.into_iter().filter(|&later| later > stage && is_selected(later, args));
    let later: Duration = later.map(|later| own_limit(later, args)).sum();
    own.max(left.saturating_sub(later)).min(left)
}

/// The doctor's recording of this machine, next to the report.
fn copy_recording(session: &Session, args: &RunArgs) -> Result<(), KitError> {
    let recording = session.work.join(stages::RECORDING);
    if recording.is_file() {
        fs_err::copy(recording, args.out.join(stages::RECORDING))?;
    }
    Ok(())
}

fn status(report: &Report) -> u8 {
    match (report.has_failed(), report.has_run(), report.is_incomplete()) {
        (true, _, _) => exit::FAILURE,
        (false, false, _) => NOTHING_RAN,
        (false, true, true) => INCOMPLETE,
        (false, true, false) => exit::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> RunArgs {
        Cli::try_parse_from(std::iter::once("run").chain(line.split_whitespace())).unwrap().run
    }

    /// The seconds that a stage gets of those that are left.
    fn seconds(stage: Stage, line: &str, left: u64) -> u64 {
        time_for(stage, &args(line), Duration::from_secs(left)).as_secs()
    }

    #[test]
    fn a_stage_that_is_named_gets_what_is_left() {
        assert_eq!(seconds(Stage::Speed, "", 590), 360);
        assert_eq!(seconds(Stage::Speed, "", 100), 100);
        assert_eq!(seconds(Stage::Speed, "--only speed", 590), 590);
        assert_eq!(seconds(Stage::Speed, "--only speed,original", 900), 600, "the rest is for the original");
        assert_eq!(seconds(Stage::Original, "--only speed,original", 400), 400);
        assert_eq!(seconds(Stage::Memory, "--only memory --limit 80", 80), 80);
        assert_eq!(seconds(Stage::Train, "--skip speed", 3000), 150, "a stage that hangs must not take all");
        assert_eq!(seconds(Stage::Train, "--rehearse", 3000), 600);
    }
}
