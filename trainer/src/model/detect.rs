//! The head: one 1×1 convolution per level, anchors in cells, and the decoding of its outputs into
//! boxes in pixels of the network input (spec §2).

use tch::{Device, Kind, Tensor, no_grad};

use super::block::{Block, Pass};
use super::build::Builder;
use super::conv::Conv2d;
use crate::error::TrainError;

/// Image size for which the objectness prior is 8 objects per image (spec §2).
const PRIOR_SIZE: f64 = 640.0;

pub(super) struct Detect {
    convs: Vec<Conv2d>,
    anchors: Tensor,
    strides: Vec<f64>,
    nc: usize,
    na: usize,
}

impl Detect {
    /// `anchors` are in pixels, one list per level; `strides` are those of the levels. The anchors are kept on
    /// `home`, where outputs are decoded.
    pub(super) fn new(
        b: &mut Builder<'_>,
        nc: usize,
        channels: &[usize],
        anchors: &[Vec<[f64; 2]>],
        strides: &[f64],
        home: Device,
    ) -> Result<Self, TrainError> {
        let na = anchors.first().map_or(0, Vec::len);
        if na == 0 || anchors.len() != channels.len() || anchors.iter().any(|level| level.len() != na) {
            return Err(TrainError::new(format!(
                "Detect has {} inputs, but anchors for {} levels with {:?} anchors",
                channels.len(),
                anchors.len(),
                anchors.iter().map(Vec::len).collect::<Vec<_>>()
            ))
            .with_hint("give each input of Detect one row of `anchors`, all of the same length"));
        }
        let grid: Vec<f32> = in_stride_order(anchors, strides)
            .iter()
            .zip(strides)
            .flat_map(|(level, &stride)| {
                level.iter().flatten().map(move |&side| (side as f32) / stride as f32)
            })
            .collect();
        let anchors = b.on(home, |b| b.values("anchors", &[channels.len(), na, 2], &grid))?;
        let convs = b.scope("m", |b| {
            let level = |(index, &c): (usize, &usize)| {
                b.scope(index, |b| Conv2d::pointwise(b, c, na * (nc + 5), true))
            };
            channels.iter().enumerate().map(level).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(Self { convs, anchors, strides: strides.to_vec(), nc, na })
    }

    /// Adds the priors to the biases: 8 objects per image of 640 pixels, all classes equally likely.
    pub(super) fn add_priors(&self) -> Result<(), TrainError> {
        let class = (0.6 / (self.nc as f64 - 0.99999)).ln();
        for (conv, stride) in self.convs.iter().zip(&self.strides) {
            let Some(bias) = conv.bias() else { continue };
            let object = (8.0 / (PRIOR_SIZE / stride).powi(2)).ln();
            no_grad(|| -> Result<(), TrainError> {
                let rows = bias.f_view([self.na as i64, self.nc as i64 + 5])?;
                let _ = rows.f_narrow(1, 4, 1)?.f_add_scalar_(object)?;
                let _ = rows.f_narrow(1, 5, self.nc as i64)?.f_add_scalar_(class)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// (levels, anchors, 2) in cells.
    pub(super) fn anchors(&self) -> &Tensor {
        &self.anchors
    }

    pub(super) fn strides(&self) -> &[f64] {
        &self.strides
    }

    /// Raw outputs, (B, na, ny, nx, nc + 5) per level.
    pub(super) fn forward(&self, inputs: &[Tensor], pass: &Pass<'_>) -> Result<Vec<Tensor>, TrainError> {
        let outputs = (self.nc + 5) as i64;
        let level = |(conv, x): (&Conv2d, &Tensor)| -> Result<Tensor, TrainError> {
            let y = conv.forward(x, pass)?;
            let (b, _, ny, nx) = y.size4()?;
            let split = y.f_reshape([b, self.na as i64, outputs, ny, nx])?;
            Ok(split.f_permute([0, 1, 3, 4, 2])?.f_contiguous()?)
        };
        self.convs.iter().zip(inputs).map(level).collect()
    }

    /// Boxes (center x, center y, width, height in pixels), objectness and classes as
    /// probabilities: (B, N, nc + 5), ordered by level, anchor, row, column. Heads in half precision are decoded in
    /// single precision: half a pixel would be the next number above 512.
    pub(super) fn decode(&self, raw: &[Tensor]) -> Result<Tensor, TrainError> {
        let grids = raw.iter().map(|raw| {
            let (_, _, ny, nx, _) = raw.size5()?;
            let kind = if raw.kind() == Kind::Half { Kind::Float } else { raw.kind() };
            cells(nx, ny, kind, raw.device())
        });
        self.decode_on(raw, &grids.collect::<Result<Vec<_>, _>>()?)
    }

    /// The cells of the levels for an image of this size, in single precision, for [`Self::decode_on`].
    pub(super) fn grids(&self, height: i64, width: i64) -> Result<Vec<Tensor>, TrainError> {
        let cells_of = |stride: &f64| {
            let stride = *stride as i64;
            cells(width / stride, height / stride, Kind::Float, self.anchors.device())
        };
        self.strides.iter().map(cells_of).collect()
    }

    /// [`Self::decode`] with the cells of the levels.
    pub(super) fn decode_on(&self, raw: &[Tensor], grids: &[Tensor]) -> Result<Tensor, TrainError> {
        let mut levels = Vec::with_capacity(raw.len());
        for (index, ((raw, grid), &stride)) in raw.iter().zip(grids).zip(&self.strides).enumerate() {
            let (b, na, ny, nx, outputs) = raw.size5()?;
            let single = if raw.kind() == Kind::Half { &raw.f_to_kind(Kind::Float)? } else { raw };
            let y = single.f_sigmoid()?;
            let anchors = self.anchors.f_narrow(0, index as i64, 1)?.f_mul_scalar(stride)?;
            let anchors = anchors.f_to_kind(y.kind())?.f_reshape([1, na, 1, 1, 2])?;
            let center = y.f_narrow(4, 0, 2)?.f_mul_scalar(2.0)?.f_add(grid)?.f_mul_scalar(stride)?;
            let size = y.f_narrow(4, 2, 2)?.f_mul_scalar(2.0)?.f_square()?.f_mul(&anchors)?;
            let rest = y.f_narrow(4, 4, outputs - 4)?;
            levels.push(Tensor::f_cat(&[center, size, rest], 4)?.f_reshape([b, na * ny * nx, outputs])?);
        }
        Ok(Tensor::f_cat(&levels, 1)?)
    }
}

/// Column and row of every cell, minus a half: (1, 1, ny, nx, 2).
fn cells(nx: i64, ny: i64, kind: Kind, device: Device) -> Result<Tensor, TrainError> {
    let x = Tensor::f_arange(nx, (kind, device))?.f_view([1, nx])?.f_expand([ny, nx], false)?;
    let y = Tensor::f_arange(ny, (kind, device))?.f_view([ny, 1])?.f_expand([ny, nx], false)?;
    Ok(Tensor::f_stack(&[x, y], 2)?.f_sub_scalar(0.5)?.f_view([1, 1, ny, nx, 2])?)
}

/// Anchors grow with the stride; levels in the opposite order are reversed (spec §2).
fn in_stride_order(anchors: &[Vec<[f64; 2]>], strides: &[f64]) -> Vec<Vec<[f64; 2]>> {
    let area = |level: &[[f64; 2]]| level.iter().map(|[w, h]| w * h).sum::<f64>();
    let mut levels = anchors.to_vec();
    if let ([first, .., last], [fine, .., coarse]) = (anchors, strides) {
        let (growth, step) = (area(last) - area(first), coarse - fine);
        if growth != 0.0 && growth.signum() != step.signum() {
            levels.reverse();
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_given_largest_first_are_reversed() {
        let small = vec![[10.0, 13.0]];
        let large = vec![[116.0, 90.0]];
        let right = vec![small.clone(), large.clone()];
        assert_eq!(in_stride_order(&[large, small], &[8.0, 16.0]), right);
        assert_eq!(in_stride_order(&right, &[8.0, 16.0]), right);
    }
}
