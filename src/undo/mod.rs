//! The journal of what `yolo` changes on a host, and how each change is undone. Whoever makes a change
//! notes it in the [`Journal`] first: a small file with what is changed and, as data, how it is undone. What
//! can be undone now follows from the disk, not from the note, so that an interrupted change or an
//! interrupted undo is simply judged again. Nothing here prints.

mod error;
mod files;
mod journal;
mod lines;
mod listing;
mod outlook;
mod profiles;
mod record;
mod script;
mod undoing;

pub(crate) use error::UndoError;
pub(crate) use files::{can_write, write_file};
pub(crate) use journal::{Entry, Journal, command_of_this_process};
pub(crate) use listing::{Damaged, Listing};
pub(crate) use outlook::Outlook;
pub(crate) use record::{Record, Step};
pub(crate) use script::call as script_call;
pub(crate) use undoing::{Hands, Undo, Undone};
