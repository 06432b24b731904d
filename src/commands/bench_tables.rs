//! `yolo bench --scaling` and `--batches`: one run per row, one after the other. What was measured is
//! printed however the command ends.

use std::path::{Path, PathBuf};

use yolo_base::Hint as _;
use yolo_base::exit;
use yolo_base::format::count;
use yolo_plan::backend::Backend;
use yolo_plan::bench_report::Measurement;
use yolo_plan::bench_tables::{Outcome, Row, Tables, to_csv};
use yolo_plan::event::Event;
use yolo_plan::run::{PlannedRow, PlannedTables, TablesPlanning, plan_bench_tables};

use super::interrupt::BetweenRuns;
use super::run::{fit_to_machine, planned};
use crate::bench::{self, RowEnd, Runs};
use crate::cli::BenchArgs;
use crate::dirs::YoloDirs;
use crate::doctor;
use crate::error::CommandError;
use crate::launch::{self, Programs, RunEnd, run_folder};
use crate::machine;
use crate::output_file;
use crate::printer::{Printer, RunView, bench_doubt, bench_row, bench_tables as text};

/// Measures the tables and returns the exit status.
pub(super) fn bench_tables(args: &BenchArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    check_files(args)?;
    let dirs = YoloDirs::from_env()?;
    let host = machine::this_host(&dirs);
    let plan = |context: &_| {
        Ok(match plan_bench_tables(&args.options, context)? {
            TablesPlanning::Ready(tables) => Ok(*tables),
            TablesPlanning::Missing(needs) => Err(needs),
        })
    };
    let PlannedTables { mut rows, warnings, notes } = planned(plan, &host, &dirs, offline, printer)?;
    warnings.iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    let mut said = Vec::new();
    for row in &mut rows {
        for note in fit_to_machine(&host, &mut row.plan.ranks) {
            if !said.contains(&note) {
                printer.say(&note);
                said.push(note);
            }
        }
    }
    // The row with the most devices needs the most of the machine. A batch that is too large for its memory
    // is a result, and no reason not to start.
    let size = |row: &&PlannedRow| {
        let batch = row.plan.task.training().map(|training| training.batch);
        (row.plan.ranks.devices.len(), std::cmp::Reverse(batch))
    };
    let Some(largest) = rows.iter().max_by_key(size) else {
        return Ok(exit::SUCCESS);
    };
    if !args.no_preflight {
        doctor::preflight(&host, &args.options.as_train(), &largest.plan, printer)?;
    }
    let nccl = rows.iter().any(|row| row.plan.ranks.backend == Some(Backend::Nccl));
    let backend = nccl.then_some(Backend::Nccl);
    let programs = machine::programs(&dirs, backend, offline, &notes, printer)?;
    let folder = claim_folder(&largest.plan, args.options.exist_ok)?;
    printer.say(format_args!("run folder {}", folder.display()));

    let Some(mut tables) = rows.first().and_then(Tables::new) else { return Ok(exit::SUCCESS) };
    let mut runs =
        Ranks { folder, programs: &programs, printer, rows: rows.len(), interrupt: BetweenRuns::new() };
    bench::measure(&mut tables, &rows, &mut runs);
    show(&tables, args, printer)
}

/// Mistakes in the names of files are reported before anything is started.
fn check_files(args: &BenchArgs) -> Result<(), CommandError> {
    if let Some(file) = &args.plot
        && file.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("svg"))
    {
        return Err(CommandError::Usage {
            what: format!("--plot {}: plots are SVG images", file.display()),
            hint: format!("use --plot {}", file.with_extension("svg").display()),
        });
    }
    if let (Some(csv), Some(plot)) = (&args.csv, &args.plot)
        && std::path::absolute(csv).ok() == std::path::absolute(plot).ok()
    {
        return Err(CommandError::Usage {
            what: format!("--csv and --plot name the same file, {}", csv.display()),
            hint: "give each a file of its own, for example tables.csv and tables.svg".to_owned(),
        });
    }
    for file in args.csv.iter().chain(&args.plot) {
        output_file::check(file)?;
    }
    Ok(())
}

/// Creates the folder of the tables, in which each run has its own.
fn claim_folder(plan: &yolo_plan::RunPlan, exist_ok: bool) -> Result<PathBuf, CommandError> {
    let mut plan = plan.clone();
    run_folder::claim(&mut plan, exist_ok)?;
    Ok(plan.run_dir)
}

/// Prints and writes the rows that there are, and returns the exit status.
fn show(tables: &Tables, args: &BenchArgs, printer: &Printer) -> Result<u8, CommandError> {
    if tables.all_rows().next().is_some() {
        printer.result(if args.json { tables.to_json() } else { text(tables) });
        if let Some(file) = &args.csv {
            output_file::write(file, &to_csv(tables))?;
            printer.say(format_args!("tables: {}", file.display()));
        }
        if let Some(file) = &args.plot {
            output_file::write(file, &plot(tables, file)?)?;
            printer.say(format_args!("plot: {}", file.display()));
        }
    }
    if let Some(row) = tables.all_rows().find(|row| row.exceeds_the_ideal()) {
        printer.warning(bench_doubt(row));
    }
    if tables.interrupted {
        printer.say("interrupted");
        return Ok(exit::INTERRUPTED);
    }
    let failed = tables.all_rows().filter(|row| matches!(row.outcome, Outcome::Failed { .. })).count();
    if failed > 0 {
        return Err(CommandError::Failed {
            what: format!("{failed} of {} measurements failed", tables.all_rows().count()),
            hint: "the rows of the tables say why".to_owned(),
        });
    }
    Ok(exit::SUCCESS)
}

fn plot(tables: &Tables, file: &Path) -> Result<String, CommandError> {
    bench::plot(tables).map_err(|error| CommandError::File {
        what: format!("cannot draw the plot {}", file.display()),
        source: std::io::Error::other(error.to_string()),
        hint: None,
    })
}

/// What a run measures: `2 devices, batch 32`.
fn title(row: &PlannedRow) -> String {
    let devices = count(row.plan.ranks.devices.len(), "device");
    match row.plan.task.training() {
        Some(training) => format!("{devices}, batch {}", training.batch),
        None => devices,
    }
}

/// Starts the ranks of each row and shows what they report.
struct Ranks<'a> {
    folder: PathBuf,
    programs: &'a Programs,
    printer: &'a Printer,
    rows: usize,
    interrupt: BetweenRuns,
}

impl Runs for Ranks<'_> {
    fn run(&mut self, number: usize, row: &PlannedRow) -> RowEnd {
        let mut plan = row.plan.clone();
        plan.run_dir = self.folder.join(format!("row{number}"));
        let plan_file = match run_folder::create(&mut plan, true) {
            Ok(file) => file,
            Err(error) => return RowEnd::Outcome(Outcome::Failed { message: error.to_string() }),
        };
        self.printer.say(format_args!("\n{number} of {}: {}", self.rows, title(row)));
        let mut view = RunView::new(self.printer, &plan.task, false);
        let end = launch::run(&plan, &plan_file, self.programs, &mut |rank, event| {
            // Every run has the same model and data.
            if number == 1 || !matches!(event, Event::Note { .. }) {
                view.show(rank, event);
            }
        });
        let measurements = view.finish().measurements;
        let together = measurements.into_iter().find_map(|measurement| match measurement {
            Measurement::Together(together) => Some(together),
            _ => None,
        });
        match (end, together) {
            (Ok(RunEnd::Interrupted { .. }), _) => RowEnd::Interrupted,
            (Ok(RunEnd::Finished), Some(together)) => RowEnd::Outcome(Outcome::of(&together)),
            (Ok(RunEnd::Finished), None) => RowEnd::Outcome(Outcome::Failed {
                message:
                    "the run finished without a result; if YOLO_TRAINER is set, it must be the yolo-trainer \
                          of this release"
                        .to_owned(),
            }),
            (Err(error), _) => {
                let hint = error.hint().map(std::borrow::Cow::into_owned);
                RowEnd::Outcome(bench::outcome_of_error(error.to_string(), hint))
            }
        }
    }

    fn show(&mut self, row: &Row) {
        self.printer.say(bench_row(row));
    }

    fn available_memory(&self) -> Option<u64> {
        bench::available()
    }

    fn interrupted(&self) -> bool {
        self.interrupt.happened()
    }
}
