//! Who is to blame when a collective fails. Each rank of a group answers on a socket of its own what it is
//! doing. A rank whose call fails asks all others, names those that are gone, silent, late or in another
//! call, and tells the rest, which fail after it.

mod activity;
mod answering;
mod asking;
mod interface_address;
mod peer;
mod roll;
mod verdict;

pub use peer::{Peer, PeerState};
pub(crate) use roll::{Listen, RollCall};
