//! The values of a pickle while it is read.

use std::rc::Rc;

use super::classes::Family;

/// The deepest nesting of values. A YOLOv5 checkpoint has 30 levels. Recursion to this depth fits the
/// smallest stack of a thread.
pub(super) const MAX_DEPTH: usize = 200;

/// The index of a node in the arena.
pub(super) type Id = usize;

/// A value. Members are indices into the arena, so values can be shared, and can change after they
/// became members of others.
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, as little-endian two's complement.
    BigInt(Vec<u8>),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A name, `module.class`.
    Class(Rc<str>, Family),
    /// A class or function with its arguments, and the states it was given later.
    Call {
        class: Rc<str>,
        args: Id,
        states: Vec<Id>,
    },
    /// A reference to data outside the pickle.
    Persistent(Id),
}
