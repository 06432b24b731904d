//! One row of the model's description, built: its module, as often as it is repeated, and the layers
//! whose outputs it reads.

use tch::{Device, Tensor};
use yolo_plan::model::{CspSpec, Layer as LayerSpec, ModelSpec, Module, gcd};

use super::block::{Block, Pass, Sequential};
use super::build::Builder;
use super::conv::{BatchNorm2d, Conv, ConvTranspose2d, square};
use super::csp::{Bottleneck, BottleneckCsp, C3};
use super::detect::Detect;
use super::ghost::{GhostBottleneck, GhostConv};
use super::pool::{MaxPool2d, Spp, Sppf};
use super::reshape::{Contract, Expand, Focus, MixConv2d, Upsample, ZeroPad2d};
use crate::error::TrainError;

/// What a layer does with its inputs.
pub(super) enum Body {
    Blocks(Sequential),
    Concat(i64),
    Detect(Detect),
}

/// A layer of the model.
pub(super) struct Layer {
    pub(super) from: Vec<i64>,
    pub(super) body: Body,
}

impl Layer {
    /// `strides` are those of the detection levels; `home` is where their outputs are used.
    pub(super) fn new(
        b: &mut Builder<'_>,
        spec: &LayerSpec,
        model: &ModelSpec,
        strides: &[f64],
        home: Device,
    ) -> Result<Self, TrainError> {
        let body = b
            .scope(spec.index, |b| match &spec.module {
                Module::Concat { dim } => Ok(Body::Concat(*dim)),
                Module::Detect { nc, channels, .. } => {
                    Ok(Body::Detect(Detect::new(b, *nc, channels, &model.anchors, strides, home)?))
                }
                module if spec.copies <= 1 => Ok(Body::Blocks(Sequential(vec![block(b, module)?]))),
                module => {
                    let copies = (0..spec.copies).map(|copy| b.scope(copy, |b| block(b, module)));
                    Ok(Body::Blocks(Sequential(copies.collect::<Result<_, _>>()?)))
                }
            })
            .map_err(|error| error.at(format!("layer {}", spec.index)))?;
        Ok(Self { from: spec.from.clone(), body })
    }

    /// The output of any layer but Detect, which has several.
    pub(super) fn forward(&self, inputs: &[Tensor], pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        match (&self.body, inputs) {
            (Body::Blocks(blocks), [x]) => blocks.forward(x, pass),
            (Body::Concat(dim), inputs) => Ok(Tensor::f_cat(inputs, *dim)?),
            (_, inputs) => {
                Err(TrainError::new(format!("the module takes one input but gets {}", inputs.len())))
            }
        }
    }
}

/// A module with one input (spec §2).
fn block(b: &mut Builder<'_>, module: &Module) -> Result<Box<dyn Block>, TrainError> {
    Ok(match module {
        Module::Conv(spec) | Module::DwConv(spec) => Box::new(Conv::new(b, *spec)?),
        &Module::Bottleneck { c1, c2, shortcut, g, e, act } => {
            Box::new(Bottleneck::new(b, &CspSpec { c1, c2, n: 1, shortcut, g, e, act })?)
        }
        &Module::CrossConv { c1, c2, k, s, g, e, shortcut, act } => {
            Box::new(Bottleneck::cross(b, &CspSpec { c1, c2, n: 1, shortcut, g, e, act }, k, s)?)
        }
        Module::C3(spec) => Box::new(C3::new(b, spec)?),
        Module::C3x(spec) => Box::new(C3::cross(b, spec)?),
        Module::C3Ghost(spec) => Box::new(C3::ghost(b, spec)?),
        Module::C3Tr(spec) => Box::new(C3::transformer(b, spec)?),
        Module::C3Spp { csp, k } => Box::new(C3::pooling(b, csp, k)?),
        Module::BottleneckCsp { csp, joined_act } => Box::new(BottleneckCsp::new(b, csp, *joined_act)?),
        Module::Spp { c1, c2, k, act } => Box::new(Spp::new(b, *c1, *c2, k, *act)?),
        &Module::Sppf { c1, c2, k, act } => Box::new(Sppf::new(b, c1, c2, k, act)?),
        Module::Focus(spec) => Box::new(Focus::new(b, *spec)?),
        &Module::GhostConv { c1, c2, k, s, g, act } => {
            Box::new(GhostConv::new(b, square(c1, c2, k, s, g, act))?)
        }
        &Module::GhostBottleneck { c1, c2, k, s, act } => {
            Box::new(GhostBottleneck::new(b, [c1, c2], k, s, act)?)
        }
        Module::MixConv2d { c1, c2, k, s, equal_ch } => {
            Box::new(MixConv2d::new(b, [*c1, *c2], k, *s, *equal_ch)?)
        }
        &Module::ConvTranspose2d { c1, c2, k, s, p, op } => {
            Box::new(ConvTranspose2d::new(b, [c1, c2, k], s, [p, op], 1)?)
        }
        &Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 } => {
            Box::new(ConvTranspose2d::new(b, [c1, c2, k], s, [p1, p2], gcd(c1, c2))?)
        }
        &Module::BatchNorm2d { c } => Box::new(BatchNorm2d::new(b, c)?),
        Module::Upsample { scale, mode } => Box::new(Upsample::new(*scale, mode)?),
        &Module::MaxPool2d { k, s, p } => Box::new(MaxPool2d { k, s, p }),
        &Module::ZeroPad2d { pad } => Box::new(ZeroPad2d { pad }),
        &Module::Contract { gain } => Box::new(Contract { gain }),
        &Module::Expand { gain } => Box::new(Expand { gain }),
        Module::Concat { .. } | Module::Detect { .. } => {
            return Err(TrainError::new("Concat and Detect cannot be repeated"));
        }
    })
}
