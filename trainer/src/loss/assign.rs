//! Which cells and anchors of a level learn which targets (spec §3). Targets are few and start on
//! the CPU, so the assignment is plain Rust over slices, without waiting for a device. The order of
//! the results is part of the specification: the last one written to a cell sets its objectness.

/// One labeled object as the loader gives it: index of the image in the batch, class, and the
/// center, width and height of its box, normalized to the size of the batch's images.
pub type Target = [f32; 6];

/// The width and height of an anchor, in cells of its level.
pub type AnchorSize = [f32; 2];

/// A neighbor cell learns the target too if the center is closer to it than this, in cells.
const NEIGHBOR_BIAS: f32 = 0.5;

/// One target, assigned to one anchor of one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assignment {
    /// Index of the image in the batch.
    pub image: i64,
    /// Index of the anchor within its level.
    pub anchor: i64,
    /// Row and column of the cell, both inside the grid.
    pub cell: [i64; 2],
    /// Index of the class.
    pub class: i64,
    /// The box to predict: center relative to the cell's corner, width and height, in cells.
    pub bbox: [f32; 4],
    /// The anchor's width and height, in cells.
    pub anchor_size: AnchorSize,
}

impl Assignment {
    /// The position of the cell and anchor in a contiguous (batch, anchor, row, column) array.
    pub(super) fn flat_position(&self, anchors: usize, grid: [i64; 2]) -> i64 {
        let [row, column] = self.cell;
        ((self.image * anchors as i64 + self.anchor) * grid[0] + row) * grid[1] + column
    }
}

/// A cell that may learn a target, in the order of the results: the one with the center, then its
/// neighbors.
#[derive(Debug, Clone, Copy)]
enum Block {
    Own,
    Left,
    Up,
    Right,
    Down,
}

impl Block {
    const ALL: [Self; 5] = [Self::Own, Self::Left, Self::Up, Self::Right, Self::Down];

    /// Whether `center`, on a grid of `size` columns and rows, is close enough to this neighbor, and
    /// the neighbor is inside the grid.
    fn learns(self, center: [f32; 2], size: [f32; 2]) -> bool {
        let near = |distance: f32| distance % 1.0 < NEIGHBOR_BIAS && distance > 1.0;
        match self {
            Self::Own => true,
            Self::Left => near(center[0]),
            Self::Up => near(center[1]),
            Self::Right => near(size[0] - center[0]),
            Self::Down => near(size[1] - center[1]),
        }
    }

    /// What is subtracted from the center, in x and y, before it is truncated to a cell.
    fn offset(self) -> [f32; 2] {
        match self {
            Self::Own => [0.0, 0.0],
            Self::Left => [NEIGHBOR_BIAS, 0.0],
            Self::Up => [0.0, NEIGHBOR_BIAS],
            Self::Right => [-NEIGHBOR_BIAS, 0.0],
            Self::Down => [0.0, -NEIGHBOR_BIAS],
        }
    }
}

/// Assigns targets to the cells and anchors of one level with a grid of `[rows, columns]`.
///
/// An anchor learns a target if both sides differ by a factor below `threshold`. The result is
/// ordered by kind of cell, then anchor, then target; a cell and anchor may occur several times.
pub fn assign_level(
    targets: &[Target],
    anchors: &[AnchorSize],
    grid: [i64; 2],
    threshold: f32,
) -> Vec<Assignment> {
    let size = [grid[1] as f32, grid[0] as f32];
    let scaled: Vec<([f32; 2], [f32; 2])> = targets
        .iter()
        .map(|&[_, _, x, y, w, h]| ([x * size[0], y * size[1]], [w * size[0], h * size[1]]))
        .collect();
    let matches: Vec<(usize, usize)> = (0..anchors.len())
        .flat_map(|anchor| (0..targets.len()).map(move |target| (anchor, target)))
        .filter(|&(anchor, target)| shapes_agree(scaled[target].1, anchors[anchor], threshold))
        .collect();

    let mut assignments = Vec::with_capacity(3 * matches.len());
    for block in Block::ALL {
        for &(anchor, target) in &matches {
            let (center, extent) = scaled[target];
            if !block.learns(center, size) {
                continue;
            }
            let offset = block.offset();
            let column = ((center[0] - offset[0]) as i64).clamp(0, grid[1] - 1);
            let row = ((center[1] - offset[1]) as i64).clamp(0, grid[0] - 1);
            assignments.push(Assignment {
                image: targets[target][0] as i64,
                anchor: anchor as i64,
                cell: [row, column],
                class: targets[target][1] as i64,
                bbox: [center[0] - column as f32, center[1] - row as f32, extent[0], extent[1]],
                anchor_size: anchors[anchor],
            });
        }
    }
    assignments
}

/// Whether width and height each differ from the anchor's by a factor below `threshold`. For a side
/// of zero the factor is infinite.
fn shapes_agree(extent: [f32; 2], anchor: AnchorSize, threshold: f32) -> bool {
    (0..2).all(|side| {
        let ratio = extent[side] / anchor[side];
        ratio < threshold && 1.0 / ratio < threshold
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: [i64; 2] = [8, 8];

    /// A target of image 0, class 3, with its box in cells of an 8×8 grid.
    fn target(x: f32, y: f32, w: f32, h: f32) -> Target {
        [0.0, 3.0, x / 8.0, y / 8.0, w / 8.0, h / 8.0]
    }

    fn cells(assignments: &[Assignment]) -> Vec<[i64; 2]> {
        assignments.iter().map(|a| a.cell).collect()
    }

    #[test]
    fn a_target_is_learned_by_its_cell_and_the_two_nearest_neighbors() {
        let low = assign_level(&[target(3.25, 5.75, 2.0, 2.0)], &[[2.0, 2.0]], GRID, 4.0);
        assert_eq!(cells(&low), [[5, 3], [5, 2], [6, 3]], "own, left, below");
        assert_eq!(low[0].bbox, [0.25, 0.75, 2.0, 2.0]);
        assert_eq!(low[1].bbox, [1.25, 0.75, 2.0, 2.0]);
        assert_eq!(low[2].bbox, [0.25, -0.25, 2.0, 2.0]);
        let high = assign_level(&[target(3.75, 5.25, 2.0, 2.0)], &[[2.0, 2.0]], GRID, 4.0);
        assert_eq!(cells(&high), [[5, 3], [4, 3], [5, 4]], "own, above, right");
    }

    #[test]
    fn neighbors_outside_the_grid_are_left_out() {
        let corner = assign_level(&[target(0.25, 7.75, 2.0, 2.0)], &[[2.0, 2.0]], GRID, 4.0);
        assert_eq!(cells(&corner), [[7, 0]]);
    }

    #[test]
    fn a_center_on_the_far_border_belongs_to_the_last_cell() {
        let edge = assign_level(&[target(8.0, 8.0, 2.0, 2.0)], &[[2.0, 2.0]], GRID, 4.0);
        assert_eq!(cells(&edge), [[7, 7], [7, 7], [7, 7]]);
        assert!(edge.iter().all(|a| a.bbox[..2] == [1.0, 1.0]));
    }

    #[test]
    fn an_anchor_four_times_as_large_is_too_large() {
        let anchors = [[8.0, 2.0], [7.9, 2.0], [0.5, 2.0], [0.51, 2.0]];
        let matched = assign_level(&[target(3.5, 3.5, 2.0, 2.0)], &anchors, GRID, 4.0);
        let mut indices: Vec<_> = matched.iter().map(|a| a.anchor).collect();
        indices.dedup();
        assert_eq!(indices, [1, 3]);
    }

    #[test]
    fn boxes_without_area_are_assigned_to_nothing() {
        let flat = [target(3.5, 3.5, 0.0, 2.0), target(3.5, 3.5, 0.0, 0.0)];
        assert!(assign_level(&flat, &[[2.0, 2.0]], GRID, 4.0).is_empty());
        assert!(assign_level(&[], &[[2.0, 2.0]], GRID, 4.0).is_empty());
    }

    #[test]
    fn results_are_ordered_by_block_then_anchor_then_target() {
        let targets = [target(3.25, 3.5, 2.0, 2.0), target(5.25, 3.5, 2.0, 2.0)];
        let matched = assign_level(&targets, &[[2.0, 2.0], [3.0, 3.0]], GRID, 4.0);
        let order: Vec<_> = matched.iter().map(|a| (a.cell[1], a.anchor)).collect();
        assert_eq!(
            order,
            [(3, 0), (5, 0), (3, 1), (5, 1), (2, 0), (4, 0), (2, 1), (4, 1)],
            "in the middle of a row there are no neighbors above and below",
        );
    }
}
