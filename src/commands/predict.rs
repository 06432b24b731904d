//! `yolo predict`.

use std::env::consts::EXE_SUFFIX;
use std::io::Read as _;

use yolo_base::env::DISPLAY;
use yolo_plan::RunPlan;
use yolo_plan::run::{Task, VideoKind, plan_predict};

use super::run::{Run, not_started};
use crate::cli::PredictArgs;
use crate::error::CommandError;
use crate::printer::{Graphics, Printer, RunEvents};

/// Finds objects in pictures and returns the exit status.
pub(super) fn predict(args: &PredictArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let options = &args.options;
    let events = args.json.then(|| RunEvents::new(printer));
    let listed = match options.paths.iter().chain(&options.source).any(|source| source == "-") {
        true => Some(stdin().map_err(|error| not_started(events.as_ref(), error))?),
        false => None,
    };
    let graphics = match options.view_img.then(Graphics::find) {
        None => None,
        Some(Ok(graphics)) => Some(graphics),
        Some(Err(why)) => return Err(not_started(events.as_ref(), nothing_to_see(why))),
    };
    let screen = graphics.map(|graphics| graphics.most());
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_predict(options, listed.as_deref(), screen, context),
        preflight: &|_, plan| has_ffmpeg(plan).and_then(|()| has_screen(plan)),
        measured: &|_, _| (),
        events,
        layout: None,
        graphics,
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

/// Whether there is a screen, if it is to be read.
fn has_screen(plan: &RunPlan) -> Result<(), CommandError> {
    let Task::Predict(task) = &plan.task else { return Ok(()) };
    let is_read = task.videos.iter().any(|video| video.kind == VideoKind::Screen);
    if !is_read || std::env::var_os(DISPLAY).is_some_and(|display| !display.is_empty()) {
        return Ok(());
    }
    Err(CommandError::Failed {
        what: "--source screen: there is no screen to read, because the variable DISPLAY is not set".to_owned(),
        hint: "run yolo in a terminal on the desktop; a Wayland desktop without X must be recorded as a video first"
            .to_owned(),
    })
}

/// The error for `--view-img` where no picture can be shown.
fn nothing_to_see(why: &str) -> CommandError {
    CommandError::Failed {
        what: format!("--view-img cannot show pictures here: {why}"),
        hint: "omit it, and open the saved pictures; or use a terminal such as kitty, Ghostty, WezTerm, iTerm2, \
               Konsole, foot or Windows Terminal"
            .to_owned(),
    }
}

/// The list of pictures on stdin.
fn stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map(|_| text).map_err(|source| CommandError::File {
        what: "cannot read the list of pictures on stdin".to_owned(),
        source,
        hint: Some(
            "stdin is a list with a path per line, in UTF-8, not a picture: give the path of a picture instead of -"
                .to_owned(),
        ),
    })
}
