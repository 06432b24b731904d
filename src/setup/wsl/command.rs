//! The words of `yolo setup --wsl`, and which side of WSL they are said on.

use yolo_checks::wsl::exe_output::generation_of_kernel;
use yolo_checks::wsl::sizing::Training;
use yolo_plan::options::TrainOptions;

use super::plan::Wishes;
use super::{WslError, inside, pc, windows};
use crate::dirs::YoloDirs;
use crate::printer::Printer;

/// What was said with `--wsl`.
#[derive(Debug)]
pub(crate) struct WslWords {
    pub(crate) distribution: Option<String>,
    /// Machines that take part.
    pub(crate) nnodes: Option<u32>,
    pub(crate) yes: bool,
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    /// The training that is meant.
    pub(crate) train: TrainOptions,
}

/// How to talk with the user while steps are taken.
pub(super) struct Talk<'a> {
    pub(super) printer: &'a Printer,
    /// Every step is agreed to beforehand.
    pub(super) yes: bool,
    /// Nothing is to be changed.
    pub(super) dry_run: bool,
    /// The plan is for programs.
    pub(super) json: bool,
}

/// `yolo setup --wsl`, on either side.
pub(crate) fn setup_wsl(words: &WslWords, places: &YoloDirs, printer: &Printer) -> Result<(), WslError> {
    let talk = Talk { printer, yes: words.yes, dry_run: words.dry_run, json: words.json };
    let training = Training { machines: words.nnodes.unwrap_or(1), ..training(&words.train) };
    if cfg!(windows) {
        let wishes = Wishes { distribution: words.distribution.clone(), training };
        let pc = pc::WindowsPc::this(places)?;
        return windows::set_up(&pc, &windows::this_exe(), &wishes, &talk);
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match generation_of_kernel(&kernel) {
        Some(2) => inside::set_up(&inside::Host::this(places), &training, &talk),
        Some(_) => Err(WslError::VersionOne),
        None => {
            let system =
                sysinfo::System::long_os_version().unwrap_or_else(|| std::env::consts::OS.to_owned());
            Err(WslError::Elsewhere(system))
        }
    }
}

/// What a training asks of this machine, as far as its options tell.
fn training(options: &TrainOptions) -> Training {
    let default = Training::default();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let devices = options.device.as_deref().unwrap_or_default();
    let gpus = devices.split(',').filter(|device| device.trim().parse::<u32>().is_ok()).count();
    Training {
        ranks: count(options.nproc_per_node.unwrap_or(gpus)).clamp(1, 64),
        image_size: options.imgsz.map_or(default.image_size, count),
        workers: options.workers.map_or(default.workers, count),
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_of_a_training_come_from_its_options() {
        let ranks = |device: Option<&str>, nproc_per_node| {
            let device = device.map(str::to_owned);
            training(&TrainOptions { device, nproc_per_node, ..TrainOptions::default() }).ranks
        };
        assert_eq!(
            [
                ranks(None, None),
                ranks(Some("0,1,3"), None),
                ranks(Some("cpu"), Some(2)),
                ranks(Some("cpu"), None)
            ],
            [1, 3, 2, 1]
        );
    }
}
