//! A run on several machines. The `yolo` of machine 0, the master, waits for those of the others, the members,
//! compares what must be equal, and tells each its part of the ranks; then it supervises all ranks. One
//! connection per member carries JSON lines.

mod door;
mod error;
mod facts;
mod greeting;
mod join;
mod member;
mod place;
mod route;
mod team;
mod wire;

pub(crate) use door::Door;
pub(crate) use error::MachinesError;
pub(crate) use facts::{Facts, Libraries, data_facts};
pub(crate) use join::{Joined, join};
pub(crate) use member::{MemberEnd, serve};
pub(crate) use place::Place;
pub(crate) use route::{interface_note, interface_variable};
pub(crate) use team::Team;
pub(super) use team::{Heard, refuse_late};
