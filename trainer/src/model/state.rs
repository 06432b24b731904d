//! All tensors of a model in the order in which its modules register them, with the names of
//! YOLOv5's `state_dict` (spec §2). Checkpoints, the optimizer's parameters and random draws all
//! follow this order.

use std::collections::HashMap;

use tch::{Kind, Tensor};
use torch_checkpoint::Value;

use crate::error::TrainError;
use crate::tensor_io::tensor_data;

/// How the optimizer treats a tensor (spec §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A weight that decays, of a convolution or linear layer.
    Weight,
    /// Any bias.
    Bias,
    /// The weight of a normalization layer.
    NormWeight,
    /// Not trained: running statistics, counters, anchors.
    Buffer,
}

/// One named tensor.
#[derive(Debug)]
pub struct Entry {
    /// The key in the `state_dict`, `model.0.conv.weight`.
    pub name: String,
    /// The tensor, shared with the module that uses it. Change it only in place.
    pub tensor: Tensor,
    /// How the optimizer treats it.
    pub role: Role,
}

impl Entry {
    /// Whether this is a parameter, frozen or not, and not a buffer.
    pub fn is_parameter(&self) -> bool {
        self.role != Role::Buffer
    }
}

/// The tensors of a model, in registration order.
#[derive(Debug, Default)]
pub struct State {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

impl State {
    /// Appends a tensor.
    ///
    /// # Errors
    /// When the name is already taken, which is a bug of the module that registers it.
    pub(crate) fn register(&mut self, name: String, tensor: Tensor, role: Role) -> Result<(), TrainError> {
        if self.by_name.insert(name.clone(), self.entries.len()).is_some() {
            return Err(TrainError::new(format!("two tensors of the model are named {name}")));
        }
        self.entries.push(Entry { name, tensor, role });
        Ok(())
    }

    /// All tensors, in registration order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The parameters, in registration order, including frozen ones (`tensor.requires_grad()` is then
    /// false).
    pub fn parameters(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_parameter())
    }

    /// The buffers, in registration order.
    pub fn buffers(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_parameter())
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.by_name.get(name).map(|&index| &self.entries[index].tensor)
    }

    /// The tensors as a dictionary from name to tensor, in order; floating tensors in half
    /// precision if `half` is set.
    ///
    /// # Errors
    /// When a tensor cannot be read from its device.
    pub fn to_value(&self, half: bool) -> Result<Value, TrainError> {
        let entries = self
            .iter()
            .map(|entry| {
                let tensor = entry.tensor.f_detach()?;
                let tensor =
                    if half && tensor.is_floating_point() { tensor.f_to_kind(Kind::Half)? } else { tensor };
                Ok((entry.name.clone(), Value::Tensor(tensor_data(&tensor)?)))
            })
            .collect::<Result<Vec<_>, TrainError>>()?;
        Ok(Value::dict(entries))
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'a> IntoIterator for &'a State {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
