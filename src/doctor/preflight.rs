//! The quick checks for problems that would break a run, before it starts. An error stops the run
//! with the finding, its cause and its remedy; a warning is printed once.

use yolo_base::env::NCCL_P2P_DISABLE;
use yolo_checks::{ANSWERED_BY_SETTINGS, Finding, Host, Status, run_checks};
use yolo_plan::RunPlan;
use yolo_plan::options::TrainOptions;

use super::{intent, text};
use crate::error::CommandError;
use crate::printer::{Printer, wrap};

/// Checks the host for this run.
///
/// # Errors
/// When a finding would stop the run.
pub(crate) fn preflight(
    host: &Host,
    options: &TrainOptions,
    plan: &RunPlan,
    printer: &Printer,
) -> Result<(), CommandError> {
    let intent = intent::of_plan(options, plan);
    let verdicts = run_checks(host, &intent, |check| check.preflight);
    // The variables of a launcher are not ignored by its ranks, and only the plan knows about ranks elsewhere.
    let concerns = |finding: &Finding| {
        plan.ranks.are_all()
            || !matches!(finding.id, "shell.variable-ignored" | "run.batch-uneven" | "run.resume-other-ranks")
    };
    let findings: Vec<Finding> =
        verdicts.into_iter().flat_map(|verdict| verdict.findings).filter(concerns).collect();
    // Planning has already printed the warnings about the data YAML, and the trainer tells a finished run
    // from one that was killed while it finished.
    let is_said = |id: &str| matches!(id, "disk.data-yaml" | "run.resume-finished");
    // What only concerns NCCL is answered by the settings that its ranks get, or does not concern the run.
    let overridden = host.env(NCCL_P2P_DISABLE).is_ok_and(|value| value.is_some());
    let is_answered = |id: &str| !overridden && ANSWERED_BY_SETTINGS.contains(&id);
    let is_new = |finding: &&Finding| !is_said(finding.id) && !is_answered(finding.id);
    for finding in findings.iter().filter(|finding| finding.status == Status::Warning).filter(is_new) {
        printer.warning(&finding.title);
        if let Some(remedy) = &finding.remedy {
            printer.say(wrap("         ", &format!("{} [{}]", remedy.text, finding.id)));
        }
    }
    let errors: Vec<&Finding> = findings.iter().filter(|finding| finding.status == Status::Error).collect();
    if errors.is_empty() {
        return Ok(());
    }
    let mut shown = String::new();
    errors.iter().for_each(|finding| text::show(&mut shown, finding, false));
    Err(CommandError::Preflight { findings: shown.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use yolo_plan::dataset::Places;
    use yolo_plan::device::{Gpu, Inventory};
    use yolo_plan::run::{PlanContext, Planning, plan_train};

    use super::*;

    /// A healthy machine with one GPU.
    fn recording() -> Value {
        serde_json::from_str(include_str!("../../checks/tests/hosts/bases/linux-gpu.json")).unwrap()
    }

    fn checked(recording: Value, device: &str) -> Result<(), CommandError> {
        let folder = tempfile::tempdir().unwrap();
        for split in ["train", "val"] {
            std::fs::create_dir_all(folder.path().join(split)).unwrap();
        }
        std::fs::write(folder.path().join("birds.yaml"), "train: train\nval: val\nnames: [bird]\n").unwrap();
        let places =
            Places { working_dir: folder.path().to_owned(), data_sets: folder.path().join("datasets") };
        let options = TrainOptions {
            weights: Some(String::new()),
            cfg: Some("yolov5n".to_owned()),
            data: Some("birds.yaml".to_owned()),
            device: Some(device.to_owned()),
            ..TrainOptions::default()
        };
        let gpus = vec![Gpu { name: "NVIDIA A10".to_owned(), memory: 24 << 30, ..Gpu::default() }];
        let inventory = Inventory { cores: 8, gpus, cuda_libtorch: true, ..Inventory::default() };
        let context = PlanContext {
            inventory,
            places,
            fetched: BTreeMap::new(),
            generated: false,
            part: None,
            measured_batch: None,
            unavailable: Default::default(),
        };
        let Planning::Ready(planned) = plan_train(&options, &context).unwrap() else { panic!("not ready") };
        let (host, _) = Host::from_value(recording).unwrap();
        preflight(&host, &options, &planned.plan, &Printer::new(true))
    }

    #[test]
    fn a_healthy_machine_lets_the_run_start() {
        checked(recording(), "0").unwrap();
    }

    #[test]
    fn an_error_stops_the_run_with_its_remedy() {
        let mut sick = recording();
        sick["nvml"] = json!({ "error": 9 });
        let text = checked(sick, "0").unwrap_err().to_string();
        for words in ["kernel module is not loaded", "sudo modprobe nvidia", "[gpu.driver-not-loaded]"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn problems_that_do_not_concern_the_run_are_ignored() {
        let mut sick = recording();
        sick["nvml"] = json!({ "error": 9 });
        checked(sick, "cpu").unwrap();
    }
}
