//! The results of `yolo bench` as text: the speeds, the shares of the phases, and what limits
//! training.

use yolo_base::format::count;
use yolo_plan::bench_report::{Limit, LoaderStage, LoaderStages, Measurement, Rate, Report, Source};
use yolo_plan::bench_workers::{Advice, Why};

use super::wrap;

/// Columns of the names of measurements.
const NAME: usize = 21;

/// The report as text.
pub(crate) fn bench_table(report: &Report) -> String {
    let mut text = format!(
        "{} at {} px, batch {}, {}, device {}, {}\n",
        report.model,
        report.image_size,
        report.batch,
        report.precision,
        report.device,
        count(report.threads, "CPU thread")
    );
    text.push_str(&format!("\n{:NAME$} {:>10} {:>8} {:>8}", "", "images/s", "images", "seconds"));
    for measurement in &report.measurements {
        let Some((name, rate)) = name_and_rate(measurement) else { continue };
        text.push_str(&format!(
            "\n{name:NAME$} {:>10.1} {:>8} {:>8.1}",
            rate.images_per_second, rate.images, rate.seconds
        ));
    }
    text.push_str(&step_phases(report));
    text.push_str(&host_waits(report));
    text.push_str(&loader_stages(report));
    text.push_str(&validation_phases(report));
    text.push_str(&limit(report));
    text.push_str(&workers(report));
    text
}

fn name_and_rate(measurement: &Measurement) -> Option<(String, &Rate)> {
    match measurement {
        Measurement::Training { source, rate, .. } => Some((training_name(*source).to_owned(), rate)),
        Measurement::Loader { workers, rate, .. } => Some((loader_name(*workers), rate)),
        Measurement::Validation { rate, .. } => Some(("validation".to_owned(), rate)),
        // That of a table, which is another report.
        Measurement::Together(_) | Measurement::Memory(_) => None,
    }
}

fn loader_name(workers: usize) -> String {
    format!("loader, {}", count(workers, "thread"))
}

fn training_name(source: Source) -> &'static str {
    match source {
        Source::Files => "training",
        Source::Synthetic => "training, synthetic",
    }
}

/// Where the time of training steps goes.
fn step_phases(report: &Report) -> String {
    let mut text = String::new();
    for measurement in &report.measurements {
        let Measurement::Training { source, phases, .. } = measurement else { continue };
        if text.is_empty() {
            let names = ["wait", "copy", "forward", "loss", "backward", "optimizer"];
            text.push_str(&row("\n\nshare of a step", &names));
        }
        let shares =
            [phases.wait, phases.copy, phases.forward, phases.loss, phases.backward, phases.optimizer];
        text.push_str(&row(&format!("\n{}", training_name(*source)), &shares.map(percent)));
    }
    text
}

/// How often the CPU waits for the GPU, and how long it is busy launching, if there is a GPU.
fn host_waits(report: &Report) -> String {
    let mut text = String::new();
    for measurement in &report.measurements {
        let Measurement::Training { source, host_waits: Some(waits), launch_share, .. } = measurement else {
            continue;
        };
        if text.is_empty() {
            text.push_str(&row("\n\nCPU and GPU", &["waits/step", "launching"]));
        }
        let values = [format!("{waits:.1}"), launch_share.map_or("–".to_owned(), percent)];
        text.push_str(&row(&format!("\n{}", training_name(*source)), &values));
    }
    text
}

/// Where the time of the loader goes, and which of its stages limits it with the most threads.
fn loader_stages(report: &Report) -> String {
    let mut text = String::new();
    let mut most: Option<(usize, LoaderStages)> = None;
    for measurement in &report.measurements {
        let Measurement::Loader { workers, stages: Some(stages), .. } = measurement else { continue };
        if text.is_empty() {
            text.push_str(&row("\n\nshare of the loader", &["decode", "augment", "queue", "copy"]));
        }
        let LoaderStages { decode, augment, queue, copy } = *stages;
        let shares = [decode, augment, queue, copy].map(percent);
        text.push_str(&row(&format!("\n{}", loader_name(*workers)), &shares));
        if most.is_none_or(|(before, _)| before < *workers) {
            most = Some((*workers, *stages));
        }
    }
    if let Some((workers, stages)) = most {
        let what = match stages.limit() {
            LoaderStage::Decode => "decoding limits",
            LoaderStage::Augment => "augmentation limits",
            LoaderStage::Queue => "waiting for other threads limits",
            LoaderStage::Copy => "copying to the device limits",
        };
        text.push_str(&format!("\n{what} the loader with {}", count(workers, "thread")));
    }
    text
}

/// Where the time of validation goes.
fn validation_phases(report: &Report) -> String {
    let phases = report.measurements.iter().find_map(|measurement| match measurement {
        Measurement::Validation { phases, .. } => Some(phases),
        _ => None,
    });
    let Some(phases) = phases else { return String::new() };
    row("\n\nshare of validation", &["preprocess", "inference", "NMS"])
        + &row("\nvalidation", &[phases.preprocess, phases.inference, phases.nms].map(percent))
}

/// A line that begins with line breaks and a name.
fn row(name: &str, cells: &[impl AsRef<str>]) -> String {
    let breaks = name.len() - name.trim_start().len();
    let mut text = format!("{name:width$}", width = NAME + breaks);
    cells.iter().for_each(|cell| text.push_str(&format!(" {:>10}", cell.as_ref())));
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The number of loader threads to use, if that was asked for.
fn workers(report: &Report) -> String {
    let Some(advice) = &report.workers else { return String::new() };
    format!("\n\n{}", wrap("", &format!("use --workers {}: {}", advice.count, reason(advice))))
}

/// Why a number of loader threads is best, with the speeds that were measured.
pub(crate) fn reason(advice: &Advice) -> String {
    let verb = if advice.count == 1 { "loads" } else { "load" };
    let loads = format!("{} {verb} {:.1} images/s", count(advice.count, "thread"), advice.images_per_second);
    let needed = advice.needed.unwrap_or_default();
    match advice.why {
        Why::FastEnough => format!("{loads}, more than the {needed:.1} that the network takes"),
        Why::NoGain => format!("{loads}, and more are not faster; the network takes {needed:.1}"),
        Why::Most => format!(
            "{loads}, and a run with this batch gets no more on this machine; the network takes {needed:.1}"
        ),
    }
}

/// What limits training, if that was measured.
fn limit(report: &Report) -> String {
    if report.workers.is_some() {
        // The advice compares the same speeds.
        return String::new();
    }
    let (Some(limit), Some(alone)) = (report.limit, report.alone()) else { return String::new() };
    let network = format!("{:.1} images/s", alone.network);
    let loader = format!("{:.1} images/s with {}", alone.loader, count(alone.workers, "thread"));
    match limit {
        Limit::Network => {
            format!("\n\nthe network limits training: alone it reaches {network}, and the loader {loader}")
        }
        Limit::Loader => {
            format!("\n\nthe loader limits training: alone it reaches {loader}, and the network {network}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yolo_plan::bench_report::{StepPhases, VERSION, ValPhases};

    /// A report of all measurements, in which the loader makes this many images in ten seconds.
    fn report(loaded: usize) -> Report {
        let step =
            StepPhases { wait: 0.02, copy: 0.01, forward: 0.31, loss: 0.05, backward: 0.55, optimizer: 0.06 };
        let training = |source, workers, images| Measurement::Training {
            source,
            workers,
            rate: Rate::new(images, 8.0),
            phases: step,
            host_waits: None,
            launch_share: None,
        };
        let loader = |workers, images| Measurement::Loader {
            workers,
            rate: Rate::new(images, 10.0),
            stages: Some(LoaderStages { decode: 0.61, augment: 0.37, queue: 0.02, copy: 0.08 }),
        };
        let phases = ValPhases { preprocess: 0.01, inference: 0.9, nms: 0.09 };
        Report {
            version: VERSION,
            program: "0.1.0".to_owned(),
            device: "cpu".to_owned(),
            model: "yolov5n".to_owned(),
            image_size: 640,
            batch: 16,
            precision: "fp32",
            threads: 2,
            measurements: vec![
                training(Source::Files, Some(2), 128),
                training(Source::Synthetic, None, 144),
                loader(1, loaded / 2),
                loader(2, loaded),
                Measurement::Validation { rate: Rate::new(87, 8.0), phases },
            ],
            limit: Some(Limit::Network),
            workers: None,
        }
    }

    #[test]
    fn all_measurements_have_their_lines() {
        insta::assert_snapshot!(bench_table(&report(375)), @r"
        yolov5n at 640 px, batch 16, fp32, device cpu, 2 CPU threads

                                images/s   images  seconds
        training                    16.0      128      8.0
        training, synthetic         18.0      144      8.0
        loader, 1 thread            18.7      187     10.0
        loader, 2 threads           37.5      375     10.0
        validation                  10.9       87      8.0

        share of a step             wait       copy    forward       loss   backward  optimizer
        training                   2.0 %      1.0 %     31.0 %      5.0 %     55.0 %      6.0 %
        training, synthetic        2.0 %      1.0 %     31.0 %      5.0 %     55.0 %      6.0 %

        share of the loader       decode    augment      queue       copy
        loader, 1 thread          61.0 %     37.0 %      2.0 %      8.0 %
        loader, 2 threads         61.0 %     37.0 %      2.0 %      8.0 %
        decoding limits the loader with 2 threads

        share of validation   preprocess  inference        NMS
        validation                 1.0 %     90.0 %      9.0 %

        the network limits training: alone it reaches 18.0 images/s, and the loader 37.5 images/s with 2 threads
        ");
    }

    #[test]
    fn the_stage_that_limits_the_loader_is_named() {
        let with = |[decode, augment, queue, copy]: [f64; 4]| {
            let mut report = report(100);
            for measurement in &mut report.measurements {
                if let Measurement::Loader { stages, .. } = measurement {
                    *stages = Some(LoaderStages { decode, augment, queue, copy });
                }
            }
            loader_stages(&report).lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(with([0.3, 0.6, 0.1, 0.1]), "augmentation limits the loader with 2 threads");
        assert_eq!(with([0.2, 0.2, 0.6, 0.3]), "waiting for other threads limits the loader with 2 threads");
        assert_eq!(with([0.2, 0.2, 0.6, 0.9]), "copying to the device limits the loader with 2 threads");
    }

    #[test]
    fn the_limit_compares_what_each_reaches_alone() {
        let report = Report { limit: Some(Limit::Loader), ..report(100) };
        insta::assert_snapshot!(limit(&report).trim_start(), @"the loader limits training: alone it reaches 10.0 images/s with 2 threads, and the network 18.0 images/s");
    }

    #[test]
    fn the_advice_says_why() {
        let advised = |why| {
            let advice = Advice { count: 2, images_per_second: 37.5, needed: Some(18.0), why };
            workers(&Report { workers: Some(advice), ..report(375) })
        };
        insta::assert_snapshot!(
            [Why::FastEnough, Why::NoGain, Why::Most].map(advised).concat().trim_start(),
            @r"
        use --workers 2: 2 threads load 37.5 images/s, more than the 18.0 that the
        network takes

        use --workers 2: 2 threads load 37.5 images/s, and more are not faster; the
        network takes 18.0

        use --workers 2: 2 threads load 37.5 images/s, and a run with this batch gets no
        more on this machine; the network takes 18.0
        "
        );
        let with_advice = Advice { count: 1, images_per_second: 1.0, needed: None, why: Why::Most };
        assert_eq!(limit(&Report { workers: Some(with_advice), ..report(375) }), "");
    }

    #[test]
    fn waits_for_a_gpu_are_shown_for_each_kind_of_training() {
        let mut report = report(375);
        for (measurement, waits) in report.measurements.iter_mut().zip([3.06, 2.0]) {
            let Measurement::Training { host_waits, launch_share, .. } = measurement else { unreachable!() };
            (*host_waits, *launch_share) = (Some(waits), (waits < 3.0).then_some(0.42));
        }
        insta::assert_snapshot!(host_waits(&report).trim_start(), @r"
        CPU and GPU           waits/step  launching
        training                     3.1          –
        training, synthetic          2.0     42.0 %
        ");
    }

    #[test]
    fn what_was_not_measured_has_no_line() {
        let mut report = Report { limit: None, ..report(375) };
        report.measurements.truncate(1);
        insta::assert_snapshot!(bench_table(&report), @r"
        yolov5n at 640 px, batch 16, fp32, device cpu, 2 CPU threads

                                images/s   images  seconds
        training                    16.0      128      8.0

        share of a step             wait       copy    forward       loss   backward  optimizer
        training                   2.0 %      1.0 %     31.0 %      5.0 %     55.0 %      6.0 %
        ");
    }
}
