//! Affine and perspective warps of one image with a constant border, like OpenCV's `warpAffine` and
//! `warpPerspective`. The loader warps by [`super::tiles`], which gives the same bytes sooner; its tests compare
//! with this plain form.

use super::Image;
use super::bilinear::{fixed, mix_pixels, pixel_of};
use super::letterbox::PADDING;

/// A 3×3 matrix that maps homogeneous pixel coordinates (x, y, 1).
pub type Matrix = [[f64; 3]; 3];

/// The inverse of `m`, or `None` if it is singular.
pub fn invert(m: &Matrix) -> Option<Matrix> {
    let minor = |r: [usize; 2], c: [usize; 2]| m[r[0]][c[0]] * m[r[1]][c[1]] - m[r[0]][c[1]] * m[r[1]][c[0]];
    let determinant =
        m[0][0] * minor([1, 2], [1, 2]) - m[0][1] * minor([1, 2], [0, 2]) + m[0][2] * minor([1, 2], [0, 1]);
    if determinant == 0.0 || !determinant.is_finite() {
        return None;
    }
    let others = [[1, 2], [0, 2], [0, 1]];
    Some(std::array::from_fn(|row| {
        std::array::from_fn(|column| {
            let sign = if (row + column) % 2 == 0 { 1.0 } else { -1.0 };
            sign * minor(others[column], others[row]) / determinant
        })
    }))
}

/// Warps `source` by `matrix`, which maps source to output pixels, into `out` of `width` by `height`
/// pixels. Pixels from outside the source are [`PADDING`]. If the matrix is singular, all are.
pub fn warp(source: &Image, matrix: &Matrix, width: usize, height: usize, out: &mut Image) {
    out.width = width;
    out.height = height;
    out.data.resize(width * height * 3, 0);
    let Some(inverse) = invert(matrix) else {
        out.data.fill(PADDING);
        return;
    };
    let affine = matrix[2] == [0.0, 0.0, 1.0];
    for (y, row) in out.data.chunks_exact_mut(width * 3).enumerate() {
        let (row, _) = row.as_chunks_mut::<3>();
        if affine {
            affine_row(source, &inverse, y, row);
        } else {
            perspective_row(source, &inverse, y, row);
        }
    }
}

/// Fills an output row of an affine warp; positions advance by a constant step.
fn affine_row(source: &Image, inverse: &Matrix, y: usize, row: &mut [[u8; 3]]) {
    let start = |axis: usize| fixed(inverse[axis][1] * y as f64 + inverse[axis][2]);
    let (mut x_at, mut y_at) = (start(0), start(1));
    let (x_step, y_step) = (fixed(inverse[0][0]), fixed(inverse[1][0]));
    for pixel in row {
        *pixel = sample(source, x_at, y_at);
        x_at = x_at.saturating_add(x_step);
        y_at = y_at.saturating_add(y_step);
    }
}

/// Fills an output row of a perspective warp, with one division per pixel.
fn perspective_row(source: &Image, inverse: &Matrix, y: usize, row: &mut [[u8; 3]]) {
    let base = inverse.map(|line| line[1] * y as f64 + line[2]);
    for (x, pixel) in row.iter_mut().enumerate() {
        let [x_at, y_at, w] = std::array::from_fn(|axis| inverse[axis][0] * x as f64 + base[axis]);
        *pixel = if w == 0.0 { [PADDING; 3] } else { sample(source, fixed(x_at / w), fixed(y_at / w)) };
    }
}

/// The bilinear sample at a fixed-point position.
#[inline]
fn sample(source: &Image, x: i64, y: i64) -> [u8; 3] {
    let (column, line) = (pixel_of(x), pixel_of(y));
    if column >= 0 && line >= 0 {
        let (column, line) = (column as usize, line as usize);
        if column + 1 < source.width && line + 1 < source.height {
            let at = (line * source.width + column) * 3;
            let next = at + source.width * 3;
            // One bounds check per source row for two neighboring pixels.
            if let (Some(&[ar, ag, ab, br, bg, bb]), Some(&[cr, cg, cb, dr, dg, db])) =
                (source.data[at..].first_chunk(), source.data[next..].first_chunk())
            {
                return mix_pixels([[ar, ag, ab], [br, bg, bb], [cr, cg, cb], [dr, dg, db]], x, y);
            }
        }
    }
    let inside = |value: i32, limit: usize| value >= -1 && (i64::from(value)) < limit as i64;
    if !inside(column, source.width) || !inside(line, source.height) {
        return [PADDING; 3];
    }
    // At the edge, neighbors outside the source are border.
    let at = |column: i32, line: i32| match (usize::try_from(column), usize::try_from(line)) {
        (Ok(x), Ok(y)) if x < source.width && y < source.height => source.pixel(x, y),
        _ => [PADDING; 3],
    };
    let four = [at(column, line), at(column + 1, line), at(column, line + 1), at(column + 1, line + 1)];
    mix_pixels(four, x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let m = [[1.2, 0.3, -7.0], [-0.2, 0.9, 4.0], [0.001, -0.002, 1.1]];
        let inverse = invert(&m).expect("not singular");
        for (row, line) in m.iter().enumerate() {
            for column in 0..3 {
                let product: f64 = line.iter().zip(&inverse).map(|(a, b)| a * b[column]).sum();
                assert!((product - f64::from(u8::from(row == column))).abs() < 1e-12);
            }
        }
        assert_eq!(invert(&[[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]), None);
    }

    #[test]
    fn a_shift_by_whole_pixels_moves_pixels_and_fills_the_rest() {
        let source = Image { width: 2, height: 1, data: vec![1, 2, 3, 4, 5, 6] };
        let shift = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let mut out = Image::default();
        warp(&source, &shift, 3, 2, &mut out);
        assert_eq!(out.data, [114, 114, 114, 1, 2, 3, 4, 5, 6, 114, 114, 114, 114, 114, 114, 114, 114, 114]);
    }

    #[test]
    fn matrices_that_are_singular_huge_or_not_numbers_give_padding() {
        let source = Image { width: 2, height: 2, data: vec![9; 12] };
        let mut out = Image::default();
        for scale in [0.0, 1e-300, f64::NAN, f64::INFINITY] {
            warp(&source, &[[scale, 0.0, 50.0], [0.0, scale, 50.0], [0.0, 0.0, 1.0]], 4, 4, &mut out);
            assert!(out.data.iter().all(|&p| p == PADDING), "scale {scale}");
        }
    }
}
