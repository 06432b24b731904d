//! Samples of a warp without rotation and shear, which is the default. All rows of the output then show the same
//! columns of a tile, and rows that follow each other often the same lines, so each line is filtered along x once
//! and kept while it is needed. The bytes are those of [`super::bilinear::mix`].

use super::bilinear::{CHUNK, Neighbors, filter_chunk, mix_lines};

/// The two lines of a tile that were needed last, filtered along x.
#[derive(Debug, Default)]
pub struct Filtered {
    /// The number of each line; the place of a line is the last bit of its number, so neighbors never collide.
    held: [Option<i32>; 2],
    /// Three channels of each line.
    lines: [Vec<i32>; 2],
}

impl Filtered {
    /// Forgets the lines; the next are of another tile or of other columns.
    pub fn clear(&mut self) {
        self.held = [None; 2];
    }

    /// Filters `pixels`, which are line `number` of the tile, unless that is done. The output has `count` pixels, at
    /// least [`CHUNK`], at position `x` of the line and then every `step`, all with two neighbors in the line.
    pub fn prepare(&mut self, number: i32, pixels: &[u8], [x, step]: [i64; 2], count: usize) {
        let place = (number & 1) as usize;
        if self.held[place].replace(number) == Some(number) {
            return;
        }
        let line = &mut self.lines[place];
        line.resize(3 * count, 0);
        let mut neighbors = Neighbors::default();
        for first in (0..count).step_by(CHUNK) {
            // The last chunk may begin in the one before, and gives the same numbers again.
            let first = first.min(count - CHUNK);
            let start = x + step * first as i64;
            neighbors.gather(pixels, start, step);
            let [red, green, blue] = channels(line, count).map(|channel| channel[first..].first_chunk_mut());
            if let (Some(red), Some(green), Some(blue)) = (red, green, blue) {
                filter_chunk(&neighbors, [start as u32, step as u32], [red, green, blue]);
            }
        }
    }

    /// Mixes line `number` and the next one, both prepared, into a row; `lower` is the weight of the next one.
    pub fn mix(&self, number: i32, lower: u32, row: [&mut [u8]; 3]) {
        let [above, below] = [number, number + 1].map(|number| &self.lines[(number & 1) as usize]);
        let count = row[0].len();
        for ((out, above), below) in row.into_iter().zip(above.chunks(count)).zip(below.chunks(count)) {
            mix_lines(above, below, lower, out);
        }
    }
}

/// The three channels of a line.
fn channels(line: &mut [i32], count: usize) -> [&mut [i32]; 3] {
    let (red, rest) = line.split_at_mut(count);
    let (green, blue) = rest.split_at_mut(count);
    [red, green, blue]
}
