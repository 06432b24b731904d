//! The decoded outputs of a batch in host memory, in rows of `5 + nc` numbers, which suppression reads. Those of a
//! GPU are filtered there: at COCO's size, only some hundred of the 25,200 rows of an image can become detections.

use tch::{Kind, Tensor};
use tch_train::HostFloats;

use crate::error::TrainError;

/// The rows of the images of a batch.
#[derive(Debug)]
pub struct Rows {
    numbers: HostFloats,
    /// Numbers of all images up to the end of each one.
    ends: Vec<usize>,
}

impl Rows {
    /// All rows of decoded outputs (B, N, 5 + nc). On the CPU they are shared, not copied.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn all(decoded: &Tensor) -> Result<Self, TrainError> {
        let (images, rows, outputs) = decoded.size3()?;
        let ends = (1..=images).map(|image| (image * rows * outputs) as usize).collect();
        Ok(Self { numbers: HostFloats::new(decoded)?, ends })
    }

    /// The rows whose most probable class is above the confidence, in their order. They are found on the device of
    /// the outputs, and only they are copied.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn above(decoded: &Tensor, confidence: f32) -> Result<Self, TrainError> {
        let (_, _, outputs) = decoded.size3()?;
        let objectness = decoded.f_select(2, 4)?.f_to_kind(Kind::Float)?;
        // The largest product is that of the largest probability, with the same rounding.
        let probability = decoded.f_narrow(2, 5, outputs - 5)?.f_amax([2], false)?.f_to_kind(Kind::Float)?;
        let confidence = f64::from(confidence);
        let above = (probability.f_mul(&objectness)?.f_gt(confidence)?)
            .f_logical_and(&objectness.f_gt(confidence)?)?;
        let counts = above.f_sum_dim_intlist([1_i64].as_slice(), false, Kind::Int64)?;
        let chosen = above.f_reshape([-1])?.f_nonzero()?.f_reshape([-1])?;
        let rows = decoded.f_reshape([-1, outputs])?.f_index_select(0, &chosen)?;
        let ends = Vec::<i64>::try_from(counts)?.into_iter().scan(0, |end, count| {
            *end += (count * outputs) as usize;
            Some(*end)
        });
        Ok(Self { ends: ends.collect(), numbers: HostFloats::new(&rows)? })
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch has no image.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows of the image with this index, one after the other.
    pub fn of_image(&self, index: usize) -> &[f32] {
        let end = |index: usize| self.ends.get(index).copied().unwrap_or_default();
        let begin = index.checked_sub(1).map_or(0, end);
        self.numbers.as_slice().get(begin..end(index)).unwrap_or_default()
    }

    /// The rows of all images.
    pub fn images(&self) -> impl Iterator<Item = &[f32]> {
        (0..self.len()).map(|index| self.of_image(index))
    }
}
