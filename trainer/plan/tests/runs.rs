//! Plans of runs: what is missing is reported before anything starts, plans are written and read
//! back, and runs are numbered and resumed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use yolo_plan::RunPlan;
use yolo_plan::options::{TrainOptions, ValOptions};
use yolo_plan::run::{Need, Planning, plan_resume, plan_train};

use support::{Fixture, scratch, task};

#[test]
fn everything_that_can_be_fetched_is_reported_at_once() {
    let mut fixture = Fixture::new();
    let data = Need::Data("data/coco128.yaml".into());
    let weights = Need::Weights("yolov5s.pt".into());
    let all_missing = plan_train(&TrainOptions::default(), &fixture.context).unwrap();
    assert_eq!(all_missing, Planning::Missing(vec![data, weights.clone()]));
    assert_eq!(fixture.plan_train(TrainOptions::default()).unwrap(), Planning::Missing(vec![weights]));

    let published = fixture.context.places.working_dir.join("elsewhere.pt");
    fixture.context.fetched.insert("yolov5s.pt".into(), published.clone());
    let planned = fixture.train(TrainOptions::default()).unwrap();
    assert_eq!(task(&planned).weights, Some(published));

    let yaml = fixture.context.places.working_dir.join("far.yaml");
    fs::write(&yaml, "path: far\ntrain: t\nval: v\nnames: [a]\ndownload: https://h/far.zip\n").unwrap();
    let far = || TrainOptions { data: Some("far.yaml".into()), ..scratch() };
    assert_eq!(fixture.plan_train(far()).unwrap(), Planning::Missing(vec![Need::Data("far.yaml".into())]));
    // A download that is a program is never run, so it cannot be fetched.
    fs::write(&yaml, "path: far\ntrain: t\nval: v\nnames: [a]\ndownload: bash get.sh\n").unwrap();
    assert!(fixture.train_error(far()).contains("far.yaml"));
}

#[test]
fn the_built_in_data_set_is_generated_before_it_is_loaded() {
    let mut fixture = Fixture::new();
    fixture.context.generated = false;
    let shapes = || TrainOptions { data: Some("shapes".into()), ..TrainOptions::default() };
    let builtin = vec![Need::Builtin("shapes".into())];
    assert_eq!(fixture.plan_train(shapes()).unwrap(), Planning::Missing(builtin));
    let error = fixture.plan_train(TrainOptions { batch_size: Some(0), ..shapes() }).unwrap_err();
    assert!(error.to_string().starts_with("--batch 0"), "{error}");
}

#[test]
fn a_mistake_is_reported_before_anything_is_fetched() {
    let error =
        |options: TrainOptions| plan_train(&options, &Fixture::new().context).unwrap_err().to_string();
    let batch = TrainOptions { batch_size: Some(0), ..TrainOptions::default() };
    assert!(error(batch).starts_with("--batch 0"));
    let cfg = Some("yolov5n".to_owned());
    let freeze = TrainOptions { cfg, freeze: vec![25], ..TrainOptions::default() };
    assert!(error(freeze).starts_with("--freeze freezes all 25 layers"));
}

#[test]
fn a_plan_is_written_and_read_back() {
    let fixture = Fixture::new();
    let plan = fixture.train(scratch()).unwrap().plan;
    let missing = plan.write().unwrap_err().to_string();
    assert!(missing.starts_with("cannot write the plan "), "{missing}");
    fs::create_dir_all(&plan.run_dir).unwrap();
    let path = plan.write().unwrap();
    assert_eq!(RunPlan::read(&path).unwrap(), plan);
    assert_eq!(fs::read_dir(&plan.run_dir).unwrap().count(), 1, "nothing else is left in the folder");

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\": 2", "\"version\": 9")).unwrap();
    assert!(RunPlan::read(&path).unwrap_err().to_string().contains("has version 9"));
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(RunPlan::read(&path).unwrap_err().to_string().contains("is not a run plan"));
    assert!(
        RunPlan::read(&path.with_extension("gone")).unwrap_err().to_string().contains("cannot read the plan")
    );
}

#[test]
fn a_run_is_resumed_in_its_folder() {
    let fixture = Fixture::new();
    let plan = fixture.train(TrainOptions { epochs: Some(7), ..scratch() }).unwrap().plan;
    let none = plan_resume(None, &fixture.context.places).unwrap_err().to_string();
    assert!(none.starts_with("there is no run to resume"), "{none}");

    let weights = plan.run_dir.join("weights");
    fs::create_dir_all(&weights).unwrap();
    let last = weights.join("last.pt");
    fs::write(&last, "tensors").unwrap();
    let planless = plan_resume(Some(&last), &fixture.context.places).unwrap_err().to_string();
    assert!(planless.contains("there is no plan.json"), "{planless}");

    plan.write().unwrap();
    for named in [None, Some(last.as_path()), Some(plan.run_dir.as_path())] {
        let resumed = plan_resume(named, &fixture.context.places).unwrap();
        assert_eq!(task(&resumed).resume, Some(last.canonicalize().unwrap()));
        assert_eq!(task(&resumed).epochs, 7);
        assert_eq!(resumed.plan.run_dir, plan.run_dir.canonicalize().unwrap());
        assert_eq!(resumed.notes.len(), usize::from(named.is_none()));
    }
    let gone =
        plan_resume(Some(&last.with_file_name("gone.pt")), &fixture.context.places).unwrap_err().to_string();
    assert!(gone.contains("this checkpoint does not exist"), "{gone}");

    let val = fixture.val(ValOptions::default()).unwrap().plan;
    fs::create_dir_all(val.run_dir.join("weights")).unwrap();
    fs::write(val.run_dir.join("weights/last.pt"), "tensors").unwrap();
    val.write().unwrap();
    let not_training = plan_resume(Some(&val.run_dir), &fixture.context.places).unwrap_err().to_string();
    assert!(not_training.contains("was not a training run"), "{not_training}");
}

#[test]
fn the_next_run_gets_the_next_number() {
    let fixture = Fixture::new();
    let mut names = Vec::new();
    for _ in 0..3 {
        let plan = fixture.train(scratch()).unwrap().plan;
        fs::create_dir_all(&plan.run_dir).unwrap();
        names.push(plan.run_dir.file_name().unwrap().to_owned());
    }
    assert_eq!(names, ["exp", "exp2", "exp3"]);
    let same = fixture.train(TrainOptions { exist_ok: true, ..scratch() }).unwrap().plan;
    assert_eq!(same.run_dir.file_name().unwrap(), "exp");
}
