//! The tables of `yolo bench --scaling` and `--batches` as text of 80 columns, with notes that say what is
//! compared, and why rows have no numbers.

use yolo_base::format::count;
use yolo_plan::bench_report::Source;
use yolo_plan::bench_tables::{Epochs, Outcome, Row, Tables};
use yolo_plan::run::Table;

use super::wrap;

const GIB: f64 = (1_u64 << 30) as f64;

/// Speeds that differ more are not those of the machine alone.
const NOISE: f64 = 0.1;
/// Widths of the columns of the table of devices.
const SCALING: [usize; 9] = [7, 6, 8, 6, 8, 9, 9, 8, 10];
/// Widths of the columns of one series in the table of batches.
const SERIES: [usize; 4] = [8, 6, 8, 8];

/// The tables that have rows.
pub(crate) fn bench_tables(tables: &Tables) -> String {
    let mut text = format!(
        "{} at {} px, {}, {}",
        tables.model,
        tables.image_size,
        tables.precision,
        match tables.source {
            Source::Files => "images of the data set",
            Source::Synthetic => "one batch that stays on the device",
        }
    );
    if !tables.scaling.is_empty() {
        text.push_str(&scaling(tables));
    }
    if !tables.batches.is_empty() {
        text.push_str(&batches(tables));
    }
    text.push_str(&general_notes(tables));
    if tables.interrupted {
        text.push_str("\n\ninterrupted: the tables have the rows that were measured before");
    }
    text
}

/// One line on the end of a run, for the progress.
pub(crate) fn bench_row(row: &Row) -> String {
    match &row.outcome {
        Outcome::Measured(epochs) => {
            format!("{}: {:.1} images/s", title(row), epochs.images_per_second.median)
        }
        without => format!("{}: {}", title(row), status(without)),
    }
}

/// Why nobody should believe the speed-up of a row that exceeds the ideal.
pub(crate) fn bench_doubt(row: &Row) -> String {
    let speed_up = row.outcome.epochs().and_then(|epochs| epochs.speed_up);
    format!(
        "{}: {} times as fast as one device is more than possible, so something else slowed that one down; \
         repeat the benchmark on an idle machine",
        title(row),
        number(speed_up, 1)
    )
}

/// What a row measures: `2 devices, batch 32`.
fn title(row: &Row) -> String {
    format!("{}, batch {}", count(row.devices.len(), "device"), row.batch)
}

fn scaling(tables: &Tables) -> String {
    let headings = [
        ["", "batch", "images", "spread", "memory", "training", "val", "", ""],
        ["devices", "each", "per s", "%", "GiB each", "min/epoch", "min/epoch", "speed-up", "efficiency"],
    ];
    let mut text = "\n".to_owned();
    for heading in headings {
        text.push_str(&line(&heading, &SCALING));
    }
    for row in &tables.scaling {
        let first = [row.devices.len().to_string(), row.batch_per_device.to_string()];
        match row.outcome.epochs() {
            Some(epochs) => {
                let cells = [&first[..], &scaling_cells(epochs)[..]].concat();
                text.push_str(&line(&cells, &SCALING));
            }
            None => {
                text.push_str(&line(&first, &SCALING));
                text.push_str(&format!("  {}", status(&row.outcome)));
            }
        }
    }
    text + &causes(tables.rows(Table::Scaling))
        + &note(
            "Each device has the same batch, as in YOLOv5's guide, so the batch of a step grows with their \
             number. An epoch has the same images in every row.",
        )
}

fn scaling_cells(epochs: &Epochs) -> [String; 7] {
    let [rate, spread] = rate_and_spread(epochs);
    // An epoch of a small data set takes seconds.
    let minutes =
        |seconds: Option<f64>| number(seconds.map(|s| s / 60.0), if epochs.seconds < 60.0 { 4 } else { 2 });
    [
        rate,
        spread,
        gibibytes(epochs),
        minutes(Some(epochs.seconds)),
        minutes(epochs.validation_seconds),
        number(epochs.speed_up, 2),
        epochs.efficiency.map_or(none(), |part| format!("{:.0} %", part * 100.0)),
    ]
}

fn batches(tables: &Tables) -> String {
    let rows = &tables.batches;
    let pair = rows.iter().any(|row| row.devices.len() == 2);
    let names = line(&["images/s", "spread", "s/epoch", "GiB each"], &SERIES);
    let names = names.trim_start_matches('\n');
    let width = names.len();
    let mut text = format!("\n\n      {:>width$}", "one device");
    if pair {
        text.push_str(&format!(" {:>width$}", "two devices"));
    }
    text.push_str(&format!("\nbatch {names}"));
    if pair {
        text.push_str(&format!(" {names}  gain"));
    }
    let mut sizes: Vec<usize> = rows.iter().map(|row| row.batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let of = |devices: usize| rows.iter().find(|row| row.batch == size && row.devices.len() == devices);
        let mut cells = format!("\n{size:>5} {}", series(of(1), width));
        if pair {
            let gain = of(2).and_then(|row| row.outcome.epochs()?.speed_up);
            cells.push_str(&format!(" {} {:>5}", series(of(2), width), number(gain, 2)));
        }
        text.push_str(cells.trim_end());
    }
    text.push_str(&causes(rows));
    if pair {
        text.push_str(&note(
            "The batch is that of a step, over both devices. The gain is the images per second of two devices \
             divided by those of one.",
        ));
    }
    text
}

/// The cells of a run in the table of batches: numbers, why there are none, or nothing.
fn series(row: Option<&Row>, width: usize) -> String {
    let Some(row) = row else { return " ".repeat(width) };
    let Some(epochs) = row.outcome.epochs() else { return format!("{:>width$}", status(&row.outcome)) };
    let [rate, spread] = rate_and_spread(epochs);
    let cells = [rate, spread, format!("{:.1}", epochs.seconds), gibibytes(epochs)];
    line(&cells, &SERIES).trim_start_matches('\n').to_owned()
}

/// The words for a run without numbers.
fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Measured(_) => "measured",
        Outcome::OutOfMemory { .. } => "out of memory",
        Outcome::Failed { .. } => "failed",
        Outcome::NotMeasured { .. } => "not measured",
    }
}

/// The whole messages of the runs without numbers.
fn causes(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let (Outcome::OutOfMemory { message }
        | Outcome::Failed { message }
        | Outcome::NotMeasured { message }) = &row.outcome
        else {
            continue;
        };
        text.push_str("\n\n");
        text.push_str(&wrap("  ", &format!("{}: {}: {message}", title(row), status(&row.outcome))));
    }
    text
}

/// What holds for all tables.
fn general_notes(tables: &Tables) -> String {
    let mut text = note(&format!(
        "Speeds are medians of {}; the spread is the distance from the slowest to the fastest in percent. \
         Epochs are computed from them, without what happens between epochs.",
        count(tables.rounds, "round")
    ));
    let epochs = tables.all_rows().filter_map(|row| row.outcome.epochs());
    if epochs.map(|epochs| epochs.images_per_second.relative()).fold(0.0, f64::max) > NOISE {
        text.push_str(&note(&format!(
            "A spread above {:.0} % means that something else used the machine, or that the rounds were too \
             short: repeat it on an idle machine, or with more --seconds.",
            NOISE * 100.0
        )));
    }
    if !tables.interrupted && tables.all_rows().all(|row| row.devices.len() == 1) {
        text.push_str(&note("Only one device was measured: name several to compare them (--device 0,1)."));
    }
    let Some(cpu) = tables.all_rows().find(|row| row.on_cpu()) else { return text };
    let threads = |row: &Row| row.devices.len() * row.threads_per_device;
    text.push_str(&match tables.all_rows().all(|row| threads(row) == threads(cpu)) {
        true => note(&format!(
            "Ranks on the CPU are no devices of their own: in every row they share {}. So the ideal speed-up is \
             1, and the efficiency is the speed-up.",
            count(threads(cpu), "CPU thread")
        )),
        false => note(
            "Ranks on the CPU are no devices of their own: the ideal speed-up is the ratio of their CPU threads, \
             and the efficiency is relative to it.",
        ),
    });
    text
}

fn note(text: &str) -> String {
    format!("\n\n{}", wrap("", text))
}

/// A line of right-aligned cells. A line may end early.
fn line(cells: &[impl AsRef<str>], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, &width)| format!("{:>width$}", cell.as_ref()));
    format!("\n{}", cells.collect::<Vec<_>>().join(" ").trim_end())
}

fn rate_and_spread(epochs: &Epochs) -> [String; 2] {
    let rate = epochs.images_per_second;
    [format!("{:.1}", rate.median), format!("{:.1}", rate.relative() * 100.0)]
}

/// Memory; none if the system did not report it.
fn gibibytes(epochs: &Epochs) -> String {
    number((epochs.memory > 0).then_some(epochs.memory as f64 / GIB), 2)
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(none(), |value| format!("{value:.digits$}"))
}

/// A cell without a value.
fn none() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use yolo_plan::bench_report::{Rate, Together};

    use super::*;
    use crate::bench::sample_tables::{self, tables};

    fn epochs(device: &str, speed: f64, validates: bool) -> Outcome {
        let factor = if device == "cpu" { 1.0 } else { 10.0 };
        let rounds = |speed: f64| {
            [0.98, 1.0, 1.01].map(|part| Rate::new(100, 100.0 / (factor * speed * part))).to_vec()
        };
        Outcome::of(&Together {
            training: rounds(speed),
            training_images: 118_287,
            validation: if validates { rounds(2.0 * speed) } else { Vec::new() },
            validation_images: 5000,
            memory: vec![26 << 29],
        })
    }

    /// A row with the speed-up that its place in a table gives it.
    fn row(device: &str, devices: usize, batch: usize, mut outcome: Outcome, speed_up: f64) -> Row {
        if let Outcome::Measured(epochs) = &mut outcome {
            epochs.speed_up = Some(speed_up);
            epochs.efficiency = Some(speed_up / devices as f64);
        }
        sample_tables::row(device, devices, batch, outcome)
    }

    #[test]
    fn one_row_per_number_of_devices() {
        let of = |devices, speed, speed_up| {
            row("cuda:0", devices, 16 * devices, epochs("cuda:0", speed, true), speed_up)
        };
        let failed = Outcome::Failed { message: "rank 3 of 8 (cuda:3 on lab-3) was killed by signal 9 (SIGKILL), which another process sent (it was measuring training)".to_owned() };
        let rows =
            vec![of(1, 9.55, 1.0), of(2, 18.9, 1.98), of(4, 37.1, 3.88), row("cuda:0", 8, 128, failed, 0.0)];
        insta::assert_snapshot!(bench_tables(&tables(rows, Vec::new())), @r"
        yolov5l at 640 px, fp32, images of the data set

                 batch   images spread   memory  training       val
        devices   each    per s      % GiB each min/epoch min/epoch speed-up efficiency
              1     16     95.5    3.0    13.00     20.64      0.44     1.00      100 %
              2     16    189.0    3.0    13.00     10.43      0.22     1.98       99 %
              4     16    371.0    3.0    13.00      5.31      0.11     3.88       97 %
              8     16  failed

          8 devices, batch 128: failed: rank 3 of 8 (cuda:3 on lab-3) was killed by
          signal 9 (SIGKILL), which another process sent (it was measuring training)

        Each device has the same batch, as in YOLOv5's guide, so the batch of a step
        grows with their number. An epoch has the same images in every row.

        Speeds are medians of 3 rounds; the spread is the distance from the slowest to
        the fastest in percent. Epochs are computed from them, without what happens
        between epochs.
        ");
    }

    #[test]
    fn one_row_per_batch() {
        let out =
            || Outcome::OutOfMemory { message: "CUDA out of memory: Tried to allocate 2.00 GiB".to_owned() };
        let of =
            |devices, batch, speed, gain| row("cuda:0", devices, batch, epochs("cuda:0", speed, false), gain);
        let rows = vec![
            of(1, 4, 5.0, 1.0),
            of(1, 64, 12.34, 1.0),
            row("cuda:0", 1, 128, out(), 0.0),
            of(2, 4, 6.0, 1.2),
            of(2, 64, 24.0, 1.94),
            of(2, 128, 25.0, 0.0),
            row("cuda:0", 2, 256, out(), 0.0),
        ];
        let mut tables = tables(Vec::new(), rows);
        if let Outcome::Measured(epochs) = &mut tables.batches[5].outcome {
            epochs.speed_up = None;
        }
        insta::assert_snapshot!(bench_tables(&tables), @r"
        yolov5l at 640 px, fp32, images of the data set

                                     one device                       two devices
        batch images/s spread  s/epoch GiB each images/s spread  s/epoch GiB each  gain
            4     50.0    3.0   2365.7    13.00     60.0    3.0   1971.5    13.00  1.20
           64    123.4    3.0    958.6    13.00    240.0    3.0    492.9    13.00  1.94
          128                     out of memory    250.0    3.0    473.1    13.00     –
          256                                                       out of memory     –

          1 device, batch 128: out of memory: CUDA out of memory: Tried to allocate 2.00
          GiB

          2 devices, batch 256: out of memory: CUDA out of memory: Tried to allocate
          2.00 GiB

        The batch is that of a step, over both devices. The gain is the images per
        second of two devices divided by those of one.

        Speeds are medians of 3 rounds; the spread is the distance from the slowest to
        the fastest in percent. Epochs are computed from them, without what happens
        between epochs.
        ");
    }

    #[test]
    fn the_notes_say_what_a_speed_up_on_the_cpu_is() {
        let one = |devices| row("cpu", devices, 16 * devices, epochs("cpu", 10.0, true), 0.97);
        let shared = bench_tables(&tables(vec![one(1), one(2)], Vec::new()));
        assert!(shared.replace('\n', " ").contains("in every row they share 8 CPU threads"), "{shared}");
        let more = Row { threads_per_device: 8, ..one(2) };
        let more = bench_tables(&tables(vec![one(1), more], Vec::new()));
        assert!(more.replace('\n', " ").contains("the ratio of their CPU threads"), "{more}");
        let single = Tables { interrupted: true, ..tables(Vec::new(), vec![one(1)]) };
        insta::assert_snapshot!(bench_tables(&single), @r"
        yolov5l at 640 px, fp32, images of the data set

                                     one device
        batch images/s spread  s/epoch GiB each
           16     10.0    3.0  11828.7    13.00

        Speeds are medians of 3 rounds; the spread is the distance from the slowest to
        the fastest in percent. Epochs are computed from them, without what happens
        between epochs.

        Ranks on the CPU are no devices of their own: in every row they share 8 CPU
        threads. So the ideal speed-up is 1, and the efficiency is the speed-up.

        interrupted: the tables have the rows that were measured before
        ");
        assert_eq!(bench_row(&one(2)), "2 devices, batch 32: 10.0 images/s");
    }

    #[test]
    fn a_speed_up_that_cannot_be_is_doubted() {
        insta::assert_snapshot!(
            bench_doubt(&row("cpu", 2, 32, epochs("cpu", 180.0, false), 18.04)),
            @"2 devices, batch 32: 18.0 times as fast as one device is more than possible, so something else slowed that one down; repeat the benchmark on an idle machine"
        );
    }

    #[test]
    fn no_line_is_longer_than_80_columns() {
        let of = |devices, batch| row("cuda:0", devices, batch, epochs("cuda:0", 9999.9, true), 7.92);
        let text = bench_tables(&tables(vec![of(8, 4096)], vec![of(1, 512), of(2, 512)]));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
