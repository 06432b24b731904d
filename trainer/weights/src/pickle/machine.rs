//! Runs a pickle's instructions into an arena of nodes. Every instruction adds at most one node,
//! and the copies that it makes are counted, so memory stays within a small multiple of the
//! stream, whatever is in it. Calls are recorded as [`Node::Call`] and never made.

use std::collections::HashMap;
use std::rc::Rc;

use super::classes::{self, Family};
use super::opcode as op;
use super::stream::Stream;
use crate::error::Problem;

/// The place of a node in the arena.
pub(super) type Id = usize;

/// A value under construction. Members are places in the arena, so values can be shared and can
/// change after they were put into another.
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, little-endian two's complement.
    BigInt(Vec<u8>),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A name: `module.class`.
    Class(Rc<str>, Family),
    /// A class or function with arguments, and the states given to it afterwards.
    Call {
        class: Rc<str>,
        args: Id,
        states: Vec<Id>,
    },
    /// A reference to data outside the pickle.
    Persistent(Id),
}

/// Members that may be copied by instructions in all: far beyond any checkpoint.
const MAX_COPIES: usize = 16 << 20;

/// Runs a stream to its end.
pub(super) fn run(bytes: &[u8]) -> Result<(Vec<Node>, Id), Problem> {
    let mut machine = Machine {
        stream: Stream::new(bytes),
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        copies: 0,
    };
    loop {
        let code = machine.stream.byte()?;
        if code == op::STOP {
            let root = machine.pop()?;
            return Ok((machine.nodes, root));
        }
        machine.step(code)?;
    }
}

struct Machine<'a> {
    stream: Stream<'a>,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
    copies: usize,
}

impl Machine<'_> {
    fn step(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            op::PROTO => {
                let version = self.stream.byte()?;
                if version > 5 {
                    return Err(self.stream.damaged(format!("is of protocol {version}; 0 to 5 are known")));
                }
            }
            op::FRAME => {
                self.stream.u64()?;
            }
            op::MARK => self.marks.push(self.stack.len()),
            op::POP => match self.marks.last() {
                Some(mark) if *mark == self.stack.len() => {
                    self.marks.pop();
                }
                _ => {
                    self.pop()?;
                }
            },
            op::POP_MARK => {
                self.pop_mark()?;
            }
            op::DUP => {
                let top = self.top()?;
                self.stack.push(top);
            }
            op::PUT | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => self.put(code)?,
            op::GET | op::BINGET | op::LONG_BINGET => self.get(code)?,
            op::EMPTY_LIST | op::EMPTY_SET => self.push(Node::List(Vec::new())),
            op::EMPTY_TUPLE => self.push(Node::Tuple(Vec::new())),
            op::EMPTY_DICT => self.push(Node::Dict(Vec::new())),
            op::TUPLE1 => self.tuple(1)?,
            op::TUPLE2 => self.tuple(2)?,
            op::TUPLE3 => self.tuple(3)?,
            op::TUPLE => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items));
            }
            op::LIST | op::FROZENSET => {
                let items = self.pop_mark()?;
                self.push(Node::List(items));
            }
            op::DICT => {
                let pairs = self.pop_pairs()?;
                self.push(Node::Dict(pairs));
            }
            op::APPEND => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            op::APPENDS | op::ADDITEMS => {
                let items = self.pop_mark()?;
                self.extend_list(items)?;
            }
            op::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dict(vec![(key, value)])?;
            }
            op::SETITEMS => {
                let pairs = self.pop_pairs()?;
                self.extend_dict(pairs)?;
            }
            op::GLOBAL => {
                let module = self.stream.line()?;
                let name = self.stream.line()?;
                self.class(module, name)?;
            }
            op::STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Node::Str(module), Node::Str(name)) = (&self.nodes[module], &self.nodes[name]) else {
                    return Err(self.stream.damaged("names a class by something else than text"));
                };
                let (module, name) = (module.clone(), name.clone());
                self.class(&module, &name)?;
            }
            op::INST => {
                let module = self.stream.line()?;
                let name = self.stream.line()?;
                self.class(module, name)?;
                let class = self.pop()?;
                let items = self.pop_mark()?;
                let args = self.add(Node::Tuple(items));
                self.call(class, args)?;
            }
            op::OBJ => {
                let mut items = self.pop_mark()?;
                if items.is_empty() {
                    return Err(self.stream.damaged("makes an object without a class"));
                }
                let class = items.remove(0);
                let args = self.add(Node::Tuple(items));
                self.call(class, args)?;
            }
            op::REDUCE | op::NEWOBJ => {
                let (args, class) = (self.pop()?, self.pop()?);
                self.call(class, args)?;
            }
            op::NEWOBJ_EX => {
                let (keywords, args, class) = (self.pop()?, self.pop()?, self.pop()?);
                self.call(class, args)?;
                self.build(keywords)?;
            }
            op::BUILD => {
                let state = self.pop()?;
                self.build(state)?;
            }
            op::BINPERSID => {
                let id = self.pop()?;
                self.push(Node::Persistent(id));
            }
            op::PERSID => return Err(self.stream.damaged("refers to data in a way that PyTorch does not")),
            op::EXT1 | op::EXT2 | op::EXT4 => {
                return Err(self.stream.damaged("uses the extension registry, which no checkpoint needs"));
            }
            _ => {
                let node = self.scalar(code)?;
                self.push(node);
            }
        }
        Ok(())
    }

    /// The instructions that push one plain value.
    fn scalar(&mut self, code: u8) -> Result<Node, Problem> {
        let stream = &mut self.stream;
        Ok(match code {
            op::NONE => Node::None,
            op::NEWTRUE => Node::Bool(true),
            op::NEWFALSE => Node::Bool(false),
            op::BININT => Node::Int(i32::from_le_bytes(stream.array()?).into()),
            op::BININT1 => Node::Int(stream.byte()?.into()),
            op::BININT2 => Node::Int(stream.u16()?.into()),
            op::LONG1 => {
                let length = stream.byte()?;
                integer(stream.take(length.into())?)
            }
            op::LONG4 => {
                let length = stream.u32()?;
                integer(stream.take(length.into())?)
            }
            op::INT => match stream.line()? {
                "01" => Node::Bool(true),
                "00" => Node::Bool(false),
                text => Node::Int(parse(stream, text)?),
            },
            op::LONG => {
                let text = stream.line()?;
                Node::Int(parse(stream, text.trim_end_matches('L'))?)
            }
            op::FLOAT => {
                let text = stream.line()?;
                Node::Float(parse(stream, text)?)
            }
            op::BINFLOAT => Node::Float(f64::from_be_bytes(stream.array()?)),
            op::STRING => {
                let text = stream.line()?;
                Node::Str(text.trim_matches(['\'', '"']).to_owned())
            }
            op::UNICODE => Node::Str(stream.line()?.to_owned()),
            op::SHORT_BINSTRING | op::SHORT_BINUNICODE => {
                let length = stream.byte()?;
                Node::Str(stream.text(length.into())?.to_owned())
            }
            op::BINSTRING | op::BINUNICODE => {
                let length = stream.u32()?;
                Node::Str(stream.text(length.into())?.to_owned())
            }
            op::BINUNICODE8 => {
                let length = stream.u64()?;
                Node::Str(stream.text(length)?.to_owned())
            }
            op::SHORT_BINBYTES => {
                let length = stream.byte()?;
                Node::Bytes(stream.take(length.into())?.to_vec())
            }
            op::BINBYTES => {
                let length = stream.u32()?;
                Node::Bytes(stream.take(length.into())?.to_vec())
            }
            op::BINBYTES8 | op::BYTEARRAY8 => {
                let length = stream.u64()?;
                Node::Bytes(stream.take(length)?.to_vec())
            }
            _ => return Err(stream.damaged(format!("holds the unknown instruction {code:#04x}"))),
        })
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

    fn tuple(&mut self, count: usize) -> Result<(), Problem> {
        let mut items = vec![0; count];
        for item in items.iter_mut().rev() {
            *item = self.pop()?;
        }
        self.push(Node::Tuple(items));
        Ok(())
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
            None => return Err(self.stream.damaged(format!("recalls value {key}, which was not kept"))),
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

    fn class(&mut self, module: &str, name: &str) -> Result<(), Problem> {
        let Some(family) = classes::family(module, name) else {
            let full: String = format!("{module}.{name}").chars().take(200).collect();
            return Err(Problem::Code(full.escape_debug().to_string()));
        };
        self.push(Node::Class(format!("{module}.{name}").into(), family));
        Ok(())
    }

    /// What Python would call, noted down: containers are made, everything else is kept as it is.
    fn call(&mut self, class: Id, args: Id) -> Result<(), Problem> {
        let Node::Class(name, family) = &self.nodes[class] else {
            return Err(self.stream.damaged("calls something that is not a class"));
        };
        let (name, family) = (Rc::clone(name), *family);
        let Node::Tuple(items) = &self.nodes[args] else {
            return Err(self.stream.damaged(format!("makes a {name} without a tuple of arguments")));
        };
        let node = match family {
            Family::Inert => Node::Call { class: name, args, states: Vec::new() },
            // The last argument: a defaultdict has its factory before it.
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
            _ => return Err(self.stream.damaged("makes a list or set of something else")),
        };
        self.copies += members.len();
        if self.copies > MAX_COPIES {
            return Err(Problem::Limit(format!("copies more than {MAX_COPIES} members of its own lists")));
        }
        Ok(members.clone())
    }

    fn pairs(&mut self, source: Option<Id>) -> Result<Vec<(Id, Id)>, Problem> {
        let Some(source) = source else { return Ok(Vec::new()) };
        match &self.nodes[source] {
            // A defaultdict's factory, with no entries yet.
            Node::Class(..) | Node::None => return Ok(Vec::new()),
            Node::Dict(pairs) => {
                let pairs = pairs.clone();
                self.copies += pairs.len();
                if self.copies > MAX_COPIES {
                    return Err(Problem::Limit(format!(
                        "copies more than {MAX_COPIES} members of its own dicts"
                    )));
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
                _ => Err(self.stream.damaged("makes a dict of something else than pairs")),
            })
            .collect()
    }

    fn build(&mut self, state: Id) -> Result<(), Problem> {
        let top = self.top()?;
        match &mut self.nodes[top] {
            Node::Call { states, .. } => states.push(state),
            // Attributes of a container: a state dict carries `_metadata`, which nobody needs.
            Node::List(_) | Node::Dict(_) => {}
            _ => return Err(self.stream.damaged("gives a state to something that is not an object")),
        }
        Ok(())
    }
}

/// Little-endian two's complement of any length, as LONG1 has it.
fn integer(bytes: &[u8]) -> Node {
    if bytes.len() > 8 {
        return Node::BigInt(bytes.to_vec());
    }
    let negative = bytes.last().is_some_and(|last| *last >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Node::Int(i64::from_le_bytes(wide))
}

fn parse<T: std::str::FromStr>(stream: &Stream<'_>, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        stream.damaged(format!(
            "has “{}” for a number",
            text.chars().take(40).collect::<String>().escape_debug()
        ))
    })
}
