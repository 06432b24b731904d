//! `--quad` and `--image-weights`: the batches that can be joined by four, on every number of ranks and after a resume,
//! and what the options exclude.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use yolo_base::Hint as _;
use yolo_plan::options::{Parallel, TrainOptions};
use yolo_plan::run::plan_train;

use support::{Fixture, ready, scratch, task};

fn quad() -> TrainOptions {
    TrainOptions { quad: true, ..scratch() }
}

fn ranks(batch: i64, ranks: usize) -> TrainOptions {
    TrainOptions { batch_size: Some(batch), nproc_per_node: Some(ranks), ..quad() }
}

#[test]
fn the_batch_of_each_rank_is_a_multiple_of_four() {
    let fixture = Fixture::new();
    let planned = fixture.train(quad()).unwrap();
    assert!(task(&planned).quad && task(&planned).batch == 16);
    let split = |split: &str| TrainOptions {
        batch_split: Some(split.into()),
        device: Some("cpu,cpu".into()),
        ..quad()
    };
    assert_eq!(task(&fixture.train(split("12,4")).unwrap()).shares(2), [12, 4]);
    let one_process = |parallel| TrainOptions {
        parallel: Some(parallel),
        device: Some("cpu,cpu".into()),
        batch_size: Some(12),
        ..quad()
    };
    assert!(fixture.train(one_process(Parallel::Model)).is_ok());
    for (options, message, hint) in [
        (
            ranks(18, 1),
            "--quad makes one image of 4, so --batch must be a multiple of 4, but it is 18",
            "use --batch 16 or 20",
        ),
        (
            ranks(2, 1),
            "--quad makes one image of 4, so --batch must be a multiple of 4, but it is 2",
            "use --batch 4",
        ),
        (
            ranks(12, 2),
            "--quad makes one image of 4, so --batch must be a multiple of 8 (4 for each of 2 ranks or \
             devices), but it is 12",
            "use --batch 8 or 16",
        ),
        (
            one_process(Parallel::Dp),
            "--quad makes one image of 4, so --batch must be a multiple of 8 (4 for each of 2 ranks or \
             devices), but it is 12",
            "use --batch 8 or 16",
        ),
        (
            split("10,1"),
            "--quad makes one image of 4, but the shares of the batch, 10,1, are not all multiples of 4",
            "use --batch-split 12,4 with --batch 16",
        ),
    ] {
        let error = fixture.train(options).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint().unwrap().as_ref()), (message, hint));
    }
}

#[test]
fn a_resumed_run_keeps_its_groups_of_four() {
    let fixture = Fixture::new();
    let plan = fixture.train(ranks(16, 1)).unwrap().plan;
    fs::create_dir_all(plan.run_dir.join("weights")).unwrap();
    fs::write(plan.run_dir.join("weights/last.pt"), "tensors").unwrap();
    fs::write(plan.run_dir.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
    let on = |number| {
        let resume = Some(plan.run_dir.join("weights/last.pt").display().to_string());
        let options = TrainOptions { resume, nproc_per_node: Some(number), ..TrainOptions::default() };
        plan_train(&options, &fixture.context)
    };
    let resumed = ready(on(4).unwrap());
    assert_eq!((task(&resumed).shares(4), task(&resumed).quad), (vec![4; 4], true));
    let refused = on(8).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the run cannot be resumed on 8 ranks: its batch of 16, which stays the same, cannot be divided equally among \
         them in groups of 4 (--quad)"
    );
    assert_eq!(refused.hint().as_deref(), Some("resume it on 4 ranks"));
}

#[test]
fn image_weights_take_the_place_of_rectangular_batches() {
    let fixture = Fixture::new();
    let with =
        |rect, image_weights| fixture.train(TrainOptions { rect, image_weights, ..scratch() }).unwrap();
    let both = with(true, true);
    assert!(!task(&both).rect && task(&both).image_weights);
    assert_eq!(
        both.warnings,
        ["--rect has no effect with --image-weights, which draws the images of a batch"]
    );
    assert!(task(&with(true, false)).rect);
    assert_eq!(with(false, true).warnings.len(), 0);
}
