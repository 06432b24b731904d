//! Whether the loader keeps up with the network: training from memory and from files, compared with the network alone on
//! synthetic data and with the loader alone. The slower of these two limits training, so training should be about
//! as fast.

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
    /// The share of the time of training from memory in which the GPU computed.
    pub(super) busy: Option<f64>,
}

/// What is expected of the rates, whether it is so, and the numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) what: String,
    pub(super) is_so: bool,
    pub(super) detail: String,
}

impl Rates {
    /// The expectations whose rates were measured.
    pub(super) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if let (Some(memory), Some(synthetic)) = (self.from_memory, self.synthetic) {
            verdicts.push(share("training from memory", memory, FROM_MEMORY, "synthetic data", synthetic));
        }
        if let (Some(files), Some(synthetic), Some(loader)) = (self.from_files, self.synthetic, self.loader) {
            let (limit, rate) = if loader < synthetic {
                ("the loader alone", loader)
            } else {
                ("the network alone", synthetic)
            };
            verdicts.push(share("training from files", files, FROM_FILES, limit, rate));
        }
        if let Some(busy) = self.busy {
            verdicts.push(Verdict {
                what: format!("the GPU is busy for {:.0} % of training from memory", BUSY * 100.0),
                is_so: busy >= BUSY,
                detail: format!("{:.1} %", busy * 100.0),
            });
        }
        verdicts
    }
}

fn share(of: &str, rate: f64, least: f64, limit: &str, limit_rate: f64) -> Verdict {
    let share = rate / limit_rate;
    Verdict {
        what: format!("{of} reaches {:.0} % of {limit}", least * 100.0),
        is_so: share >= least,
        detail: format!("{:.1} %: {rate:.0} of {limit_rate:.0} images/s", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        synthetic: Some(1000.0),
        loader: Some(1200.0),
        from_files: Some(900.0),
        from_memory: Some(950.0),
        busy: Some(0.9),
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

    fn said(rates: Rates) -> Vec<(String, bool, String)> {
        rates.verdicts().into_iter().map(|verdict| (verdict.what, verdict.is_so, verdict.detail)).collect()
    }

    #[test]
    fn rates_at_the_limits_are_enough() {
        let expected = [
            ("training from memory reaches 95 % of synthetic data", "95.0 %: 950 of 1000 images/s"),
            ("training from files reaches 90 % of the network alone", "90.0 %: 900 of 1000 images/s"),
            ("the GPU is busy for 90 % of training from memory", "90.0 %"),
        ];
        assert_eq!(said(RATES), expected.map(|(what, detail)| (what.to_owned(), true, detail.to_owned())));
    }

    #[test]
    fn rates_below_are_not() {
        let low = Rates { from_files: Some(899.0), from_memory: Some(949.0), busy: Some(0.89), ..RATES };
        assert!(low.verdicts().iter().all(|verdict| !verdict.is_so));
    }

    #[test]
    fn a_loader_that_is_slower_than_the_network_is_what_training_from_files_is_compared_with() {
        let slow = Rates { loader: Some(500.0), from_files: Some(460.0), ..RATES };
        let (what, is_so, detail) = said(slow).remove(1);
        assert_eq!(what, "training from files reaches 90 % of the loader alone");
        assert!(is_so, "{detail}");
        assert_eq!(detail, "92.0 %: 460 of 500 images/s");
    }

    #[test]
    fn nothing_is_expected_of_what_was_not_measured() {
        assert_eq!(Rates::default().verdicts(), []);
        assert_eq!(Rates { loader: None, busy: None, ..RATES }.verdicts().len(), 1);
    }
}
