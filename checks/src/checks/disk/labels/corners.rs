//! Boxes whose four numbers are not the center and the size: two corners, or the top left corner and the size. Each
//! number is valid by itself, so that nothing complains, and the model learns wrong boxes.

use super::rewrite::{self, Line};
use crate::finding::Finding;
use crate::status::Status;

/// How far an edge may be outside the image, as a fraction of it: tiles and crops leave boxes that end a little outside.
const BEYOND: f64 = 0.02;
/// One box in so many may extend outside before all of them are suspicious.
const EACH: usize = 5;
/// Fewer boxes show nothing for certain: by chance, they may look like corners.
const MANY: usize = 20;

/// What the numbers of a label are.
const EXPECTED: &str = "the four numbers of a label are the center and the size of its box, as fractions of the image; some data sets have \
                        boxes of objects that are partly outside their image, which may stay";

/// The boxes that were read.
#[derive(Default)]
pub(super) struct Boxes {
    all: Vec<[f64; 4]>,
    /// The lines of those that extend outside the image.
    outside: Vec<String>,
}

impl Boxes {
    /// A box of a line, whose numbers are from 0 to 1.
    pub(super) fn add(&mut self, numbers: [f64; 4], place: &str) {
        let [x, y, width, height] = numbers;
        let is_outside =
            |center: f64, size: f64| center - size / 2.0 < -BEYOND || center + size / 2.0 > 1.0 + BEYOND;
        if is_outside(x, width) || is_outside(y, height) {
            self.outside.push(place.to_owned());
        }
        self.all.push(numbers);
    }

    /// `disk.labels-range`, if so many boxes extend outside that the numbers must mean something else. `label` is one of
    /// the files; `of` names the split at the end of a title.
    pub(super) fn finding(&self, label: &str, of: &str) -> Option<Finding> {
        let (all, outside) = (self.all.len(), self.outside.len());
        if outside < 2 || outside * EACH < all {
            return None;
        }
        let title = format!("{outside} of {all} sampled boxes{of} extend outside their image");
        let finding = Finding::new("disk.labels-range", title)
            .status(if all < MANY { Status::Info } else { Status::Warning })
            .seen(self.outside[0].clone());
        if all < MANY {
            return Some(finding.because(EXPECTED).remedy(
                "look at a few images with their boxes (yolo draws train_batch0.jpg): if the boxes are wrong, the four numbers mean \
                 something else, such as two corners, or the top left corner and the size",
            ));
        }
        let are_corners = self.all.iter().all(|[left, top, right, bottom]| right > left && bottom > top);
        let have_top_left = self
            .all
            .iter()
            .all(|[left, top, width, height]| left + width <= 1.0 + BEYOND && top + height <= 1.0 + BEYOND);
        let look = "look at a few images with the result (yolo draws train_batch0.jpg) before you train";
        Some(if are_corners && !have_top_left {
            rewrite::all(
                finding.because(
                    "the four numbers of a label are the center and the size of its box; these look like two corners (left, top, \
                     right, bottom)",
                ),
                label,
                &format!("convert the corners to center and size; {look}"),
                "with-corners",
                Line::Awk("NF == 5 {$0 = $1 \" \" ($2 + $4) / 2 \" \" ($3 + $5) / 2 \" \" ($4 - $2) \" \" ($5 - $3)} {print}"),
            )
        } else if have_top_left && !are_corners {
            rewrite::all(
                finding.because(
                    "the four numbers of a label are the center and the size of its box; these look like the top left corner and \
                     the size, as in COCO",
                ),
                label,
                &format!("add half the size to the corner; {look}"),
                "with-top-left-corners",
                Line::Awk("NF == 5 {$0 = $1 \" \" ($2 + $4 / 2) \" \" ($3 + $5 / 2) \" \" $4 \" \" $5} {print}"),
            )
        } else {
            finding
                .because(EXPECTED)
                .remedy(
                    "export the labels again in YOLO format: class, center x, center y, width, height; these numbers mean something \
                     else, such as two corners, or the top left corner and the size",
                )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(boxes: &[[f64; 4]]) -> Option<String> {
        let mut all = Boxes::default();
        for numbers in boxes {
            all.add(*numbers, "a.txt, line 1");
        }
        all.finding("/d/labels/a.txt", "")?.cause
    }

    #[test]
    fn corners_and_top_left_corners_are_told_apart() {
        let corners = [[0.33, 0.31, 0.70, 0.67], [0.6, 0.6, 0.95, 0.9], [0.1, 0.1, 0.5, 0.6]].repeat(7);
        assert!(judged(&corners).unwrap().contains("two corners"));
        let top_left = [[0.0, 0.0, 0.9, 0.8], [0.1, 0.05, 0.85, 0.9], [0.6, 0.6, 0.1, 0.1]].repeat(7);
        assert!(judged(&top_left).unwrap().contains("top left corner"));
    }

    #[test]
    fn a_few_boxes_that_leave_the_image_are_no_mistake() {
        let mut boxes = vec![[0.5, 0.5, 0.2, 0.2]; 17];
        boxes.extend([[0.95, 0.5, 0.3, 0.2]; 3]);
        assert_eq!(judged(&boxes), None);
        assert_eq!(judged(&[[0.99, 0.5, 0.2, 0.2], [0.5, 0.5, 1.0, 1.0], [0.4, 0.5, 0.2, 0.2]]), None);
    }
}
