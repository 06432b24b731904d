//! What all modules need to become operations: the graph that grows, and the tensors of the network by their names.

use tch::{Kind, Tensor};

use super::graph::{Graph, Value};
use crate::error::TrainError;
use crate::model::Model;

/// A graph under construction, and the network that it is made of.
pub(super) struct Blocks<'a> {
    pub(super) graph: Graph,
    pub(super) network: &'a Model,
    /// The height and the width of the output of the layer in work; `None` if they depend on the input.
    pub(super) size: Option<[i64; 2]>,
}

impl Blocks<'_> {
    /// The tensor of this name.
    pub(super) fn named(&self, name: &str) -> Result<&Tensor, TrainError> {
        let missing = || TrainError::new(format!("the network has no tensor named {name}"));
        self.network.state().get(name).ok_or_else(missing)
    }

    /// A constant with the tensor of this name.
    pub(super) fn constant(&mut self, name: &str) -> Result<Value, TrainError> {
        let tensor = self.named(name)?.shallow_clone();
        self.graph.tensor(name, &tensor)
    }

    /// The number format of the operations.
    pub(super) fn kind(&self) -> Kind {
        let first = self.network.state().parameters().next();
        first.map_or(Kind::Float, |entry| entry.tensor.kind())
    }
}
