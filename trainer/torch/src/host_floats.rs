//! The numbers of a tensor in host memory as a slice, without a copy. Suppression reads hundreds of megabytes
//! of them for each batch.

#![expect(unsafe_code, reason = "reads a tensor's memory")]

use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};

/// The numbers of a tensor, which this value owns.
#[derive(Debug)]
pub struct HostFloats {
    /// Invariant: contiguous, float32, in host memory, and `length` numbers long.
    tensor: Tensor,
    length: usize,
}

impl HostFloats {
    /// Takes the numbers of `tensor` in its order. A tensor on another device, of another type, or not contiguous
    /// is copied; any other is shared, so nobody may write to it as long as this value is in use. Waits for
    /// the device.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(tensor: &Tensor) -> Result<Self> {
        let tensor = tensor
            .f_detach()
            .and_then(|tensor| tensor.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous())
            .map_err(|error| Error::from_tch("reading the numbers of a tensor", &error))?;
        let length = tensor.numel();
        Ok(Self { tensor, length })
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[f32] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: by the invariant, `length` float32 numbers lie there one after the other, and the tensor keeps
        // them alive. Whoever shares the tensor does not write to it, as `new` requires.
        unsafe { std::slice::from_raw_parts(self.tensor.data_ptr().cast::<f32>(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_contiguous_tensor_are_not_copied() {
        let tensor = Tensor::from_slice(&[1.0_f32, 2.0, 3.0]);
        let numbers = HostFloats::new(&tensor).unwrap();
        assert_eq!(numbers.as_slice(), [1.0, 2.0, 3.0]);
        assert_eq!(numbers.as_slice().as_ptr(), tensor.data_ptr().cast());
    }

    #[test]
    fn any_other_tensor_is_read_in_its_order() {
        let turned = Tensor::from_slice(&[1_i64, 2, 3, 4]).view([2, 2]).transpose(0, 1);
        assert_eq!(HostFloats::new(&turned).unwrap().as_slice(), [1.0, 3.0, 2.0, 4.0]);
        let empty = Tensor::from_slice::<f32>(&[]);
        assert!(HostFloats::new(&empty).unwrap().as_slice().is_empty());
    }
}
