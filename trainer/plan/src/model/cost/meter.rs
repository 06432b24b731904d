//! Counts parameters, multiply-adds and leaf modules while it follows the size of the feature map
//! through a model.

use super::super::channels::{gcd, mixed_shares};
use super::super::{Activation, ConvSpec, CspSpec, Module};

/// Operations that the original's profiler counts for each value a batch normalization sees.
const NORM_OPERATIONS: u128 = 4;
/// Attention heads of a transformer layer (spec §2).
const HEADS: u128 = 4;

/// The counts so far.
#[derive(Default)]
pub(super) struct Meter {
    /// Height and width of the feature map; `None` once it has shrunk to nothing.
    pub(super) size: Option<[usize; 2]>,
    /// Whether convolutions have a bias instead of a normalization.
    pub(super) fused: bool,
    pub(super) parameters: u64,
    pub(super) macs: u128,
    pub(super) leaves: usize,
    /// Numbers that the backward pass needs: outputs of convolutions, normalizations and activations, and
    /// what is concatenated inside a module.
    pub(super) kept: u64,
}

impl Meter {
    fn area(&self) -> u128 {
        self.size.map_or(0, |[h, w]| h as u128 * w as u128)
    }

    /// Counts an output with these channels at the current size.
    fn keep(&mut self, channels: usize) {
        self.keep_numbers(self.area().saturating_mul(channels as u128));
    }

    fn keep_numbers(&mut self, numbers: u128) {
        self.kept = self.kept.saturating_add(u64::try_from(numbers).unwrap_or(u64::MAX));
    }

    fn resize(&mut self, change: impl Fn(usize, usize) -> Option<usize>) {
        self.size = self
            .size
            .and_then(|[h, w]| Some([change(0, h)?, change(1, w)?]))
            .filter(|[h, w]| *h > 0 && *w > 0);
    }

    /// Slides a window of size `k` over the padded map with stride `s`.
    fn slide(&mut self, k: [usize; 2], s: [usize; 2], p: [usize; 2], d: usize) {
        self.resize(|axis, length| {
            let span = d * (k[axis] - 1) + 1;
            Some((length + 2 * p[axis]).checked_sub(span)? / s[axis] + 1)
        });
    }

    /// Counts the weights of a convolution and their use at each point of the output.
    fn weights(&mut self, c1: usize, c2: usize, k: [usize; 2], g: usize, bias: bool) {
        let kernel = (c1 / g * k[0] * k[1]) as u64;
        self.parameters += c2 as u64 * (kernel + u64::from(bias));
        self.macs += self.area() * c2 as u128 * u128::from(kernel);
        self.leaves += 1;
        self.keep(c2);
    }

    fn norm(&mut self, channels: usize) {
        self.parameters += 2 * channels as u64;
        self.macs += NORM_OPERATIONS * self.area() * channels as u128;
        self.leaves += 1;
        self.keep(channels);
    }

    fn conv(&mut self, spec: &ConvSpec) {
        self.slide(spec.k, spec.s, spec.p, spec.d);
        self.weights(spec.c1, spec.c2, spec.k, spec.g, self.fused);
        if !self.fused {
            self.norm(spec.c2);
        }
        // Without an activation, a convolution has an identity module, which counts.
        self.leaves += usize::from(!spec.act.is_active());
        if spec.act.is_active() {
            self.keep(spec.c2);
        }
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
            self.leaves += 1; // An identity in place of the strided convolution.
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
        // The outputs of the pools with their indices of eight bytes, and what is concatenated.
        self.keep(hidden * (3 * pools + pools + 1));
        self.pointwise(hidden * (pools + 1), c2, act);
    }

    /// The parts that the C3 family shares, around `inner`, which gets the hidden channels.
    fn c3(&mut self, csp: &CspSpec, inner: impl Fn(&mut Self, usize)) {
        let hidden = (csp.c2 as f64 * csp.e) as usize;
        self.pointwise(csp.c1, hidden, csp.act);
        inner(self, hidden);
        self.pointwise(csp.c1, hidden, csp.act);
        self.keep(2 * hidden);
        self.pointwise(2 * hidden, csp.c2, csp.act);
    }

    /// Attention over the points of the map. The original's profiler counts the four projections,
    /// two products over all pairs of points, and three softmax operations per pair and head.
    fn transformer(&mut self, channels: usize, layers: usize) {
        let c = channels as u64;
        let tokens = self.area();
        let linear = tokens * u128::from(c) * u128::from(c);
        self.parameters += c * c + c; // The linear layer for positions, with a bias.
        self.macs += linear;
        self.leaves += 1;
        for _ in 0..layers {
            // q, k, v, fc1 and fc2 have no bias; the projections inside the attention do.
            self.parameters += 5 * c * c + 3 * (c * c + c) + (c * c + c);
            // Five linear layers and four of the attention, with their sums, and two tables of all pairs.
            self.keep(12 * channels);
            self.keep_numbers(2 * HEADS * tokens * tokens);
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

    /// Counts one module and moves on to the size of its output.
    pub(super) fn module(&mut self, module: &Module, sources: &[[usize; 2]]) {
        match module {
            Module::Conv(spec) | Module::DwConv(spec) => self.conv(spec),
            Module::Bottleneck { c1, c2, g, e, act, .. } => self.bottleneck(*c1, *c2, *g, *e, *act),
            Module::C3(csp) => self.c3(csp, |meter, c| {
                (0..csp.n).for_each(|_| meter.bottleneck(c, c, csp.g, 1.0, csp.act));
            }),
            Module::BottleneckCsp { csp, .. } => self.bottleneck_csp(csp),
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
            Module::Focus(spec) => self.focus(spec),
            Module::GhostConv { c1, c2, k, s, g, act } => self.ghost_conv(*c1, *c2, *k, *s, *g, *act),
            Module::GhostBottleneck { c1, c2, k, s, act } => self.ghost_bottleneck(*c1, *c2, *k, *s, *act),
            Module::CrossConv { c1, c2, k, s, g, e, act, .. } => self.cross([*c1, *c2], *k, *s, *g, *e, *act),
            Module::MixConv2d { c1, c2, k, s, equal_ch } => self.mixed(*c1, *c2, k, *s, *equal_ch),
            Module::ConvTranspose2d { c1, c2, k, s, p, op } => self.transpose([*c1, *c2], *k, *s, *p, *op, 1),
            Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 } => {
                self.depthwise_transpose([*c1, *c2], *k, *s, *p1, *p2);
            }
            Module::BatchNorm2d { c } => self.norm(*c),
            Module::Detect { nc, na, channels } => self.detect(na * (nc + 5), channels, sources),
            Module::Concat { .. } => self.leaves += 1,
            Module::Upsample { scale, .. } => {
                self.resize_layer(|_, length| Some((length as f64 * scale).floor() as usize));
            }
            Module::MaxPool2d { k, s, p } => {
                self.slide([*k; 2], [*s; 2], [*p; 2], 1);
                self.leaves += 1;
            }
            Module::ZeroPad2d { pad: [left, right, top, bottom] } => {
                let growth = [top + bottom, left + right];
                self.resize_layer(|axis, length| usize::try_from(length as i64 + growth[axis]).ok());
            }
            Module::Contract { gain } => {
                self.resize_layer(|_, length| (length % gain == 0).then_some(length / gain));
            }
            Module::Expand { gain } => self.resize_layer(|_, length| length.checked_mul(*gain)),
        }
    }

    /// Counts a module that only changes the size of the map.
    fn resize_layer(&mut self, change: impl Fn(usize, usize) -> Option<usize>) {
        self.resize(change);
        self.leaves += 1;
    }

    fn bottleneck_csp(&mut self, csp: &CspSpec) {
        let hidden = (csp.c2 as f64 * csp.e) as usize;
        self.pointwise(csp.c1, hidden, csp.act);
        (0..csp.n).for_each(|_| self.bottleneck(hidden, hidden, csp.g, 1.0, csp.act));
        self.weights(csp.c1, hidden, [1; 2], 1, false);
        self.weights(hidden, hidden, [1; 2], 1, false);
        self.norm(2 * hidden);
        self.leaves += 1; // An activation that is not shared.
        self.pointwise(2 * hidden, csp.c2, csp.act);
    }

    fn focus(&mut self, spec: &ConvSpec) {
        self.resize(|_, length| Some(length / 2));
        self.conv(&ConvSpec { c1: 4 * spec.c1, ..*spec });
    }

    fn depthwise_transpose(&mut self, [c1, c2]: [usize; 2], k: usize, s: usize, p1: usize, p2: usize) {
        let macs = self.macs;
        self.transpose([c1, c2], k, s, p1, p2, gcd(c1, c2));
        // The original's profiler counts nothing for this kind of layer.
        self.macs = macs;
    }

    /// One convolution per level, each on its own feature map.
    fn detect(&mut self, outputs: usize, channels: &[usize], sources: &[[usize; 2]]) {
        for (&c, &size) in channels.iter().zip(sources) {
            self.size = Some(size);
            self.weights(c, outputs, [1; 2], 1, true);
        }
    }

    /// Parallel convolutions with several kernels, then one normalization and activation.
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
