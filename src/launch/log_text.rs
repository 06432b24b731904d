//! What the log of a rank says about an event, and about what is done to the rank. Steps, pictures and heartbeats are left
//! out: they are many, and the status line shows them.

use yolo_base::exit::describe_signal;
use yolo_base::format::{count, duration};
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::device;
use yolo_plan::event::{EpochSummary, Event, Metrics, unread};
use yolo_protocol::{End, StopSignal};

use super::Programs;

/// The most letters of a line that is no event.
const SHOWN: usize = 200;

/// The first line of a start: which process this is, where, and of which versions.
pub(super) fn started(plan: &RunPlan, index: usize, pid: u32, host: &str, programs: &Programs) -> String {
    let rank = plan.ranks.first + index;
    format!(
        "yolo {} started rank {rank} of {} as process {pid} on {host}: device {}, backend {}, libtorch {}",
        env!("CARGO_PKG_VERSION"),
        plan.ranks.world_size,
        device::argument(&plan.ranks.devices_of(index)),
        plan.ranks.backend.map_or("none".to_owned(), |backend: Backend| backend.to_string()),
        programs.libtorch,
    )
}

/// What the log says about an event, if anything.
pub(super) fn of_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Hello { version, device, threads, .. } => {
            format!("yolo-trainer {version} runs on {device} with {}", count(*threads, "thread"))
        }
        Event::Phase { doing, .. } => doing.clone(),
        Event::Warning { message } => format!("warning: {message}"),
        Event::Note { message } => message.clone(),
        Event::Epoch(epoch) => of_epoch(epoch),
        Event::Validated { title, table } => {
            let all = table.rows.first().map(|row| format!(": {}", of_metrics(&row.metrics)));
            format!("{title}{}", all.unwrap_or_default())
        }
        Event::CocoEvaluated { title, scores } => {
            let number = |index: usize| scores.0[index].unwrap_or(-1.0);
            format!("{title} by COCO's rules: AP {:.4}, AP50 {:.4}", number(0), number(1))
        }
        Event::Skipped { reason, frames, .. } => unread(reason, *frames),
        Event::Finished { epochs: 0, .. } => "finished".to_owned(),
        Event::Finished { epochs, seconds, stopped_early, .. } => format!(
            "finished: {} in {}{}",
            count(*epochs, "epoch"),
            duration(*seconds),
            if *stopped_early { "; stopped early: no more improvement" } else { "" }
        ),
        Event::Interrupted { resume_from: Some(path) } => {
            format!("interrupted; the state of the run is in {}", path.display())
        }
        Event::Interrupted { resume_from: None } => "interrupted".to_owned(),
        Event::Failed { message, hint, doing, .. } => {
            let hint = hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {hint}"));
            format!("error: {message} (it was {doing}){hint}")
        }
        Event::Alive { .. }
        | Event::Step(_)
        | Event::Split(_)
        | Event::Predicted(_)
        | Event::Measured { .. }
        | Event::Copied { .. }
        | Event::Kept { .. }
        | Event::BenchMeasured { .. } => return None,
    })
}

/// What the log says about a line that is no event.
pub(super) fn of_garbled(line: &str) -> String {
    let shown: String = line.chars().take(SHOWN).collect();
    format!("the rank sent what is no event of this version: {shown}")
}

/// What the log says about a signal to the rank.
pub(super) fn of_signal(signal: StopSignal) -> &'static str {
    match signal {
        StopSignal::Terminate => "asked to save and end (SIGTERM)",
        StopSignal::Kill => "ended by force (SIGKILL)",
        StopSignal::Suspend => "suspended (SIGSTOP)",
        StopSignal::Continue => "continued (SIGCONT)",
    }
}

/// What the log says about the end of the process.
pub(super) fn of_end(end: End) -> String {
    match end {
        End::Exited(code) => format!("the process ended with exit status {code}"),
        End::Signalled(signal) => format!("the process was ended by {}", describe_signal(signal)),
    }
}

fn of_epoch(epoch: &EpochSummary) -> String {
    let [bbox, objectness, class] = epoch.train_losses;
    let metrics =
        epoch.metrics.as_ref().map_or(String::new(), |metrics| format!(", {}", of_metrics(metrics)));
    format!(
        "epoch {} of {} in {}: box {bbox:.4}, obj {objectness:.4}, cls {class:.4}{metrics}{}",
        epoch.epoch + 1,
        epoch.epochs,
        duration(epoch.seconds),
        if epoch.best && epoch.metrics.is_some() { "; the best so far" } else { "" }
    )
}

fn of_metrics(metrics: &Metrics) -> String {
    let Metrics { precision, recall, map50, map50_95 } = metrics;
    format!("P {precision:.3}, R {recall:.3}, mAP50 {map50:.3}, mAP50-95 {map50_95:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_what_the_rank_was_doing_and_what_to_do() {
        let failed = Event::Failed {
            message: "out of memory".to_owned(),
            hint: Some("reduce --batch".to_owned()),
            doing: "training epoch 1 of 3".to_owned(),
            peer_lost: false,
            of_data: false,
            progress: None,
        };
        let said = "error: out of memory (it was training epoch 1 of 3)\nhint: reduce --batch";
        assert_eq!(of_event(&failed).as_deref(), Some(said));
    }

    #[test]
    fn an_epoch_is_told_with_its_metrics_if_it_was_validated() {
        let mut epoch = EpochSummary {
            epoch: 1,
            epochs: 3,
            train_losses: [0.1, 0.2, 0.3],
            metrics: None,
            val_losses: None,
            lr: [0.0; 3],
            seconds: 12.0,
            best: false,
        };
        assert_eq!(of_epoch(&epoch), "epoch 2 of 3 in 12 s: box 0.1000, obj 0.2000, cls 0.3000");
        epoch.metrics = Some(Metrics { precision: 0.5, recall: 0.25, map50: 0.75, map50_95: 0.125 });
        epoch.best = true;
        let said = of_epoch(&epoch);
        assert!(said.ends_with(", P 0.500, R 0.250, mAP50 0.750, mAP50-95 0.125; the best so far"), "{said}");
    }

    #[test]
    fn steps_and_heartbeats_are_left_out() {
        assert_eq!(of_event(&Event::Alive { progress: None }), None);
        assert!(of_garbled(&"x".repeat(10_000)).len() < 300);
    }
}
