//! Compares learning rate, momentum, accumulation, weight decay, image sizes and the decay of the
//! moving average with values recorded from YOLOv5. A few are committed in `tests/golden`. With the
//! folder of all recorded values (`YOLO_GOLDEN`, or `shared/golden` next to the checkout), the tests
//! compare all of them.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking and prints what it skips"
)]

use std::path::PathBuf;

use serde_json::Value;
use yolo_base::env::YOLO_GOLDEN;
use yolo_plan::auto_batch;
use yolo_plan::hyp::HyperParameters;
use yolo_plan::schedule::{
    Schedule, accumulate, ema_decay, round_image_size, scale_gains, scaled_weight_decay,
};

/// The committed values, and all recorded ones if this machine has them.
fn recorded() -> Vec<Value> {
    let committed = serde_json::from_str(include_str!("golden/schedules.json")).unwrap();
    let folder = std::env::var_os(YOLO_GOLDEN).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"),
        PathBuf::from,
    );
    match std::fs::read_to_string(folder.join("h_schedules.json")) {
        Ok(text) => vec![committed, serde_json::from_str(&text).unwrap()],
        Err(error) => {
            println!("compared the committed values only: h_schedules.json in {}: {error}", folder.display());
            vec![committed]
        }
    }
}

fn close(ours: f64, golden: &Value, what: &str) {
    let golden = golden.as_f64().unwrap();
    assert!((ours - golden).abs() <= 1e-12 * golden.abs().max(1e-3), "{what}: {ours}, YOLOv5 {golden}");
}

/// Compares the simulated runs step by step and returns the number of steps.
fn assert_runs(golden: &Value) -> usize {
    let mut compared = 0;
    for (name, cosine) in
        [("sim_nb16_bs8_e10_linear", false), ("sim_nb40_bs16_e5_cos", true), ("sim_nb2_bs64_e4", false)]
    {
        let run = &golden[name];
        let number = |key: &str| run[key].as_u64().unwrap() as usize;
        let hyp = HyperParameters::low();
        let schedule = Schedule::new(&hyp, number("epochs"), number("nb"), number("batch"), 64, cosine);
        assert_eq!(schedule.warmup_steps(), number("nw"), "{name}");
        for row in run["rows"].as_array().unwrap() {
            let step = row[0].as_u64().unwrap() as usize;
            let settings = schedule.at(step, step / number("nb"));
            let what = format!("{name}, step {step}");
            assert_eq!(settings.accumulate as f64, row[1].as_f64().unwrap(), "{what}: accumulate");
            close(settings.lr_bias, &row[3], &format!("{what}: learning rate of biases"));
            close(settings.lr_other, &row[4], &format!("{what}: learning rate of weights"));
            close(settings.momentum, &row[5], &format!("{what}: momentum"));
            compared += 1;
        }
    }
    compared
}

#[test]
fn warmup_and_decay_match_yolov5() {
    for (golden, least) in recorded().iter().zip([50, 300]) {
        assert!(assert_runs(golden) > least);
    }
}

#[test]
fn the_learning_rate_factor_is_linear_or_a_cosine() {
    for golden in recorded() {
        for (key, lrf, cosine) in [
            ("linear", 0.01, false),
            ("cosine", 0.01, true),
            ("lrf01_linear", 0.1, false),
            ("lrf01_cosine", 0.1, true),
        ] {
            let hyp = HyperParameters { lrf, ..HyperParameters::low() };
            let schedule = Schedule::new(&hyp, 10, 16, 16, 64, cosine);
            let factors = golden["lr_lambda_10_epochs"][key].as_array().unwrap();
            assert_eq!(factors.len(), 11);
            for (epoch, factor) in factors.iter().enumerate() {
                close(schedule.factor(epoch), factor, key);
            }
        }
    }
}

#[test]
fn accumulation_and_weight_decay_depend_on_the_batch() {
    for case in recorded().iter().flat_map(|golden| golden["accum_weight_decay"].as_array().unwrap()) {
        let batch = case["batch"].as_u64().unwrap() as usize;
        assert_eq!(accumulate(64, batch) as u64, case["accumulate"].as_u64().unwrap(), "batch {batch}");
        close(scaled_weight_decay(5e-4, 64, batch), &case["weight_decay"], "weight decay");
    }
}

#[test]
fn the_cpu_takes_a_fixed_batch_where_none_is_given() {
    for batch in recorded().iter().filter_map(|golden| golden.get("autobatch_cpu")) {
        assert_eq!(auto_batch::WITHOUT_MEASUREMENT as u64, batch.as_u64().unwrap());
    }
}

#[test]
fn image_sizes_are_rounded_up() {
    for case in recorded().iter().flat_map(|golden| golden["check_img_size"].as_array().unwrap()) {
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        assert_eq!(round_image_size(number("imgsz"), number("s"), number("floor")), number("out"), "{case}");
    }
}

#[test]
fn the_ema_decay_rises_with_the_updates() {
    for (updates, decay) in recorded().iter().flat_map(|golden| golden["ema_decay"].as_object().unwrap()) {
        close(ema_decay(updates.parse().unwrap()), decay, "decay");
    }
}

#[test]
fn loss_gains_scale_with_levels_classes_and_image_size() {
    let mut hyp = HyperParameters::low();
    scale_gains(&mut hyp, 3, 80, 640);
    assert_eq!(hyp, HyperParameters::low());
    scale_gains(&mut hyp, 4, 20, 320);
    assert_eq!((hyp.box_gain, hyp.cls, hyp.obj), (0.05 * 0.75, 0.5 * 0.25 * 0.75, 0.25 * 0.75));
}
