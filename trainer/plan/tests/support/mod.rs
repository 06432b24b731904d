//! A working folder with a data set and weights, in which tests plan runs.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;
use yolo_plan::PlanError;
use yolo_plan::dataset::Places;
use yolo_plan::device::Inventory;
use yolo_plan::options::{BenchOptions, PredictOptions, TrainOptions, ValOptions};
use yolo_plan::run::{
    BenchTask, PlanContext, Planned, Planning, PredictTask, Task, TrainTask, ValTask, plan_bench,
    plan_predict, plan_train, plan_val,
};

const YAML: &str = "train: images\nval: images\nnames: [cat, dog, owl]\n";

/// A working folder with the data set `data.yaml` and the weights `best.pt`; `shapes` is generated.
pub struct Fixture {
    _root: TempDir,
    pub context: PlanContext,
}

impl Fixture {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let places = Places { working_dir: root.path().join("work"), data_sets: root.path().join("sets") };
        for (folder, yaml) in
            [(&places.working_dir, "data.yaml"), (&places.data_sets.join("shapes"), "shapes.yaml")]
        {
            fs::create_dir_all(folder.join("images")).unwrap();
            fs::write(folder.join(yaml), YAML).unwrap();
        }
        fs::write(places.working_dir.join("best.pt"), "tensors").unwrap();
        let inventory = Inventory {
            cores: 8,
            no_gpu_reason: Some("the NVIDIA driver is not installed".into()),
            ..Inventory::default()
        };
        Self {
            _root: root,
            context: PlanContext {
                inventory,
                places,
                fetched: BTreeMap::new(),
                generated: true,
                part: None,
                measured_batch: None,
                unavailable: Default::default(),
            },
        }
    }

    pub fn plan_train(&self, options: TrainOptions) -> Result<Planning, PlanError> {
        let data = Some("data.yaml".to_owned());
        plan_train(&TrainOptions { data: options.data.clone().or(data), ..options }, &self.context)
    }

    pub fn train(&self, options: TrainOptions) -> Result<Planned, PlanError> {
        self.plan_train(options).map(ready)
    }

    pub fn train_error(&self, options: TrainOptions) -> String {
        self.train(options).unwrap_err().to_string()
    }

    pub fn val(&self, options: ValOptions) -> Result<Planned, PlanError> {
        let data = Some("data.yaml".to_owned());
        let weights = vec!["best.pt".to_owned()];
        let options = ValOptions {
            data: options.data.clone().or(data),
            weights: if options.weights.is_empty() { weights } else { options.weights.clone() },
            ..options
        };
        plan_val(&options, &self.context).map(ready)
    }

    /// Plans a prediction on the picture `a.jpg`, which need not hold one.
    pub fn predict(&self, options: PredictOptions) -> Result<Planned, PlanError> {
        fs::write(self.context.places.working_dir.join("a.jpg"), "").unwrap();
        let weights = if options.weights.is_empty() { vec!["best.pt".to_owned()] } else { options.weights };
        let paths = if options.paths.is_empty() { vec!["a.jpg".to_owned()] } else { options.paths };
        plan_predict(&PredictOptions { weights, paths, ..options }, None, Some([600, 800]), &self.context)
            .map(ready)
    }

    pub fn plan_bench(&self, options: BenchOptions) -> Result<Planning, PlanError> {
        let data = Some("data.yaml".to_owned());
        plan_bench(&BenchOptions { data: options.data.clone().or(data), ..options }, &self.context)
    }

    pub fn bench(&self, options: BenchOptions) -> Result<Planned, PlanError> {
        self.plan_bench(options).map(ready)
    }
}

pub fn ready(planning: Planning) -> Planned {
    match planning {
        Planning::Ready(planned) => *planned,
        Planning::Missing(needs) => panic!("{needs:?} are missing"),
    }
}

/// Valid options, of which a test changes one.
pub fn scratch() -> TrainOptions {
    TrainOptions { weights: Some(String::new()), cfg: Some("yolov5n".into()), ..TrainOptions::default() }
}

pub fn task(planned: &Planned) -> &TrainTask {
    planned.plan.task.train().expect("a training run")
}

pub fn val_task(planned: &Planned) -> &ValTask {
    match &planned.plan.task {
        Task::Val(task) => task,
        other => panic!("not a validation: {other:?}"),
    }
}

pub fn bench_task(planned: &Planned) -> &BenchTask {
    match &planned.plan.task {
        Task::Bench(task) => task,
        other => panic!("not a benchmark: {other:?}"),
    }
}

pub fn predict_task(planned: &Planned) -> &PredictTask {
    match &planned.plan.task {
        Task::Predict(task) => task,
        other => panic!("not a prediction: {other:?}"),
    }
}
