//! The assignments of all levels as two tensors, one of integers and one of floats. A step sends
//! everything that the loss needs to the device with two copies, for which the host does not wait.

use std::collections::HashMap;

use tch::{Device, TchError, Tensor};
use tch_train::copy_to_device;

use super::assign::{AnchorSize, Assignment, Target, assign_level};
use crate::error::TrainError;

/// The columns of a head before the classes: x, y, width, height, objectness.
pub(super) const BOX_COLUMNS: i64 = 5;
/// Image, anchor, row, column and class of every assignment.
const INTEGER_ROWS: i64 = 5;
/// Target box (4), anchor (2) and weight in the mean of the level.
const NUMBER_COLUMNS: usize = 7;

/// The assignments of one level, as ranges in the tensors of [`Matched`].
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelRange {
    /// The first assignment of the level.
    pub(super) start: i64,
    /// How many assignments the level has.
    pub(super) count: i64,
    /// The first objectness write of the level.
    pub(super) write_start: i64,
    /// How many distinct cells and anchors get an objectness.
    pub(super) write_count: i64,
}

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
    /// Assigns `targets` to levels with the given grids `[rows, columns]` and anchors (in cells),
    /// and sends the result to `device`.
    pub(super) fn new(
        targets: &[Target],
        anchors: &[Vec<AnchorSize>],
        grids: &[[i64; 2]],
        threshold: f32,
        device: Device,
    ) -> Result<Self, TrainError> {
        let mut assignments = Vec::new();
        let mut writes = Vec::new();
        let mut weights = Vec::new();
        let mut levels = Vec::with_capacity(grids.len());
        for (anchors, &grid) in anchors.iter().zip(grids) {
            let start = assignments.len() as i64;
            let write_start = writes.len() as i64;
            let level = assign_level(targets, anchors, grid, threshold);
            let positions: Vec<i64> = level.iter().map(|a| a.flat_position(anchors.len(), grid)).collect();
            writes.extend(last_writes(&positions).into_iter().map(|(row, at)| (start + row as i64, at)));
            weights.resize(weights.len() + level.len(), 1.0 / level.len() as f32);
            levels.push(LevelRange {
                start,
                count: level.len() as i64,
                write_start,
                write_count: writes.len() as i64 - write_start,
            });
            assignments.extend(level);
        }

        let integers: Vec<i64> = (0..INTEGER_ROWS)
            .flat_map(|row| assignments.iter().map(move |a| integer(a, row)))
            .chain(writes.iter().map(|w| w.0))
            .chain(writes.iter().map(|w| w.1))
            .collect();
        let mut numbers = Vec::with_capacity(NUMBER_COLUMNS * assignments.len());
        for (assignment, weight) in assignments.iter().zip(weights) {
            numbers.extend(assignment.bbox);
            numbers.extend(assignment.anchor_size);
            numbers.push(weight);
        }
        let (n, m) = (assignments.len() as i64, writes.len() as i64);
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

fn integer(assignment: &Assignment, row: i64) -> i64 {
    match row {
        0 => assignment.image,
        1 => assignment.anchor,
        2 => assignment.cell[0],
        3 => assignment.cell[1],
        _ => assignment.class,
    }
}

/// The index and position of the last occurrence of each distinct position.
fn last_writes(positions: &[i64]) -> Vec<(usize, i64)> {
    let last: HashMap<i64, usize> = positions.iter().enumerate().map(|(row, &at)| (at, row)).collect();
    positions.iter().copied().enumerate().filter(|(row, at)| last[at] == *row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_write_to_a_position_counts() {
        assert_eq!(last_writes(&[7, 3, 7, 1, 3]), [(2, 7), (3, 1), (4, 3)]);
        assert!(last_writes(&[]).is_empty());
    }
}
