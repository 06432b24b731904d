//! A graph of ONNX operations under construction: constants, and nodes. Operations mean the same in
//! all opsets that `--opset` offers, so a graph is the same for all of them.

use onnx_rs::ast::{Attribute, AttributeType, DataType, Node, OpType, TensorProto};
use tch::{Kind, Tensor};

use crate::error::TrainError;
use crate::tensor_io::tensor_data;

/// The numbers of `FLOAT` and `INT64` among the types of ONNX.
pub(super) const FLOAT: i64 = 1;
pub(super) const INT64: i64 = 7;

/// An output of a node, a constant, or an input of the graph, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value(String);

impl Value {
    /// An input of the graph.
    pub(super) fn input(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

/// An attribute of a node.
#[derive(Debug, Clone)]
pub(super) enum Setting {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Text(&'static str),
}

#[derive(Debug)]
struct Operation {
    op: &'static str,
    inputs: Vec<Value>,
    outputs: Vec<String>,
    settings: Vec<(&'static str, Setting)>,
}

#[derive(Debug)]
struct Constant {
    name: String,
    dims: Vec<i64>,
    kind: DataType,
    bytes: Vec<u8>,
}

/// The operations and constants, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Graph {
    operations: Vec<Operation>,
    constants: Vec<Constant>,
}

impl Graph {
    /// Adds an operation, and returns its output.
    pub(super) fn add(
        &mut self,
        op: &'static str,
        inputs: &[&Value],
        settings: Vec<(&'static str, Setting)>,
    ) -> Value {
        let output = format!("{op}_{}", self.operations.len());
        self.push(op, inputs, settings, vec![output.clone()]);
        Value(output)
    }

    /// Adds an operation, and returns its first outputs.
    pub(super) fn add_several(
        &mut self,
        op: &'static str,
        inputs: &[&Value],
        settings: Vec<(&'static str, Setting)>,
        count: usize,
    ) -> Vec<Value> {
        let place = self.operations.len();
        let outputs: Vec<String> = (0..count).map(|output| format!("{op}_{place}_{output}")).collect();
        self.push(op, inputs, settings, outputs.clone());
        outputs.into_iter().map(Value).collect()
    }

    fn push(
        &mut self,
        op: &'static str,
        inputs: &[&Value],
        settings: Vec<(&'static str, Setting)>,
        outputs: Vec<String>,
    ) {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        self.operations.push(Operation { op, inputs, outputs, settings });
    }

    /// Gives the output of an operation, which no other reads, the name of an output of the graph.
    pub(super) fn rename(&mut self, value: &Value, name: &str) {
        let outputs = self.operations.iter_mut().flat_map(|operation| &mut operation.outputs);
        outputs.filter(|output| **output == value.0).for_each(|output| name.clone_into(output));
    }

    /// A constant with the values of a tensor, in its precision.
    ///
    /// # Errors
    /// When its kind has no counterpart here.
    pub(super) fn tensor(&mut self, name: &str, tensor: &Tensor) -> Result<Value, TrainError> {
        let kind = match tensor.f_kind()? {
            Kind::Float => DataType::Float,
            Kind::Half => DataType::Float16,
            other => return Err(TrainError::new(format!("{name}: no ONNX constant is made of {other:?}"))),
        };
        let data = tensor_data(tensor)?;
        self.constants.push(Constant { name: name.to_owned(), dims: tensor.size(), kind, bytes: data.bytes });
        Ok(Value(name.to_owned()))
    }

    /// A constant of numbers in single precision.
    pub(super) fn floats(&mut self, dims: &[i64], values: &[f32]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(dims, DataType::Float, bytes)
    }

    /// A list of whole numbers.
    pub(super) fn ints(&mut self, values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(&[values.len() as i64], DataType::Int64, bytes)
    }

    /// One whole number without a dimension.
    pub(super) fn int(&mut self, value: i64) -> Value {
        self.constant(&[], DataType::Int64, value.to_le_bytes().to_vec())
    }

    fn constant(&mut self, dims: &[i64], kind: DataType, bytes: Vec<u8>) -> Value {
        // Equal constants, such as shapes, are there once.
        let equal = |other: &&Constant| (&*other.dims, other.kind, &other.bytes) == (dims, kind, &bytes);
        if let Some(known) = self.constants.iter().filter(|other| other.bytes.len() < 256).find(equal) {
            return Value(known.name.clone());
        }
        let name = format!("constant_{}", self.constants.len());
        self.constants.push(Constant { name: name.clone(), dims: dims.to_vec(), kind, bytes });
        Value(name)
    }

    /// The first output of `x` along an axis: the part from `start` to `end`, in steps.
    pub(super) fn slice(&mut self, x: &Value, axis: i64, [start, end, step]: [i64; 3]) -> Value {
        let inputs = [[start], [end], [axis], [step]].map(|list| self.ints(&list));
        self.add("Slice", &[x, &inputs[0], &inputs[1], &inputs[2], &inputs[3]], Vec::new())
    }

    /// In a shape, 0 is the same dimension as before, and -1 what remains.
    pub(super) fn reshape(&mut self, x: &Value, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.add("Reshape", &[x, &shape], Vec::new())
    }

    pub(super) fn transpose(&mut self, x: &Value, order: &[i64]) -> Value {
        self.add("Transpose", &[x], vec![("perm", Setting::Ints(order.to_vec()))])
    }

    pub(super) fn concat(&mut self, parts: &[&Value], axis: i64) -> Value {
        self.add("Concat", parts, vec![("axis", Setting::Int(axis))])
    }

    /// The nodes and constants as messages, which borrow from the graph.
    pub(super) fn messages(&self) -> (Vec<Node<'_>>, Vec<TensorProto<'_>>) {
        let nodes = self.operations.iter().map(|operation| Node {
            input: operation.inputs.iter().map(Value::name).collect(),
            output: operation.outputs.iter().map(String::as_str).collect(),
            name: operation.outputs.first().map_or("", String::as_str),
            op_type: OpType::from(operation.op),
            attribute: operation.settings.iter().map(|(name, setting)| attribute(name, setting)).collect(),
            ..Node::default()
        });
        let constants = self.constants.iter().map(|constant| {
            TensorProto::from_raw(&constant.name, constant.dims.clone(), constant.kind, &constant.bytes)
        });
        (nodes.collect(), constants.collect())
    }
}

fn attribute<'a>(name: &'a str, setting: &Setting) -> Attribute<'a> {
    let empty = Attribute { name, ..Attribute::default() };
    match setting {
        Setting::Int(i) => Attribute { r#type: AttributeType::Int, i: *i, ..empty },
        Setting::Ints(ints) => Attribute { r#type: AttributeType::Ints, ints: ints.clone(), ..empty },
        Setting::Float(f) => Attribute { r#type: AttributeType::Float, f: *f, ..empty },
        Setting::Text(text) => Attribute { r#type: AttributeType::String, s: text.as_bytes(), ..empty },
    }
}
