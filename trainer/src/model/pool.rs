//! Spatial pyramid pooling, `SPP` and `SPPF`, and the max-pooling that they use (spec §2).

use tch::Tensor;
use yolo_plan::model::Activation;

use super::block::{Block, Pass};
use super::build::Builder;
use super::conv::{Conv, square};
use crate::error::TrainError;

/// Max-pooling; padding is minus infinity.
pub(super) struct MaxPool2d {
    pub(super) k: usize,
    pub(super) s: usize,
    pub(super) p: usize,
}

impl MaxPool2d {
    /// Pooling that keeps the size.
    fn same(k: usize) -> Self {
        Self { k, s: 1, p: k / 2 }
    }
}

impl Block for MaxPool2d {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (k, s, p) = (self.k as i64, self.s as i64, self.p as i64);
        Ok(x.f_max_pool2d([k; 2], [s; 2], [p; 2], [1; 2], false)?)
    }
}

/// Pooling with several sizes in parallel.
pub(super) struct Spp {
    cv1: Conv,
    cv2: Conv,
    pools: Vec<MaxPool2d>,
}

impl Spp {
    pub(super) fn new(
        b: &mut Builder<'_>,
        c1: usize,
        c2: usize,
        k: &[usize],
        act: Activation,
    ) -> Result<Self, TrainError> {
        let c = c1 / 2;
        Ok(Self {
            cv1: b.scope("cv1", |b| Conv::new(b, square(c1, c, 1, 1, 1, act)))?,
            cv2: b.scope("cv2", |b| Conv::new(b, square(c * (k.len() + 1), c2, 1, 1, 1, act)))?,
            pools: k.iter().map(|&k| MaxPool2d::same(k)).collect(),
        })
    }
}

impl Block for Spp {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let mut parts = vec![self.cv1.forward(x, pass)?];
        for pool in &self.pools {
            parts.push(pool.forward(&parts[0], pass)?);
        }
        self.cv2.forward(&Tensor::f_cat(&parts, 1)?, pass)
    }
}

/// The same pooling three times: the receptive fields of `SPP` with 5, 9, 13, but cheaper.
pub(super) struct Sppf {
    cv1: Conv,
    cv2: Conv,
    pool: MaxPool2d,
}

impl Sppf {
    pub(super) fn new(
        b: &mut Builder<'_>,
        c1: usize,
        c2: usize,
        k: usize,
        act: Activation,
    ) -> Result<Self, TrainError> {
        let c = c1 / 2;
        Ok(Self {
            cv1: b.scope("cv1", |b| Conv::new(b, square(c1, c, 1, 1, 1, act)))?,
            cv2: b.scope("cv2", |b| Conv::new(b, square(4 * c, c2, 1, 1, 1, act)))?,
            pool: MaxPool2d::same(k),
        })
    }
}

impl Block for Sppf {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let x = self.cv1.forward(x, pass)?;
        let once = self.pool.forward(&x, pass)?;
        let twice = self.pool.forward(&once, pass)?;
        let thrice = self.pool.forward(&twice, pass)?;
        self.cv2.forward(&Tensor::f_cat(&[x, once, twice, thrice], 1)?, pass)
    }
}
