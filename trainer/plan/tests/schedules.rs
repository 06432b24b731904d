//! Learning rate, momentum, accumulation, weight decay, image sizes and the average's decay against
//! numbers that YOLOv5 itself printed. A few rows are kept here; where the whole golden folder
//! is at hand, every step of its runs is compared.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::PathBuf;

use serde_json::Value;
use yolo_plan::hyp::HyperParameters;
use yolo_plan::schedule::{
    Schedule, accumulate, ema_decay, round_image_size, scale_gains, scaled_weight_decay,
};

fn kept() -> Value {
    serde_json::from_str(include_str!("golden/schedules.json")).unwrap()
}

/// The large golden file, when this machine has it.
fn large() -> Option<Value> {
    let folder = std::env::var_os("YOLO_GOLDEN").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("h_schedules.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn close(ours: f64, golden: &Value, what: &str) {
    let golden = golden.as_f64().unwrap();
    assert!(
        (ours - golden).abs() <= 1e-12 * golden.abs().max(1e-3),
        "{what}: {ours}, the original has {golden}"
    );
}

/// Compares the runs that the golden file simulated, step by step; returns the steps compared.
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
            close(settings.lr_bias, &row[3], &format!("{what}: rate of biases"));
            close(settings.lr_other, &row[4], &format!("{what}: rate of weights"));
            close(settings.momentum, &row[5], &format!("{what}: momentum"));
            compared += 1;
        }
    }
    compared
}

#[test]
fn warm_up_and_decay_follow_the_original() {
    assert!(assert_runs(&kept()) > 50);
    match large() {
        Some(golden) => assert!(assert_runs(&golden) > 300),
        None => println!("skipped the large comparison: no golden folder (YOLO_GOLDEN)"),
    }
}

#[test]
fn the_factor_is_linear_or_a_cosine() {
    let golden = &kept()["lr_lambda_10_epochs"];
    for (key, lrf, cosine) in [
        ("linear", 0.01, false),
        ("cosine", 0.01, true),
        ("lrf01_linear", 0.1, false),
        ("lrf01_cosine", 0.1, true),
    ] {
        let schedule =
            Schedule::new(&HyperParameters { lrf, ..HyperParameters::low() }, 10, 16, 16, 64, cosine);
        let factors = golden[key].as_array().unwrap();
        assert_eq!(factors.len(), 11);
        for (epoch, factor) in factors.iter().enumerate() {
            close(schedule.factor(epoch), factor, key);
        }
    }
}

#[test]
fn accumulation_and_weight_decay_depend_on_the_batch() {
    for case in kept()["accum_weight_decay"].as_array().unwrap() {
        let batch = case["batch"].as_u64().unwrap() as usize;
        assert_eq!(accumulate(64, batch) as u64, case["accumulate"].as_u64().unwrap(), "batch {batch}");
        close(scaled_weight_decay(5e-4, 64, batch), &case["weight_decay"], "weight decay");
    }
}

#[test]
fn image_sizes_are_rounded_up() {
    for case in kept()["check_img_size"].as_array().unwrap() {
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        assert_eq!(round_image_size(number("imgsz"), number("s"), number("floor")), number("out"), "{case}");
    }
}

#[test]
fn the_average_of_weights_starts_fast() {
    for (updates, decay) in kept()["ema_decay"].as_object().unwrap() {
        close(ema_decay(updates.parse().unwrap()), decay, "decay");
    }
}

#[test]
fn gains_are_given_for_three_levels_eighty_classes_and_640_pixels() {
    let mut hyp = HyperParameters::low();
    scale_gains(&mut hyp, 3, 80, 640);
    assert_eq!(hyp, HyperParameters::low());
    scale_gains(&mut hyp, 4, 20, 320);
    assert_eq!((hyp.box_gain, hyp.cls, hyp.obj), (0.05 * 0.75, 0.5 * 0.25 * 0.75, 0.25 * 0.75));
}
