//! Modules that move pixels and have few tensors or none: `Focus`, `Contract`, `Expand`, `Upsample`,
//! `ZeroPad2d`, and the mixed convolution `MixConv2d` (spec §2).

use tch::Tensor;
use yolo_plan::model::{Activation, ConvSpec, gcd, mixed_shares};

use super::block::{Block, Pass};
use super::build::Builder;
use super::conv::{BatchNorm2d, Conv, Conv2d, activate, square};
use crate::error::TrainError;

/// The four pixel phases as channels, then a convolution.
pub(super) struct Focus {
    conv: Conv,
}

impl Focus {
    /// `spec.c1` is the number of input channels; the convolution gets four times as many.
    pub(super) fn new(b: &mut Builder<'_>, spec: ConvSpec) -> Result<Self, TrainError> {
        Ok(Self { conv: b.scope("conv", |b| Conv::new(b, ConvSpec { c1: 4 * spec.c1, ..spec }))? })
    }
}

impl Block for Focus {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let phase = |y: i64, x_: i64| x.f_slice(2, y, None, 2)?.f_slice(3, x_, None, 2);
        let phases = [phase(0, 0)?, phase(1, 0)?, phase(0, 1)?, phase(1, 1)?];
        self.conv.forward(&Tensor::f_cat(&phases, 1)?, pass)
    }
}

/// Space to depth, with `gain`² times the channels.
pub(super) struct Contract {
    pub(super) gain: usize,
}

impl Block for Contract {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (b, c, h, w) = x.size4()?;
        let g = self.gain as i64;
        let split = x.f_reshape([b, c, h / g, g, w / g, g])?.f_permute([0, 3, 5, 1, 2, 4])?;
        Ok(split.f_reshape([b, c * g * g, h / g, w / g])?)
    }
}

/// Depth to space, with the channels divided by `gain`².
pub(super) struct Expand {
    pub(super) gain: usize,
}

impl Block for Expand {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (b, c, h, w) = x.size4()?;
        let g = self.gain as i64;
        let split = x.f_reshape([b, g, g, c / (g * g), h, w])?.f_permute([0, 3, 4, 1, 5, 2])?;
        Ok(split.f_reshape([b, c / (g * g), h * g, w * g])?)
    }
}

/// The interpolation of [`Upsample`].
#[derive(Clone, Copy)]
enum Interpolation {
    Nearest,
    Bilinear,
    Bicubic,
}

/// Enlarges by a factor.
pub(super) struct Upsample {
    scale: f64,
    mode: Interpolation,
}

impl Upsample {
    pub(super) fn new(scale: f64, mode: &str) -> Result<Self, TrainError> {
        let mode = match mode {
            "nearest" => Interpolation::Nearest,
            "bilinear" => Interpolation::Bilinear,
            "bicubic" => Interpolation::Bicubic,
            other => {
                return Err(TrainError::new(format!("nn.Upsample has the unknown mode `{other}`"))
                    .with_hint("use nearest, bilinear or bicubic"));
            }
        };
        Ok(Self { scale, mode })
    }

    fn side(&self, n: usize) -> usize {
        (n as f64 * self.scale).floor() as usize
    }
}

impl Block for Upsample {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (_, _, h, w) = x.size4()?;
        let size = [self.side(h as usize) as i64, self.side(w as usize) as i64];
        let scale = Some(self.scale);
        Ok(match self.mode {
            Interpolation::Nearest => x.f_upsample_nearest2d(size, scale, scale)?,
            Interpolation::Bilinear => x.f_upsample_bilinear2d(size, false, scale, scale)?,
            Interpolation::Bicubic => x.f_upsample_bicubic2d(size, false, scale, scale)?,
        })
    }
}

/// Pads with zeros at the left, right, top and bottom; negative numbers crop.
pub(super) struct ZeroPad2d {
    pub(super) pad: [i64; 4],
}

impl Block for ZeroPad2d {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        Ok(x.f_constant_pad_nd(self.pad)?)
    }
}

/// Convolutions with several kernel sizes in parallel, then normalization and SiLU.
pub(super) struct MixConv2d {
    convs: Vec<Conv2d>,
    bn: BatchNorm2d,
}

impl MixConv2d {
    pub(super) fn new(
        b: &mut Builder<'_>,
        [c1, c2]: [usize; 2],
        k: &[usize],
        s: usize,
        equal_ch: bool,
    ) -> Result<Self, TrainError> {
        let channels = mixed_shares(c2, k, equal_ch);
        let convs = b.scope("m", |b| {
            let mut convs = Vec::with_capacity(k.len());
            for (index, (&k, &c)) in k.iter().zip(&channels).enumerate() {
                let spec = square(c1, c, k, s, gcd(c1, c), Activation::Identity);
                convs.push(b.scope(index, |b| Conv2d::new(b, spec, false))?);
            }
            Ok(convs)
        })?;
        let bn = b.scope("bn", |b| BatchNorm2d::new(b, c2))?;
        Ok(Self { convs, bn })
    }
}

impl Block for MixConv2d {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let parts: Vec<Tensor> =
            self.convs.iter().map(|conv| conv.forward(x, pass)).collect::<Result<_, _>>()?;
        activate(self.bn.forward(&Tensor::f_cat(&parts, 1)?, pass)?, Activation::Silu)
    }
}
