//! The cost of a model, computed from its description alone: parameters, leaf modules, GFLOPs at
//! 640 px, and strides. A [`Meter`] follows the feature map through the layers and counts each
//! convolution, normalization and pooling as YOLOv5's summary does (golden `i_model_configs.json`).

mod meter;

use serde_json::Value;

use self::meter::Meter;
use super::args::activation;
use super::{Activation, ConvSpec, Layer, ModelSpec, Module};
use crate::error::PlanError;

/// Side of the image from whose detection maps the strides are computed (spec §2).
const STRIDE_PROBE: usize = 256;
/// Image side for which GFLOPs are reported.
const GFLOPS_SIZE: f64 = 640.0;
/// Strides below this count as this one (spec §6).
pub const MIN_STRIDE: usize = 32;

/// The cost of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerCost {
    /// Trainable parameters.
    pub parameters: u64,
    /// Multiply-adds for one image, as the original's profiler counts them.
    pub macs: u128,
    /// Modules without children, not counting the activation that all convolutions share.
    pub leaves: usize,
    /// Numbers of one image that training keeps for the backward pass, estimated.
    pub kept: u64,
    /// Height and width of the output.
    pub size: [usize; 2],
}

/// The summary of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Modules without children, the "layers" of YOLOv5's summary.
    pub layers: usize,
    /// Trainable parameters.
    pub parameters: u64,
    /// Billions of floating-point operations for one 640 px image.
    pub gflops: f64,
}

/// The largest of a model's strides, and at least [`MIN_STRIDE`]: image sizes must be multiples of it.
pub fn largest_stride(strides: &[f64]) -> usize {
    strides.iter().copied().fold(MIN_STRIDE as f64, f64::max).ceil() as usize
}

impl ModelSpec {
    /// The cost of each layer for one image of `height`×`width` pixels.
    ///
    /// # Errors
    /// If two sources of a Concat differ in size, or a feature map shrinks to nothing.
    pub fn costs(&self, height: usize, width: usize) -> Result<Vec<LayerCost>, PlanError> {
        self.measure(height, width, false)
    }

    fn measure(&self, height: usize, width: usize, fused: bool) -> Result<Vec<LayerCost>, PlanError> {
        let mut costs: Vec<LayerCost> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let mut sizes = Vec::with_capacity(layer.from.len());
            for &from in &layer.from {
                sizes.push(match usize::try_from(from) {
                    Err(_) => [height, width],
                    Ok(source) => costs.get(source).map(|cost| cost.size).ok_or_else(|| {
                        PlanError::new(format!(
                            "layer {}: source {from} is not an earlier layer",
                            layer.index
                        ))
                    })?,
                });
            }
            let first = sizes.first().copied().unwrap_or([height, width]);
            if matches!(layer.module, Module::Concat { .. }) && sizes.iter().any(|size| *size != first) {
                return Err(PlanError::new(format!(
                    "row {} (Concat): the sources differ in size: {}",
                    layer.index,
                    sizes.iter().map(|[h, w]| format!("{h}×{w}")).collect::<Vec<_>>().join(", ")
                )));
            }
            let mut meter = Meter { size: Some(first), fused, ..Meter::default() };
            for _ in 0..layer.copies {
                meter.module(&layer.module, &sizes);
            }
            let size = meter
                .size
                .filter(|[h, w]| *h > 0 && *w > 0 && *h < 1 << 24 && *w < 1 << 24)
                .ok_or_else(|| {
                    PlanError::new(format!(
                        "row {} cannot process its {}×{} feature map (from a {height}×{width} image)",
                        layer.index, first[0], first[1]
                    ))
                })?;
            costs.push(LayerCost {
                parameters: meter.parameters,
                macs: meter.macs,
                leaves: meter.leaves,
                kept: kept(layer, &meter, size),
                size,
            });
        }
        Ok(costs)
    }

    /// The stride of each detection level, in the order of Detect's sources.
    ///
    /// # Errors
    /// See [`Self::costs`].
    pub fn strides(&self) -> Result<Vec<f64>, PlanError> {
        let costs = self.costs(STRIDE_PROBE, STRIDE_PROBE)?;
        let sources = self.layers.last().map(|layer| layer.from.as_slice()).unwrap_or_default();
        sources
            .iter()
            .map(|&from| match usize::try_from(from).ok().and_then(|source| costs.get(source)) {
                // The original divides by the width of the map, which differs from the height only
                // if a model pads its sides unequally.
                Some(cost) => Ok(STRIDE_PROBE as f64 / cost.size[1] as f64),
                None => Err(PlanError::new("a source of Detect is not a layer")),
            })
            .collect()
    }

    /// The largest stride, see [`largest_stride`].
    ///
    /// # Errors
    /// See [`Self::costs`].
    pub fn largest_stride(&self) -> Result<usize, PlanError> {
        Ok(largest_stride(&self.strides()?))
    }

    /// Layers, parameters and GFLOPs as YOLOv5 prints them.
    ///
    /// # Errors
    /// See [`Self::costs`].
    pub fn summary(&self) -> Result<Summary, PlanError> {
        self.summarize(false)
    }

    /// Like [`Self::summary`], with every batch normalization folded into the convolution before
    /// it, as for inference.
    ///
    /// # Errors
    /// See [`Self::costs`].
    pub fn fused_summary(&self) -> Result<Summary, PlanError> {
        self.summarize(true)
    }

    fn summarize(&self, fused: bool) -> Result<Summary, PlanError> {
        // YOLOv5 profiles one image as large as the largest stride and scales by the area.
        let probe = self.largest_stride()?;
        let costs = self.measure(probe, probe, fused)?;
        let macs: u128 = costs.iter().map(|cost| cost.macs).sum();
        // All convolutions share one activation module, which counts once. A row that names another
        // activation adds a module.
        let default = default_activation(&self.yaml);
        let own = |layer: &&Layer| own_activation(&layer.module).is_some_and(|act| act != default);
        let activations = self.layers.iter().filter(own).count()
            + usize::from(self.layers.iter().any(|layer| shares_activation(&layer.module, default)));
        Ok(Summary {
            layers: costs.iter().map(|cost| cost.leaves).sum::<usize>() + activations,
            parameters: costs.iter().map(|cost| cost.parameters).sum(),
            gflops: macs as f64 * 2.0 / 1e9 * (GFLOPS_SIZE / probe as f64).powi(2),
        })
    }
}

/// What training keeps of a layer: what the meter has counted, and at least the output.
fn kept(layer: &Layer, meter: &Meter, [height, width]: [usize; 2]) -> u64 {
    match layer.module {
        Module::Detect { .. } => meter.kept,
        _ => meter.kept.max(layer.out_channels as u64 * height as u64 * width as u64),
    }
}

/// The activation of convolutions that do not name one.
fn default_activation(yaml: &Value) -> Activation {
    let named = yaml.get("activation").and_then(Value::as_str);
    named.and_then(|text| activation(text).ok()).unwrap_or(Activation::Silu)
}

/// The activation of a module whose row may name one; `None` also for no activation.
fn own_activation(module: &Module) -> Option<Activation> {
    let (Module::Conv(ConvSpec { act, .. })
    | Module::DwConv(ConvSpec { act, .. })
    | Module::Focus(ConvSpec { act, .. })
    | Module::GhostConv { act, .. }) = module
    else {
        return None;
    };
    Some(*act).filter(|act| act.is_active())
}

/// Whether a module uses the shared activation.
fn shares_activation(module: &Module, default: Activation) -> bool {
    match module {
        Module::Bottleneck { .. }
        | Module::C3(_)
        | Module::BottleneckCsp { .. }
        | Module::C3x(_)
        | Module::C3Tr(_)
        | Module::C3Ghost(_)
        | Module::C3Spp { .. }
        | Module::Spp { .. }
        | Module::Sppf { .. }
        | Module::GhostBottleneck { .. }
        | Module::CrossConv { .. } => true,
        module => own_activation(module) == Some(default),
    }
}
