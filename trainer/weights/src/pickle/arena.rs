//! The nodes of a pickle with the budgets for what is made of them. Nodes can be shared a million
//! times, so the text and the tensor bytes that they turn into are counted.

use super::Storages;
use super::node::{Id, Node};
use crate::error::Problem;

/// Bytes of text per file, repetitions included.
const MAX_TEXT: usize = 256 << 20;

/// The nodes, the storages of tensors, and what may still be made of them.
pub(super) struct Arena<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) storages: &'a mut dyn Storages,
    text: usize,
    tensor_bytes: u64,
}

impl<'a> Arena<'a> {
    pub(super) fn new(nodes: &'a [Node], storages: &'a mut dyn Storages) -> Self {
        let tensor_bytes = storages.budget();
        Self { nodes, storages, text: MAX_TEXT, tensor_bytes }
    }

    /// The members of a tuple, or none.
    pub(super) fn items(&self, id: Id) -> &'a [Id] {
        if let Node::Tuple(items) = &self.nodes[id] { items } else { &[] }
    }

    pub(super) fn text(&self, id: Id) -> Option<&'a str> {
        if let Node::Str(text) = &self.nodes[id] { Some(text) } else { None }
    }

    pub(super) fn int(&self, id: Id) -> Option<i64> {
        if let Node::Int(value) = &self.nodes[id] { Some(*value) } else { None }
    }

    pub(super) fn class(&self, id: Id) -> Option<&'a str> {
        if let Node::Class(name, _) = &self.nodes[id] { Some(name) } else { None }
    }

    /// A shape or strides.
    pub(super) fn sizes(&self, id: Id) -> Option<Vec<usize>> {
        // A torch.Size is a call with the tuple as its argument.
        let id = match &self.nodes[id] {
            Node::Call { class, args, .. } if **class == *"torch.Size" => *self.items(*args).first()?,
            _ => id,
        };
        let (Node::Tuple(items) | Node::List(items)) = &self.nodes[id] else { return None };
        if items.len() > 64 {
            return None;
        }
        items.iter().map(|item| usize::try_from(self.int(*item)?).ok()).collect()
    }

    /// Takes tensor bytes from the budget of the file.
    pub(super) fn spend_tensor(&mut self, bytes: u64) -> Result<(), Problem> {
        self.tensor_bytes = self.tensor_bytes.checked_sub(bytes).ok_or_else(|| {
            Problem::Limit("asks for many times more tensor bytes than the file contains".to_owned())
        })?;
        Ok(())
    }

    /// Takes bytes of text from the budget of the file.
    pub(super) fn spend_text(&mut self, bytes: usize) -> Result<(), Problem> {
        self.text = self
            .text
            .checked_sub(bytes)
            .ok_or_else(|| Problem::Limit(format!("has more than {MAX_TEXT} bytes of text")))?;
        Ok(())
    }
}
