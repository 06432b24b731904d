//! The ghost family, which computes half of its channels by a cheap depth-wise convolution (spec §2).

use tch::Tensor;
use yolo_plan::model::{Activation, ConvSpec};

use super::block::{Block, Pass, Sequential};
use super::build::Builder;
use super::conv::{Conv, square};
use crate::error::TrainError;

/// `cat[y, depth-wise 5×5 of y]` with `y` a convolution to half the channels.
pub(super) struct GhostConv {
    cv1: Conv,
    cv2: Conv,
}

impl GhostConv {
    /// `spec` is that of the whole module: each half computes half of `c2`.
    pub(super) fn new(b: &mut Builder<'_>, spec: ConvSpec) -> Result<Self, TrainError> {
        let half = spec.c2 / 2;
        Ok(Self {
            cv1: b.scope("cv1", |b| Conv::new(b, ConvSpec { c2: half, ..spec }))?,
            cv2: b.scope("cv2", |b| Conv::new(b, square(half, half, 5, 1, half, spec.act)))?,
        })
    }
}

impl Block for GhostConv {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let y = self.cv1.forward(x, pass)?;
        let ghost = self.cv2.forward(&y, pass)?;
        Ok(Tensor::f_cat(&[y, ghost], 1)?)
    }
}

/// Two ghost convolutions, with a depth-wise one in between at stride 2, and a shortcut.
pub(super) struct GhostBottleneck {
    conv: Sequential,
    shortcut: Option<Sequential>,
}

impl GhostBottleneck {
    pub(super) fn new(
        b: &mut Builder<'_>,
        [c1, c2]: [usize; 2],
        k: usize,
        s: usize,
        act: Activation,
    ) -> Result<Self, TrainError> {
        let (half, linear) = (c2 / 2, Activation::Identity);
        // Depth-wise: as many groups as channels.
        let depthwise = |c: usize| square(c, c, k, s, c, linear);
        let conv = b.scope("conv", |b| {
            let first = b.scope(0, |b| GhostConv::new(b, square(c1, half, 1, 1, 1, act)))?;
            let middle: Box<dyn Block> = match s {
                2 => Box::new(b.scope(1, |b| Conv::new(b, depthwise(half)))?),
                _ => Box::new(Identity),
            };
            let last = b.scope(2, |b| GhostConv::new(b, square(half, c2, 1, 1, 1, linear)))?;
            Ok(Sequential(vec![Box::new(first), middle, Box::new(last)]))
        })?;
        let shortcut = (s == 2).then(|| {
            b.scope("shortcut", |b| {
                let first = b.scope(0, |b| Conv::new(b, depthwise(c1)))?;
                let second = b.scope(1, |b| Conv::new(b, square(c1, c2, 1, 1, 1, linear)))?;
                Ok(Sequential(vec![Box::new(first), Box::new(second)]))
            })
        });
        Ok(Self { conv, shortcut: shortcut.transpose()? })
    }
}

impl Block for GhostBottleneck {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let y = self.conv.forward(x, pass)?;
        Ok(match &self.shortcut {
            Some(shortcut) => y.f_add(&shortcut.forward(x, pass)?)?,
            None => y.f_add(x)?,
        })
    }
}

/// Returns its input; it counts as a layer.
struct Identity;

impl Block for Identity {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        Ok(x.shallow_clone())
    }
}
