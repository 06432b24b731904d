//! Instructions that name classes and would call them. Calls are recorded and never made.

use std::rc::Rc;

use super::super::classes::{self, Family};
use super::super::node::{Id, Node};
use super::super::opcode as op;
use super::Machine;
use crate::error::Problem;

/// The longest name in bytes that is followed if it is not on the allow-list.
const MAX_NAME: usize = 1000;

/// Members that instructions may copy in all, far more than in any checkpoint.
const MAX_COPIES: usize = 16 << 20;

impl Machine<'_> {
    /// Pushes the class that an instruction names.
    pub(super) fn global(&mut self, code: u8) -> Result<(), Problem> {
        if code == op::GLOBAL {
            let module = self.stream.line()?;
            let name = self.stream.line()?;
            return self.class(module, name);
        }
        let (name, module) = (self.pop()?, self.pop()?);
        let (Node::Str(module), Node::Str(name)) = (&self.nodes[module], &self.nodes[name]) else {
            return Err(self.stream.damaged("names a class by something other than text"));
        };
        let (module, name) = (module.clone(), name.clone());
        self.class(&module, &name)
    }

    /// Makes an object, or gives one a state.
    pub(super) fn object(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            op::INST => {
                let module = self.stream.line()?;
                let name = self.stream.line()?;
                self.class(module, name)?;
                let class = self.pop()?;
                let items = self.pop_mark()?;
                let args = self.add(Node::Tuple(items));
                self.call(class, args)
            }
            op::OBJ => {
                let mut items = self.pop_mark()?;
                if items.is_empty() {
                    return Err(self.stream.damaged("makes an object without a class"));
                }
                let class = items.remove(0);
                let args = self.add(Node::Tuple(items));
                self.call(class, args)
            }
            op::NEWOBJ_EX => {
                let (keywords, args, class) = (self.pop()?, self.pop()?, self.pop()?);
                self.call(class, args)?;
                self.build(keywords)
            }
            op::BUILD => {
                let state = self.pop()?;
                self.build(state)
            }
            // REDUCE, NEWOBJ
            _ => {
                let (args, class) = (self.pop()?, self.pop()?);
                self.call(class, args)
            }
        }
    }

    /// Pushes what is outside the pickle: a storage, or `('module', class, file, source)`, by which PyTorch before
    /// version 1.6 names a class together with its source.
    pub(super) fn persistent(&mut self) -> Result<(), Problem> {
        let id = self.pop()?;
        if let Node::Tuple(items) = &self.nodes[id]
            && let [tag, class, ..] = items[..]
            && matches!(&self.nodes[tag], Node::Str(tag) if tag == "module")
            && matches!(self.nodes[class], Node::Class(..))
        {
            self.stack.push(class);
        } else {
            self.push(Node::Persistent(id));
        }
        Ok(())
    }

    fn class(&mut self, module: &str, name: &str) -> Result<(), Problem> {
        let family = classes::family(module, name);
        // A long name that is followed many times would use much memory.
        if family.is_none() && module.len() + name.len() > MAX_NAME {
            let module = shortened(module);
            return Err(self
                .stream
                .damaged(format!("names something in the module `{module}…`, too long a name")));
        }
        let full: Rc<str> = format!("{module}.{name}").into();
        let family = match (&mut self.references, family) {
            (None, None) => return Err(Problem::Code(shortened(&full))),
            (None, Some(family)) => family,
            (Some(references), family) => {
                references.named(&full, family.is_some());
                family.unwrap_or(Family::Inert)
            }
        };
        self.push(Node::Class(full, family));
        Ok(())
    }

    /// Records a call that Python would make. Containers are built; everything else stays a record.
    fn call(&mut self, class: Id, args: Id) -> Result<(), Problem> {
        let (name, family) = match &self.nodes[class] {
            Node::Class(name, family) => (Rc::clone(name), *family),
            // The result of a call, such as that of `getattr`.
            Node::Call { class, .. } if self.references.is_some() => {
                let name = if class.ends_with(RESULT) {
                    Rc::clone(class)
                } else {
                    format!("{class}{RESULT}").into()
                };
                (name, Family::Inert)
            }
            _ => return Err(self.stream.damaged("calls something that is not a class")),
        };
        if let Some(references) = &mut self.references {
            references.called(&name, &self.nodes, args);
        }
        let Node::Tuple(items) = &self.nodes[args] else {
            return Err(self.stream.damaged(format!("makes a {name} without a tuple of arguments")));
        };
        let node = match family {
            Family::Inert => Node::Call { class: name, args, states: Vec::new() },
            // The last argument, because a defaultdict has its factory before it.
            Family::List => Node::List(self.members(items.last().copied())?),
            Family::Dict => Node::Dict(self.pairs(items.last().copied())?),
        };
        self.push(node);
        Ok(())
    }

    fn members(&mut self, source: Option<Id>) -> Result<Vec<Id>, Problem> {
        let Some(source) = source else { return Ok(Vec::new()) };
        let members = match &self.nodes[source] {
            Node::List(items) | Node::Tuple(items) => items,
            _ => return Err(self.stream.damaged("makes a list or set from something else")),
        };
        self.copies += members.len();
        if self.copies > MAX_COPIES {
            return Err(Problem::Limit(format!("copies more than {MAX_COPIES} members of lists")));
        }
        Ok(members.clone())
    }

    fn pairs(&mut self, source: Option<Id>) -> Result<Vec<(Id, Id)>, Problem> {
        let Some(source) = source else { return Ok(Vec::new()) };
        match &self.nodes[source] {
            // The factory of a defaultdict without entries.
            Node::Class(..) | Node::None => return Ok(Vec::new()),
            Node::Dict(pairs) => {
                let pairs = pairs.clone();
                self.copies += pairs.len();
                if self.copies > MAX_COPIES {
                    return Err(Problem::Limit(format!("copies more than {MAX_COPIES} members of dicts")));
                }
                return Ok(pairs);
            }
            _ => {}
        }
        let members = self.members(Some(source))?;
        members
            .into_iter()
            .map(|member| match &self.nodes[member] {
                Node::Tuple(pair) | Node::List(pair) if pair.len() == 2 => Ok((pair[0], pair[1])),
                _ => Err(self.stream.damaged("makes a dict from something other than pairs")),
            })
            .collect()
    }

    fn build(&mut self, state: Id) -> Result<(), Problem> {
        let top = self.top()?;
        match &mut self.nodes[top] {
            Node::Call { states, .. } => states.push(state),
            // Attributes of a container, such as `_metadata` of a state dict, are not needed.
            Node::List(_) | Node::Dict(_) => {}
            _ => return Err(self.stream.damaged("gives a state to something that is not an object")),
        }
        Ok(())
    }
}

/// Follows the name of a function whose result is called.
const RESULT: &str = "(…)";

/// A name for a message.
fn shortened(name: &str) -> String {
    name.chars().take(200).collect::<String>().escape_debug().to_string()
}
