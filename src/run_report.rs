//! The report of a run: listens to its events, adds what it knows to the facts that rank 0 has left in the run
//! folder, and makes the page of them. A report that cannot be written is a warning: the run is what counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use yolo_base::format::memory;
use yolo_checks::Host;
use yolo_checks::shell_quote::quote;
use yolo_plan::RunPlan;
use yolo_plan::event::{Event, OutputFile};
use yolo_plan::report::{End, PAGE_FILE, Phase, RankFacts, RunFacts, RunReport, publish};
use yolo_plan::run::Task;
use yolo_report::{RunFiles, page};

use crate::dirs::YoloDirs;
use crate::fetch::Redacted;
use crate::launch::Programs;
use crate::machine;

/// What is heard of a run while it lasts.
#[derive(Debug)]
pub(crate) struct ReportOfRun<'a> {
    plan: &'a RunPlan,
    programs: &'a Programs,
    began: Instant,
    began_at: SystemTime,
    /// What rank 0 is doing, and since when.
    doing: Option<(String, Instant)>,
    phases: Vec<Phase>,
    ranks: BTreeMap<usize, RankFacts>,
    /// Images and seconds of each rank before it was restarted, from which on it counts anew.
    before: BTreeMap<usize, (u64, [f64; 3])>,
}

impl<'a> ReportOfRun<'a> {
    /// Of a run that begins now.
    pub(crate) fn new(plan: &'a RunPlan, programs: &'a Programs) -> Self {
        let (began, began_at) = (Instant::now(), SystemTime::now());
        Self {
            plan,
            programs,
            began,
            began_at,
            doing: None,
            phases: Vec::new(),
            ranks: BTreeMap::new(),
            before: BTreeMap::new(),
        }
    }

    /// One event of a rank; `None` is the supervisor.
    pub(crate) fn hear(&mut self, rank: Option<usize>, event: &Event) {
        let Some(rank) = rank else { return };
        let facts = self.ranks.entry(rank).or_insert_with(|| RankFacts { rank, ..RankFacts::default() });
        match event {
            Event::Hello { device, threads, .. } => {
                self.before.insert(rank, (facts.images, facts.seconds));
                device.clone_into(&mut facts.device);
                facts.threads = *threads;
            }
            Event::Alive { progress: Some(progress) } => {
                let (images, seconds) = self.before.get(&rank).copied().unwrap_or_default();
                facts.images = images + progress.images;
                facts.seconds = std::array::from_fn(|stage| seconds[stage] + progress.seconds[stage]);
            }
            Event::Phase { doing, steps } if rank == 0 => {
                let doing = if *steps { self.plan.task.doing() } else { doing };
                self.end_phase();
                self.doing = Some((doing.to_owned(), Instant::now()));
            }
            _ => {}
        }
    }

    /// Adds the time of the present phase.
    fn end_phase(&mut self) {
        let Some((doing, since)) = self.doing.take() else { return };
        let seconds = since.elapsed().as_secs_f64();
        match self.phases.iter_mut().find(|phase| phase.doing == doing) {
            Some(phase) => phase.seconds += seconds,
            None => self.phases.push(Phase { doing, seconds }),
        }
    }

    /// Writes the report of a run that has ended like this. Returns the page; `None` if the run leaves none.
    ///
    /// # Errors
    /// When the report cannot be written, with the complete message.
    pub(crate) fn write(&mut self, end: End, failure: Option<String>) -> Result<Option<OutputFile>, String> {
        let reports = matches!(self.plan.task, Task::Train(_) | Task::Val(_)) && self.plan.ranks.first == 0;
        if !reports {
            return Ok(None);
        }
        let folder = &self.plan.run_dir;
        let cannot = |error: &dyn std::fmt::Display| format!("cannot write the report of the run: {error}");
        let report = RunReport::read(folder).map_err(|error| cannot(&error))?;
        // Rank 0 leaves none without plots; one that is complete is that of an earlier run.
        let Some(mut report) = report.filter(|report| report.run.is_none()) else { return Ok(None) };
        self.end_phase();
        report.end(self.facts(end, failure));
        let folder = &self.plan.run_dir;
        report.write(folder).map_err(|error| cannot(&error))?;
        let path = folder.join(PAGE_FILE);
        let files = RunFiles::read(folder).map_err(|error| cannot(&error))?;
        publish(&path, page(&files).as_bytes()).map_err(|error| cannot(&error))?;
        Ok(Some(OutputFile { what: "report".to_owned(), path }))
    }

    fn facts(&self, end: End, failure: Option<String>) -> RunFacts {
        let arguments: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|argument| without_secrets(&argument.to_string_lossy()))
            .collect();
        let folder = std::env::current_dir().unwrap_or_default().display().to_string();
        let commands = self.commands(&arguments, &folder, end);
        RunFacts {
            task: self.plan.task.doing().to_owned(),
            program: self.plan.program.clone(),
            end,
            failure,
            began: self.began_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            seconds: self.began.elapsed().as_secs_f64(),
            arguments,
            folder,
            commands,
            phases: self.phases.clone(),
            ranks: self.ranks.values().cloned().collect(),
            machine: self.machine(),
        }
    }

    /// The commands with which the reader repeats the run or goes on, each with what it does.
    fn commands(&self, arguments: &[String], folder: &str, end: End) -> Vec<(String, String)> {
        // The user's file may be another one by then.
        let hyp = std::path::absolute(self.plan.run_dir.join("hyp.yaml")).unwrap_or_default();
        let arguments = if hyp.is_file() { with_hyp(arguments, &hyp) } else { arguments.to_vec() };
        let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
        let again = format!("cd {} && yolo {}", quote(folder), quoted.join(" "));
        let mut commands = vec![("The same run again:".to_owned(), again)];
        let weights = |name: &str| {
            let path = std::path::absolute(self.plan.run_dir.join("weights").join(name)).unwrap_or_default();
            path.is_file().then(|| quote(&path.display().to_string()))
        };
        if let (End::Interrupted | End::Failed, Some(last)) = (end, weights("last.pt")) {
            commands.push(("Continue it:".to_owned(), format!("{} {last}", self.programs.resume_command())));
        }
        if let (Some(task), Some(best)) = (self.plan.task.train(), weights("best.pt")) {
            let data = std::path::absolute(&task.data.yaml).unwrap_or_default();
            let (data, size) = (quote(&data.display().to_string()), task.image_size);
            let command = format!("yolo val --data {data} --weights {best} --imgsz {size}");
            commands.push(("Validate its best weights:".to_owned(), command));
        }
        commands
    }

    /// What the machine is. What it does not say is left out.
    fn machine(&self) -> Vec<(String, String)> {
        let Ok(dirs) = YoloDirs::from_env() else { return Vec::new() };
        let host: Host = machine::this_host(&dirs);
        let mut facts = Vec::new();
        let mut add = |what: String, value: Option<String>| facts.extend(value.map(|value| (what, value)));
        if let Ok(system) = host.system() {
            let kernel = system.kernel.map(|kernel| format!("kernel {kernel}"));
            let name: Vec<String> = system.name.into_iter().chain(kernel).collect();
            add("System".to_owned(), (!name.is_empty()).then(|| name.join(", ")));
            add("CPU".to_owned(), system.cpu);
            add("Usable cores".to_owned(), system.cores.map(|cores| cores.to_string()));
            add("Memory".to_owned(), system.memory_total.map(memory));
        }
        for (index, gpu) in host.gpus().unwrap_or_default().iter().enumerate() {
            let size = gpu.memory().ok().map(|size| memory(size.total));
            let words: Vec<String> = gpu.name().ok().into_iter().chain(size).collect();
            add(format!("GPU {index}"), (!words.is_empty()).then(|| words.join(", ")));
        }
        add("libtorch".to_owned(), Some(self.programs.libtorch.clone()));
        let backend = self.plan.ranks.backend.filter(|_| self.plan.ranks.world_size > 1);
        add("Backend".to_owned(), backend.map(|backend| backend.to_string()));
        facts
    }
}

/// The arguments with `kept` in the place of a file of hyperparameters; a preset stays.
fn with_hyp(arguments: &[String], kept: &Path) -> Vec<String> {
    let kept = kept.display();
    let is_file = |value: &str| Path::new(value).is_file();
    let mut replaced: Vec<String> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_value = replaced.last().is_some_and(|last| last == "--hyp") && is_file(argument);
        replaced.push(match argument.strip_prefix("--hyp=") {
            Some(value) if is_file(value) => format!("--hyp={kept}"),
            None if is_value => kept.to_string(),
            _ => argument.clone(),
        });
    }
    replaced
}

/// An argument without user name, password and query of an address.
fn without_secrets(argument: &str) -> String {
    match argument.split_once("://") {
        Some(_) => {
            let (option, url) = match argument.split_once('=') {
                Some((option, url)) if option.starts_with("--") => (format!("{option}="), url),
                _ => (String::new(), argument),
            };
            format!("{option}{}", Redacted::new(url).as_str())
        }
        None => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_repeated_with_its_own_hyperparameters() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.yaml").display().to_string();
        std::fs::write(&file, "lr0: 0.1\n").unwrap();
        let kept = Path::new("/runs/exp/hyp.yaml");
        let repeated = |arguments: &[&str]| {
            with_hyp(&arguments.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), kept).join(" ")
        };
        assert_eq!(
            repeated(&["train", "--hyp", &file, "--img", "64"]),
            "train --hyp /runs/exp/hyp.yaml --img 64"
        );
        assert_eq!(repeated(&["train", &format!("--hyp={file}")]), "train --hyp=/runs/exp/hyp.yaml");
        assert_eq!(
            repeated(&["train", "--hyp", "high", "--data", &file]),
            format!("train --hyp high --data {file}")
        );
    }

    #[test]
    fn secrets_of_addresses_stay_out_of_reports() {
        for (argument, kept) in [
            ("--epochs", "--epochs"),
            ("a=b", "a=b"),
            ("https://me:word@host/a.pt?token=x", "https://host/a.pt"),
            ("--weights=https://me:word@host/a.pt", "--weights=https://host/a.pt"),
        ] {
            assert_eq!(without_secrets(argument), kept);
        }
    }
}
