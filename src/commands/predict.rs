//! `yolo predict`.

use std::io::Read as _;

use yolo_plan::run::plan_predict;

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
        preflight: &|_, _| Ok(()),
        measured: &|_, _| (),
        events,
        layout: None,
    }
    .execute(offline, printer)
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
