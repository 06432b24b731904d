//! What a model costs, from its description alone: parameters, leaf modules, GFLOPs at 640 px and
//! strides. A meter walks the layers with the size of the map and tallies every convolution,
//! normalisation and pool as YOLOv5's own summary does (golden `i_model_configs.json`).

use serde_json::Value;

use super::args::activation;
use super::modules::{gcd, is_active};
use super::{Activation, ConvSpec, CspSpec, Layer, ModelSpec, Module};
use crate::error::PlanError;

/// Side of the image whose detection maps give the strides (spec §2).
const STRIDE_PROBE: usize = 256;
/// Image side for which GFLOPs are stated.
const GFLOPS_SIZE: f64 = 640.0;
/// Operations that the original's profiler counts for each value that a batch normalisation sees.
const NORM_OPERATIONS: u128 = 4;
/// Attention heads of a transformer layer (spec §2).
const HEADS: u128 = 4;

/// What one layer holds and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerCost {
    /// Learnable numbers.
    pub parameters: u64,
    /// Multiply-adds for one image, as the original's profiler counts them.
    pub macs: u128,
    /// Modules without children, without the activation that all convolutions share.
    pub leaves: usize,
    /// Height and width of the output.
    pub size: [usize; 2],
}

/// The summary of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Modules without children ("layers" of YOLOv5's summary).
    pub layers: usize,
    /// Learnable numbers.
    pub parameters: u64,
    /// Billions of floating point operations for one image of 640 px.
    pub gflops: f64,
}

impl ModelSpec {
    /// The cost of every layer for one image of `height`×`width` pixels.
    ///
    /// # Errors
    /// When two sources of a Concat differ in size, or a map shrinks to nothing.
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
                            "layer {}: its source {from} is not an earlier layer",
                            layer.index
                        ))
                    })?,
                });
            }
            let first = sizes.first().copied().unwrap_or([height, width]);
            if matches!(layer.module, Module::Concat { .. }) && sizes.iter().any(|size| *size != first) {
                return Err(PlanError::new(format!(
                    "row {} (Concat): its sources have different sizes: {}",
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
                        "row {} cannot work on the {}×{} map that a {height}×{width} image leaves",
                        layer.index, first[0], first[1]
                    ))
                })?;
            costs.push(LayerCost {
                parameters: meter.parameters,
                macs: meter.macs,
                leaves: meter.leaves,
                size,
            });
        }
        Ok(costs)
    }

    /// The stride of every detection level, in the order of Detect's sources.
    ///
    /// # Errors
    /// As [`Self::costs`].
    pub fn strides(&self) -> Result<Vec<f64>, PlanError> {
        let costs = self.costs(STRIDE_PROBE, STRIDE_PROBE)?;
        let sources = self.layers.last().map(|layer| layer.from.as_slice()).unwrap_or_default();
        sources
            .iter()
            .map(|&from| match usize::try_from(from).ok().and_then(|source| costs.get(source)) {
                // The original divides by the width of the map; it differs from the height only
                // where a model pads its sides unequally.
                Some(cost) => Ok(STRIDE_PROBE as f64 / cost.size[1] as f64),
                None => Err(PlanError::new("Detect has a source that is not a layer")),
            })
            .collect()
    }

    /// Layers, parameters and GFLOPs, as YOLOv5 prints them.
    ///
    /// # Errors
    /// As [`Self::costs`].
    pub fn summary(&self) -> Result<Summary, PlanError> {
        self.summarise(false)
    }

    /// As [`Self::summary`], with every batch normalisation folded into the convolution before it,
    /// as for inference.
    ///
    /// # Errors
    /// As [`Self::costs`].
    pub fn fused_summary(&self) -> Result<Summary, PlanError> {
        self.summarise(true)
    }

    fn summarise(&self, fused: bool) -> Result<Summary, PlanError> {
        // YOLOv5 profiles one image of the largest stride, then scales by the area.
        let probe = self.strides()?.into_iter().fold(32.0, f64::max);
        let costs = self.measure(probe as usize, probe as usize, fused)?;
        let macs: u128 = costs.iter().map(|cost| cost.macs).sum();
        // All convolutions share one activation module, which counts once; a row that names an
        // activation has one of its own.
        let default = default_activation(&self.yaml);
        let own = |layer: &&Layer| own_activation(&layer.module).is_some_and(|act| act != default);
        let activations = self.layers.iter().filter(own).count()
            + usize::from(self.layers.iter().any(|layer| shares_activation(&layer.module, default)));
        Ok(Summary {
            layers: costs.iter().map(|cost| cost.leaves).sum::<usize>() + activations,
            parameters: costs.iter().map(|cost| cost.parameters).sum(),
            gflops: macs as f64 * 2.0 / 1e9 * (GFLOPS_SIZE / probe).powi(2),
        })
    }
}

/// The activation of every convolution that does not name one.
fn default_activation(yaml: &Value) -> Activation {
    let named = yaml.get("activation").and_then(Value::as_str);
    named.and_then(|text| activation(text).ok()).unwrap_or(Activation::Silu)
}

/// The activation of a module whose row may name one, unless it is none.
fn own_activation(module: &Module) -> Option<Activation> {
    let (Module::Conv(ConvSpec { act, .. })
    | Module::DwConv(ConvSpec { act, .. })
    | Module::Focus(ConvSpec { act, .. })
    | Module::GhostConv { act, .. }) = module
    else {
        return None;
    };
    Some(*act).filter(|act| is_active(*act))
}

/// Whether a module uses the activation that convolutions share.
fn shares_activation(module: &Module, default: Activation) -> bool {
    match module {
        Module::Bottleneck { .. }
        | Module::C3(_)
        | Module::BottleneckCsp(_)
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

/// Tallies modules while it follows the size of the map; `None` once the map is gone.
#[derive(Default)]
struct Meter {
    size: Option<[usize; 2]>,
    /// Convolutions have a bias instead of a normalisation after them.
    fused: bool,
    parameters: u64,
    macs: u128,
    leaves: usize,
}

impl Meter {
    fn area(&self) -> u128 {
        self.size.map_or(0, |[h, w]| h as u128 * w as u128)
    }

    fn resize(&mut self, change: impl Fn(usize, usize) -> Option<usize>) {
        self.size = self
            .size
            .and_then(|[h, w]| Some([change(0, h)?, change(1, w)?]))
            .filter(|[h, w]| *h > 0 && *w > 0);
    }

    /// A window of `k` moved by `s` over the padded map.
    fn slide(&mut self, k: [usize; 2], s: [usize; 2], p: [usize; 2], d: usize) {
        self.resize(|axis, length| {
            let span = d * (k[axis] - 1) + 1;
            Some((length + 2 * p[axis]).checked_sub(span)? / s[axis] + 1)
        });
    }

    /// Weights of a convolution and their use at every point of the output.
    fn weights(&mut self, c1: usize, c2: usize, k: [usize; 2], g: usize, bias: bool) {
        let kernel = (c1 / g * k[0] * k[1]) as u64;
        self.parameters += c2 as u64 * (kernel + u64::from(bias));
        self.macs += self.area() * c2 as u128 * u128::from(kernel);
        self.leaves += 1;
    }

    fn norm(&mut self, channels: usize) {
        self.parameters += 2 * channels as u64;
        self.macs += NORM_OPERATIONS * self.area() * channels as u128;
        self.leaves += 1;
    }

    fn conv(&mut self, spec: &ConvSpec) {
        self.slide(spec.k, spec.s, spec.p, spec.d);
        self.weights(spec.c1, spec.c2, spec.k, spec.g, self.fused);
        if !self.fused {
            self.norm(spec.c2);
        }
        // No activation is a module of its own (an identity) in each convolution.
        self.leaves += usize::from(!is_active(spec.act));
    }

    fn square(&mut self, c1: usize, c2: usize, k: usize, s: usize, g: usize, act: Activation) {
        let p = [k / 2; 2];
        self.conv(&ConvSpec { c1, c2, k: [k; 2], s: [s; 2], p, g, d: 1, act });
    }

    fn pointwise(&mut self, c1: usize, c2: usize, act: Activation) {
        self.square(c1, c2, 1, 1, 1, act);
    }

    fn bottleneck(&mut self, c1: usize, c2: usize, g: usize, e: f64, act: Activation) {
        let hidden = (c2 as f64 * e) as usize;
        self.pointwise(c1, hidden, act);
        self.square(hidden, c2, 3, 1, g, act);
    }

    fn cross(&mut self, [c1, c2]: [usize; 2], k: usize, s: usize, g: usize, e: f64, act: Activation) {
        let hidden = (c2 as f64 * e) as usize;
        let p = k / 2;
        self.conv(&ConvSpec { c1, c2: hidden, k: [1, k], s: [1, s], p: [0, p], g: 1, d: 1, act });
        self.conv(&ConvSpec { c1: hidden, c2, k: [k, 1], s: [s, 1], p: [p, 0], g, d: 1, act });
    }

    fn ghost_conv(&mut self, c1: usize, c2: usize, k: usize, s: usize, g: usize, act: Activation) {
        let half = c2 / 2;
        self.square(c1, half, k, s, g, act);
        self.square(half, half, 5, 1, half, act);
    }

    fn ghost_bottleneck(&mut self, c1: usize, c2: usize, k: usize, s: usize, act: Activation) {
        let half = c2 / 2;
        let none = Activation::Identity;
        let input = self.size;
        self.ghost_conv(c1, half, 1, 1, 1, act);
        if s == 2 {
            self.square(half, half, k, s, half, none);
        } else {
            self.leaves += 1; // An identity stands where the strided convolution would.
        }
        self.ghost_conv(half, c2, 1, 1, 1, none);
        let output = self.size;
        self.size = input;
        if s == 2 {
            self.square(c1, c1, k, s, c1, none);
            self.pointwise(c1, c2, none);
        } else {
            self.leaves += 1;
        }
        self.size = output;
    }

    fn pooled(&mut self, c1: usize, c2: usize, pools: usize, modules: usize, act: Activation) {
        let hidden = c1 / 2;
        self.pointwise(c1, hidden, act);
        self.leaves += modules;
        self.pointwise(hidden * (pools + 1), c2, act);
    }

    /// The frame of the C3 family around `inner`, which gets the hidden channels.
    fn c3(&mut self, csp: &CspSpec, inner: impl Fn(&mut Self, usize)) {
        let hidden = (csp.c2 as f64 * csp.e) as usize;
        self.pointwise(csp.c1, hidden, csp.act);
        inner(self, hidden);
        self.pointwise(csp.c1, hidden, csp.act);
        self.pointwise(2 * hidden, csp.c2, csp.act);
    }

    /// Attention over the map's points. The original's profiler counts its four projections, two
    /// products of all pairs of points, and a softmax of three operations for each pair and head.
    fn transformer(&mut self, channels: usize, layers: usize) {
        let c = channels as u64;
        let tokens = self.area();
        let linear = tokens * u128::from(c) * u128::from(c);
        self.parameters += c * c + c; // The position's linear layer, with bias.
        self.macs += linear;
        self.leaves += 1;
        for _ in 0..layers {
            // q, k, v, fc1, fc2 without bias; the attention's own projections with.
            self.parameters += 5 * c * c + 3 * (c * c + c) + (c * c + c);
            self.macs += 9 * linear + 2 * tokens * tokens * u128::from(c) + 3 * HEADS * tokens * tokens;
            self.leaves += 6;
        }
    }

    fn transpose(&mut self, [c1, c2]: [usize; 2], k: usize, s: usize, p: usize, op: usize, g: usize) {
        self.resize(|_, length| ((length - 1) * s + (k - 1) + op + 1).checked_sub(2 * p));
        let kernel = (c1 / g * k * k) as u64;
        self.parameters += c2 as u64 * (kernel + 1);
        self.macs += self.area() * c2 as u128 * u128::from(kernel);
        self.leaves += 1;
    }

    fn module(&mut self, module: &Module, sources: &[[usize; 2]]) {
        match module {
            Module::Conv(spec) | Module::DwConv(spec) => self.conv(spec),
            Module::Bottleneck { c1, c2, g, e, act, .. } => self.bottleneck(*c1, *c2, *g, *e, *act),
            Module::C3(csp) => self.c3(csp, |meter, c| {
                (0..csp.n).for_each(|_| meter.bottleneck(c, c, csp.g, 1.0, csp.act));
            }),
            Module::BottleneckCsp(csp) => {
                let hidden = (csp.c2 as f64 * csp.e) as usize;
                self.pointwise(csp.c1, hidden, csp.act);
                (0..csp.n).for_each(|_| self.bottleneck(hidden, hidden, csp.g, 1.0, csp.act));
                self.weights(csp.c1, hidden, [1; 2], 1, false);
                self.weights(hidden, hidden, [1; 2], 1, false);
                self.norm(2 * hidden);
                self.leaves += 1; // Its own activation.
                self.pointwise(2 * hidden, csp.c2, csp.act);
            }
            Module::C3x(csp) => self.c3(csp, |meter, c| {
                (0..csp.n).for_each(|_| meter.cross([c, c], 3, 1, csp.g, 1.0, csp.act));
            }),
            Module::C3Tr(csp) => self.c3(csp, |meter, c| meter.transformer(c, csp.n)),
            Module::C3Ghost(csp) => self.c3(csp, |meter, c| {
                (0..csp.n).for_each(|_| meter.ghost_bottleneck(c, c, 3, 1, csp.act));
            }),
            Module::C3Spp { csp, k } => {
                self.c3(csp, |meter, c| meter.pooled(c, c, k.len(), k.len(), csp.act))
            }
            Module::Spp { c1, c2, k, act } => self.pooled(*c1, *c2, k.len(), k.len(), *act),
            Module::Sppf { c1, c2, act, .. } => self.pooled(*c1, *c2, 3, 1, *act),
            Module::Focus(spec) => {
                self.resize(|_, length| Some(length / 2));
                self.conv(&ConvSpec { c1: 4 * spec.c1, ..*spec });
            }
            Module::GhostConv { c1, c2, k, s, g, act } => self.ghost_conv(*c1, *c2, *k, *s, *g, *act),
            Module::GhostBottleneck { c1, c2, k, s, act } => self.ghost_bottleneck(*c1, *c2, *k, *s, *act),
            Module::CrossConv { c1, c2, k, s, g, e, act, .. } => self.cross([*c1, *c2], *k, *s, *g, *e, *act),
            Module::MixConv2d { c1, c2, k, s, equal_ch } => self.mixed(*c1, *c2, k, *s, *equal_ch),
            Module::ConvTranspose2d { c1, c2, k, s, p, op } => self.transpose([*c1, *c2], *k, *s, *p, *op, 1),
            Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 } => {
                let macs = self.macs;
                self.transpose([*c1, *c2], *k, *s, *p1, *p2, gcd(*c1, *c2));
                // The original's profiler does not know this kind, and counts nothing for it.
                self.macs = macs;
            }
            Module::BatchNorm2d { c } => self.norm(*c),
            Module::Concat { .. } => self.leaves += 1,
            Module::Upsample { scale, .. } => {
                self.resize(|_, length| Some((length as f64 * scale).floor() as usize));
                self.leaves += 1;
            }
            Module::MaxPool2d { k, s, p } => {
                self.slide([*k; 2], [*s; 2], [*p; 2], 1);
                self.leaves += 1;
            }
            Module::ZeroPad2d { pad: [left, right, top, bottom] } => {
                let growth = [top + bottom, left + right];
                self.resize(|axis, length| usize::try_from(length as i64 + growth[axis]).ok());
                self.leaves += 1;
            }
            Module::Contract { gain } => {
                self.resize(|_, length| (length % gain == 0).then_some(length / gain));
                self.leaves += 1;
            }
            Module::Expand { gain } => {
                self.resize(|_, length| length.checked_mul(*gain));
                self.leaves += 1;
            }
            Module::Detect { nc, na, channels } => {
                for (&c, &size) in channels.iter().zip(sources) {
                    self.size = Some(size);
                    self.weights(c, na * (nc + 5), [1; 2], 1, true);
                }
            }
        }
    }

    /// Convolutions of several kernels side by side, then one normalisation and its activation.
    fn mixed(&mut self, c1: usize, c2: usize, kernels: &[usize], s: usize, equal_channels: bool) {
        let shares = mixed_shares(c2, kernels, equal_channels);
        let input = self.size;
        for (&k, &share) in kernels.iter().zip(&shares) {
            self.size = input;
            self.slide([k; 2], [s; 2], [k / 2; 2], 1);
            self.weights(c1, share, [k; 2], gcd(c1, share.max(1)), false);
        }
        self.norm(c2);
        self.leaves += 1;
    }
}

/// Output channels of each kernel of a mixed convolution: equal channels, the first kernels taking
/// what does not divide, or about equal numbers of weights.
pub fn mixed_shares(c2: usize, kernels: &[usize], equal_channels: bool) -> Vec<usize> {
    let n = kernels.len();
    if n == 0 {
        return Vec::new();
    }
    if equal_channels {
        // Channel i of c2 goes to kernel floor(i·n/c2), evenly spread.
        let mut shares = vec![0; n];
        let last = (c2.max(2) - 1) as f64;
        for channel in 0..c2 {
            let group = (channel as f64 * (n as f64 - 1e-6) / last).floor() as usize;
            shares[group.min(n - 1)] += 1;
        }
        return shares;
    }
    let weights: Vec<f64> = kernels.iter().map(|k| 1.0 / (k * k) as f64).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| (c2 as f64 * weight / total).round_ties_even() as usize).collect()
}
