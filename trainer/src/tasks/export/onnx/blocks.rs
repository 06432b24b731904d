//! The modules of a model as ONNX operations, each as its forward pass computes it (spec §2). Tensors come from the
//! state of the network by their names, so a fused network has convolutions with a bias, and another one normalizations.

use yolo_plan::model::{Activation, ConvSpec, CspSpec, Module, gcd};

use super::builder::Blocks;
use super::graph::{Setting, Value};
use super::transformer;
use crate::error::TrainError;
use crate::model::{NORM_EPS, csp_hidden, csp_inner, square};

/// Settings of a node for two dimensions.
fn ints(values: &[usize]) -> Setting {
    Setting::Ints(values.iter().map(|&value| value as i64).collect())
}

impl Blocks<'_> {
    /// A module with one input, whose tensors are named `{path}.…`.
    pub(super) fn module(&mut self, module: &Module, path: &str, x: &Value) -> Result<Value, TrainError> {
        match module {
            Module::Conv(spec) | Module::DwConv(spec) => self.conv(spec, path, x),
            &Module::Bottleneck { c1, c2, shortcut, g, e, act } => {
                self.bottleneck(&CspSpec { c1, c2, n: 1, shortcut, g, e, act }, path, x)
            }
            &Module::CrossConv { c1, c2, k, s, g, e, shortcut, act } => {
                self.cross(&CspSpec { c1, c2, n: 1, shortcut, g, e, act }, [k, s], path, x)
            }
            Module::C3(spec) => self.c3(spec, path, x, |blocks, path, x| {
                blocks.repeat(spec, path, x, |blocks, inner, path, x| blocks.bottleneck(inner, path, x))
            }),
            Module::C3x(spec) => self.c3(spec, path, x, |blocks, path, x| {
                blocks.repeat(spec, path, x, |blocks, inner, path, x| blocks.cross(inner, [3, 1], path, x))
            }),
            Module::C3Ghost(spec) => self.c3(spec, path, x, |blocks, path, x| {
                blocks.repeat(spec, path, x, |blocks, inner, path, x| {
                    blocks.ghost_bottleneck([inner.c1, inner.c2], [3, 1], inner.act, path, x)
                })
            }),
            Module::C3Spp { csp, k } => self.c3(csp, path, x, |blocks, path, x| {
                let c = csp_hidden(csp);
                blocks.spp([c, c], k, csp.act, path, x)
            }),
            Module::C3Tr(spec) => self.c3(spec, path, x, |blocks, path, x| {
                transformer::block(blocks, csp_hidden(spec), spec.n, path, x)
            }),
            Module::BottleneckCsp { csp, joined_act } => self.bottleneck_csp(csp, *joined_act, path, x),
            Module::Spp { c1, c2, k, act } => self.spp([*c1, *c2], k, *act, path, x),
            &Module::Sppf { c1, c2, k, act } => self.sppf([c1, c2], k, act, path, x),
            Module::Focus(spec) => self.focus(spec, path, x),
            &Module::GhostConv { c1, c2, k, s, g, act } => {
                self.ghost_conv(square(c1, c2, k, s, g, act), path, x)
            }
            &Module::GhostBottleneck { c1, c2, k, s, act } => {
                self.ghost_bottleneck([c1, c2], [k, s], act, path, x)
            }
            Module::MixConv2d { c1, k, s, .. } => self.mix_conv(*c1, k, *s, path, x),
            &Module::ConvTranspose2d { s, p, op, .. } => self.conv_transpose(s, [p, op], 1, path, x),
            &Module::DwConvTranspose2d { c1, c2, s, p1, p2, .. } => {
                self.conv_transpose(s, [p1, p2], gcd(c1, c2), path, x)
            }
            Module::BatchNorm2d { .. } => self.norm(path, x),
            Module::Upsample { scale, mode } => self.upsample(*scale, mode, x),
            &Module::MaxPool2d { k, s, p } => Ok(self.max_pool(k, s, p, x)),
            &Module::ZeroPad2d { pad: [left, right, top, bottom] } => {
                let pads = self.graph.ints(&[0, 0, top, left, 0, 0, bottom, right]);
                Ok(self.graph.add("Pad", &[x, &pads], vec![("mode", Setting::Text("constant"))]))
            }
            &Module::Contract { gain } => Ok(self.blocks_of_pixels("SpaceToDepth", gain, x)),
            &Module::Expand { gain } => Ok(self.blocks_of_pixels("DepthToSpace", gain, x)),
            Module::Concat { .. } | Module::Detect { .. } => {
                Err(TrainError::new("Concat and Detect cannot be repeated"))
            }
        }
    }

    /// A convolution; its weight is `{path}.weight`.
    pub(super) fn plain_conv(
        &mut self,
        spec: &ConvSpec,
        bias: bool,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let weight = self.constant(&format!("{path}.weight"))?;
        let bias = bias.then(|| self.constant(&format!("{path}.bias"))).transpose()?;
        let ConvSpec { k, s, p, g, d, .. } = *spec;
        let settings = vec![
            ("kernel_shape", ints(&k)),
            ("strides", ints(&s)),
            ("pads", ints(&[p[0], p[1], p[0], p[1]])),
            ("dilations", ints(&[d; 2])),
            ("group", Setting::Int(g as i64)),
        ];
        let inputs: Vec<&Value> = [x, &weight].into_iter().chain(&bias).collect();
        Ok(self.graph.add("Conv", &inputs, settings))
    }

    fn conv(&mut self, spec: &ConvSpec, path: &str, x: &Value) -> Result<Value, TrainError> {
        let fused = self.network.is_fused();
        let mut y = self.plain_conv(spec, fused, &format!("{path}.conv"), x)?;
        if !fused {
            y = self.norm(&format!("{path}.bn"), &y)?;
        }
        self.activate(&y, spec.act)
    }

    fn norm(&mut self, path: &str, x: &Value) -> Result<Value, TrainError> {
        let of = |part| format!("{path}.{part}");
        let inputs = [
            self.constant(&of("weight"))?,
            self.constant(&of("bias"))?,
            self.constant(&of("running_mean"))?,
            self.constant(&of("running_var"))?,
        ];
        let [weight, bias, mean, variance] = &inputs;
        let settings = vec![("epsilon", Setting::Float(NORM_EPS as f32))];
        Ok(self.graph.add("BatchNormalization", &[x, weight, bias, mean, variance], settings))
    }

    fn activate(&mut self, x: &Value, activation: Activation) -> Result<Value, TrainError> {
        let graph = &mut self.graph;
        Ok(match activation {
            Activation::Silu => {
                let gate = graph.add("Sigmoid", &[x], Vec::new());
                graph.add("Mul", &[x, &gate], Vec::new())
            }
            Activation::Relu => graph.add("Relu", &[x], Vec::new()),
            Activation::LeakyRelu(slope) => {
                graph.add("LeakyRelu", &[x], vec![("alpha", Setting::Float(slope as f32))])
            }
            // The operations HardSwish and Mish are younger than the oldest opset.
            Activation::Hardswish => {
                let settings = vec![("alpha", Setting::Float(1.0 / 6.0)), ("beta", Setting::Float(0.5))];
                let gate = graph.add("HardSigmoid", &[x], settings);
                graph.add("Mul", &[x, &gate], Vec::new())
            }
            Activation::Mish => {
                let soft = graph.add("Softplus", &[x], Vec::new());
                let gate = graph.add("Tanh", &[&soft], Vec::new());
                graph.add("Mul", &[x, &gate], Vec::new())
            }
            Activation::Identity => x.clone(),
        })
    }

    fn bottleneck(&mut self, spec: &CspSpec, path: &str, x: &Value) -> Result<Value, TrainError> {
        let hidden = csp_hidden(spec);
        let first = square(spec.c1, hidden, 1, 1, 1, spec.act);
        let second = square(hidden, spec.c2, 3, 1, spec.g, spec.act);
        self.two_convs([first, second], spec.shortcut && spec.c1 == spec.c2, path, x)
    }

    fn cross(
        &mut self,
        spec: &CspSpec,
        [k, s]: [usize; 2],
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let (hidden, act) = (csp_hidden(spec), spec.act);
        let row = ConvSpec { c1: spec.c1, c2: hidden, k: [1, k], s: [1, s], p: [0, k / 2], g: 1, d: 1, act };
        let column =
            ConvSpec { c1: hidden, c2: spec.c2, k: [k, 1], s: [s, 1], p: [k / 2, 0], g: spec.g, d: 1, act };
        self.two_convs([row, column], spec.shortcut && spec.c1 == spec.c2, path, x)
    }

    fn two_convs(
        &mut self,
        [first, second]: [ConvSpec; 2],
        adds: bool,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let y = self.conv(&first, &format!("{path}.cv1"), x)?;
        let y = self.conv(&second, &format!("{path}.cv2"), &y)?;
        Ok(if adds { self.graph.add("Add", &[&y, x], Vec::new()) } else { y })
    }

    /// `n` modules in sequence.
    fn repeat(
        &mut self,
        spec: &CspSpec,
        path: &str,
        x: &Value,
        mut block: impl FnMut(&mut Self, &CspSpec, &str, &Value) -> Result<Value, TrainError>,
    ) -> Result<Value, TrainError> {
        let inner = csp_inner(spec);
        (0..spec.n).try_fold(x.clone(), |x, index| block(self, &inner, &format!("{path}.{index}"), &x))
    }

    fn c3(
        &mut self,
        spec: &CspSpec,
        path: &str,
        x: &Value,
        m: impl FnOnce(&mut Self, &str, &Value) -> Result<Value, TrainError>,
    ) -> Result<Value, TrainError> {
        let hidden = csp_hidden(spec);
        let into = square(spec.c1, hidden, 1, 1, 1, spec.act);
        let deep = self.conv(&into, &format!("{path}.cv1"), x)?;
        let deep = m(self, &format!("{path}.m"), &deep)?;
        let shallow = self.conv(&into, &format!("{path}.cv2"), x)?;
        let joined = self.graph.concat(&[&deep, &shallow], 1);
        self.conv(&square(2 * hidden, spec.c2, 1, 1, 1, spec.act), &format!("{path}.cv3"), &joined)
    }

    fn bottleneck_csp(
        &mut self,
        spec: &CspSpec,
        joined_act: Activation,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let c = csp_hidden(spec);
        let deep = self.conv(&square(spec.c1, c, 1, 1, 1, spec.act), &format!("{path}.cv1"), x)?;
        let deep = self.repeat(spec, &format!("{path}.m"), &deep, |blocks, inner, path, x| {
            blocks.bottleneck(inner, path, x)
        })?;
        let plain = |c1| square(c1, c, 1, 1, 1, Activation::Identity);
        let deep = self.plain_conv(&plain(c), false, &format!("{path}.cv3"), &deep)?;
        let shallow = self.plain_conv(&plain(spec.c1), false, &format!("{path}.cv2"), x)?;
        let joined = self.graph.concat(&[&deep, &shallow], 1);
        let joined = self.norm(&format!("{path}.bn"), &joined)?;
        let joined = self.activate(&joined, joined_act)?;
        self.conv(&square(2 * c, spec.c2, 1, 1, 1, spec.act), &format!("{path}.cv4"), &joined)
    }

    fn max_pool(&mut self, k: usize, s: usize, p: usize, x: &Value) -> Value {
        let settings =
            vec![("kernel_shape", ints(&[k; 2])), ("strides", ints(&[s; 2])), ("pads", ints(&[p; 4]))];
        self.graph.add("MaxPool", &[x], settings)
    }

    fn spp(
        &mut self,
        [c1, c2]: [usize; 2],
        k: &[usize],
        act: Activation,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let c = c1 / 2;
        let mut parts = vec![self.conv(&square(c1, c, 1, 1, 1, act), &format!("{path}.cv1"), x)?];
        for &k in k {
            let pooled = self.max_pool(k, 1, k / 2, &parts[0]);
            parts.push(pooled);
        }
        self.joined(&parts, [c, c2], act, path)
    }

    fn sppf(
        &mut self,
        [c1, c2]: [usize; 2],
        k: usize,
        act: Activation,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let c = c1 / 2;
        let mut parts = vec![self.conv(&square(c1, c, 1, 1, 1, act), &format!("{path}.cv1"), x)?];
        for index in 0..3 {
            let pooled = self.max_pool(k, 1, k / 2, &parts[index]);
            parts.push(pooled);
        }
        self.joined(&parts, [c, c2], act, path)
    }

    fn joined(
        &mut self,
        parts: &[Value],
        [c, c2]: [usize; 2],
        act: Activation,
        path: &str,
    ) -> Result<Value, TrainError> {
        let joined = self.graph.concat(&parts.iter().collect::<Vec<_>>(), 1);
        self.conv(&square(c * parts.len(), c2, 1, 1, 1, act), &format!("{path}.cv2"), &joined)
    }

    fn focus(&mut self, spec: &ConvSpec, path: &str, x: &Value) -> Result<Value, TrainError> {
        let mut phase = |row, column| {
            let rows = self.graph.slice(x, 2, [row, i64::MAX, 2]);
            self.graph.slice(&rows, 3, [column, i64::MAX, 2])
        };
        let phases = [phase(0, 0), phase(1, 0), phase(0, 1), phase(1, 1)];
        let joined = self.graph.concat(&phases.iter().collect::<Vec<_>>(), 1);
        self.conv(&ConvSpec { c1: 4 * spec.c1, ..*spec }, &format!("{path}.conv"), &joined)
    }

    fn ghost_conv(&mut self, spec: ConvSpec, path: &str, x: &Value) -> Result<Value, TrainError> {
        let half = spec.c2 / 2;
        let y = self.conv(&ConvSpec { c2: half, ..spec }, &format!("{path}.cv1"), x)?;
        let ghost = self.conv(&square(half, half, 5, 1, half, spec.act), &format!("{path}.cv2"), &y)?;
        Ok(self.graph.concat(&[&y, &ghost], 1))
    }

    fn ghost_bottleneck(
        &mut self,
        [c1, c2]: [usize; 2],
        [k, s]: [usize; 2],
        act: Activation,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let (half, linear) = (c2 / 2, Activation::Identity);
        let depthwise = |c: usize| square(c, c, k, s, c, linear);
        let mut y = self.ghost_conv(square(c1, half, 1, 1, 1, act), &format!("{path}.conv.0"), x)?;
        if s == 2 {
            y = self.conv(&depthwise(half), &format!("{path}.conv.1"), &y)?;
        }
        let y = self.ghost_conv(square(half, c2, 1, 1, 1, linear), &format!("{path}.conv.2"), &y)?;
        let mut short = x.clone();
        if s == 2 {
            short = self.conv(&depthwise(c1), &format!("{path}.shortcut.0"), &short)?;
            short = self.conv(&square(c1, c2, 1, 1, 1, linear), &format!("{path}.shortcut.1"), &short)?;
        }
        Ok(self.graph.add("Add", &[&y, &short], Vec::new()))
    }

    fn mix_conv(
        &mut self,
        c1: usize,
        k: &[usize],
        s: usize,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let mut parts = Vec::with_capacity(k.len());
        for (index, &k) in k.iter().enumerate() {
            let path = format!("{path}.m.{index}");
            let c = self.named(&format!("{path}.weight"))?.size()[0] as usize;
            let spec = square(c1, c, k, s, gcd(c1, c), Activation::Identity);
            parts.push(self.plain_conv(&spec, false, &path, x)?);
        }
        let joined = self.graph.concat(&parts.iter().collect::<Vec<_>>(), 1);
        let joined = self.norm(&format!("{path}.bn"), &joined)?;
        self.activate(&joined, Activation::Silu)
    }

    fn conv_transpose(
        &mut self,
        s: usize,
        [p, output_padding]: [usize; 2],
        groups: usize,
        path: &str,
        x: &Value,
    ) -> Result<Value, TrainError> {
        let weight = self.constant(&format!("{path}.weight"))?;
        let bias = self.constant(&format!("{path}.bias"))?;
        let settings = vec![
            ("strides", ints(&[s; 2])),
            ("pads", ints(&[p; 4])),
            ("output_padding", ints(&[output_padding; 2])),
            ("group", Setting::Int(groups as i64)),
        ];
        Ok(self.graph.add("ConvTranspose", &[x, &weight, &bias], settings))
    }

    fn upsample(&mut self, scale: f64, mode: &str, x: &Value) -> Result<Value, TrainError> {
        let scale = scale as f32;
        let scales = self.graph.floats(&[4], &[1.0, 1.0, scale, scale]);
        let place = |mode, place| {
            vec![("mode", Setting::Text(mode)), ("coordinate_transformation_mode", Setting::Text(place))]
        };
        let settings = match mode {
            "nearest" => {
                let mut settings = place("nearest", "asymmetric");
                settings.push(("nearest_mode", Setting::Text("floor")));
                settings
            }
            "bilinear" => place("linear", "half_pixel"),
            "bicubic" => {
                let mut settings = place("cubic", "half_pixel");
                settings.push(("cubic_coeff_a", Setting::Float(-0.75)));
                settings
            }
            other => return Err(TrainError::new(format!("nn.Upsample has the unknown mode `{other}`"))),
        };
        // The region of interest, which only other modes use, can be left out since opset 13.
        let region = self.graph.floats(&[0], &[]);
        Ok(self.graph.add("Resize", &[x, &region, &scales], settings))
    }

    fn blocks_of_pixels(&mut self, op: &'static str, gain: usize, x: &Value) -> Value {
        self.graph.add(op, &[x], vec![("blocksize", Setting::Int(gain as i64))])
    }
}
