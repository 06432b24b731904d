//! Bottlenecks and the cross-stage-partial family: `Bottleneck`, `CrossConv`, `C3`, `C3x`, `C3Ghost`,
//! `C3SPP`, `C3TR` and `BottleneckCSP` (spec §2). The `C3` modules differ only in the branch `m`.

use tch::Tensor;
use yolo_plan::model::{Activation, ConvSpec, CspSpec};

use super::block::{Block, Pass, Sequential};
use super::build::Builder;
use super::conv::{BatchNorm2d, Conv, Conv2d, activate, square};
use super::ghost::GhostBottleneck;
use super::pool::Spp;
use super::transformer::TransformerBlock;
use crate::error::TrainError;

/// Two convolutions, plus the input if the channels agree.
pub(super) struct Bottleneck {
    cv1: Conv,
    cv2: Conv,
    adds: bool,
    /// False after a ReLU, which keeps its output for the gradient.
    in_place: bool,
}

impl Bottleneck {
    pub(super) fn new(b: &mut Builder<'_>, spec: &CspSpec) -> Result<Self, TrainError> {
        let hidden = hidden(spec);
        let first = square(spec.c1, hidden, 1, 1, 1, spec.act);
        let second = square(hidden, spec.c2, 3, 1, spec.g, spec.act);
        Self::of(b, first, second, spec.shortcut && spec.c1 == spec.c2)
    }

    /// `CrossConv`: 1×k, then k×1.
    pub(super) fn cross(b: &mut Builder<'_>, spec: &CspSpec, k: usize, s: usize) -> Result<Self, TrainError> {
        let hidden = hidden(spec);
        let act = spec.act;
        let first =
            ConvSpec { c1: spec.c1, c2: hidden, k: [1, k], s: [1, s], p: [0, k / 2], g: 1, d: 1, act };
        let second =
            ConvSpec { c1: hidden, c2: spec.c2, k: [k, 1], s: [s, 1], p: [k / 2, 0], g: spec.g, d: 1, act };
        Self::of(b, first, second, spec.shortcut && spec.c1 == spec.c2)
    }

    fn of(b: &mut Builder<'_>, first: ConvSpec, second: ConvSpec, adds: bool) -> Result<Self, TrainError> {
        let cv1 = b.scope("cv1", |b| Conv::new(b, first))?;
        let cv2 = b.scope("cv2", |b| Conv::new(b, second))?;
        Ok(Self { cv1, cv2, adds, in_place: second.act != Activation::Relu })
    }
}

impl Block for Bottleneck {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let mut y = self.cv2.forward(&self.cv1.forward(x, pass)?, pass)?;
        Ok(match (self.adds, self.in_place) {
            (false, _) => y,
            (true, true) => y.f_add_(x)?,
            (true, false) => y.f_add(x)?,
        })
    }
}

/// `cv3(cat[m(cv1 x), cv2 x])`.
pub(super) struct C3 {
    cv1: Conv,
    cv2: Conv,
    cv3: Conv,
    m: Box<dyn Block>,
}

impl C3 {
    /// With `n` bottlenecks.
    pub(super) fn new(b: &mut Builder<'_>, spec: &CspSpec) -> Result<Self, TrainError> {
        let inner = inner(spec);
        Self::with(b, spec, |b| repeat(b, spec.n, |b| Bottleneck::new(b, &inner)))
    }

    /// `C3x`, with `n` cross convolutions.
    pub(super) fn cross(b: &mut Builder<'_>, spec: &CspSpec) -> Result<Self, TrainError> {
        let inner = inner(spec);
        Self::with(b, spec, |b| repeat(b, spec.n, |b| Bottleneck::cross(b, &inner, 3, 1)))
    }

    /// `C3Ghost`, with `n` ghost bottlenecks.
    pub(super) fn ghost(b: &mut Builder<'_>, spec: &CspSpec) -> Result<Self, TrainError> {
        let c = hidden(spec);
        Self::with(b, spec, |b| repeat(b, spec.n, |b| GhostBottleneck::new(b, [c, c], 3, 1, spec.act)))
    }

    /// `C3SPP`, with pyramid pooling.
    pub(super) fn pooling(b: &mut Builder<'_>, spec: &CspSpec, k: &[usize]) -> Result<Self, TrainError> {
        let c = hidden(spec);
        Self::with(b, spec, |b| Ok(Box::new(Spp::new(b, c, c, k, spec.act)?)))
    }

    /// `C3TR`, with a transformer of 4 heads and `n` layers.
    pub(super) fn transformer(b: &mut Builder<'_>, spec: &CspSpec) -> Result<Self, TrainError> {
        let c = hidden(spec);
        Self::with(b, spec, |b| Ok(Box::new(TransformerBlock::new(b, c, 4, spec.n)?)))
    }

    fn with(
        b: &mut Builder<'_>,
        spec: &CspSpec,
        m: impl FnOnce(&mut Builder<'_>) -> Result<Box<dyn Block>, TrainError>,
    ) -> Result<Self, TrainError> {
        let hidden = hidden(spec);
        let into = square(spec.c1, hidden, 1, 1, 1, spec.act);
        Ok(Self {
            cv1: b.scope("cv1", |b| Conv::new(b, into))?,
            cv2: b.scope("cv2", |b| Conv::new(b, into))?,
            cv3: b.scope("cv3", |b| Conv::new(b, square(2 * hidden, spec.c2, 1, 1, 1, spec.act)))?,
            m: b.scope("m", m)?,
        })
    }
}

impl Block for C3 {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let deep = self.m.forward(&self.cv1.forward(x, pass)?, pass)?;
        let shallow = self.cv2.forward(x, pass)?;
        self.cv3.forward(&Tensor::f_cat(&[deep, shallow], 1)?, pass)
    }
}

/// `cv4(act(bn(cat[cv3(m(cv1 x)), cv2 x])))`, the older form with plain convolutions.
pub(super) struct BottleneckCsp {
    cv1: Conv,
    cv2: Conv2d,
    cv3: Conv2d,
    cv4: Conv,
    bn: BatchNorm2d,
    joined_act: Activation,
    m: Box<dyn Block>,
}

impl BottleneckCsp {
    pub(super) fn new(
        b: &mut Builder<'_>,
        spec: &CspSpec,
        joined_act: Activation,
    ) -> Result<Self, TrainError> {
        let (c, inner) = (hidden(spec), inner(spec));
        Ok(Self {
            joined_act,
            cv1: b.scope("cv1", |b| Conv::new(b, square(spec.c1, c, 1, 1, 1, spec.act)))?,
            cv2: b.scope("cv2", |b| Conv2d::pointwise(b, spec.c1, c, false))?,
            cv3: b.scope("cv3", |b| Conv2d::pointwise(b, c, c, false))?,
            cv4: b.scope("cv4", |b| Conv::new(b, square(2 * c, spec.c2, 1, 1, 1, spec.act)))?,
            bn: b.scope("bn", |b| BatchNorm2d::new(b, 2 * c))?,
            m: b.scope("m", |b| repeat(b, spec.n, |b| Bottleneck::new(b, &inner)))?,
        })
    }
}

impl Block for BottleneckCsp {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let deep = self.m.forward(&self.cv1.forward(x, pass)?, pass)?;
        let joined = Tensor::f_cat(&[self.cv3.forward(&deep, pass)?, self.cv2.forward(x, pass)?], 1)?;
        // The `activation` of the YAML file applies to `Conv` only.
        let joined = activate(self.bn.forward(&joined, pass)?, self.joined_act)?;
        self.cv4.forward(&joined, pass)
    }
}

/// Hidden channels, `int(c2·e)`.
pub(crate) fn hidden(spec: &CspSpec) -> usize {
    (spec.c2 as f64 * spec.e) as usize
}

/// The bottleneck inside a CSP module, with hidden channels throughout.
pub(crate) fn inner(spec: &CspSpec) -> CspSpec {
    let c = hidden(spec);
    CspSpec { c1: c, c2: c, n: 1, e: 1.0, ..spec.clone() }
}

fn repeat<T: Block + 'static>(
    b: &mut Builder<'_>,
    n: usize,
    build: impl Fn(&mut Builder<'_>) -> Result<T, TrainError>,
) -> Result<Box<dyn Block>, TrainError> {
    let mut blocks: Vec<Box<dyn Block>> = Vec::with_capacity(n);
    for index in 0..n {
        blocks.push(Box::new(b.scope(index, &build)?));
    }
    Ok(Box::new(Sequential(blocks)))
}
