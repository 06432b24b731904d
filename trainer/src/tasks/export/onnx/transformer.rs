//! The transformer inside `C3TR` as ONNX operations (spec §2). Tokens are (tokens, batch, channels), as in the network.

use super::builder::Blocks;
use super::graph::{Setting, Value};
use crate::error::TrainError;

/// Heads of each attention.
const HEADS: i64 = 4;

/// Position encoding and `n` layers over the pixels of `x` with `c` channels.
pub(super) fn block(
    blocks: &mut Blocks<'_>,
    c: usize,
    n: usize,
    path: &str,
    x: &Value,
) -> Result<Value, TrainError> {
    let flat = blocks.graph.reshape(x, &[0, 0, -1]);
    let tokens = blocks.graph.transpose(&flat, &[2, 0, 1]);
    let encoded = linear(blocks, &format!("{path}.linear"), true, &tokens)?;
    let mut y = blocks.graph.add("Add", &[&tokens, &encoded], Vec::new());
    for index in 0..n {
        y = layer(blocks, c as i64, &format!("{path}.tr.{index}"), &y)?;
    }
    let y = blocks.graph.transpose(&y, &[1, 2, 0]);
    Ok(match blocks.size {
        Some([height, width]) => blocks.graph.reshape(&y, &[0, c as i64, height, width]),
        None => {
            let shape = blocks.graph.add("Shape", &[x], Vec::new());
            blocks.graph.add("Reshape", &[&y, &shape], Vec::new())
        }
    })
}

fn layer(blocks: &mut Blocks<'_>, c: i64, path: &str, x: &Value) -> Result<Value, TrainError> {
    let mut project = |name: &str| linear(blocks, &format!("{path}.{name}"), false, x);
    let (q, k, v) = (project("q")?, project("k")?, project("v")?);
    let attended = attention(blocks, c, &format!("{path}.ma"), [&q, &k, &v])?;
    let x = blocks.graph.add("Add", &[&attended, x], Vec::new());
    let y = linear(blocks, &format!("{path}.fc1"), false, &x)?;
    let y = linear(blocks, &format!("{path}.fc2"), false, &y)?;
    Ok(blocks.graph.add("Add", &[&y, &x], Vec::new()))
}

/// `x · weightᵀ + bias`.
fn linear(blocks: &mut Blocks<'_>, path: &str, bias: bool, x: &Value) -> Result<Value, TrainError> {
    let name = format!("{path}.weight");
    let weight = blocks.named(&name)?.f_tr()?;
    let weight = blocks.graph.tensor(&name, &weight)?;
    let y = blocks.graph.add("MatMul", &[x, &weight], Vec::new());
    if !bias {
        return Ok(y);
    }
    let bias = blocks.constant(&format!("{path}.bias"))?;
    Ok(blocks.graph.add("Add", &[&y, &bias], Vec::new()))
}

fn attention(blocks: &mut Blocks<'_>, c: i64, path: &str, inputs: [&Value; 3]) -> Result<Value, TrainError> {
    let size = c / HEADS;
    let weights = blocks.named(&format!("{path}.in_proj_weight"))?.f_chunk(3, 0)?;
    let biases = blocks.named(&format!("{path}.in_proj_bias"))?.f_chunk(3, 0)?;
    let mut projected = Vec::with_capacity(3);
    for (part, x) in inputs.into_iter().enumerate() {
        let mut weight = weights[part].f_tr()?;
        let mut bias = biases[part].shallow_clone();
        if part == 0 {
            // The scale of the scores, 1/√size, is part of the query.
            let scale = 1.0 / (size as f64).sqrt();
            (weight, bias) = (weight.f_mul_scalar(scale)?, bias.f_mul_scalar(scale)?);
        }
        let weight = blocks.graph.tensor(&format!("{path}.in_proj_weight.{part}"), &weight)?;
        let bias = blocks.graph.tensor(&format!("{path}.in_proj_bias.{part}"), &bias)?;
        let y = blocks.graph.add("MatMul", &[x, &weight], Vec::new());
        let y = blocks.graph.add("Add", &[&y, &bias], Vec::new());
        // (tokens, batch, channels) → (batch, heads, tokens, channels of a head), and for keys their transpose.
        let split = blocks.graph.reshape(&y, &[0, 0, HEADS, size]);
        let order = if part == 1 { [1, 2, 3, 0] } else { [1, 2, 0, 3] };
        projected.push(blocks.graph.transpose(&split, &order));
    }
    let scores = blocks.graph.add("MatMul", &[&projected[0], &projected[1]], Vec::new());
    let shares = blocks.graph.add("Softmax", &[&scores], vec![("axis", Setting::Int(-1))]);
    let attended = blocks.graph.add("MatMul", &[&shares, &projected[2]], Vec::new());
    let tokens = blocks.graph.transpose(&attended, &[2, 0, 1, 3]);
    let joined = blocks.graph.reshape(&tokens, &[0, 0, c]);
    linear(blocks, &format!("{path}.out_proj"), true, &joined)
}
