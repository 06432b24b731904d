//! The rules of `yolo train --evolve` (spec §12): which hyperparameters are searched and between which bounds, how a
//! generation is mutated from the best ones, and the table `evolve.csv`, which YOLOv5 reads and writes too. Everything
//! here is pure. The command trains one generation after the other and writes the files.

mod best_hyp;
mod genes;
mod mutation;
mod table;

pub use best_hyp::{best_hyp_yaml, hyp_yaml};
pub use genes::{Gene, Genes, round};
pub use mutation::{Child, Draw, mutate};
pub use table::{Generation, Table};

use crate::error::PlanError;
use crate::options::TrainOptions;

/// The generations of `--evolve` without a number, as in YOLOv5.
pub const GENERATIONS: &str = "300";

/// The folder of the runs of an evolution if `--project` is not given, as in YOLOv5.
pub const PROJECT: &str = "runs/evolve";

/// The options of one generation: it is validated after the last epoch only, draws nothing and saves no weights.
#[must_use]
pub fn options_of_generation(options: &TrainOptions) -> TrainOptions {
    TrainOptions {
        resume: None,
        nosave: true,
        noval: true,
        noplots: true,
        // The fitness of an epoch without validation is 0, so nothing would ever improve.
        patience: Some(0),
        save_period: None,
        tensorboard: false,
        project: options.project.clone().or_else(|| Some(PROJECT.into())),
        ..options.clone()
    }
}

/// The warning about options that have no effect on an evolution, if some are given.
pub fn warning(options: &TrainOptions) -> Option<String> {
    let without: Vec<&str> = [
        ("--patience", options.patience.is_some_and(|epochs| epochs > 0)),
        ("--save-period", options.save_period.is_some_and(|epochs| epochs > 0)),
        ("--tensorboard", options.tensorboard),
    ]
    .into_iter()
    .filter_map(|(name, given)| given.then_some(name))
    .collect();
    if without.is_empty() {
        return None;
    }
    let have = if without.len() == 1 { "has" } else { "have" };
    Some(format!(
        "{} {have} no effect with --evolve: a generation is validated after its last epoch only, and saves \
         neither weights nor event files",
        yolo_base::format::list(&without)
    ))
}

/// Refuses the value of `--resume` if it names a checkpoint: an evolution continues from its table.
///
/// # Errors
/// When it does.
pub fn check_resume(resume: &str) -> Result<(), PlanError> {
    if resume.ends_with(".pt") {
        return Err(PlanError::usage(format!(
            "--resume {resume}: an evolution continues from its table, evolve.csv, and not from a checkpoint"
        ))
        .with_hint(
            "give --resume no value for the most recent evolution, or its folder; without --evolve, --resume \
             continues a training run",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_leaves_only_its_metrics() {
        let options = options_of_generation(&TrainOptions { epochs: Some(3), ..TrainOptions::default() });
        assert!(options.nosave && options.noval && options.noplots);
        assert_eq!((options.epochs, options.patience), (Some(3), Some(0)));
        assert_eq!(options.project.unwrap().to_str(), Some("runs/evolve"));
    }

    #[test]
    fn options_without_an_effect_are_named() {
        assert_eq!(warning(&TrainOptions::default()), None);
        let options = TrainOptions { patience: Some(5), save_period: Some(1), ..TrainOptions::default() };
        let message = warning(&options).unwrap();
        assert!(
            message.starts_with("--patience and --save-period have no effect with --evolve"),
            "{message}"
        );
    }

    #[test]
    fn a_checkpoint_is_no_evolution() {
        assert!(check_resume("").is_ok() && check_resume("runs/evolve/exp").is_ok());
        let message = check_resume("last.pt").unwrap_err().to_string();
        assert!(message.starts_with("--resume last.pt: an evolution continues from its table"), "{message}");
    }
}
