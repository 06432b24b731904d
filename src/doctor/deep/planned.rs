//! The run that is planned, as far as its rate depends on it: the options after `--`. A model that only a weights
//! file describes is not known here.

use std::path::Path;

use yolo_plan::hyp::HyperParameters;
use yolo_plan::model::ModelSpec;
use yolo_plan::options::{Cache, PrecisionOption, Workers};
use yolo_plan::run::{DeepCheckTask, DeepPart, EffectiveOptions, plan_deep_check};

use super::observed::Planned;
use crate::cli::DoctorArgs;
use crate::doctor::intent;

/// Classes that the estimate counts with: they hardly matter for the work.
const CLASSES: usize = 80;
/// The side of the images for which a model's operations are given.
const GFLOPS_SIZE: f64 = 640.0;
/// Images of a mosaic.
const TILES: f64 = 4.0;

/// The planned run; `None` without options after `--`, and for a model that is not built in.
pub(super) fn of(args: &DoctorArgs, ranks: usize) -> Option<Planned> {
    if args.run.is_empty() {
        return None;
    }
    let options = intent::options_of(&args.run);
    let effective = EffectiveOptions::of(&options);
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let model = if effective.cfg.is_empty() { stem(effective.weights)? } else { effective.cfg.to_owned() };
    let summary = ModelSpec::load(&model, CLASSES, None).ok()?.summary().ok()?;
    let mosaic = match &options.hyp {
        Some(file) => HyperParameters::load(file).ok()?.mosaic,
        None => HyperParameters::low().mosaic,
    };
    let batch = usize::try_from(effective.batch).ok().filter(|batch| *batch > 0)?;
    let image_size = effective.image_size;
    Some(Planned {
        gflops: summary.gflops * (image_size as f64 / GFLOPS_SIZE).powi(2),
        parameters: summary.parameters,
        image_size,
        batch,
        // Shares by memory are not known yet.
        smallest_share: options.batch_split.as_deref().map(|split| smallest(split).unwrap_or(1)),
        workers: workers(options.workers, batch, ranks),
        decoded_per_image: if options.rect { 1.0 } else { 1.0 + (TILES - 1.0) * mosaic },
        cached: options.cache.is_some_and(Cache::keeps_all),
        half: !matches!(options.precision, Some(PrecisionOption::Fp32)),
        model: stem(&model)?,
    })
}

/// The least of `16,8`.
fn smallest(split: &str) -> Option<usize> {
    let shares: Option<Vec<usize>> = split.split(',').map(|share| share.trim().parse().ok()).collect();
    shares?.into_iter().min()
}

/// Loader threads per rank, by the plan's rule.
fn workers(option: Option<Workers>, batch: usize, ranks: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let task = DeepCheckTask { part: DeepPart::Links, images: Vec::new(), pinned: 0, load: 0 };
    let devices = vec![yolo_plan::device::Device::Cpu; ranks];
    let plan = plan_deep_check(task, devices, Default::default(), cores, Default::default());
    plan.ranks.workers(option.map(Workers::most), batch.div_ceil(ranks.max(1)), cores)
}
