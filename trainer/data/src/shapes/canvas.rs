//! Draws backgrounds: two colors mixed by smooth noise, some with stripes or checks, all with grain, and a
//! few scratches. Neither a color nor an edge alone reveals an object.

use super::rng::Rng;
use crate::image::Image;

/// A background of `side` by `side` pixels.
pub(super) fn background(rng: &mut Rng, side: usize) -> Image {
    let from = rng.color(40, 200);
    let to = from.map(|value| (value + rng.between(-45, 45)).clamp(20, 220));
    let coarse = noise(rng, side, 40);
    let fine = noise(rng, side, 10);
    let pattern = rng.between(0, 3);
    let (period, strength) = (rng.between(8, 24), rng.between(8, 22));
    let (across, down) = (rng.between(-3, 3), rng.between(1, 3));
    let grain = rng.between(3, 14);
    let mut image = Image::filled(side, side, [0; 3]);
    for y in 0..side {
        for x in 0..side {
            let at = y * side + x;
            let mix = (2 * coarse[at] + fine[at]) / 3;
            let (column, row) = (x as i64, y as i64);
            let lift = match pattern {
                1 => (column * across + row * down).div_euclid(period) & 1,
                2 => (column / period + row / period) & 1,
                _ => 0,
            } * strength;
            for channel in 0..3 {
                let value = from[channel] + (to[channel] - from[channel]) * mix / 256 + lift;
                image.data[at * 3 + channel] = (value + rng.between(-grain, grain)).clamp(0, 255) as u8;
            }
        }
    }
    for _ in 0..rng.between(0, 4) {
        scratch(rng, &mut image);
    }
    image
}

/// Smooth noise from 0 to 256: random values on a grid of `cell` pixels, interpolated bilinearly.
fn noise(rng: &mut Rng, side: usize, cell: usize) -> Vec<i64> {
    let columns = side / cell + 2;
    let grid: Vec<i64> = (0..columns * columns).map(|_| rng.between(0, 256)).collect();
    let size = cell as i64;
    let mut values = Vec::with_capacity(side * side);
    for y in 0..side {
        for x in 0..side {
            let at = y / cell * columns + x / cell;
            let (right, down) = ((x % cell) as i64, (y % cell) as i64);
            let above = grid[at] * (size - right) + grid[at + 1] * right;
            let below = grid[at + columns] * (size - right) + grid[at + columns + 1] * right;
            values.push((above * (size - down) + below * down) / (size * size));
        }
    }
    values
}

/// Draws a thin line across a part of the image.
fn scratch(rng: &mut Rng, image: &mut Image) {
    let side = image.width as i64;
    let (mut x, mut y) = (rng.between(0, side - 1) * 256, rng.between(0, side - 1) * 256);
    let (across, down) = (rng.between(-256, 256), rng.between(-256, 256));
    let change = rng.between(-60, 60);
    for _ in 0..rng.between(20, side) {
        (x, y) = (x + across, y + down);
        let (column, row) = (x >> 8, y >> 8);
        if !(0..side).contains(&column) || !(0..side).contains(&row) {
            break;
        }
        let at = (row * side + column) as usize * 3;
        for value in &mut image.data[at..at + 3] {
            *value = (i64::from(*value) + change).clamp(0, 255) as u8;
        }
    }
}
