//! `confusion_matrix.svg` and `.png`: which class was predicted for the objects of each class, as fractions of
//! those objects. Cells have numbers where they can be read.

use std::error::Error;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plot_style::{Plot, write};
use crate::error::TrainError;
use crate::metrics::ConfusionMatrix;

/// Numbers and names are written if there are at most this many classes.
const READABLE: usize = 30;

/// Draws the matrix with normalized columns into `folder`, as SVG and PNG, and returns the path of the first.
///
/// # Errors
/// When the file cannot be written.
pub fn plot_confusion(
    matrix: &ConfusionMatrix,
    names: &[String],
    folder: &Path,
) -> Result<PathBuf, TrainError> {
    write(&Confusion { matrix, names }, &folder.join("confusion_matrix.svg"), "png")
}

/// The side of the matrix.
const SIDE: i32 = 640;
/// Room for names.
const LEFT: i32 = 170;
/// Room for the caption.
const TOP: i32 = 48;
/// Room for names.
const BOTTOM: i32 = 170;
/// The largest letters. Those of many classes are as large as the cells allow.
const LETTERS: i32 = 24;
/// The smallest letters.
const SMALLEST: i32 = 11;

/// A matrix, and the names of the classes.
struct Confusion<'a> {
    matrix: &'a ConfusionMatrix,
    names: &'a [String],
}

impl Plot for Confusion<'_> {
    const SIZE: (u32, u32) = ((LEFT + SIDE + 20) as u32, (TOP + SIDE + BOTTOM) as u32);

    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let Self { matrix, names } = *self;
        let classes = matrix.classes();
        let cells = classes as i32 + 1;
        let name = |index: usize| {
            if index == classes { "background" } else { names.get(index).map_or("?", String::as_str) }
        };
        let centered =
            |size: i32| ("sans-serif", size).into_text_style(sheet).pos(Pos::new(HPos::Center, VPos::Center));
        let numbers = (SIDE / cells * 2 / 5).clamp(SMALLEST, LETTERS);
        let letters = (SIDE / cells * 4 / 5).clamp(SMALLEST, LETTERS);
        let edge = |cell: i32| cell * SIDE / cells;
        for truth in 0..=classes {
            let total: u64 = (0..=classes).map(|predicted| matrix.count(predicted, truth)).sum();
            for predicted in 0..=classes {
                let share = matrix.count(predicted, truth) as f64 / total.max(1) as f64;
                let (x, y) = (LEFT + edge(truth as i32), TOP + edge(predicted as i32));
                let (right, bottom) = (LEFT + edge(truth as i32 + 1), TOP + edge(predicted as i32 + 1));
                let ink = RGBColor(0, 70, 140).mix(share);
                sheet.draw(&Rectangle::new([(x, y), (right, bottom)], ink.filled()))?;
                if classes <= READABLE && share >= 0.005 {
                    let middle = ((x + right) / 2, (y + bottom) / 2);
                    let ink = if share > 0.5 { WHITE } else { BLACK };
                    sheet.draw_text(&format!("{share:.2}"), &centered(numbers).color(&ink), middle)?;
                }
            }
        }
        if classes <= READABLE {
            for index in 0..=classes {
                let middle = (edge(index as i32) + edge(index as i32 + 1)) / 2;
                let right =
                    ("sans-serif", letters).into_text_style(sheet).pos(Pos::new(HPos::Right, VPos::Center));
                sheet.draw_text(name(index), &right, (LEFT - 8, TOP + middle))?;
                let down = centered(letters)
                    .transform(FontTransform::Rotate90)
                    .pos(Pos::new(HPos::Left, VPos::Center));
                sheet.draw_text(name(index), &down, (LEFT + middle, TOP + SIDE + 8))?;
            }
        }
        sheet.draw_text(
            "True class across, predicted class down",
            &centered(LETTERS),
            (LEFT + SIDE / 2, TOP / 2),
        )?;
        Ok(())
    }
}
