//! Collectives of byte strings, for whatever a program serializes.

use tch::{Device, Kind, Tensor};

use super::tensors::from_tch;
use crate::error::Result;
use crate::process_group::ProcessGroup;

impl ProcessGroup {
    /// Returns the byte strings of all ranks, in rank order. Their lengths may differ.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let action = self.action("all-gather of bytes");
        let length = Tensor::f_from_slice(&[bytes.len() as i64]).map_err(from_tch(&action))?;
        let lengths = self
            .all_gather(&length)?
            .iter()
            .map(|length| length.f_int64_value(&[0]))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(from_tch(&action))?;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); self.world()]);
        }
        // Shapes must be the same, so all ranks pad to the longest.
        let mut padded = bytes.to_vec();
        padded.resize(longest as usize, 0);
        let padded = Tensor::f_from_slice(&padded).map_err(from_tch(&action))?;
        let gathered = self.all_gather(&padded)?;
        gathered
            .iter()
            .zip(lengths)
            .map(|(tensor, length)| bytes_of(tensor, length as usize).map_err(from_tch(&action)))
            .collect()
    }

    /// Returns the byte string of rank `root`. On other ranks `bytes` is ignored.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or `root` is not a rank.
    pub fn broadcast_bytes(&self, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        let action = self.action("broadcast of bytes");
        let length = Tensor::f_from_slice(&[bytes.len() as i64]).map_err(from_tch(&action))?;
        self.broadcast(&[&length], root)?;
        let length = length.f_int64_value(&[0]).map_err(from_tch(&action))?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let message = if self.rank() == root {
            Tensor::f_from_slice(bytes)
        } else {
            Tensor::f_zeros([length], (Kind::Uint8, Device::Cpu))
        }
        .map_err(from_tch(&action))?;
        self.broadcast(&[&message], root)?;
        bytes_of(&message, length as usize).map_err(from_tch(&action))
    }
}

/// The first `length` bytes of a one-dimensional byte tensor.
fn bytes_of(tensor: &Tensor, length: usize) -> std::result::Result<Vec<u8>, tch::TchError> {
    let mut bytes = vec![0; length];
    tensor.f_copy_data_u8(&mut bytes, length)?;
    Ok(bytes)
}
