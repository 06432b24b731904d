//! The description of a model: the YAML grammar of YOLOv5 (spec §1) resolved into layers with
//! channels and repeats, and the ten built-in configurations. Nothing here holds a weight; the
//! trainer builds tensors from a [`ModelSpec`], and parameter and FLOP counts come from it alone.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::PlanError;
use crate::yaml;

mod args;
pub mod builtin;
pub mod count;
mod expression;
mod grammar;
mod modules;

pub use count::{LayerCost, Summary, mixed_shares};
pub use modules::gcd;

/// A model, resolved: every layer knows its sources, its channels and its module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The name shown to the user: `yolov5n`, or the stem of the yaml file.
    pub name: String,
    /// Number of classes.
    pub nc: usize,
    /// Input channels (3).
    pub channels: usize,
    /// Anchors in pixels of the network's input, one list a detection level, smallest stride first in file order.
    pub anchors: Vec<Vec<[f64; 2]>>,
    /// True when the yaml gave a number of anchors instead of a list: AutoAnchor must replace them.
    pub anchors_are_placeholders: bool,
    /// The layers in order; the last one is [`Module::Detect`].
    pub layers: Vec<Layer>,
    /// The yaml after overrides (nc, anchors), as JSON, kept in checkpoints so that a model can be rebuilt.
    pub yaml: serde_json::Value,
}

impl ModelSpec {
    /// A built-in model (`yolov5n`, `yolov5n.yaml`) or a yaml file, for data of `nc` classes.
    /// `anchors` is the number of anchors a level that a hyper-parameter file asks for; it
    /// replaces the yaml's own by placeholders.
    ///
    /// # Errors
    /// When the name is neither, or the file is not a model; the message names the file and row.
    pub fn load(cfg: &str, nc: usize, anchors: Option<f64>) -> Result<Self, PlanError> {
        let path = Path::new(cfg);
        if path.is_file() {
            let stem = path.file_stem().map_or_else(|| cfg.into(), |stem| stem.to_string_lossy());
            let value = yaml::read(path, "model")?;
            return grammar::build(&stem, &format!("the model {cfg}"), &value, nc, anchors);
        }
        // YOLOv5 keeps its own yamls under models/ and models/hub/, and any path there is a name.
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let name = name.trim_end_matches(".yaml").trim_end_matches(".yml");
        match builtin::yaml(name) {
            Some(value) => grammar::build(name, &format!("the model {name}"), &value, nc, anchors),
            None => Err(PlanError::new(format!(
                "there is no model {cfg}: it is neither a file nor the name of a built-in model"
            ))
            .with_hint(format!("the built-in models are {}", builtin::names().join(", ")))),
        }
    }

    /// A model from the yaml that a checkpoint carries.
    ///
    /// # Errors
    /// When the value is not a model.
    pub fn from_yaml_value(value: &Value, nc: usize, anchors: Option<f64>) -> Result<Self, PlanError> {
        let same = |name: &String| {
            builtin::yaml(name).is_some_and(|known| {
                // Numbers as floats: a checkpoint may carry 0.33 and 1 where we write 0.33 and 1.0.
                ["depth_multiple", "width_multiple"]
                    .iter()
                    .all(|key| value.get(key).and_then(Value::as_f64) == known[key].as_f64())
                    && ["backbone", "head"].iter().all(|key| {
                        let rows = |yaml: &Value| yaml.get(key).and_then(Value::as_array).map(Vec::len);
                        rows(value) == rows(&known)
                    })
            })
        };
        let name = builtin::names().into_iter().find(same).unwrap_or_else(|| "custom".to_owned());
        grammar::build(&name, "the model in the checkpoint", value, nc, anchors)
    }

    /// The layers whose outputs are kept during the forward pass: every source that is not
    /// written as -1, sorted, repeated if several layers need it (spec §1).
    pub fn save(&self) -> Vec<usize> {
        let rows =
            ["backbone", "head"].into_iter().filter_map(|key| self.yaml.get(key)?.as_array()).flatten();
        let mut save = Vec::new();
        for (layer, row) in self.layers.iter().zip(rows) {
            let raw = grammar::raw_sources(row).unwrap_or_default();
            let kept = raw.iter().zip(&layer.from).filter(|(raw, _)| **raw != -1);
            save.extend(kept.filter_map(|(_, &from)| usize::try_from(from).ok()));
        }
        save.sort_unstable();
        save
    }
}

/// One row of the yaml, resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Position in the model; the prefix of its tensors is `model.{index}.`.
    pub index: usize,
    /// Absolute indices of the layers whose outputs are the input; -1 stands for the image.
    pub from: Vec<i64>,
    /// What is built. With `copies > 1` the tensors are named `model.{index}.{copy}.…`.
    pub module: Module,
    /// Copies in sequence (1 unless a module without an own repeat count is repeated).
    pub copies: usize,
    /// Channels that leave the layer (for Detect: the number of outputs an anchor, nc + 5).
    pub out_channels: usize,
}

/// The activation after a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Activation {
    /// `x·sigmoid(x)`, the default.
    Silu,
    /// `max(x, 0)`.
    Relu,
    /// Leaky ReLU with this slope.
    LeakyRelu(f64),
    /// Hard swish.
    Hardswish,
    /// Mish.
    Mish,
    /// No activation.
    Identity,
}

/// Convolution, batch normalisation, activation: the arguments of one `Conv`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConvSpec {
    /// Channels in.
    pub c1: usize,
    /// Channels out.
    pub c2: usize,
    /// Kernel (height, width).
    pub k: [usize; 2],
    /// Stride (height, width).
    pub s: [usize; 2],
    /// Padding (height, width), already resolved from the kernel and dilation.
    pub p: [usize; 2],
    /// Groups.
    pub g: usize,
    /// Dilation.
    pub d: usize,
    /// Activation.
    pub act: Activation,
}

/// The arguments shared by the CSP family (`C3`, `BottleneckCSP`, `C3x`, `C3Ghost`, `C3TR`, `C3SPP`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CspSpec {
    /// Channels in.
    pub c1: usize,
    /// Channels out.
    pub c2: usize,
    /// Inner modules in sequence.
    pub n: usize,
    /// Whether inner bottlenecks add their input.
    pub shortcut: bool,
    /// Groups of the inner 3×3.
    pub g: usize,
    /// Hidden channels are `int(c2·e)`.
    pub e: f64,
    /// Activation of every convolution inside.
    pub act: Activation,
}

/// Everything a row of a detection yaml can build (spec §2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the arguments of spec §2, named as there")]
pub enum Module {
    Conv(ConvSpec),
    /// Depth-wise: `g = gcd(c1, c2)`, already resolved.
    DwConv(ConvSpec),
    Bottleneck {
        c1: usize,
        c2: usize,
        shortcut: bool,
        g: usize,
        e: f64,
        act: Activation,
    },
    C3(CspSpec),
    BottleneckCsp(CspSpec),
    C3x(CspSpec),
    C3Tr(CspSpec),
    C3Ghost(CspSpec),
    C3Spp {
        csp: CspSpec,
        k: Vec<usize>,
    },
    Spp {
        c1: usize,
        c2: usize,
        k: Vec<usize>,
        act: Activation,
    },
    Sppf {
        c1: usize,
        c2: usize,
        k: usize,
        act: Activation,
    },
    /// `c1` counts the input's channels; the convolution inside sees four times as many.
    Focus(ConvSpec),
    GhostConv {
        c1: usize,
        c2: usize,
        k: usize,
        s: usize,
        g: usize,
        act: Activation,
    },
    GhostBottleneck {
        c1: usize,
        c2: usize,
        k: usize,
        s: usize,
        act: Activation,
    },
    CrossConv {
        c1: usize,
        c2: usize,
        k: usize,
        s: usize,
        g: usize,
        e: f64,
        shortcut: bool,
        act: Activation,
    },
    MixConv2d {
        c1: usize,
        c2: usize,
        k: Vec<usize>,
        s: usize,
        equal_ch: bool,
    },
    ConvTranspose2d {
        c1: usize,
        c2: usize,
        k: usize,
        s: usize,
        p: usize,
        op: usize,
    },
    DwConvTranspose2d {
        c1: usize,
        c2: usize,
        k: usize,
        s: usize,
        p1: usize,
        p2: usize,
    },
    BatchNorm2d {
        c: usize,
    },
    Concat {
        dim: i64,
    },
    Upsample {
        scale: f64,
        mode: String,
    },
    MaxPool2d {
        k: usize,
        s: usize,
        p: usize,
    },
    /// Left, right, top, bottom.
    ZeroPad2d {
        pad: [i64; 4],
    },
    Contract {
        gain: usize,
    },
    Expand {
        gain: usize,
    },
    /// `na` anchors a level; input channels a level.
    Detect {
        nc: usize,
        na: usize,
        channels: Vec<usize>,
    },
}
