//! Detect as ONNX operations: the convolution of each level, and the decoding of its outputs into boxes in pixels of
//! the input (spec §2). In single precision whatever the network has, as the network itself decodes. For an input of a
//! fixed size, the cells are constants; else they are computed from the size of each level.

use tch::{Device, Kind};
use yolo_plan::model::Activation;

use super::builder::Blocks;
use super::graph::{FLOAT, Graph, Setting, Value};
use crate::error::TrainError;
use crate::model::square;

/// All levels: (B, N, 5 + nc). `inputs` are their feature maps; `sizes` their height and width, if they are known.
pub(super) fn detect(
    blocks: &mut Blocks<'_>,
    channels: &[usize],
    path: &str,
    inputs: &[Value],
    sizes: Option<&[[i64; 2]]>,
) -> Result<Value, TrainError> {
    let network = blocks.network;
    let outputs = network.spec().nc as i64 + 5;
    let anchors = network.anchors()?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?;
    let na = anchors.size()[1];
    let mut levels = Vec::with_capacity(inputs.len());
    for (level, (x, &c)) in inputs.iter().zip(channels).enumerate() {
        let stride = network.strides()[level] as f32;
        let spec = square(c, (na * outputs) as usize, 1, 1, 1, Activation::Identity);
        let y = blocks.plain_conv(&spec, true, &format!("{path}.m.{level}"), x)?;
        let cells = match sizes {
            Some(sizes) => constant_cells(&mut blocks.graph, sizes[level], stride),
            None => cells(&mut blocks.graph, &y, stride),
        };
        // 4·anchor in pixels, for (2y)²·anchor.
        let sides: Vec<f32> = Vec::try_from(anchors.f_select(0, level as i64)?.f_reshape([-1])?)?;
        let sides: Vec<f32> = sides.into_iter().map(|side| 4.0 * (side * stride)).collect();
        let half = blocks.kind() == Kind::Half;
        let graph = &mut blocks.graph;
        let sides = graph.floats(&[1, na, 1, 2], &sides);
        let rows = graph.reshape(&y, &[0, na, outputs, -1]);
        let mut rows = graph.transpose(&rows, &[0, 1, 3, 2]);
        if half {
            rows = graph.add("Cast", &[&rows], vec![("to", Setting::Int(FLOAT))]);
        }
        let y = graph.add("Sigmoid", &[&rows], Vec::new());
        let center = graph.slice(&y, 3, [0, 2, 1]);
        let scale = graph.floats(&[1], &[2.0 * stride]);
        let center = graph.add("Mul", &[&center, &scale], Vec::new());
        let center = graph.add("Add", &[&center, &cells], Vec::new());
        let size = graph.slice(&y, 3, [2, 4, 1]);
        let size = graph.add("Mul", &[&size, &size], Vec::new());
        let size = graph.add("Mul", &[&size, &sides], Vec::new());
        let rest = graph.slice(&y, 3, [4, outputs, 1]);
        let decoded = graph.concat(&[&center, &size, &rest], 3);
        levels.push(graph.reshape(&decoded, &[0, -1, outputs]));
    }
    Ok(blocks.graph.concat(&levels.iter().collect::<Vec<_>>(), 1))
}

/// Column and row of every cell minus a half, in pixels: (1, 1, height·width, 2).
fn constant_cells(graph: &mut Graph, [height, width]: [i64; 2], stride: f32) -> Value {
    let place = |index: i64| (index as f32 - 0.5) * stride;
    let values: Vec<f32> =
        (0..height).flat_map(|row| (0..width).flat_map(move |column| [place(column), place(row)])).collect();
    graph.floats(&[1, 1, height * width, 2], &values)
}

/// The same from the size of `y` (B, channels, height, width).
fn cells(graph: &mut Graph, y: &Value, stride: f32) -> Value {
    let shape = graph.add("Shape", &[y], Vec::new());
    let mut side = |axis| {
        let axis = graph.int(axis);
        graph.add("Gather", &[&shape, &axis], vec![("axis", Setting::Int(0))])
    };
    let (height, width) = (side(2), side(3));
    let count = graph.add("Mul", &[&height, &width], Vec::new());
    let (zero, one) = (graph.int(0), graph.int(1));
    let index = graph.add("Range", &[&zero, &count, &one], Vec::new());
    let mut axis = |op| {
        let place = graph.add(op, &[&index, &width], Vec::new());
        let place = graph.add("Cast", &[&place], vec![("to", Setting::Int(FLOAT))]);
        graph.reshape(&place, &[1, 1, -1, 1])
    };
    let (column, row) = (axis("Mod"), axis("Div"));
    let cells = graph.concat(&[&column, &row], 3);
    let half = graph.floats(&[1], &[0.5]);
    let cells = graph.add("Sub", &[&cells, &half], Vec::new());
    let stride = graph.floats(&[1], &[stride]);
    graph.add("Mul", &[&cells, &stride], Vec::new())
}
