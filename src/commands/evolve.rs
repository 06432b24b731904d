//! `yolo train --evolve`: one training after the other, each planned and started as `yolo train` does it, with
//! hyperparameters of its own. After each one the table, the best hyperparameters and the plot are published, so the
//! search can be continued however it ends.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use yolo_base::exit;
use yolo_base::format::count;
use yolo_checks::{GpuMonitor, Host};
use yolo_plan::event::{Event, OutputFile};
use yolo_plan::evolve::{
    Genes, Table, best_hyp_yaml, check_resume, hyp_yaml, options_of_generation, warning,
};
use yolo_plan::options::{TrainOptions, Workers};
use yolo_plan::run::{PlanContext, Planned, Task, opt_yaml, plan_train};
use yolo_plan::{PlanError, RunPlan};

use super::before_training::Measured;
use super::interrupt::BetweenRuns;
use super::run::{decided, fit_to_machine, gpus_of, not_started, plan_context, planned_in};
use super::{auto_batch, loader_threads};
use crate::cli::{MachineArgs, TrainArgs};
use crate::dirs::YoloDirs;
use crate::doctor;
use crate::error::CommandError;
use crate::evolve::{
    self, DATA, End, Failure, KnownData, OPTIONS, Search, TABLE, TrainingEnd, Trainings, changed, continued,
    folder_of, keep_failed, newest, population, remove_leftovers, table_in,
};
use crate::launch::machines::Place;
use crate::launch::{self, LaunchError, Programs, RankFailure, RunEnd, run_folder};
use crate::machine;
use crate::output_file;
use crate::printer::{Printer, RunEvents, RunView, evolution_result, generation_begins, generation_ends};
use crate::setup;

/// The best hyperparameters so far.
const BEST: &str = "hyp_evolve.yaml";
/// The plot.
const PLOT: &str = "evolve.svg";

/// Searches for hyperparameters and returns the exit status.
pub(super) fn evolve(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let events = RefCell::new(args.json.then(|| RunEvents::new(printer)));
    let result = search(args, offline, &events, printer);
    result.map_err(|error| not_started(events.borrow().as_ref(), error))
}

fn search(
    args: &TrainArgs,
    offline: bool,
    events: &RefCell<Option<RunEvents<'_>>>,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let generations = args.evolution.evolve.unwrap_or_default();
    args.yolov5_only.refuse()?;
    one_machine(&args.machines)?;
    let given = setup::with_named_nccl(&args.options)?;
    let genes = Genes::new(!given.noautoanchor);
    let earlier = earlier_table(args, &given)?;
    if let Some(file) = &earlier {
        // A file that is damaged is reported before anything is fetched.
        continued(file, genes)?;
    }
    let earlier = earlier.map(|file| std::path::absolute(&file).unwrap_or(file));
    let files = args.evolution.evolve_population.as_deref();
    let files = files.map(|folder| population(folder, genes)).transpose()?;
    args.yolov5_only.warning(false).into_iter().chain(warning(&given)).for_each(|text| printer.warning(text));

    let mut options = options_of_generation(&given);
    let dirs = YoloDirs::from_env()?;
    let host = machine::this_host(&dirs);
    let mut context = plan_context(&host, &dirs)?;
    let plan = |context: &PlanContext| plan_train(&options, context).map(decided);
    let Planned { mut plan, warnings, notes, .. } = *planned_in(&mut context, plan, &dirs, offline, printer)?;
    let ignored = plan.task.train().and_then(|task| genes.ignored_anchors(&task.hyp));
    // What the plan says of `anchors` is about a run whose model has them.
    let of_a_run = |warning: &&String| ignored.is_none() || !warning.contains("`anchors`");
    warnings.iter().filter(of_a_run).for_each(|warning| printer.warning(warning));
    ignored.into_iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    fit_to_machine(&host, &mut plan.ranks).iter().for_each(|note| printer.say(note));
    if !args.no_preflight {
        doctor::preflight(&host, &options, &plan, printer)?;
    }
    let programs = machine::programs(&dirs, plan.ranks.backend, offline, &notes, printer)?;
    // Invariant: the folder is created last, so that a failed download leaves no empty one.
    if let Some(folder) = earlier.as_ref().and_then(|file| file.parent()) {
        folder.clone_into(&mut plan.run_dir);
    }
    run_folder::claim(&mut plan, earlier.is_some() || given.exist_ok)?;
    let _lock = run_folder::lock(&plan.run_dir)?;
    remove_leftovers(&plan.run_dir);
    printer.say(format_args!("run folder {}", plan.run_dir.display()));
    // Read only now: until the folder was locked, another search could add generations.
    let (mut table, cut_short) = match &earlier {
        Some(file) => continued(file, genes)?,
        None => (Table::new(genes), None),
    };
    cut_short.iter().for_each(|warning| printer.warning(warning));
    let csv = earlier.unwrap_or_else(|| plan.run_dir.join(TABLE));
    if let Some(events) = events.borrow().as_ref() {
        events.planned(&plan);
    }

    let interrupt = BetweenRuns::new();
    if auto_batch::wanted(&options) {
        match auto_batch::choose(&plan, &context.inventory, &programs, printer)? {
            Measured::Interrupted { killed } => return Ok(interrupted(&csv, killed, events, printer)),
            // All generations are trained with this batch, because results depend on it.
            Measured::Result(total) => {
                let number = total.or_else(|| plan.task.train().map(|task| task.batch));
                options.batch_size = number.and_then(|images| i64::try_from(images).ok());
                context.measured_batch = total;
                let folder = plan.run_dir;
                let again = |context: &PlanContext| plan_train(&options, context).map(decided);
                plan = planned_in(&mut context, again, &dirs, offline, printer)?.plan;
                plan.run_dir = folder;
                fit_to_machine(&host, &mut plan.ranks);
            }
        }
    }
    if let Some(task) = plan.task.train() {
        let settings = opt_yaml(&plan, task)?;
        changed(&plan.run_dir, &settings).iter().for_each(|warning| printer.warning(warning));
        let file = plan.run_dir.join(OPTIONS);
        // Those of the first start stay, so that each continuation is compared with them.
        if table.rows().is_empty() || !file.exists() {
            output_file::write(&file, &format!("{:#}\n", Value::Object(settings)))?;
        }
    }
    let mut workers = None;
    if options.workers == Some(Workers::Auto) {
        if let Measured::Interrupted { killed } = loader_threads::choose(&mut plan, &programs, printer)? {
            return Ok(interrupted(&csv, killed, events, printer));
        }
        workers = plan.task.train().map(|task| task.workers);
    }
    let base = plan.task.train().map(|task| genes.of_hyp(&task.hyp));
    // The files take the place of the default, but not of hyperparameters that the user names.
    let base = base.filter(|_| files.is_none() || options.hyp.as_ref().is_some_and(|hyp| !hyp.is_empty()));
    let first = base.into_iter().chain(files.unwrap_or_default()).collect();
    let search = Search { generations, seed: options.seed.unwrap_or(0), first };
    if !table.rows().is_empty() {
        printer.say(format_args!("continuing after {}", count(table.rows().len(), "generation")));
    }
    let gpus = GpuMonitor::start(gpus_of(&plan.ranks));
    let mut generation = Ranks {
        folder: plan.run_dir.clone(),
        csv: csv.clone(),
        data: KnownData::of(&plan.run_dir),
        options,
        context,
        host: &host,
        programs: &programs,
        genes,
        generations,
        workers,
        gpus: &gpus,
        events,
        printer,
        interrupt,
        began: Instant::now(),
        trained: 0,
    };
    if table.rows().len() >= generations {
        printer.say(format_args!(
            "it has {} already; an --evolve above {} continues it",
            count(table.rows().len(), "generation"),
            table.rows().len()
        ));
        generation.publish(&table)?;
    }
    let end = evolve::evolve(&search, &mut table, &mut generation)?;
    finish(end, &table, (&plan.run_dir, &csv), events, printer)
}

/// Says how the search ended, and returns the exit status.
fn finish(
    end: End,
    table: &Table,
    (folder, csv): (&Path, &Path),
    events: &RefCell<Option<RunEvents<'_>>>,
    printer: &Printer,
) -> Result<u8, CommandError> {
    match end {
        End::Finished => {}
        End::Interrupted { killed } => return Ok(interrupted(csv, killed, events, printer)),
        End::Failed { first: Failure { generation, message }, count } => {
            let failed = match count {
                1 => "the generation failed".to_owned(),
                _ => format!("{count} generations in a row failed"),
            };
            return Err(CommandError::Failed {
                what: format!("{failed}, the first of them, generation {}, with: {message}", generation + 1),
                hint: format!(
                    "the same command must work without --evolve first; the logs are in {}",
                    folder.join("generation*").join("logs").display()
                ),
            });
        }
    }
    let (hyp, svg) = (folder.join(BEST), folder.join(PLOT));
    let files: [(&str, &Path); 3] = [("generations", csv), ("hyperparameters", &hyp), ("plot", &svg)];
    if let Some(events) = events.borrow().as_ref() {
        let files = files.map(|(what, path)| OutputFile { what: what.to_owned(), path: path.to_owned() });
        events.evolved(table, &files);
    } else if let Some(text) = evolution_result(table, &files, &hyp) {
        printer.result(text);
    }
    Ok(exit::SUCCESS)
}

/// Says how an interrupted search is continued, and returns the exit status.
fn interrupted(csv: &Path, killed: bool, events: &RefCell<Option<RunEvents<'_>>>, printer: &Printer) -> u8 {
    let table = csv.is_file().then_some(csv);
    if let Some(events) = events.borrow().as_ref() {
        events.interrupted(table, killed);
    }
    match table {
        Some(table) => printer.say(format_args!(
            "interrupted; the generation that was being trained is dropped\nto continue with it, run the same command \
             with\n  --resume-evolve {}",
            table.display()
        )),
        None => printer.say("interrupted before the first generation was trained"),
    }
    exit::INTERRUPTED
}

/// Refuses several machines.
fn one_machine(machines: &MachineArgs) -> Result<(), CommandError> {
    let MachineArgs { nnodes, node_rank, master_addr, master_port } = machines;
    // Said before anything about the other options: they only go with several machines.
    if let Some(machines) = nnodes.filter(|machines| *machines > 1) {
        return Err(CommandError::Usage {
            what: format!(
                "--evolve trains on the devices of one machine, and --nnodes {machines} asks for several"
            ),
            hint: "omit the options about machines; each generation trains on all devices of --device"
                .to_owned(),
        });
    }
    Place::of_options(*nnodes, *node_rank, master_addr.as_deref(), *master_port)?;
    Ok(())
}

/// The table that the search continues, if it does.
fn earlier_table(args: &TrainArgs, options: &TrainOptions) -> Result<Option<PathBuf>, CommandError> {
    let project = options.project.clone().unwrap_or_else(|| yolo_plan::evolve::PROJECT.into());
    let named = options.name.as_ref().map(|name| project.join(name).join(TABLE));
    let file = match (&options.resume, &args.evolution.resume_evolve) {
        (Some(_), Some(_)) => {
            return Err(PlanError::usage("--resume and --resume-evolve are both given")
                .with_hint("give one of them: --resume continues the most recent evolution")
                .into());
        }
        (None, Some(file)) => Some(table_in(file)),
        (Some(resume), None) if !resume.is_empty() => {
            check_resume(resume)?;
            Some(table_in(Path::new(resume)))
        }
        (Some(_), None) => Some(match named {
            Some(named) => named,
            None => newest(&project)?,
        }),
        // As in YOLOv5, a folder that may be used again is continued.
        (None, None) if options.exist_ok => {
            Some(named.unwrap_or_else(|| project.join("exp").join(TABLE))).filter(|table| table.is_file())
        }
        (None, None) => None,
    };
    Ok(file)
}

/// Starts the ranks of each generation and shows what they report.
struct Ranks<'a, 'p> {
    folder: PathBuf,
    /// The table.
    csv: PathBuf,
    /// What the data set of the generations so far had.
    data: KnownData,
    options: TrainOptions,
    context: PlanContext,
    host: &'a Host,
    programs: &'a Programs,
    genes: Genes,
    generations: usize,
    /// The loader threads that were measured.
    workers: Option<usize>,
    gpus: &'a GpuMonitor,
    events: &'a RefCell<Option<RunEvents<'p>>>,
    printer: &'a Printer,
    interrupt: BetweenRuns,
    began: Instant,
    /// Generations since then.
    trained: usize,
}

impl Ranks<'_, '_> {
    /// The plan of a generation in its folder.
    fn plan(&self, folder: &Path, values: &[f64]) -> Result<RunPlan, CommandError> {
        let hyp = folder.join("hyp.yaml");
        output_file::write(&hyp, &hyp_yaml(self.genes, values))?;
        let options = TrainOptions { hyp: Some(hyp.to_string_lossy().into_owned()), ..self.options.clone() };
        let planned = decided(plan_train(&options, &self.context)?);
        let Planned { mut plan, .. } = *planned.map_err(|needs| CommandError::StillMissing { needs })?;
        plan.run_dir = folder.to_owned();
        // What the user should know about the machine was said at the start.
        fit_to_machine(self.host, &mut plan.ranks);
        if let Task::Train(task) = &mut plan.task {
            task.evolve = true;
            task.workers = self.workers.unwrap_or(task.workers);
        }
        Ok(plan)
    }
}

impl Ranks<'_, '_> {
    /// The error that ends the search when a file of the data set cannot be used: other hyperparameters would fail, too.
    fn unusable_data(&self, generation: usize, failure: &RankFailure) -> CommandError {
        let mut hints: Vec<String> = failure.hint.clone().into_iter().collect();
        if self.csv.is_file() {
            hints.push(format!(
                "then continue with the same command and --resume-evolve {}",
                self.csv.display()
            ));
        }
        CommandError::Failed {
            what: format!("generation {} cannot be trained with this data set: {failure}", generation + 1),
            hint: hints.join("; "),
        }
    }
}

impl Trainings for Ranks<'_, '_> {
    type Error = CommandError;

    fn train(
        &mut self,
        number: usize,
        parent: Option<usize>,
        values: &[f64],
    ) -> Result<TrainingEnd, CommandError> {
        let folder = folder_of(&self.folder, number).map_err(|source| CommandError::File {
            what: format!("cannot create a folder in {}", self.folder.display()),
            source,
            hint: Some("name a writable folder with --project".to_owned()),
        })?;
        let mut plan = self.plan(folder.path(), values)?;
        let plan_file = run_folder::create(&mut plan, true)?;
        self.printer.say(generation_begins(number, self.generations, parent));
        if let Some(events) = self.events.borrow_mut().as_mut() {
            events.next_run();
        }
        let mut view = RunView::new(self.printer, &plan.task, false).with_gpus(self.gpus);
        let mut result = None;
        let first = self.trained == 0;
        let end = launch::run(&plan, &plan_file, self.programs, &mut |rank, event| {
            let event = &match event {
                Event::Split(summary) => match self.data.see(summary) {
                    Some(message) => Event::Warning { message },
                    None => return,
                },
                _ => event.clone(),
            };
            if let Event::Epoch(epoch) = event
                && let Some(metrics) = epoch.metrics
            {
                result = Some((metrics, epoch.val_losses.unwrap_or_default()));
            }
            let same_each_time = matches!(event, Event::Note { .. }) && !first;
            if same_each_time || matches!(event, Event::Finished { .. }) {
                return;
            }
            view.show(rank, event);
            if let Some(events) = self.events.borrow_mut().as_mut() {
                if matches!(event, Event::Step(_)) {
                    events.gpus(self.gpus.latest());
                }
                events.show(rank, event);
            }
        });
        view.finish();
        drop(plan_file);
        self.trained += 1;
        let message = match (end, result) {
            (Ok(RunEnd::Interrupted { killed, .. }), _) => return Ok(TrainingEnd::Interrupted { killed }),
            (Ok(RunEnd::Finished), Some((metrics, losses))) => {
                return Ok(TrainingEnd::Trained(metrics, losses));
            }
            (Ok(RunEnd::Finished), None) => {
                "the training finished without metrics; if YOLO_TRAINER is set, it must be the yolo-trainer of this \
                 release"
                    .to_owned()
            }
            (Err(LaunchError::Rank(failure)), _) if failure.of_data => {
                let error = self.unusable_data(number, &failure);
                keep_failed(folder, &error.to_string());
                return Err(error);
            }
            (Err(error @ (LaunchError::Rank(_) | LaunchError::Unfinished { .. })), _) => error.to_string(),
            (Err(error), _) => return Err(error.into()),
        };
        keep_failed(folder, &message);
        Ok(TrainingEnd::Failed(message))
    }

    fn show(&mut self, table: &Table, parent: Option<usize>, failure: Option<&Failure>) {
        if let Some(Failure { generation, message }) = failure {
            self.printer.warning(format_args!(
                "generation {} failed, so its fitness is 0: {message}",
                generation + 1
            ));
        }
        let to_train = self.generations - table.rows().len();
        let each = self.began.elapsed().as_secs_f64() / self.trained.max(1) as f64;
        let left = Some(each * to_train as f64).filter(|_| to_train > 0);
        self.printer.say(generation_ends(table, self.generations, left));
        if let Some(events) = self.events.borrow().as_ref() {
            events.generation(
                table,
                self.generations,
                parent,
                failure.map(|failure| failure.message.as_str()),
            );
        }
    }

    fn publish(&mut self, table: &Table) -> Result<(), CommandError> {
        // The table is written first: the others follow from it.
        output_file::write(&self.csv, &table.to_csv())?;
        let data = self.folder.join(DATA);
        // That of the first generation stays, so that each continuation is compared with it.
        if !data.exists() {
            output_file::write(&data, &self.data.to_json())?;
        }
        if let Some(text) = best_hyp_yaml(table) {
            output_file::write(&self.folder.join(BEST), &text)?;
        }
        let file = self.folder.join(PLOT);
        let plot = evolve::plot(table).map_err(|error| CommandError::File {
            what: format!("cannot draw the plot {}", file.display()),
            source: std::io::Error::other(error.to_string()),
            hint: None,
        })?;
        output_file::write(&file, &plot)
    }

    fn interrupted(&self) -> bool {
        self.interrupt.happened()
    }
}
