//! `yolo predict`.

use std::env::consts::EXE_SUFFIX;
use std::io::Read as _;

use yolo_plan::RunPlan;
use yolo_plan::run::{Task, plan_predict};

use super::run::{Run, not_started};
use crate::cli::PredictArgs;
use crate::error::CommandError;
use crate::printer::{Printer, RunEvents};

/// Finds objects in pictures and returns the exit status.
pub(super) fn predict(args: &PredictArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let options = &args.options;
    let events = args.json.then(|| RunEvents::new(printer));
    let listed = match options.paths.iter().chain(&options.source).any(|source| source == "-") {
        true => Some(stdin().map_err(|error| not_started(events.as_ref(), error))?),
        false => None,
    };
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_predict(options, listed.as_deref(), context),
        preflight: &|_, plan| has_ffmpeg(plan),
        measured: &|_, _| (),
        events,
        layout: None,
    }
    .execute(offline, printer)
}

/// Whether videos can be read, before anything is started.
fn has_ffmpeg(plan: &RunPlan) -> Result<(), CommandError> {
    let Task::Predict(task) = &plan.task else { return Ok(()) };
    let Some(video) = task.videos.first() else { return Ok(()) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| {
        std::env::split_paths(&path).any(|folder| folder.join(format!("{program}{EXE_SUFFIX}")).is_file())
    };
    let Some(missing) = ["ffmpeg", "ffprobe"].into_iter().find(|program| !is_there(program)) else {
        return Ok(());
    };
    Err(CommandError::Failed {
        what: format!(
            "{} is a video, which yolo predict reads with ffmpeg, but {missing} is not installed",
            video.shown.display()
        ),
        hint: "install ffmpeg, on Debian and Ubuntu: apt-get install ffmpeg; or save the frames as pictures elsewhere"
            .to_owned(),
    })
}

/// The list of pictures on stdin.
fn stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map(|_| text).map_err(|source| CommandError::File {
        what: "cannot read the list of pictures on stdin".to_owned(),
        source,
        hint: Some("write a path per line, as text in UTF-8".to_owned()),
    })
}
