//! Compares a call over all ranks before it is made. gloo ends the process of a rank that receives another
//! size than it expects, so a difference must be found first.

#![expect(unsafe_code, reason = "calls the shim's all-gather")]

use std::rc::Rc;
use std::time::Duration;

use tch::Tensor;

use super::tensors::{empty_like, from_tch, share};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::work::RawWork;

/// The part of a call that a message about a difference shows.
const SHOWN: usize = 240;

/// Fails on all ranks unless all make the same call.
pub(super) fn agree(group: &ProcessGroup, action: &Rc<str>, call: &str, timeout: Duration) -> Result<()> {
    let own = Tensor::f_from_slice(&[hash(call)]).map_err(from_tch(action))?;
    let hashes = gather(group, action, &own, timeout)?
        .iter()
        .map(|hash| hash.f_int64_value(&[0]))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(from_tch(action))?;
    let differing = differing(&hashes);
    if differing.is_empty() {
        return Ok(());
    }
    // All ranks have seen the same numbers, so all come here.
    let mut text = [0; SHOWN];
    let length = call.floor_char_boundary(SHOWN);
    text[..length].copy_from_slice(&call.as_bytes()[..length]);
    let text = Tensor::f_from_slice(&text).map_err(from_tch(action))?;
    let mut calls = Vec::new();
    for tensor in gather(group, action, &text, timeout)? {
        let mut bytes = [0; SHOWN];
        tensor.f_copy_data_u8(&mut bytes, SHOWN).map_err(from_tch(action))?;
        calls.push(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned());
    }
    let message = difference(&calls, &differing);
    Err(Error::new(ErrorKind::Other, &**action, message).with_ranks(differing))
}

/// An all-gather of tensors that have the same shape and kind on all ranks.
pub(super) fn gather(
    group: &ProcessGroup,
    action: &Rc<str>,
    tensor: &Tensor,
    timeout: Duration,
) -> Result<Vec<Tensor>> {
    let outputs = empty_like(tensor, group.world(), action)?;
    let pointers = ffi::pointers(&outputs);
    let kept = share(outputs.iter().chain([tensor]));
    RawWork::start(action, timeout, kept, |out| {
        // SAFETY: group, input and the outputs, one per rank, are alive during the call; the work keeps the
        // tensors.
        unsafe {
            ffi::tchd_all_gather(
                group.as_ptr(),
                ffi::pointer(tensor),
                pointers.as_ptr(),
                pointers.len(),
                ffi::milliseconds(timeout),
                out,
            )
        }
    })?
    .wait()?;
    Ok(outputs)
}

/// The ranks that make another call than most do, or than rank 0 if there is no majority.
fn differing(hashes: &[i64]) -> Vec<usize> {
    let count = |hash: &i64| hashes.iter().filter(|other| *other == hash).count();
    // The first of several that are equally common.
    let common = hashes.iter().rev().max_by_key(|hash| count(hash));
    (0..hashes.len()).filter(|rank| Some(&hashes[*rank]) != common).collect()
}

fn difference(calls: &[String], differing: &[usize]) -> String {
    let usual = (0..calls.len()).find(|rank| !differing.contains(rank)).unwrap_or(0);
    let others: Vec<String> =
        differing.iter().map(|rank| format!("rank {rank} calls {}", calls[*rank])).collect();
    format!("the ranks make different calls: rank {usual} calls {}; {}", calls[usual], others.join("; "))
}

/// FNV-1a.
fn hash(text: &str) -> i64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minority_differs() {
        assert_eq!(differing(&[7, 7, 7]), [0; 0]);
        assert_eq!(differing(&[7, 8]), [1]);
        assert_eq!(differing(&[8, 7, 7]), [0]);
        assert_eq!(differing(&[1, 2, 2, 1, 3]), [1, 2, 4]);
        assert_ne!(hash("all-reduce of Float [3]"), hash("all-reduce of Float [4]"));
    }

    #[test]
    fn the_message_says_what_each_calls() {
        let calls = ["all-reduce".to_owned(), "barrier".to_owned()];
        assert_eq!(
            difference(&calls, &[1]),
            "the ranks make different calls: rank 0 calls all-reduce; rank 1 calls barrier"
        );
    }
}
