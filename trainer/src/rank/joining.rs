//! The task of rank 0 for ranks that join its resumed run without having the run folder.

use yolo_plan::RunPlan;
use yolo_plan::run::{JoinTask, Ranks, Task, TrainTask};

use crate::error::TrainError;

/// What rank 0 sends: its task if it resumes a run, and null if not.
pub(super) fn to_text(plan: &RunPlan) -> Result<String, TrainError> {
    let task = plan.task.train().filter(|task| task.resume.is_some());
    serde_json::to_string(&task).map_err(|error| TrainError::new(format!("cannot write the task: {error}")))
}

/// The task of a rank, from what rank 0 has sent.
pub(super) fn task(text: &[u8], own: &JoinTask, ranks: &Ranks) -> Result<Task, TrainError> {
    let task: Option<TrainTask> =
        serde_json::from_slice(text).map_err(|_| TrainError::new("rank 0 runs another version of yolo"))?;
    let Some(task) = task else {
        return Err(TrainError::new(
            "the run that --resume names is not on this machine, and rank 0 has no checkpoint of it to send",
        )
        .with_hint("give all ranks --resume, and rank 0 a run that has a checkpoint"));
    };
    Ok(Task::Train(Box::new(own.complete(&task, ranks)?)))
}
