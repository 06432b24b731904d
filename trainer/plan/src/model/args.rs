//! The arguments of one row of a model yaml, read by position with defaults. A yaml may come from
//! anywhere, so every number is limited here and no later arithmetic can overflow.

use serde_json::Value;

use super::Activation;
use crate::error::PlanError;
use crate::yaml::show;

/// More channels than this in one layer are a mistake (the widest YOLOv5 has 1280).
pub(crate) const MAX_CHANNELS: usize = 1 << 17;
/// Kernels, strides, paddings, dilations and repeats beyond this are a mistake.
pub(crate) const MAX_SIZE: usize = 1 << 10;

/// A row while it is read.
pub(crate) struct Row<'a> {
    /// The file and the row for messages: `the model x.yaml, row 3 (C3)`.
    pub(crate) place: &'a str,
    /// The evaluated arguments, without the number of output channels if the module has one.
    pub(crate) args: Vec<Value>,
    /// The activation of convolutions that do not name one.
    pub(crate) default_act: Activation,
    /// The activation after the joined branches of a `BottleneckCSP`.
    pub(crate) joined_act: Activation,
}

impl Row<'_> {
    pub(crate) fn error(&self, reason: impl std::fmt::Display) -> PlanError {
        PlanError::new(format!("{}: {reason}", self.place))
    }

    /// Rejects arguments beyond the first `count`.
    pub(crate) fn at_most(&self, count: usize) -> Result<(), PlanError> {
        match self.args.get(count) {
            Some(extra) => Err(self.error(format!(
                "there are too many arguments; {} and what follows are not used",
                show(extra)
            ))),
            None => Ok(()),
        }
    }

    fn get(&self, position: usize) -> Option<&Value> {
        self.args.get(position)
    }

    /// A whole number from `min` up to [`MAX_SIZE`].
    pub(crate) fn size(
        &self,
        position: usize,
        name: &str,
        default: usize,
        min: usize,
    ) -> Result<usize, PlanError> {
        self.get(position).map_or(Ok(default), |value| self.size_of(value, name, min))
    }

    fn size_of(&self, value: &Value, name: &str, min: usize) -> Result<usize, PlanError> {
        whole(value).filter(|size| (min..=MAX_SIZE).contains(size)).ok_or_else(|| {
            self.error(format!(
                "{name} is {}; it must be a whole number from {min} to {MAX_SIZE}",
                show(value)
            ))
        })
    }

    /// One number for both axes, or a list of two: height, width.
    pub(crate) fn pair(
        &self,
        position: usize,
        name: &str,
        default: usize,
        min: usize,
    ) -> Result<[usize; 2], PlanError> {
        match self.get(position) {
            Some(Value::Array(two)) if two.len() == 2 => {
                Ok([self.size_of(&two[0], name, min)?, self.size_of(&two[1], name, min)?])
            }
            _ => self.size(position, name, default, min).map(|size| [size; 2]),
        }
    }

    /// Like [`Self::pair`], but `None` if the argument is absent or null.
    pub(crate) fn optional_pair(&self, position: usize, name: &str) -> Result<Option<[usize; 2]>, PlanError> {
        match self.get(position) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.pair(position, name, 0, 0).map(Some),
        }
    }

    /// A list of kernels.
    pub(crate) fn kernels(&self, position: usize, default: &[usize]) -> Result<Vec<usize>, PlanError> {
        match self.get(position) {
            None => Ok(default.to_vec()),
            Some(Value::Array(list)) if !list.is_empty() && list.len() <= 64 => {
                list.iter().map(|value| self.size_of(value, "a kernel", 1)).collect()
            }
            Some(other) => {
                Err(self.error(format!("the kernels are {}; they must be a list of sizes", show(other))))
            }
        }
    }

    pub(crate) fn flag(&self, position: usize, name: &str, default: bool) -> Result<bool, PlanError> {
        match self.get(position) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            Some(other) => Err(self.error(format!("{name} is {}; it must be True or False", show(other)))),
        }
    }

    /// The expansion of a block: hidden channels per output channel.
    pub(crate) fn expansion(&self, position: usize, default: f64) -> Result<f64, PlanError> {
        match self.get(position) {
            None => Ok(default),
            Some(value) => value.as_f64().filter(|e| *e > 0.0 && *e <= 16.0).ok_or_else(|| {
                self.error(format!(
                    "the expansion is {}; it must be a number above 0 and up to 16",
                    show(value)
                ))
            }),
        }
    }

    /// `True` is the default activation, `False` is none, and a string names one.
    pub(crate) fn activation(&self, position: usize) -> Result<Activation, PlanError> {
        match self.get(position) {
            None | Some(Value::Bool(true)) => Ok(self.default_act),
            Some(Value::Bool(false) | Value::Null) => Ok(Activation::Identity),
            Some(Value::String(text)) => activation(text).map_err(|reason| self.error(reason)),
            Some(other) => {
                Err(self
                    .error(format!("the activation is {}; it must be a name, True or False", show(other))))
            }
        }
    }
}

/// A whole number; `3.0` is one as well.
pub(crate) fn whole(value: &Value) -> Option<usize> {
    if let Some(integer) = value.as_u64() {
        return usize::try_from(integer).ok();
    }
    let number = value.as_f64()?;
    // Whole floats up to this limit convert exactly.
    (number.fract() == 0.0 && (0.0..=1e9).contains(&number)).then_some(number as usize)
}

/// Parses an activation as YAML files write it: `nn.LeakyReLU(0.1)`.
pub(crate) fn activation(text: &str) -> Result<Activation, String> {
    let text = text.trim();
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let inner =
                rest.strip_suffix(')').ok_or_else(|| format!("the activation `{text}` has no `)`"))?;
            (name.trim(), inner.trim())
        }
        None => (text, ""),
    };
    // `inplace=True` affects memory, not results.
    let values: Vec<&str> = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty() && !argument.starts_with("inplace"))
        .collect();
    let name = name.trim_start_matches("torch.").trim_start_matches("nn.");
    match (name, values.as_slice()) {
        ("SiLU", []) => Ok(Activation::Silu),
        ("ReLU", []) => Ok(Activation::Relu),
        ("Hardswish", []) => Ok(Activation::Hardswish),
        ("Mish", []) => Ok(Activation::Mish),
        ("Identity", []) => Ok(Activation::Identity),
        ("LeakyReLU", []) => Ok(Activation::LeakyRelu(0.01)),
        ("LeakyReLU", [slope]) => {
            let number = slope.trim_start_matches("negative_slope").trim_start_matches([' ', '=']);
            match number.parse::<f64>() {
                Ok(slope) if slope.is_finite() => Ok(Activation::LeakyRelu(slope)),
                _ => Err(format!("the slope in the activation `{text}` is not a number")),
            }
        }
        _ => Err(format!(
            "the activation `{text}` is not one of SiLU, ReLU, LeakyReLU(slope), Hardswish, Mish, Identity"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_read_as_python_writes_them() {
        assert_eq!(activation("nn.LeakyReLU(0.1)"), Ok(Activation::LeakyRelu(0.1)));
        assert_eq!(
            activation("nn.LeakyReLU(negative_slope=0.2, inplace=True)"),
            Ok(Activation::LeakyRelu(0.2))
        );
        assert_eq!(activation("nn.SiLU()"), Ok(Activation::Silu));
        assert!(activation("nn.LeakyReLU(x)").is_err());
        assert!(activation("os.system('ls')").is_err());
    }
}
