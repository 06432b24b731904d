//! The transformer inside `C3TR`: pixels are tokens, positions are encoded by a learned linear map,
//! and layers have neither normalization nor activation (spec §2).

use tch::Tensor;

use super::block::{Block, Pass};
use super::build::Builder;
use super::state::Role;
use crate::error::TrainError;

struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    fn new(b: &mut Builder<'_>, c: usize, with_bias: bool) -> Result<Self, TrainError> {
        let weight = b.uniform("weight", &[c, c], c, Role::Weight)?;
        let bias = with_bias.then(|| b.uniform("bias", &[c], c, Role::Bias)).transpose()?;
        Ok(Self { weight, bias })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor, TrainError> {
        Ok(x.f_linear(&self.weight, self.bias.as_ref())?)
    }
}

/// Scaled dot-product attention over `heads` slices of the channels.
struct Attention {
    in_weight: Tensor,
    in_bias: Tensor,
    out: Linear,
    heads: usize,
}

impl Attention {
    fn new(b: &mut Builder<'_>, c: usize, heads: usize) -> Result<Self, TrainError> {
        // torch's defaults: Xavier for the three joined projections, zeros for their biases.
        let bound = (6.0 / (4 * c) as f64).sqrt();
        let in_weight = b.bounded("in_proj_weight", &[3 * c, c], bound, Role::Weight)?;
        // Its name is not `bias`, so it decays (spec §6 goes by the name).
        let in_bias = b.filled("in_proj_bias", &[3 * c], 0.0, Role::Weight)?;
        let out = b.scope("out_proj", |b| {
            let weight = b.uniform("weight", &[c, c], c, Role::Weight)?;
            let bias = b.filled("bias", &[c], 0.0, Role::Bias)?;
            Ok(Linear { weight, bias: Some(bias) })
        })?;
        Ok(Self { in_weight, in_bias, out, heads })
    }

    /// All tensors are (tokens, batch, channels).
    fn forward(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor, TrainError> {
        let (tokens, batch, c) = query.size3()?;
        let heads = self.heads as i64;
        let weights = self.in_weight.f_chunk(3, 0)?;
        let biases = self.in_bias.f_chunk(3, 0)?;
        let project = |x: &Tensor, part: usize| -> Result<Tensor, TrainError> {
            let y = x.f_linear(&weights[part], Some(&biases[part]))?;
            // (tokens, batch, channels) → (batch, heads, tokens, channels of a head)
            Ok(y.f_reshape([tokens, batch, heads, c / heads])?.f_permute([1, 2, 0, 3])?)
        };
        let (q, k, v) = (project(query, 0)?, project(key, 1)?, project(value, 2)?);
        let attended =
            Tensor::f_scaled_dot_product_attention(&q, &k, &v, None::<&Tensor>, 0.0, false, None, false)?;
        self.out.forward(&attended.f_permute([2, 0, 1, 3])?.f_reshape([tokens, batch, c])?)
    }
}

struct TransformerLayer {
    q: Linear,
    k: Linear,
    v: Linear,
    ma: Attention,
    fc1: Linear,
    fc2: Linear,
}

impl TransformerLayer {
    fn new(b: &mut Builder<'_>, c: usize, heads: usize) -> Result<Self, TrainError> {
        Ok(Self {
            q: b.scope("q", |b| Linear::new(b, c, false))?,
            k: b.scope("k", |b| Linear::new(b, c, false))?,
            v: b.scope("v", |b| Linear::new(b, c, false))?,
            ma: b.scope("ma", |b| Attention::new(b, c, heads))?,
            fc1: b.scope("fc1", |b| Linear::new(b, c, false))?,
            fc2: b.scope("fc2", |b| Linear::new(b, c, false))?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor, TrainError> {
        let attended = self.ma.forward(&self.q.forward(x)?, &self.k.forward(x)?, &self.v.forward(x)?)?;
        let x = attended.f_add(x)?;
        Ok(self.fc2.forward(&self.fc1.forward(&x)?)?.f_add(&x)?)
    }
}

/// Position encoding and layers over the pixels.
pub(super) struct TransformerBlock {
    linear: Linear,
    layers: Vec<TransformerLayer>,
}

impl TransformerBlock {
    /// `c` channels in and out, a multiple of `heads`.
    pub(super) fn new(b: &mut Builder<'_>, c: usize, heads: usize, n: usize) -> Result<Self, TrainError> {
        if !c.is_multiple_of(heads) {
            return Err(TrainError::new(format!(
                "C3TR has {c} hidden channels, which is not a multiple of its {heads} heads"
            ))
            .with_hint("use a number of channels that is a multiple of 8"));
        }
        let linear = b.scope("linear", |b| Linear::new(b, c, true))?;
        let layers = b.scope("tr", |b| {
            (0..n).map(|index| b.scope(index, |b| TransformerLayer::new(b, c, heads))).collect()
        })?;
        Ok(Self { linear, layers })
    }
}

impl Block for TransformerBlock {
    fn forward(&self, x: &Tensor, _: &Pass<'_>) -> Result<Tensor, TrainError> {
        let (batch, c, h, w) = x.size4()?;
        let tokens = x.f_flatten(2, 3)?.f_permute([2, 0, 1])?;
        let mut y = tokens.f_add(&self.linear.forward(&tokens)?)?;
        for layer in &self.layers {
            y = layer.forward(&y)?;
        }
        Ok(y.f_permute([1, 2, 0])?.f_reshape([batch, c, h, w])?)
    }
}
