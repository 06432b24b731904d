//! A resolved model: its layers, what each builds, and with which channels. Plain data without
//! behavior; it is written into plan files.

use serde::{Deserialize, Serialize};

/// A resolved model: every layer has its sources, channels and module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The name shown to the user: `yolov5n`, or the stem of the YAML file.
    pub name: String,
    /// Number of classes.
    pub nc: usize,
    /// Input channels (3).
    pub channels: usize,
    /// Anchors in pixels of the network's input, one list per detection level, in the YAML file's order.
    pub anchors: Vec<Vec<[f64; 2]>>,
    /// Whether the yaml gives only a number of anchors, so that AutoAnchor must compute them.
    pub anchors_are_placeholders: bool,
    /// The layers in order; the last one is [`Module::Detect`].
    pub layers: Vec<Layer>,
    /// The yaml as JSON, with nc and anchors overridden. Checkpoints keep it to rebuild the model.
    pub yaml: serde_json::Value,
}

/// One resolved row of the yaml.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Position in the model; the prefix of its tensors is `model.{index}.`.
    pub index: usize,
    /// Absolute indices of the layers whose outputs are the input. -1 is the image.
    pub from: Vec<i64>,
    /// What to build. With `copies > 1` the tensors are named `model.{index}.{copy}.…`.
    pub module: Module,
    /// Copies in sequence: 1, unless the row repeats a module that has no repeat count.
    pub copies: usize,
    /// Output channels. For Detect, the outputs per anchor: nc + 5.
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

impl Activation {
    /// Whether there is an activation at all.
    pub(crate) fn is_active(self) -> bool {
        self != Self::Identity
    }
}

/// Convolution, batch normalization, activation: the arguments of one `Conv`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConvSpec {
    /// Input channels.
    pub c1: usize,
    /// Output channels.
    pub c2: usize,
    /// Kernel (height, width).
    pub k: [usize; 2],
    /// Stride (height, width).
    pub s: [usize; 2],
    /// Padding (height, width), computed from the kernel and dilation if the row gives none.
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
    /// Input channels.
    pub c1: usize,
    /// Output channels.
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
    BottleneckCsp {
        csp: CspSpec,
        /// Activation after the joined branches.
        joined_act: Activation,
    },
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
    /// Anchors per level (`na`) and the input channels of each level.
    Detect {
        nc: usize,
        na: usize,
        channels: Vec<usize>,
    },
}
