//! Runs the instructions of a pickle, which builds nodes in an arena. Each instruction adds at most
//! one node, and the copies that it makes are counted, so memory stays within a small multiple of the
//! stream, whatever its content.

mod object;
mod scalar;

use std::collections::HashMap;

use self::scalar::{parse, scalar};
use super::followed::{Followed, References};
use super::node::{Id, Node};
use super::opcode as op;
use super::stream::Stream;
use crate::error::Problem;

/// Runs a pickle, and returns its nodes, the one that is its value, and its length in bytes.
pub(super) fn run(bytes: &[u8]) -> Result<(Vec<Node>, Id, usize), Problem> {
    let mut machine = Machine::new(bytes, None);
    let root = machine.run()?;
    Ok((machine.nodes, root, machine.stream.position()))
}

/// Runs a pickle to see which classes and functions it names, also those that are not on the allow-list.
pub(super) fn follow(bytes: &[u8]) -> Followed {
    let mut machine = Machine::new(bytes, Some(References::default()));
    let problem = machine.run().err();
    Followed {
        protocol: machine.protocol,
        length: machine.stream.position(),
        references: machine.references.unwrap_or_default().into_vec(),
        problem,
    }
}

struct Machine<'a> {
    stream: Stream<'a>,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
    copies: usize,
    protocol: u8,
    /// What the pickle names, if it is only followed.
    references: Option<References>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8], references: Option<References>) -> Self {
        Self {
            stream: Stream::new(bytes),
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            copies: 0,
            protocol: 0,
            references,
        }
    }

    /// Runs the pickle to its end, and returns its value.
    fn run(&mut self) -> Result<Id, Problem> {
        loop {
            let code = self.stream.byte()?;
            if code == op::STOP {
                return self.pop();
            }
            self.step(code)?;
        }
    }

    fn step(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            op::PROTO => self.protocol(),
            op::FRAME => self.stream.u64().map(drop),
            op::MARK | op::POP | op::POP_MARK | op::DUP => self.stack(code),
            op::PUT | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => self.put(code),
            op::GET | op::BINGET | op::LONG_BINGET => self.get(code),
            op::EMPTY_LIST
            | op::EMPTY_SET
            | op::EMPTY_TUPLE
            | op::EMPTY_DICT
            | op::TUPLE1
            | op::TUPLE2
            | op::TUPLE3
            | op::TUPLE
            | op::LIST
            | op::FROZENSET
            | op::DICT => self.container(code),
            op::APPEND | op::APPENDS | op::ADDITEMS | op::SETITEM | op::SETITEMS => self.extend(code),
            op::GLOBAL | op::STACK_GLOBAL => self.global(code),
            op::INST | op::OBJ | op::REDUCE | op::NEWOBJ | op::NEWOBJ_EX | op::BUILD => self.object(code),
            op::BINPERSID => self.persistent(),
            op::PERSID => Err(self.stream.damaged("refers to outside data in a way that PyTorch does not")),
            op::EXT1 | op::EXT2 | op::EXT4 => {
                Err(self.stream.damaged("uses the extension registry, which no checkpoint needs"))
            }
            _ => {
                let node = scalar(&mut self.stream, code)?;
                self.push(node);
                Ok(())
            }
        }
    }

    fn protocol(&mut self) -> Result<(), Problem> {
        let version = self.stream.byte()?;
        if version > 5 {
            return Err(self.stream.damaged(format!("has protocol {version}; 0 to 5 are supported")));
        }
        self.protocol = self.protocol.max(version);
        Ok(())
    }

    fn stack(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            op::MARK => self.marks.push(self.stack.len()),
            op::DUP => {
                let top = self.top()?;
                self.stack.push(top);
            }
            op::POP if self.marks.last() == Some(&self.stack.len()) => {
                self.marks.pop();
            }
            op::POP => {
                self.pop()?;
            }
            // POP_MARK
            _ => {
                self.pop_mark()?;
            }
        }
        Ok(())
    }

    fn container(&mut self, code: u8) -> Result<(), Problem> {
        let node = match code {
            op::EMPTY_LIST | op::EMPTY_SET => Node::List(Vec::new()),
            op::EMPTY_TUPLE => Node::Tuple(Vec::new()),
            op::EMPTY_DICT => Node::Dict(Vec::new()),
            op::TUPLE1 => Node::Tuple(self.pop_several(1)?),
            op::TUPLE2 => Node::Tuple(self.pop_several(2)?),
            op::TUPLE3 => Node::Tuple(self.pop_several(3)?),
            op::TUPLE => Node::Tuple(self.pop_mark()?),
            op::DICT => Node::Dict(self.pop_pairs()?),
            // LIST, FROZENSET
            _ => Node::List(self.pop_mark()?),
        };
        self.push(node);
        Ok(())
    }

    fn extend(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            op::APPEND => {
                let item = self.pop()?;
                self.extend_list(vec![item])
            }
            op::APPENDS | op::ADDITEMS => {
                let items = self.pop_mark()?;
                self.extend_list(items)
            }
            op::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dict(vec![(key, value)])
            }
            // SETITEMS
            _ => {
                let pairs = self.pop_pairs()?;
                self.extend_dict(pairs)
            }
        }
    }

    fn add(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn push(&mut self, node: Node) {
        let id = self.add(node);
        self.stack.push(id);
    }

    fn top(&self) -> Result<Id, Problem> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(id) if self.stack.len() > floor => Ok(*id),
            _ => Err(self.stream.damaged("takes a value from an empty stack")),
        }
    }

    fn pop(&mut self) -> Result<Id, Problem> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, Problem> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(self.stream.damaged("closes a list that was not opened")),
        }
    }

    fn pop_pairs(&mut self) -> Result<Vec<(Id, Id)>, Problem> {
        let items = self.pop_mark()?;
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.stream.damaged("has a dict with a key and no value"));
        }
        Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
    }

    fn pop_several(&mut self, count: usize) -> Result<Vec<Id>, Problem> {
        let mut items = vec![0; count];
        for item in items.iter_mut().rev() {
            *item = self.pop()?;
        }
        Ok(items)
    }

    fn put(&mut self, code: u8) -> Result<(), Problem> {
        let key = match code {
            op::PUT => {
                let text = self.stream.line()?;
                parse(&self.stream, text)?
            }
            op::BINPUT => self.stream.byte()?.into(),
            op::LONG_BINPUT => self.stream.u32()?.into(),
            _ => self.memo.len() as u64,
        };
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn get(&mut self, code: u8) -> Result<(), Problem> {
        let key: u64 = match code {
            op::GET => {
                let text = self.stream.line()?;
                parse(&self.stream, text)?
            }
            op::BINGET => self.stream.byte()?.into(),
            _ => self.stream.u32()?.into(),
        };
        match self.memo.get(&key) {
            Some(id) => self.stack.push(*id),
            None => return Err(self.stream.damaged(format!("recalls value {key}, which was not stored"))),
        }
        Ok(())
    }

    fn extend_list(&mut self, mut items: Vec<Id>) -> Result<(), Problem> {
        let top = self.top()?;
        match &mut self.nodes[top] {
            Node::List(list) => list.append(&mut items),
            _ => return Err(self.stream.damaged("appends to something that is not a list")),
        }
        Ok(())
    }

    fn extend_dict(&mut self, mut pairs: Vec<(Id, Id)>) -> Result<(), Problem> {
        let top = self.top()?;
        match &mut self.nodes[top] {
            Node::Dict(dict) => dict.append(&mut pairs),
            _ => return Err(self.stream.damaged("sets a key in something that is not a dict")),
        }
        Ok(())
    }
}
