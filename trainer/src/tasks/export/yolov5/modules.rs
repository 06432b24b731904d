//! The modules of a model as YOLOv5's Python classes, each with the attributes that its forward pass reads (spec §2).
//! The names of children are those in the names of the tensors.

use torch_checkpoint::Value;
use yolo_plan::model::{Activation, ConvSpec, CspSpec, Module, gcd, mixed_shares};

use super::node::{Node, Tensors, int, text, tuple};
use super::transformer;
use crate::error::TrainError;
use crate::model::{NORM_EPS, NORM_MOMENTUM, csp_hidden, csp_inner, square};

/// A module with one input, whose tensors are named `{path}.…`.
pub(super) fn module(tensors: &mut Tensors, module: &Module, path: &str) -> Result<Node, TrainError> {
    match module {
        Module::Conv(spec) => conv(tensors, "Conv", spec, path),
        Module::DwConv(spec) => conv(tensors, "DWConv", spec, path),
        &Module::Bottleneck { c1, c2, shortcut, g, e, act } => {
            bottleneck(tensors, &CspSpec { c1, c2, n: 1, shortcut, g, e, act }, path)
        }
        &Module::CrossConv { c1, c2, k, s, g, e, shortcut, act } => {
            cross(tensors, &CspSpec { c1, c2, n: 1, shortcut, g, e, act }, [k, s], path)
        }
        Module::C3(spec) => {
            c3(tensors, "C3", spec, path, |tensors, path| repeat(tensors, spec, path, bottleneck))
        }
        Module::C3x(spec) => c3(tensors, "C3x", spec, path, |tensors, path| {
            repeat(tensors, spec, path, |tensors, inner, path| cross(tensors, inner, [3, 1], path))
        }),
        Module::C3Ghost(spec) => c3(tensors, "C3Ghost", spec, path, |tensors, path| {
            repeat(tensors, spec, path, |tensors, inner, path| {
                ghost_bottleneck(tensors, [inner.c1, inner.c2], [3, 1], inner.act, path)
            })
        }),
        Module::C3Spp { csp, k } => c3(tensors, "C3SPP", csp, path, |tensors, path| {
            let c = csp_hidden(csp);
            spp(tensors, [c, c], k, csp.act, path)
        }),
        Module::C3Tr(spec) => c3(tensors, "C3TR", spec, path, |tensors, path| {
            transformer::block(tensors, csp_hidden(spec), spec.n, path)
        }),
        Module::BottleneckCsp { csp, joined_act } => bottleneck_csp(tensors, csp, *joined_act, path),
        Module::Spp { c1, c2, k, act } => spp(tensors, [*c1, *c2], k, *act, path),
        &Module::Sppf { c1, c2, k, act } => {
            let node = pooling(tensors, "SPPF", [c1, c2], 4, act, path)?;
            Ok(node.child("m", max_pool(k, 1, k / 2)))
        }
        Module::Focus(spec) => {
            let spec = ConvSpec { c1: 4 * spec.c1, ..*spec };
            Ok(Node::common("Focus").child("conv", conv(tensors, "Conv", &spec, &format!("{path}.conv"))?))
        }
        &Module::GhostConv { c1, c2, k, s, g, act } => {
            ghost_conv(tensors, square(c1, c2, k, s, g, act), path)
        }
        &Module::GhostBottleneck { c1, c2, k, s, act } => {
            ghost_bottleneck(tensors, [c1, c2], [k, s], act, path)
        }
        Module::MixConv2d { c1, c2, k, s, equal_ch } => {
            let mut convs = Vec::with_capacity(k.len());
            for (index, (&k, c)) in k.iter().zip(mixed_shares(*c2, k, *equal_ch)).enumerate() {
                let spec = square(*c1, c, k, *s, gcd(*c1, c), Activation::Identity);
                convs.push(plain_conv(tensors, &spec, false, &format!("{path}.m.{index}"))?);
            }
            let node = Node::new("models.experimental.MixConv2d").child("m", Node::list(convs));
            Ok(node
                .child("bn", norm(tensors, *c2, &format!("{path}.bn"))?)
                .child("act", activation(Activation::Silu)))
        }
        &Module::ConvTranspose2d { c1, c2, k, s, p, op } => {
            let node = Node::torch("conv.ConvTranspose2d");
            conv_transpose(tensors, node, [c1, c2, k], [s, p, op, 1], path)
        }
        &Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 } => conv_transpose(
            tensors,
            Node::common("DWConvTranspose2d"),
            [c1, c2, k],
            [s, p1, p2, gcd(c1, c2)],
            path,
        ),
        &Module::BatchNorm2d { c } => norm(tensors, c, path),
        Module::Upsample { scale, mode } => Ok(Node::torch("upsampling.Upsample")
            .attribute("name", text("Upsample"))
            .attribute("size", Value::None)
            .attribute("scale_factor", Value::Float(*scale))
            .attribute("mode", text(mode))
            .attribute("align_corners", Value::None)
            .attribute("recompute_scale_factor", Value::None)),
        &Module::MaxPool2d { k, s, p } => Ok(max_pool(k, s, p)),
        Module::ZeroPad2d { pad } => Ok(Node::torch("padding.ZeroPad2d")
            .attribute("padding", Value::Tuple(pad.map(Value::Int).into()))
            .attribute("value", Value::Float(0.0))),
        &Module::Contract { gain } => Ok(Node::common("Contract").ints([("gain", gain)])),
        &Module::Expand { gain } => Ok(Node::common("Expand").ints([("gain", gain)])),
        &Module::Concat { dim } => Ok(Node::common("Concat").attribute("d", Value::Int(dim))),
        Module::Detect { .. } => Err(TrainError::new("Detect cannot be repeated")),
    }
}

/// A convolution; its weight is `{path}.weight`.
pub(super) fn plain_conv(
    tensors: &mut Tensors,
    spec: &ConvSpec,
    with_bias: bool,
    path: &str,
) -> Result<Node, TrainError> {
    let weight = tensors.take(&format!("{path}.weight"))?;
    let bias = with_bias.then(|| tensors.take(&format!("{path}.bias"))).transpose()?;
    let node = Node::torch("conv.Conv2d").parameter("weight", Some(weight)).parameter("bias", bias);
    let ConvSpec { c1, c2, k, s, p, g, d, .. } = *spec;
    Ok(convolution(node, [c1, c2, g], [k, s, p, [d; 2], [0; 2]], false))
}

/// The attributes of all convolutions: channels in and out and groups; kernel, stride, padding, dilation and output padding.
fn convolution(
    node: Node,
    [c1, c2, groups]: [usize; 3],
    [k, s, p, d, output_padding]: [[usize; 2]; 5],
    transposed: bool,
) -> Node {
    let pairs = [("kernel_size", k), ("stride", s), ("padding", p), ("dilation", d)];
    let node = node.ints([("in_channels", c1), ("out_channels", c2)]);
    let node = pairs.into_iter().fold(node, |node, (name, pair)| node.attribute(name, tuple(&pair)));
    node.attribute("transposed", Value::Bool(transposed))
        .attribute("output_padding", tuple(&output_padding))
        .ints([("groups", groups)])
        .attribute("padding_mode", text("zeros"))
        .attribute("_reversed_padding_repeated_twice", tuple(&[p[1], p[1], p[0], p[0]]))
}

fn conv_transpose(
    tensors: &mut Tensors,
    node: Node,
    [c1, c2, k]: [usize; 3],
    [s, p, output_padding, groups]: [usize; 4],
    path: &str,
) -> Result<Node, TrainError> {
    let node = node
        .parameter("weight", Some(tensors.take(&format!("{path}.weight"))?))
        .parameter("bias", Some(tensors.take(&format!("{path}.bias"))?));
    Ok(convolution(node, [c1, c2, groups], [[k; 2], [s; 2], [p; 2], [1; 2], [output_padding; 2]], true))
}

fn conv(tensors: &mut Tensors, class: &str, spec: &ConvSpec, path: &str) -> Result<Node, TrainError> {
    Ok(Node::common(class)
        .child("conv", plain_conv(tensors, spec, false, &format!("{path}.conv"))?)
        .child("bn", norm(tensors, spec.c2, &format!("{path}.bn"))?)
        .child("act", activation(spec.act)))
}

fn norm(tensors: &mut Tensors, channels: usize, path: &str) -> Result<Node, TrainError> {
    let mut node = Node::torch("batchnorm.BatchNorm2d");
    for name in ["weight", "bias"] {
        node = node.parameter(name, Some(tensors.take(&format!("{path}.{name}"))?));
    }
    for name in ["running_mean", "running_var", "num_batches_tracked"] {
        node = node.buffer(name, tensors.take(&format!("{path}.{name}"))?);
    }
    Ok(node
        .ints([("num_features", channels)])
        .attribute("eps", Value::Float(NORM_EPS))
        .attribute("momentum", Value::Float(NORM_MOMENTUM))
        .attribute("affine", Value::Bool(true))
        .attribute("track_running_stats", Value::Bool(true)))
}

/// In place as in YOLOv5.
fn activation(activation: Activation) -> Node {
    let of = |class: &str, in_place| {
        Node::torch(&format!("activation.{class}")).attribute("inplace", Value::Bool(in_place))
    };
    match activation {
        Activation::Silu => of("SiLU", true),
        Activation::Relu => of("ReLU", true),
        Activation::LeakyRelu(slope) => {
            of("LeakyReLU", true).attribute("negative_slope", Value::Float(slope))
        }
        Activation::Hardswish => of("Hardswish", false),
        Activation::Mish => of("Mish", false),
        Activation::Identity => Node::torch("linear.Identity"),
    }
}

fn bottleneck(tensors: &mut Tensors, spec: &CspSpec, path: &str) -> Result<Node, TrainError> {
    let hidden = csp_hidden(spec);
    let first = square(spec.c1, hidden, 1, 1, 1, spec.act);
    let second = square(hidden, spec.c2, 3, 1, spec.g, spec.act);
    let node = two_convs(tensors, "Bottleneck", [first, second], path)?;
    Ok(node.attribute("add", Value::Bool(spec.shortcut && spec.c1 == spec.c2)))
}

fn cross(tensors: &mut Tensors, spec: &CspSpec, [k, s]: [usize; 2], path: &str) -> Result<Node, TrainError> {
    let (hidden, act) = (csp_hidden(spec), spec.act);
    let row = ConvSpec { c1: spec.c1, c2: hidden, k: [1, k], s: [1, s], p: [0, k / 2], g: 1, d: 1, act };
    let column =
        ConvSpec { c1: hidden, c2: spec.c2, k: [k, 1], s: [s, 1], p: [k / 2, 0], g: spec.g, d: 1, act };
    let node = two_convs(tensors, "CrossConv", [row, column], path)?;
    Ok(node.attribute("add", Value::Bool(spec.shortcut && spec.c1 == spec.c2)))
}

/// `cv1` and `cv2`.
fn two_convs(
    tensors: &mut Tensors,
    class: &str,
    [first, second]: [ConvSpec; 2],
    path: &str,
) -> Result<Node, TrainError> {
    Ok(Node::common(class)
        .child("cv1", conv(tensors, "Conv", &first, &format!("{path}.cv1"))?)
        .child("cv2", conv(tensors, "Conv", &second, &format!("{path}.cv2"))?))
}

/// `n` modules in sequence.
fn repeat(
    tensors: &mut Tensors,
    spec: &CspSpec,
    path: &str,
    block: impl Fn(&mut Tensors, &CspSpec, &str) -> Result<Node, TrainError>,
) -> Result<Node, TrainError> {
    let inner = csp_inner(spec);
    let blocks = (0..spec.n).map(|index| block(tensors, &inner, &format!("{path}.{index}")));
    Ok(Node::sequential(blocks.collect::<Result<_, _>>()?))
}

fn c3(
    tensors: &mut Tensors,
    class: &str,
    spec: &CspSpec,
    path: &str,
    m: impl FnOnce(&mut Tensors, &str) -> Result<Node, TrainError>,
) -> Result<Node, TrainError> {
    let hidden = csp_hidden(spec);
    let into = square(spec.c1, hidden, 1, 1, 1, spec.act);
    let out = square(2 * hidden, spec.c2, 1, 1, 1, spec.act);
    let node = two_convs(tensors, class, [into, into], path)?
        .child("cv3", conv(tensors, "Conv", &out, &format!("{path}.cv3"))?);
    Ok(node.child("m", m(tensors, &format!("{path}.m"))?))
}

fn bottleneck_csp(
    tensors: &mut Tensors,
    spec: &CspSpec,
    joined_act: Activation,
    path: &str,
) -> Result<Node, TrainError> {
    let c = csp_hidden(spec);
    let plain = |c1| square(c1, c, 1, 1, 1, Activation::Identity);
    let into = square(spec.c1, c, 1, 1, 1, spec.act);
    let out = square(2 * c, spec.c2, 1, 1, 1, spec.act);
    Ok(Node::common("BottleneckCSP")
        .child("cv1", conv(tensors, "Conv", &into, &format!("{path}.cv1"))?)
        .child("cv2", plain_conv(tensors, &plain(spec.c1), false, &format!("{path}.cv2"))?)
        .child("cv3", plain_conv(tensors, &plain(c), false, &format!("{path}.cv3"))?)
        .child("cv4", conv(tensors, "Conv", &out, &format!("{path}.cv4"))?)
        .child("bn", norm(tensors, 2 * c, &format!("{path}.bn"))?)
        .child("act", activation(joined_act))
        .child("m", repeat(tensors, spec, &format!("{path}.m"), bottleneck)?))
}

/// The convolutions of a spatial pyramid, of which the last joins `parts` parts.
fn pooling(
    tensors: &mut Tensors,
    class: &str,
    [c1, c2]: [usize; 2],
    parts: usize,
    act: Activation,
    path: &str,
) -> Result<Node, TrainError> {
    let c = c1 / 2;
    two_convs(tensors, class, [square(c1, c, 1, 1, 1, act), square(c * parts, c2, 1, 1, 1, act)], path)
}

fn spp(
    tensors: &mut Tensors,
    channels: [usize; 2],
    k: &[usize],
    act: Activation,
    path: &str,
) -> Result<Node, TrainError> {
    let node = pooling(tensors, "SPP", channels, k.len() + 1, act, path)?;
    Ok(node.child("m", Node::list(k.iter().map(|&k| max_pool(k, 1, k / 2)).collect())))
}

fn max_pool(k: usize, s: usize, p: usize) -> Node {
    Node::torch("pooling.MaxPool2d")
        .ints([("kernel_size", k), ("stride", s), ("padding", p), ("dilation", 1)])
        .attribute("return_indices", Value::Bool(false))
        .attribute("ceil_mode", Value::Bool(false))
}

fn ghost_conv(tensors: &mut Tensors, spec: ConvSpec, path: &str) -> Result<Node, TrainError> {
    let half = spec.c2 / 2;
    let ghost = square(half, half, 5, 1, half, spec.act);
    two_convs(tensors, "GhostConv", [ConvSpec { c2: half, ..spec }, ghost], path)
}

fn ghost_bottleneck(
    tensors: &mut Tensors,
    [c1, c2]: [usize; 2],
    [k, s]: [usize; 2],
    act: Activation,
    path: &str,
) -> Result<Node, TrainError> {
    let (half, linear) = (c2 / 2, Activation::Identity);
    let depthwise = |c: usize| square(c, c, k, s, c, linear);
    let identity = || activation(Activation::Identity);
    let strided = s == 2;
    let first = ghost_conv(tensors, square(c1, half, 1, 1, 1, act), &format!("{path}.conv.0"))?;
    let middle = match strided {
        true => conv(tensors, "DWConv", &depthwise(half), &format!("{path}.conv.1"))?,
        false => identity(),
    };
    let last = ghost_conv(tensors, square(half, c2, 1, 1, 1, linear), &format!("{path}.conv.2"))?;
    let shortcut = match strided {
        true => Node::sequential(vec![
            conv(tensors, "DWConv", &depthwise(c1), &format!("{path}.shortcut.0"))?,
            conv(tensors, "Conv", &square(c1, c2, 1, 1, 1, linear), &format!("{path}.shortcut.1"))?,
        ]),
        false => identity(),
    };
    Ok(Node::common("GhostBottleneck")
        .child("conv", Node::sequential(vec![first, middle, last]))
        .child("shortcut", shortcut))
}

/// The head: anchors in cells, and one convolution per level.
pub(super) fn detect(
    tensors: &mut Tensors,
    [nc, na]: [usize; 2],
    channels: &[usize],
    path: &str,
) -> Result<Node, TrainError> {
    let outputs = nc + 5;
    let mut convs = Vec::with_capacity(channels.len());
    for (index, &c) in channels.iter().enumerate() {
        let spec = square(c, na * outputs, 1, 1, 1, Activation::Identity);
        convs.push(plain_conv(tensors, &spec, true, &format!("{path}.m.{index}"))?);
    }
    // Computed in the first forward pass.
    let empty = || Value::Tensor(torch_checkpoint::TensorData::from_f32(vec![0], &[]));
    let per_level = || Value::List(channels.iter().map(|_| empty()).collect());
    Ok(Node::new("models.yolo.Detect")
        .buffer("anchors", tensors.take(&format!("{path}.anchors"))?)
        .child("m", Node::list(convs))
        .ints([("nc", nc), ("no", outputs), ("nl", channels.len())])
        .attribute("na", int(na))
        .attribute("grid", per_level())
        .attribute("anchor_grid", per_level())
        .attribute("inplace", Value::Bool(true)))
}
