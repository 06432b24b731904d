//! The number format of the network in training: float32, or mixed precision, in which the operations that gain
//! from it run in 16 bits while weights, their average and the loss stay in float32. YOLOv5 has no option for it:
//! it trains in mixed precision with float16 on a GPU, and in float32 on the CPU (spec §6). So does `auto`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::error::PlanError;
use crate::options::PrecisionOption;

/// The number format of the network in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Everything in float32.
    #[default]
    Fp32,
    /// Mixed with float16, whose small range needs a loss scale.
    Fp16,
    /// Mixed with bfloat16, which has the range of float32 and fewer digits than float16.
    Bf16,
}

impl Precision {
    /// The name in options and plan files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        }
    }

    /// Whether some operations run in 16 bits.
    pub fn is_mixed(self) -> bool {
        self != Self::Fp32
    }

    /// What `--precision` means on these devices.
    ///
    /// # Errors
    /// For float16 with a rank on the CPU.
    pub fn choose(wanted: PrecisionOption, devices: &[Device]) -> Result<Self, PlanError> {
        let cpu = devices.contains(&Device::Cpu);
        match wanted {
            PrecisionOption::Auto if cpu => Ok(Self::Fp32),
            PrecisionOption::Auto => Ok(Self::Fp16),
            PrecisionOption::Fp32 => Ok(Self::Fp32),
            PrecisionOption::Bf16 => Ok(Self::Bf16),
            PrecisionOption::Fp16 if cpu => Err(PlanError::usage(
                "--precision fp16 needs a GPU: most processors have no arithmetic for float16, so training on the CPU \
                 would be much slower than in fp32",
            )
            .with_hint("use --precision bf16, for which many processors have instructions, or omit it for fp32")),
            PrecisionOption::Fp16 => Ok(Self::Fp16),
        }
    }

    /// The precision of a resumed run that began in this one and continues on these devices, and a note if it is
    /// another one.
    pub fn resume_on(self, devices: &[Device]) -> (Self, Option<String>) {
        if self == Self::Fp16 && devices.contains(&Device::Cpu) {
            let note = "the run began in fp16 on a GPU, and continues in fp32 on the CPU, where fp16 is slow";
            return (Self::Fp32, Some(note.to_owned()));
        }
        (self, None)
    }
}

/// The name in options and plan files.
impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    const GPUS: [Device; 2] = [Device::Cuda(0), Device::Cuda(1)];

    #[test]
    fn auto_is_what_yolov5_does() {
        let auto = |devices: &[Device]| Precision::choose(PrecisionOption::Auto, devices).unwrap();
        assert_eq!(auto(&GPUS), Precision::Fp16);
        assert_eq!(auto(&[Device::Cpu]), Precision::Fp32);
        // A rank on the CPU decides for all, since they train one model.
        assert_eq!(auto(&[Device::Cuda(0), Device::Cpu]), Precision::Fp32);
    }

    #[test]
    fn fp16_on_the_cpu_is_refused_with_a_reason() {
        let error = Precision::choose(PrecisionOption::Fp16, &[Device::Cpu]).unwrap_err();
        assert!(
            error.to_string().starts_with("--precision fp16 needs a GPU: most processors have no"),
            "{error}"
        );
        assert!(error.hint().unwrap().starts_with("use --precision bf16"));
        for (wanted, precision) in
            [(PrecisionOption::Bf16, Precision::Bf16), (PrecisionOption::Fp32, Precision::Fp32)]
        {
            assert_eq!(Precision::choose(wanted, &[Device::Cpu]).unwrap(), precision);
            assert_eq!(Precision::choose(wanted, &GPUS).unwrap(), precision);
        }
    }

    #[test]
    fn a_run_that_moves_to_the_cpu_leaves_fp16() {
        assert_eq!(Precision::Fp16.resume_on(&GPUS), (Precision::Fp16, None));
        let (precision, note) = Precision::Fp16.resume_on(&[Device::Cpu]);
        assert!(precision == Precision::Fp32 && note.unwrap().contains("continues in fp32 on the CPU"));
        for precision in [Precision::Fp32, Precision::Bf16] {
            assert_eq!(precision.resume_on(&[Device::Cpu]), (precision, None));
            assert_eq!(precision.resume_on(&GPUS), (precision, None));
        }
    }
}
