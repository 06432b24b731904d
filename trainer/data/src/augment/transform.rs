//! The random transform of spec §7: eight draws become one matrix M = T·S·R·P·C (translate, shear,
//! rotate and scale, perspective, center).

use super::Augment;
use crate::image::warp::Matrix;
use crate::random::Random;

/// The random numbers of one transform, in the order of the draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draws {
    /// Perspective along x and y.
    pub perspective: [f64; 2],
    /// Rotation in degrees, counterclockwise.
    pub angle: f64,
    /// Scale.
    pub scale: f64,
    /// Shear along x and y, in degrees.
    pub shear: [f64; 2],
    /// Position of the center, as fractions of the output's width and height.
    pub translate: [f64; 2],
}

impl Draws {
    /// Draws within the limits of `augment`.
    pub fn random(augment: &Augment, random: &mut Random) -> Self {
        let mut around = |middle: f64, limit: f64| random.uniform(middle - limit, middle + limit);
        Self {
            perspective: [around(0.0, augment.perspective), around(0.0, augment.perspective)],
            angle: around(0.0, augment.degrees),
            scale: around(1.0, augment.scale),
            shear: [around(0.0, augment.shear), around(0.0, augment.shear)],
            translate: [around(0.5, augment.translate), around(0.5, augment.translate)],
        }
    }
}

/// A transform of an image and its labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transform {
    /// Maps input to output pixels.
    pub matrix: Matrix,
    /// The scale alone, for the area rule of labels.
    pub scale: f64,
}

impl Transform {
    /// The transform from an input to an output size, each height and width.
    pub fn new(draws: &Draws, input: [usize; 2], output: [usize; 2]) -> Self {
        let [height, width] = input.map(|side| side as f64);
        let [out_height, out_width] = output.map(|side| side as f64);
        let center = [[1.0, 0.0, -width / 2.0], [0.0, 1.0, -height / 2.0], [0.0, 0.0, 1.0]];
        let [px, py] = draws.perspective;
        let perspective = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [px, py, 1.0]];
        let (sin, cos) = draws.angle.to_radians().sin_cos();
        let (a, b) = (draws.scale * cos, draws.scale * sin);
        let rotate = [[a, b, 0.0], [-b, a, 0.0], [0.0, 0.0, 1.0]];
        let [sx, sy] = draws.shear.map(|degrees| degrees.to_radians().tan());
        let shear = [[1.0, sx, 0.0], [sy, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let [tx, ty] = draws.translate;
        let translate = [[1.0, 0.0, tx * out_width], [0.0, 1.0, ty * out_height], [0.0, 0.0, 1.0]];
        let matrix = [perspective, rotate, shear, translate]
            .iter()
            .fold(center, |product, next| multiply(next, &product));
        Self { matrix, scale: draws.scale }
    }

    /// Whether the transform changes nothing.
    pub fn is_identity(&self) -> bool {
        self.matrix == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    }
}

/// The matrix product of `a` and `b`.
fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| (0..3).map(|k| a[row][k] * b[k][column]).sum()))
}

/// Maps a point.
pub fn apply(matrix: &Matrix, [x, y]: [f32; 2]) -> [f32; 2] {
    let [u, v, w] = matrix.map(|[a, b, c]| a * f64::from(x) + b * f64::from(y) + c);
    [(u / w) as f32, (v / w) as f32]
}
