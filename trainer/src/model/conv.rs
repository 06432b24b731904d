//! Convolution, batch normalization, activation, and `Conv`, which combines them (spec §2).

use tch::{Kind, Tensor};
use tch_distributed::{RunningStats, sync_batch_norm};
use tch_train::{batch_norm_silu, can_batch_norm_silu};
use yolo_plan::model::{Activation, ConvSpec};

use super::block::{Block, Pass};
use super::build::Builder;
use super::state::Role;
use crate::error::TrainError;

/// A convolution with or without bias.
pub(super) struct Conv2d {
    weight: Tensor,
    bias: Option<Tensor>,
    spec: ConvSpec,
}

impl Conv2d {
    /// Registers `weight` and, if asked, `bias`. Does not apply the activation of `spec`.
    pub(super) fn new(b: &mut Builder<'_>, spec: ConvSpec, with_bias: bool) -> Result<Self, TrainError> {
        let [kh, kw] = spec.k;
        let fan_in = spec.c1 / spec.g * kh * kw;
        let weight = b.uniform("weight", &Self::weight_shape(&spec), fan_in, Role::Weight)?;
        let bias = with_bias.then(|| b.uniform("bias", &[spec.c2], fan_in, Role::Bias)).transpose()?;
        Ok(Self { weight, bias, spec })
    }

    /// A 1×1 convolution.
    pub(super) fn pointwise(
        b: &mut Builder<'_>,
        c1: usize,
        c2: usize,
        with_bias: bool,
    ) -> Result<Self, TrainError> {
        Self::new(b, square(c1, c2, 1, 1, 1, Activation::Identity), with_bias)
    }

    /// The bias, to which Detect adds its priors.
    pub(super) fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }

    fn weight_shape(spec: &ConvSpec) -> [usize; 4] {
        [spec.c2, spec.c1 / spec.g, spec.k[0], spec.k[1]]
    }
}

impl Block for Conv2d {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let ConvSpec { s, p, d, g, .. } = self.spec;
        let pair = |[a, b]: [usize; 2]| [a as i64, b as i64];
        Ok(x.f_conv2d(&self.weight, self.bias.as_ref(), pair(s), pair(p), [d as i64; 2], g as i64)?)
    }
}

/// Normalization by the statistics of the batch, or by the running ones.
pub(super) struct BatchNorm2d {
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
}

impl BatchNorm2d {
    pub(super) fn new(b: &mut Builder<'_>, channels: usize) -> Result<Self, TrainError> {
        let c = [channels];
        // Mean 0, variance 0.9 and one batch: the result of a pass on zeros (spec §2).
        let normalization = Self {
            weight: b.filled("weight", &c, 1.0, Role::NormWeight)?,
            bias: b.filled("bias", &c, 0.0, Role::Bias)?,
            mean: b.filled("running_mean", &c, 0.0, Role::Buffer)?,
            variance: b.filled("running_var", &c, 0.9, Role::Buffer)?,
        };
        // The model counts for all of its normalizations at once (`PackedBuffers::count_batch`).
        b.counter("num_batches_tracked", 1)?;
        Ok(normalization)
    }

    /// Normalizes and applies SiLU at once, if there is one operation for both; it also needs less memory.
    fn with_silu(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Option<Tensor>, TrainError> {
        if !pass.training || pass.sync.is_some() || !can_batch_norm_silu(x) {
            return Ok(None);
        }
        check_values(x)?;
        let (parameters, running) = ([&self.weight, &self.bias], [&self.mean, &self.variance]);
        Ok(Some(batch_norm_silu(x, parameters, running, pass.momentum, pass.eps)?))
    }
}

/// Refuses a batch of one value per channel: it has no variance, and the running variance would become NaN.
fn check_values(x: &Tensor) -> Result<(), TrainError> {
    match x.size()[..] {
        [images @ ..=1, _, height @ ..=1, width @ ..=1] => Err(TrainError::new(format!(
            "batch normalization needs more than one value per channel, but the rank has {images} image here, of \
             {height}x{width} values"
        ))
        .with_hint("use a larger --batch or --imgsz, or omit --multi-scale")),
        _ => Ok(()),
    }
}

impl Block for BatchNorm2d {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        if let Some(group) = pass.sync.filter(|_| pass.training) {
            let running = RunningStats { mean: &self.mean, var: &self.variance };
            let (weight, bias) = (&self.weight, &self.bias);
            let (momentum, eps) = (pass.momentum, pass.eps);
            return Ok(sync_batch_norm(group, x, weight, bias, Some(running), momentum, eps)?);
        }
        if pass.training {
            check_values(x)?;
        }
        let (w, b) = (Some(&self.weight), Some(&self.bias));
        let (m, v) = (Some(&self.mean), Some(&self.variance));
        Ok(x.f_batch_norm(w, b, m, v, pass.training, pass.momentum, pass.eps, true)?)
    }
}

/// Applies an activation to a tensor that nothing else holds. SiLU needs its input for the gradient,
/// so it runs in place only without gradients.
pub(super) fn activate(mut x: Tensor, activation: Activation) -> Result<Tensor, TrainError> {
    Ok(match activation {
        Activation::Silu if !x.requires_grad() => x.f_silu_()?,
        Activation::Silu => x.f_silu()?,
        Activation::Relu => x.f_relu()?,
        // `max(x, 0) + slope·min(x, 0)`: tch's leaky ReLU has the fixed slope 0.01.
        Activation::LeakyRelu(slope) => x.f_relu()?.f_add(&x.f_clamp_max(0.0)?.f_mul_scalar(slope)?)?,
        Activation::Hardswish => x.f_hardswish()?,
        Activation::Mish => x.f_mish()?,
        Activation::Identity => x,
    })
}

/// `Conv`: convolution without bias, batch normalization, activation. Fused: convolution with bias,
/// activation.
pub(super) struct Conv {
    conv: Conv2d,
    norm: Option<BatchNorm2d>,
}

impl Conv {
    pub(super) fn new(b: &mut Builder<'_>, spec: ConvSpec) -> Result<Self, TrainError> {
        if b.is_fused() {
            let (weight, bias) = b.folded(&Conv2d::weight_shape(&spec))?;
            return Ok(Self { conv: Conv2d { weight, bias: Some(bias), spec }, norm: None });
        }
        let conv = b.scope("conv", |b| Conv2d::new(b, spec, false))?;
        let norm = b.scope("bn", |b| BatchNorm2d::new(b, spec.c2))?;
        Ok(Self { conv, norm: Some(norm) })
    }
}

impl Block for Conv {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let mut y = self.conv.forward(x, pass)?;
        let act = self.conv.spec.act;
        if let Some(norm) = &self.norm {
            if act == Activation::Silu
                && let Some(activated) = norm.with_silu(&y, pass)?
            {
                return Ok(activated);
            }
            y = norm.forward(&y, pass)?;
        }
        activate(y, act)
    }
}

/// A convolution with a square kernel, padded to keep the size at stride 1.
pub(crate) fn square(c1: usize, c2: usize, k: usize, s: usize, g: usize, act: Activation) -> ConvSpec {
    ConvSpec { c1, c2, k: [k; 2], s: [s; 2], p: [k / 2; 2], g, d: 1, act }
}

/// A transposed convolution with bias.
pub(super) struct ConvTranspose2d {
    weight: Tensor,
    bias: Tensor,
    stride: usize,
    padding: usize,
    output_padding: usize,
    groups: usize,
}

impl ConvTranspose2d {
    /// `shape` is channels in, channels out, kernel.
    pub(super) fn new(
        b: &mut Builder<'_>,
        [c1, c2, k]: [usize; 3],
        stride: usize,
        [padding, output_padding]: [usize; 2],
        groups: usize,
    ) -> Result<Self, TrainError> {
        // torch computes the fan-in from the second dimension of the weight: here, outputs per group.
        let fan_in = c2 / groups * k * k;
        Ok(Self {
            weight: b.uniform("weight", &[c1, c2 / groups, k, k], fan_in, Role::Weight)?,
            bias: b.uniform("bias", &[c2], fan_in, Role::Bias)?,
            stride,
            padding,
            output_padding,
            groups,
        })
    }
}

impl Block for ConvTranspose2d {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (s, p, op) = (self.stride as i64, self.padding as i64, self.output_padding as i64);
        let groups = self.groups as i64;
        Ok(x.f_conv_transpose2d(&self.weight, Some(&self.bias), [s; 2], [p; 2], [op; 2], groups, [1; 2])?)
    }
}

/// Whether a tensor is of a floating-point kind.
pub(super) fn is_floating(tensor: &Tensor) -> bool {
    matches!(tensor.f_kind(), Ok(Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tch::{Device, Kind, Tensor};
    use yolo_base::Hint as _;

    use super::check_values;

    #[test]
    fn one_value_per_channel_is_refused() {
        let batch = |shape: [i64; 4]| Tensor::zeros(shape, (Kind::Float, Device::Cpu));
        for shape in [[2, 8, 1, 1], [1, 8, 2, 1], [1, 8, 1, 2]] {
            check_values(&batch(shape)).unwrap();
        }
        let error = check_values(&batch([1, 8, 1, 1])).unwrap_err();
        assert!(error.to_string().contains("more than one value per channel"), "{error}");
        assert!(error.hint().unwrap().contains("--batch"), "{error}");
    }
}
