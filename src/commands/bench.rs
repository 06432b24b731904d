//! `yolo bench`.

use yolo_plan::bench_report::Report;
use yolo_plan::run::plan_bench;

use super::run::Run;
use crate::cli::BenchArgs;
use crate::doctor;
use crate::error::CommandError;
use crate::printer::{Printer, bench_table};

/// Measures the speed of training and returns the exit status.
pub(super) fn bench(args: &BenchArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    for (option, file) in [("--csv", &args.csv), ("--plot", &args.plot)] {
        if let Some(file) = file {
            return Err(CommandError::Usage {
                what: format!(
                    "{option} {} is for the tables of --scaling and --batches, and neither is given",
                    file.display()
                ),
                hint: "add --scaling or --batches; --json prints the results of any benchmark".to_owned(),
            });
        }
    }
    let options = &args.options;
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_bench(options, context),
        preflight: &|host, plan| match args.no_preflight {
            true => Ok(()),
            false => doctor::preflight(host, &options.as_train(), plan, printer),
        },
        measured: &|plan, measurements| {
            if let Some(report) = Report::new(plan, measurements) {
                printer.result(if args.json { report.to_json() } else { bench_table(&report) });
            }
        },
        events: None,
        layout: None,
        graphics: None,
    }
    .execute(offline, printer)
}
