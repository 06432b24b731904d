//! The checks that can break a run, asked before it starts. An error stops it with the finding, its
//! cause and its remedy; a warning is said once and the run goes on.

use yolo_checks::{Finding, Host, Status, judge_by};
use yolo_plan::RunPlan;
use yolo_plan::options::TrainOptions;

use super::{intent, text};
use crate::error::CommandError;
use crate::printer::{Printer, wrap};

/// Judges the host for this very run.
///
/// # Errors
/// When something was found that would stop it.
pub(crate) fn preflight(
    host: &Host,
    options: &TrainOptions,
    resume: Option<&str>,
    plan: &RunPlan,
    printer: &Printer,
) -> Result<(), CommandError> {
    let intent = intent::of_plan(options, resume, plan);
    let verdicts = judge_by(host, &intent, |check| check.preflight);
    let findings: Vec<Finding> = verdicts.into_iter().flat_map(|verdict| verdict.findings).collect();
    for finding in findings.iter().filter(|finding| finding.status == Status::Warning) {
        printer.warning(&finding.title);
        if let Some(remedy) = &finding.remedy {
            printer.say(wrap("         ", &format!("{} [{}]", remedy.text, finding.id)));
        }
    }
    let errors: Vec<&Finding> = findings.iter().filter(|finding| finding.status == Status::Error).collect();
    if errors.is_empty() {
        return Ok(());
    }
    let mut told = String::new();
    errors.iter().for_each(|finding| text::show(&mut told, finding, false));
    Err(CommandError::Preflight { told: told.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use yolo_plan::dataset::Places;
    use yolo_plan::device::{Gpu, Inventory};
    use yolo_plan::run::plan_train;

    use super::*;

    /// A healthy machine with one GPU.
    fn recording() -> Value {
        serde_json::from_str(include_str!("../../checks/tests/hosts/bases/linux-gpu.json")).unwrap()
    }

    fn judged(recording: Value, device: &str) -> Result<(), CommandError> {
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
        let gpus = vec![Gpu { index: 0, name: "NVIDIA A10".to_owned(), memory: 24 << 30 }];
        let inventory = Inventory { cores: 8, gpus, no_gpu_reason: None, cuda_libtorch: true };
        let plan = plan_train(&options, &inventory, &places).unwrap().plan;
        let (host, _) = Host::from_value(recording).unwrap();
        preflight(&host, &options, None, &plan, &Printer::new(true))
    }

    #[test]
    fn a_machine_in_order_lets_the_run_start() {
        judged(recording(), "0").unwrap();
    }

    #[test]
    fn an_error_stops_the_run_with_its_remedy() {
        let mut sick = recording();
        sick["nvml"] = json!({ "error": 9 });
        let text = judged(sick, "0").unwrap_err().to_string();
        for words in ["kernel module is not loaded", "sudo modprobe nvidia", "[gpu.driver-not-loaded]"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn what_this_run_does_not_need_may_be_broken() {
        let mut sick = recording();
        sick["nvml"] = json!({ "error": 9 });
        judged(sick, "cpu").unwrap();
    }
}
