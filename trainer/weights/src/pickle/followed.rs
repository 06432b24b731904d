//! What a pickle names and would call, collected while it is followed. Memory stays within a small multiple of the
//! pickle: each name is kept once, and of arguments only a short beginning.

use std::collections::HashMap;
use std::rc::Rc;

use super::node::{Id, Node};

use crate::error::Problem;
use crate::reference::Reference;

/// Letters of a name and of arguments that are kept.
const SHORT: usize = 200;
/// Names that are kept; a checkpoint of YOLOv5 has about 30.
const MAX_NAMES: usize = 10_000;
/// Nesting of arguments that is shown.
const SHOWN_DEPTH: usize = 3;

/// A pickle that was followed as far as possible.
pub(crate) struct Followed {
    pub(crate) protocol: u8,
    /// Its length in bytes.
    pub(crate) length: usize,
    pub(crate) references: Vec<Reference>,
    pub(crate) problem: Option<Problem>,
}

/// The names in the order of their first appearance.
#[derive(Default)]
pub(super) struct References {
    known: HashMap<Rc<str>, usize>,
    all: Vec<Reference>,
}

impl References {
    /// The pickle names a class or function.
    pub(super) fn named(&mut self, name: &Rc<str>, allowed: bool) {
        if self.known.contains_key(name) || self.all.len() == MAX_NAMES {
            return;
        }
        self.known.insert(Rc::clone(name), self.all.len());
        let name = escaped(name);
        self.all.push(Reference { name, allowed, calls: 0, arguments: None });
    }

    /// Python would call it.
    pub(super) fn called(&mut self, name: &Rc<str>, nodes: &[Node], args: Id) {
        // What a call returns has no name of its own until it is called.
        self.named(name, false);
        let Some(reference) = self.known.get(name).map(|place| &mut self.all[*place]) else { return };
        reference.calls += 1;
        if !reference.allowed && reference.arguments.is_none() {
            let mut text = String::new();
            python(nodes, args, SHOWN_DEPTH, &mut text);
            reference.arguments = Some(if text.chars().count() > SHORT {
                format!("{}…", text.chars().take(SHORT).collect::<String>())
            } else {
                text
            });
        }
    }

    pub(super) fn into_vec(self) -> Vec<Reference> {
        self.all
    }
}

fn escaped(name: &str) -> String {
    name.chars().take(SHORT).collect::<String>().escape_debug().to_string()
}

/// Appends a value as Python writes it. Shared members cannot make the text long: it stops growing at [`SHORT`] letters.
fn python(nodes: &[Node], id: Id, depth: usize, text: &mut String) {
    if text.len() > 4 * SHORT {
        return;
    }
    let several = |items: &[Id], open: &str, close: &str, text: &mut String| {
        text.push_str(open);
        for (place, item) in items.iter().enumerate().take(SHORT) {
            if place > 0 {
                text.push_str(", ");
            }
            python(nodes, *item, depth - 1, text);
        }
        text.push_str(close);
    };
    match &nodes[id] {
        Node::None => text.push_str("None"),
        Node::Bool(value) => text.push_str(if *value { "True" } else { "False" }),
        Node::Int(value) => text.push_str(&value.to_string()),
        Node::Float(value) => text.push_str(&value.to_string()),
        Node::Str(value) => {
            let short: String = value.chars().take(SHORT + 1).collect();
            text.push_str(&format!("'{}'", short.escape_debug()));
        }
        Node::Bytes(value) => {
            text.push_str(&format!("b'{}'", value[..value.len().min(SHORT)].escape_ascii()))
        }
        Node::Class(name, _) => text.push_str(&escaped(name)),
        Node::Tuple(items) if depth > 0 => several(items, "(", ")", text),
        Node::List(items) if depth > 0 => several(items, "[", "]", text),
        Node::Call { class, args, .. } if depth > 0 => {
            text.push_str(&escaped(class));
            python(nodes, *args, depth - 1, text);
        }
        _ => text.push('…'),
    }
}
