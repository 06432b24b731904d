//! `yolo export`: the network of a weights file in other formats. Each file is written under a temporary name, read
//! back, run, and compared with the network; only then it gets its name. So a file that exists is complete and computes
//! what the network computes.

mod compare;
pub mod onnx;
mod source;
mod state_dict;
mod torchscript;
pub mod yolov5;

use std::time::Instant;

use torch_checkpoint::Replacement;
use yolo_base::format::bytes;
use yolo_plan::RunPlan;
use yolo_plan::event::{Event, OutputFile};
use yolo_plan::run::{ExportFormat, ExportTask};

use self::source::Source;
use crate::error::TrainError;
use crate::rank::context::{Context, Ending};

/// Writes all files of the task.
///
/// # Errors
/// When the weights cannot be read, a file cannot be written, or what was written differs from the network.
pub fn run(context: &Context, plan: &RunPlan, task: &ExportTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    // A request to stop waits until the file in work is complete or removed.
    context.hold_stop_requests();
    context.reporter.phase("reading the weights");
    let source = Source::read(task, context.device)?;
    context.reporter.note(source.model.summary()?.to_string());
    let mut files = Vec::new();
    for file in &task.files {
        let name = file.format.name();
        context.reporter.phase(&format!("writing {name}"));
        let replacement = Replacement::begin(&file.path)?;
        let found = match file.format {
            ExportFormat::TorchScript => {
                torchscript::write(&source, &plan.run_dir, &replacement).map(|found| found.to_string())
            }
            ExportFormat::Onnx => onnx::write(&source, &task.onnx, &replacement),
            ExportFormat::Torch => {
                state_dict::write_torch(&source, &replacement).map(|found| found.to_string())
            }
            ExportFormat::Yolov5 => yolov5::write(&source, &replacement).map(|found| found.to_string()),
            ExportFormat::Safetensors => {
                state_dict::write_safetensors(&source, &replacement).map(|found| found.to_string())
            }
        }
        .map_err(|error| error.at_file(&file.path))?;
        if context.asked_to_stop() {
            context.reporter.send(&Event::Interrupted { resume_from: None });
            return Ok(Ending::Interrupted);
        }
        let length = std::fs::metadata(replacement.path()).map_or(0, |metadata| metadata.len());
        replacement.commit()?;
        context.reporter.note(format!("{name}: {}, {found}", bytes(length)));
        files.push(OutputFile { what: name.to_owned(), path: file.path.clone() });
    }
    let seconds = began.elapsed().as_secs_f64();
    context.reporter.send(&Event::Finished { files, epochs: 0, seconds, stopped_early: false });
    Ok(Ending::Finished)
}
