//! A Python module under construction: its class, tensors, children and other attributes, in the order in which PyTorch
//! registers them. Attributes that every PyTorch since 1.8 adds to the modules of older versions are left to it.

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, Value};

use crate::error::TrainError;

/// The tensors of a network, of which each belongs to one module.
pub(super) struct Tensors(IndexMap<String, TensorData>);

impl Tensors {
    pub(super) fn new(tensors: impl IntoIterator<Item = (String, TensorData)>) -> Self {
        Self(tensors.into_iter().collect())
    }

    /// The tensor of this name, for its module.
    pub(super) fn take(&mut self, name: &str) -> Result<TensorData, TrainError> {
        let missing = || TrainError::new(format!("the network has no tensor named {name}"));
        self.0.shift_remove(name).ok_or_else(missing)
    }

    /// All tensors must be in a module.
    pub(super) fn finish(self) -> Result<(), TrainError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(TrainError::new(format!("no module of YOLOv5 has the tensor {name}"))),
        }
    }
}

/// A Python module.
pub(super) struct Node {
    class: String,
    parameters: Vec<(Value, Value)>,
    buffers: Vec<(Value, Value)>,
    children: Vec<(Value, Value)>,
    attributes: Vec<(String, Value)>,
}

impl Node {
    pub(super) fn new(class: &str) -> Self {
        let (parameters, buffers, children) = Default::default();
        Self { class: class.to_owned(), parameters, buffers, children, attributes: Vec::new() }
    }

    /// A module of PyTorch, such as `conv.Conv2d`.
    pub(super) fn torch(class: &str) -> Self {
        Self::new(&format!("torch.nn.modules.{class}"))
    }

    /// A class of the repository's `models/common.py`.
    pub(super) fn common(class: &str) -> Self {
        Self::new(&format!("models.common.{class}"))
    }

    /// Children in sequence.
    pub(super) fn sequential(children: Vec<Self>) -> Self {
        Self::container("container.Sequential", children)
    }

    /// Children in a list.
    pub(super) fn list(children: Vec<Self>) -> Self {
        Self::container("container.ModuleList", children)
    }

    fn container(class: &str, children: Vec<Self>) -> Self {
        let children = children.into_iter().enumerate();
        children.fold(Self::torch(class), |node, (index, child)| node.child(&index.to_string(), child))
    }

    pub(super) fn class(&self) -> &str {
        &self.class
    }

    /// A parameter; `None` for a bias that the module does not have.
    #[must_use]
    pub(super) fn parameter(mut self, name: &str, tensor: Option<TensorData>) -> Self {
        self.parameters.push((text(name), tensor.map_or(Value::None, Value::Tensor)));
        self
    }

    #[must_use]
    pub(super) fn buffer(mut self, name: &str, tensor: TensorData) -> Self {
        self.buffers.push((text(name), Value::Tensor(tensor)));
        self
    }

    #[must_use]
    pub(super) fn child(mut self, name: &str, child: Self) -> Self {
        self.children.push((text(name), child.into_value()));
        self
    }

    #[must_use]
    pub(super) fn attribute(mut self, name: &str, value: Value) -> Self {
        self.attributes.push((name.to_owned(), value));
        self
    }

    /// Attributes that are whole numbers.
    #[must_use]
    pub(super) fn ints<const N: usize>(self, attributes: [(&str, usize); N]) -> Self {
        attributes.into_iter().fold(self, |node, (name, number)| node.attribute(name, int(number)))
    }

    pub(super) fn into_value(self) -> Value {
        let no_hooks = || Value::Dict(Vec::new());
        let fields = [
            ("training", Value::Bool(false)),
            ("_parameters", Value::Dict(self.parameters)),
            ("_buffers", Value::Dict(self.buffers)),
            ("_backward_hooks", no_hooks()),
            ("_forward_hooks", no_hooks()),
            ("_forward_pre_hooks", no_hooks()),
            ("_state_dict_hooks", no_hooks()),
            ("_load_state_dict_pre_hooks", no_hooks()),
            ("_modules", Value::Dict(self.children)),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Value::Object { class: self.class, fields: fields.into_iter().chain(self.attributes).collect() }
    }
}

pub(super) fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

pub(super) fn int(number: usize) -> Value {
    // No number of a model is beyond 2⁶³.
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A tuple of whole numbers.
pub(super) fn tuple(numbers: &[usize]) -> Value {
    Value::Tuple(numbers.iter().map(|&number| int(number)).collect())
}
