//! The assignments of all levels as two tensors on the device of the heads, one of integers and one of floats: a step
//! sends everything that the loss needs with two copies, for which the host does not wait.

use tch::{Device, TchError, Tensor};
use tch_train::copy_to_device;

use super::assigned::{Assigned, INTEGER_ROWS, LevelRange, NUMBER_COLUMNS};
use crate::error::TrainError;

/// The columns of a head before the classes: x, y, width, height, objectness.
pub(super) const BOX_COLUMNS: i64 = 5;

/// The assignments of all levels on the device of the heads.
#[derive(Debug)]
pub(super) struct Matched {
    levels: Vec<LevelRange>,
    /// (5, n): image, anchor, row, column, class.
    integers: Tensor,
    /// (n, 7): target center and size, anchor size, 1 / assignments of the level.
    numbers: Tensor,
    /// (2, m): row in the assignments, and flat position in the level, of each objectness.
    writes: Tensor,
}

impl Matched {
    /// Sends assignments to `device`.
    pub(super) fn on(device: Device, assigned: Assigned) -> Result<Self, TrainError> {
        let Assigned { levels, integers, numbers, writes: m, .. } = assigned;
        let (n, m) = ((numbers.len() / NUMBER_COLUMNS) as i64, m as i64);
        let integers = copy_to_device(&Tensor::f_from_slice(&integers)?, device)?;
        Ok(Self {
            levels,
            writes: integers.f_narrow(0, INTEGER_ROWS * n, 2 * m)?.f_view([2, m])?,
            integers: integers.f_narrow(0, 0, INTEGER_ROWS * n)?.f_view([INTEGER_ROWS, n])?,
            numbers: copy_to_device(&Tensor::f_from_slice(&numbers)?, device)?
                .f_view([n, NUMBER_COLUMNS as i64])?,
        })
    }

    /// The ranges of the levels, in order.
    pub(super) fn levels(&self) -> &[LevelRange] {
        &self.levels
    }

    /// Whether no target was assigned on any level.
    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.count == 0)
    }

    /// The rows of a head (batch, anchor, row, column, values) at a level's assignments: (count,
    /// values).
    pub(super) fn gather(&self, head: &Tensor, level: LevelRange) -> Result<Tensor, TchError> {
        let part = self.integers.f_narrow(1, level.start, level.count)?;
        let indices = (0..4).map(|row| part.f_select(0, row).map(Some)).collect::<Result<Vec<_>, _>>()?;
        head.f_index(&indices)
    }

    /// Writes the `values` (n) of the assignments into a level's (batch, anchor, row, column) array. Of
    /// several for the same element, the last one counts.
    pub(super) fn write(
        &self,
        array: &mut Tensor,
        values: &Tensor,
        level: LevelRange,
    ) -> Result<(), TchError> {
        let part = self.writes.f_narrow(1, level.write_start, level.write_count)?;
        let values = values.f_index_select(0, &part.f_select(0, 0)?)?;
        // The positions are distinct, so the order of the writes on a device does not matter.
        let _ = array.f_view([-1])?.f_scatter_(0, &part.f_select(0, 1)?, &values)?;
        Ok(())
    }

    /// The class of every assignment: (n, 1).
    pub(super) fn classes(&self) -> Result<Tensor, TchError> {
        self.integers.f_select(0, 4)?.f_unsqueeze(1)
    }

    /// The center of every target box: (n, 2).
    pub(super) fn target_centers(&self) -> Result<Tensor, TchError> {
        self.numbers.f_narrow(1, 0, 2)
    }

    /// The width and height of every target box: (n, 2).
    pub(super) fn target_sizes(&self) -> Result<Tensor, TchError> {
        self.numbers.f_narrow(1, 2, 2)
    }

    /// The width and height of every assignment's anchor: (n, 2).
    pub(super) fn anchor_sizes(&self) -> Result<Tensor, TchError> {
        self.numbers.f_narrow(1, 4, 2)
    }

    /// One over the number of assignments of the level: (n, 1). A sum with these weights is the sum of
    /// the levels' means.
    pub(super) fn weights(&self) -> Result<Tensor, TchError> {
        self.numbers.f_narrow(1, 6, 1)
    }
}
