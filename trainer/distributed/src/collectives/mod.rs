//! The collectives of a group, one file per kind. All ranks make the same calls in the same order. A call
//! returns when this rank's part is done.

mod agreement;
mod barrier;
mod bytes;
mod call;
mod gather;
mod messages;
mod reduce;
mod tensors;
