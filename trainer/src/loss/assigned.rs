//! The assignments of a batch's targets on all levels, in host memory, in the order in which [`super::matched`] sends them to
//! the device. They need the sizes of the heads but not their values, so a thread can make them
//! while another launches the network.

use super::assign::{AnchorSize, Assignment, Target, assign_level};

/// Image, anchor, row, column and class of every assignment.
pub(super) const INTEGER_ROWS: i64 = 5;
/// Target box (4), anchor (2) and weight in the mean of the level.
pub(super) const NUMBER_COLUMNS: usize = 7;

/// The assignments of one level, as ranges in the numbers of all.
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

/// The assignments of a batch.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// The `[rows, columns]` of each level.
    pub(super) grids: Vec<[i64; 2]>,
    pub(super) levels: Vec<LevelRange>,
    /// [`INTEGER_ROWS`] for all assignments, one after the other; then, for each write of an objectness, the row in the
    /// assignments, and then its flat position in the level.
    pub(super) integers: Vec<i64>,
    /// [`NUMBER_COLUMNS`] for each assignment.
    pub(super) numbers: Vec<f32>,
    /// How many objectnesses are written.
    pub(super) writes: usize,
}

/// Assigns targets to the anchors of a model.
#[derive(Debug, Clone)]
pub(crate) struct Assigner {
    /// In cells of their level.
    pub(super) anchors: Vec<Vec<AnchorSize>>,
    /// An anchor learns a target if both sides differ by a factor below this.
    pub(super) threshold: f32,
}

impl Assigner {
    /// Assigns `targets` to levels with these grids `[rows, columns]`.
    pub(crate) fn assign(&self, targets: &[Target], grids: Vec<[i64; 2]>) -> Assigned {
        let mut assignments = Vec::new();
        let mut writes = Vec::new();
        let mut weights = Vec::new();
        let mut levels = Vec::with_capacity(grids.len());
        for (anchors, &grid) in self.anchors.iter().zip(&grids) {
            let start = assignments.len() as i64;
            let write_start = writes.len() as i64;
            let level = assign_level(targets, anchors, grid, self.threshold);
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

        let integers = (0..INTEGER_ROWS)
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
        Assigned { grids, levels, integers, numbers, writes: writes.len() }
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

/// The index and position of the last occurrence of each distinct position, in the order of the indices. A batch has
/// ten thousands of positions, and a hash table of them took longer than the rest of the assignment. Positions are not
/// negative: targets were checked.
fn last_writes(positions: &[i64]) -> Vec<(usize, i64)> {
    let most = positions.iter().copied().max().map_or(0, |most| most as usize + 1);
    let mut seen = vec![0_u64; most.div_ceil(64)];
    let is_last = |&(_, at): &(usize, i64)| {
        let (word, bit) = (&mut seen[at as usize / 64], 1 << (at as usize % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    };
    let mut writes: Vec<_> = positions.iter().copied().enumerate().rev().filter(is_last).collect();
    writes.reverse();
    writes
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
