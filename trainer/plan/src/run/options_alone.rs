//! Mistakes that the options of a run show by themselves, whatever the machine, its files and the data set are. Planning
//! reports them too; these checks are for a command that is planned elsewhere, and only then starts slowly.

use super::{EffectiveOptions, defaults, folder, image_size, one_process, train_checks, val};
use crate::auto_batch::AUTO;
use crate::batch;
use crate::dataset::check_argument;
use crate::error::PlanError;
use crate::options::{Parallel, TrainOptions, ValOptions};

/// Checks the options of `yolo train`. Those of a run to be resumed depend on its checkpoint.
///
/// # Errors
/// With the first mistake.
pub fn check_train_options(options: &TrainOptions) -> Result<(), PlanError> {
    if options.resume.is_some() {
        return Ok(());
    }
    let data = options.data.as_deref().unwrap_or(defaults::DATA);
    let effective = EffectiveOptions::of(options);
    let parallel = options.parallel.unwrap_or_default();
    if parallel.is_one_process() {
        one_process::check_options(parallel, options, None)?;
    }
    match effective.batch {
        AUTO => batch::check_auto(options.batch_split.is_some(), parallel == Parallel::Model)?,
        images => drop(batch::check(images, 1)?),
    }
    options.batch_split.as_deref().map_or(Ok(()), batch::check_split_form)?;
    train_checks::positive("--epochs", effective.epochs, train_checks::MAX_EPOCHS)?;
    let nominal_batch = options.nbs.unwrap_or(defaults::of(data).nbs);
    train_checks::positive("--nbs", nominal_batch, train_checks::MAX_NOMINAL_BATCH)?;
    image_size::check(effective.image_size)?;
    train_checks::label_smoothing(options)?;
    train_checks::has_model(&effective)?;
    folder::check_name(options.name.as_deref().unwrap_or("exp"))?;
    check_argument(data)
}

/// Checks the options of `yolo val`.
///
/// # Errors
/// With the first mistake.
pub fn check_val_options(options: &ValOptions) -> Result<(), PlanError> {
    let data = options.data.as_deref().unwrap_or(defaults::DATA);
    batch::check(i64::try_from(options.batch_size.unwrap_or(val::BATCH)).unwrap_or(i64::MAX), 1)?;
    image_size::check(options.imgsz.unwrap_or(defaults::of(data).image_size))?;
    let (_, mode) = val::split_and_mode(options.task.as_deref())?;
    val::thresholds(options, mode)?;
    folder::check_name(options.name.as_deref().unwrap_or("exp"))?;
    check_argument(data)
}
