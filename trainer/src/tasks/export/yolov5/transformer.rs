//! The transformer inside `C3TR` as Python classes (spec §2).

use torch_checkpoint::Value;

use super::node::{Node, Tensors};
use crate::error::TrainError;

/// Heads of each attention.
const HEADS: usize = 4;

/// Position encoding and `n` layers with `c` channels.
pub(super) fn block(tensors: &mut Tensors, c: usize, n: usize, path: &str) -> Result<Node, TrainError> {
    let linear = linear(tensors, c, true, &format!("{path}.linear"))?;
    let layers = (0..n).map(|index| layer(tensors, c, &format!("{path}.tr.{index}")));
    Ok(Node::common("TransformerBlock")
        .child("linear", linear)
        .child("tr", Node::sequential(layers.collect::<Result<_, _>>()?))
        // Channels that differ would need a convolution before.
        .attribute("conv", Value::None)
        .ints([("c2", c)]))
}

fn layer(tensors: &mut Tensors, c: usize, path: &str) -> Result<Node, TrainError> {
    let mut node = Node::common("TransformerLayer");
    for name in ["q", "k", "v"] {
        node = node.child(name, linear(tensors, c, false, &format!("{path}.{name}"))?);
    }
    node = node.child("ma", attention(tensors, c, &format!("{path}.ma"))?);
    for name in ["fc1", "fc2"] {
        node = node.child(name, linear(tensors, c, false, &format!("{path}.{name}"))?);
    }
    Ok(node)
}

fn linear(tensors: &mut Tensors, c: usize, with_bias: bool, path: &str) -> Result<Node, TrainError> {
    let weight = tensors.take(&format!("{path}.weight"))?;
    let bias = with_bias.then(|| tensors.take(&format!("{path}.bias"))).transpose()?;
    Ok(Node::torch("linear.Linear")
        .parameter("weight", Some(weight))
        .parameter("bias", bias)
        .ints([("in_features", c), ("out_features", c)]))
}

fn attention(tensors: &mut Tensors, c: usize, path: &str) -> Result<Node, TrainError> {
    Ok(Node::torch("activation.MultiheadAttention")
        .parameter("in_proj_weight", Some(tensors.take(&format!("{path}.in_proj_weight"))?))
        .parameter("q_proj_weight", None)
        .parameter("k_proj_weight", None)
        .parameter("v_proj_weight", None)
        .parameter("in_proj_bias", Some(tensors.take(&format!("{path}.in_proj_bias"))?))
        // PyTorch has a class of its own for it since 1.9, which computes the same.
        .child("out_proj", linear(tensors, c, true, &format!("{path}.out_proj"))?)
        .ints([("embed_dim", c), ("kdim", c), ("vdim", c)])
        .attribute("_qkv_same_embed_dim", Value::Bool(true))
        .ints([("num_heads", HEADS)])
        .attribute("dropout", Value::Float(0.0))
        .attribute("batch_first", Value::Bool(false))
        .ints([("head_dim", c / HEADS)])
        .attribute("bias_k", Value::None)
        .attribute("bias_v", Value::None)
        .attribute("add_zero_attn", Value::Bool(false)))
}
