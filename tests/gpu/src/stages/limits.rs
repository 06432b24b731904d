//! Whether the loader keeps up with the network: training from memory and from files, compared with the network alone on
//! synthetic data and with the loader alone. The slower of these two limits training, so training should be about
//! as fast.

use crate::gpus::Busy;
use crate::report::{LIMIT, Outcome};

/// Training from memory, of the rate on synthetic data.
const FROM_MEMORY: f64 = 0.95;
/// Training from files, of the slower of network and loader.
const FROM_FILES: f64 = 0.90;
/// The time for which the GPU computes where the network limits training.
const BUSY: f64 = 0.90;

/// From this part of the time of a step on, the GPU is taken to wait for the CPU, which launches its work.
const LAUNCHING: f64 = 0.90;

/// What CUDA graphs could gain, if the CPU launches for this part of the time of a step.
pub(super) fn cuda_graphs(launch_share: f64) -> String {
    let percent = launch_share * 100.0;
    if launch_share >= LAUNCHING {
        format!(
            "CUDA graphs may pay: the CPU launches for {percent:.0} % of the time of a step, so the GPU waits for it"
        )
    } else {
        format!(
            "CUDA graphs would not pay: the CPU has launched a step after {percent:.0} % of its time, and the GPU computes \
             until the end"
        )
    }
}

/// The speed of training and of its parts for one model, batch and precision, in images per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// The network on a batch that stays on the device.
    pub(super) synthetic: Option<f64>,
    /// The loader alone from files, with as many threads as training has.
    pub(super) loader: Option<f64>,
    /// Training, with every image decoded each time.
    pub(super) from_files: Option<f64>,
    /// Training, with all decoded images in memory.
    pub(super) from_memory: Option<f64>,
    /// How busy the GPU was in training from memory.
    pub(super) busy: Busy,
}

/// What is expected of the rates, whether it is so, and the numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) what: String,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

impl Rates {
    /// What limits training, and the three expectations. Invariant: what cannot be judged is not left out, so that
    /// nobody takes a report without it for one in which it is so.
    pub(super) fn verdicts(&self) -> [Verdict; 4] {
        [self.limit(), self.memory(), self.files(), self.busy()]
    }

    /// Whether the network limits training, and not the loader; `None` if one was not measured alone.
    fn network_limits(&self) -> Option<bool> {
        Some(self.synthetic? <= self.loader?)
    }

    fn limit(&self) -> Verdict {
        let what = LIMIT.trim_start_matches(": ").to_owned();
        match self.network_limits() {
            Some(true) => Verdict { what, outcome: Outcome::Passed, detail: "the network".to_owned() },
            Some(false) => Verdict { what, outcome: Outcome::Passed, detail: "the loader".to_owned() },
            None => not_measured(what),
        }
    }

    fn memory(&self) -> Verdict {
        let what = format!("training from memory reaches {:.0} % of synthetic data", FROM_MEMORY * 100.0);
        match (self.from_memory, self.synthetic) {
            (Some(memory), Some(synthetic)) => share(what, memory, FROM_MEMORY, synthetic, ""),
            _ => not_measured(what),
        }
    }

    fn files(&self) -> Verdict {
        let what = format!(
            "training from files reaches {:.0} % of the slower of network and loader",
            FROM_FILES * 100.0
        );
        match (self.from_files, self.synthetic, self.loader) {
            (Some(files), Some(synthetic), Some(loader)) => {
                let of = if loader < synthetic { " of the loader alone" } else { " of the network alone" };
                share(what, files, FROM_FILES, loader.min(synthetic), of)
            }
            _ => not_measured(what),
        }
    }

    fn busy(&self) -> Verdict {
        let what = format!("the GPU is busy for {:.0} % of training from memory", BUSY * 100.0);
        let skipped = |why: &str| (Outcome::Skipped, why.to_owned());
        let (outcome, detail) = match (self.busy, self.network_limits()) {
            (Busy::NotReported, _) => skipped("this GPU does not report how busy it is"),
            (Busy::Share(_), Some(false)) => skipped("the loader limits training"),
            (Busy::Share(busy), Some(true)) => ((busy >= BUSY).into(), format!("{:.1} %", busy * 100.0)),
            (Busy::NotSampled, _) | (_, None) => return not_measured(what),
        };
        Verdict { what, outcome, detail }
    }
}

/// An expectation of which something was not measured.
fn not_measured(what: String) -> Verdict {
    Verdict { what, outcome: Outcome::Unfinished, detail: "not all of it was measured".to_owned() }
}

/// `what` is that one rate is at least a share of another, which is that of `of`.
fn share(what: String, rate: f64, least: f64, limit: f64, of: &str) -> Verdict {
    let share = rate / limit;
    let detail = format!("{:.1} %: {rate:.0} of {limit:.0} images/s{of}", share * 100.0);
    Verdict { what, outcome: (share >= least).into(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        synthetic: Some(1000.0),
        loader: Some(1200.0),
        from_files: Some(900.0),
        from_memory: Some(950.0),
        busy: Busy::Share(0.9),
    };

    #[test]
    fn graphs_pay_where_the_gpu_waits_for_launches() {
        let limit =
            "CUDA graphs may pay: the CPU launches for 90 % of the time of a step, so the GPU waits for it";
        assert_eq!(cuda_graphs(0.9), limit);
        assert!(cuda_graphs(1.0).starts_with("CUDA graphs may pay"));
        assert!(
            cuda_graphs(0.42)
                .starts_with("CUDA graphs would not pay: the CPU has launched a step after 42 %")
        );
    }

    fn outcomes(rates: Rates) -> [Outcome; 4] {
        rates.verdicts().map(|verdict| verdict.outcome)
    }

    #[test]
    fn rates_at_the_limits_are_enough() {
        let expected = [
            ("what limits training is known", "the network"),
            ("training from memory reaches 95 % of synthetic data", "95.0 %: 950 of 1000 images/s"),
            (
                "training from files reaches 90 % of the slower of network and loader",
                "90.0 %: 900 of 1000 images/s of the network alone",
            ),
            ("the GPU is busy for 90 % of training from memory", "90.0 %"),
        ];
        let expected = expected.map(|(what, detail)| Verdict {
            what: what.to_owned(),
            outcome: Outcome::Passed,
            detail: detail.to_owned(),
        });
        assert_eq!(RATES.verdicts(), expected);
    }

    #[test]
    fn rates_below_are_not() {
        use Outcome::{Failed, Passed};
        let busy = Busy::Share(0.89);
        let low = Rates { from_files: Some(899.0), from_memory: Some(949.0), busy, ..RATES };
        assert_eq!(outcomes(low), [Passed, Failed, Failed, Failed]);
    }

    #[test]
    fn where_the_loader_limits_files_are_compared_with_it_and_the_gpu_may_idle() {
        let busy = Busy::Share(0.3);
        let slow = Rates { loader: Some(500.0), from_files: Some(460.0), busy, ..RATES };
        let [limit, _, files, busy] = slow.verdicts();
        assert_eq!(limit.detail, "the loader");
        assert_eq!(files.outcome, Outcome::Passed);
        assert_eq!(files.detail, "92.0 %: 460 of 500 images/s of the loader alone");
        assert_eq!((busy.outcome, busy.detail.as_str()), (Outcome::Skipped, "the loader limits training"));
        // As fast as the network, it does not limit.
        assert_eq!(outcomes(Rates { loader: Some(1000.0), ..slow })[3], Outcome::Failed);
    }

    #[test]
    fn what_was_not_measured_is_not_finished_and_not_left_out() {
        use Outcome::{Passed, Skipped, Unfinished};
        assert_eq!(outcomes(Rates::default()), [Unfinished; 4]);
        assert_eq!(outcomes(Rates { loader: None, ..RATES }), [Unfinished, Passed, Unfinished, Unfinished]);
        assert_eq!(outcomes(Rates { synthetic: None, ..RATES }), [Unfinished; 4]);
        assert_eq!(outcomes(Rates { busy: Busy::NotSampled, ..RATES })[3], Unfinished);
        assert_eq!(outcomes(Rates { busy: Busy::NotReported, ..RATES })[3], Skipped);
    }
}
