//! A run folder as `yolo train` leaves it, with as many classes as wanted and names that are markup.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test program uses a part of it")]

use std::path::Path;

use yolo_plan::event::{Metrics, ValRow, ValTable};
use yolo_plan::report::{
    ClassCurves, DetectionBox, End, LabelBox, Phase, RankFacts, RunFacts, RunReport, SplitFacts,
    ValidationFacts, Verdict, WorstImage,
};
use yolo_plan::results::COLUMNS;

/// A name of a class that would be a script if it were not escaped.
pub const HOSTILE: &str = "<script>alert(\"1\")</script>";
/// The smallest JPEG of a gray pixel.
const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/wAALCAABAAEBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APn+v//Z";

/// The report of a run on `classes` classes, of which the first is [`HOSTILE`].
pub fn report(classes: usize) -> RunReport {
    let names: Vec<String> = (0..classes)
        .map(|class| if class == 0 { HOSTILE.to_owned() } else { format!("class {class}") })
        .collect();
    let part = |class: usize| 0.2 + 0.75 * ((class * 37 % 101) as f64 / 101.0);
    let row = |class: usize| {
        let metrics = Metrics {
            precision: part(class),
            recall: part(class + 3),
            map50: part(class),
            map50_95: part(class) / 2.0,
        };
        ValRow { class: names[class].clone(), images: 40, instances: 90 + class, metrics }
    };
    let all = Metrics { precision: 0.7, recall: 0.6, map50: 0.65, map50_95: 0.4 };
    let rows = std::iter::once(ValRow { class: "all".to_owned(), images: 100, instances: 999, metrics: all })
        .chain((0..classes).map(row))
        .collect();
    let curve = |class: usize, of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..101).map(|at| (of(f64::from(at) / 100.0) * part(class) * 1e4).round() / 1e4).collect()
    };
    let side = classes + 1;
    let confusion = (0..side * side)
        .map(|cell| match (cell / side, cell % side) {
            (predicted, truth) if predicted == truth => {
                if truth < classes {
                    900
                } else {
                    0
                }
            }
            (predicted, truth) if predicted == classes => 40 + truth as u64,
            (predicted, truth) => (predicted * 7 + truth * 3) as u64 % 11 / 9,
        })
        .collect();
    let worst = (0..20)
        .map(|number| WorstImage {
            path: format!("/data/<b>birds</b>/{number:02}.jpg"),
            size: [288, 192],
            jpeg: JPEG.to_owned(),
            labels: vec![
                LabelBox { corners: [0.1, 0.2, 0.4, 0.7], class: 0, found: false },
                LabelBox { corners: [0.5, 0.3, 0.8, 0.9], class: 1 % classes, found: true },
            ],
            detections: vec![
                DetectionBox {
                    corners: [0.5, 0.3, 0.8, 0.9],
                    class: 1 % classes,
                    confidence: 0.91,
                    verdict: Verdict::Correct,
                },
                DetectionBox {
                    corners: [0.0, 0.0, 0.3, 0.3],
                    class: 0,
                    confidence: 0.4,
                    verdict: Verdict::Unfounded,
                },
            ],
            missed: 1,
            unfounded: 1,
            confused: 0,
        })
        .collect();
    let split = |split: &str, images: usize| SplitFacts {
        split: split.to_owned(),
        images,
        missing: 1,
        empty: 2,
        corrupt: 1,
        boxes: (0..classes).map(|class| 90 + class * 5 % 77).collect(),
        images_with: (0..classes).map(|class| 40 + class % 20).collect(),
        image_sizes: Some([[320, 200], [640, 480], [1920, 1080]]),
        box_sides: Some([12.0, 48.5, 210.0]),
        messages: vec![format!("{split}/a&b.jpg is ignored: it has a box outside of the image")],
        all_messages: 3,
    };
    RunReport {
        model: Some("214 layers, 7022326 parameters, 7022326 gradients, 15.9 GFLOPs".to_owned()),
        splits: vec![split("train", 400), split("val", 100)],
        validations: vec![ValidationFacts {
            title: "best.pt".to_owned(),
            table: ValTable { rows, speed_ms: [0.3, 12.5, 1.4], images: 100 },
            curves: (0..classes)
                .map(|class| ClassCurves {
                    class,
                    precision: curve(class, &|at| at.sqrt()),
                    recall: curve(class, &|at| 1.0 - at),
                    f1: curve(class, &|at| 4.0 * at * (1.0 - at)),
                    precision_by_recall: curve(class, &|at| 1.0 - at * at),
                })
                .collect(),
            confusion,
            worst,
        }],
        run: Some(RunFacts {
            task: "training".to_owned(),
            program: "0.1.0".to_owned(),
            end: End::Finished,
            failure: None,
            began: 1_700_000_000,
            seconds: 754.0,
            arguments: vec!["train".to_owned(), "--data".to_owned(), "b&w.yaml".to_owned()],
            folder: "/home/mara".to_owned(),
            commands: vec![(
                "The same run again:".to_owned(),
                "cd /home/mara && yolo train --data 'b&w.yaml'".to_owned(),
            )],
            phases: [("reading labels", 14.0), ("training", 610.0), ("validating", 110.0)]
                .map(|(doing, seconds)| Phase { doing: doing.to_owned(), seconds })
                .to_vec(),
            ranks: (0..2)
                .map(|rank| RankFacts {
                    rank,
                    device: format!("cuda:{rank}"),
                    threads: 4,
                    images: 20_000,
                    seconds: [60.0, 500.0, 50.0],
                })
                .collect(),
            machine: vec![
                ("CPU".to_owned(), "AMD EPYC 7763".to_owned()),
                ("Memory".to_owned(), "62.8 GiB".to_owned()),
            ],
        }),
        ..RunReport::new(&names)
    }
}

/// `results.csv` of this many epochs.
pub fn results(epochs: usize) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for epoch in 0..epochs {
        let done = epoch as f64 / epochs as f64;
        let (loss, metric, rate) = (0.1 - 0.07 * done, 0.65 * done.sqrt(), 0.01 * (1.0 - done));
        text.push_str(&format!(
            "{epoch},{loss},{},{},{metric},{metric},{metric},{},{loss},{},{},{rate},{rate},{rate}\n",
            loss / 2.0,
            loss / 3.0,
            metric * 0.6,
            loss * 0.7,
            loss * 0.4
        ));
    }
    text
}

/// Writes the folder of a run.
pub fn write_run(folder: &Path, classes: usize, epochs: usize) {
    std::fs::create_dir_all(folder).unwrap();
    report(classes).write(folder).unwrap();
    std::fs::write(folder.join("results.csv"), results(epochs)).unwrap();
    let options = "weights: yolov5s.pt\ndata: <i>birds</i>.yaml\nepochs: 60\nbatch_size: 16\nimgsz: 640\ncos_lr: true\n";
    std::fs::write(folder.join("opt.yaml"), options).unwrap();
    std::fs::write(folder.join("hyp.yaml"), "lr0: 0.02\nlrf: 0.01\nmosaic: 1.0\n").unwrap();
}
