//! Parts of images: which pixels are wanted, and the pixels of a part with the place where it begins. What a mosaic does
//! not show is neither decoded nor resized.

use std::ops::Range;

use super::{Image, ImageView};

/// A rectangle of an image's pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// From left to right.
    pub columns: Range<usize>,
    /// From top to bottom.
    pub rows: Range<usize>,
}

impl Window {
    /// All pixels of an image of this width and height.
    pub fn whole([width, height]: [usize; 2]) -> Self {
        Self { columns: 0..width, rows: 0..height }
    }

    /// The first column and the first row.
    pub fn first(&self) -> [usize; 2] {
        [self.columns.start, self.rows.start]
    }
}

/// A part of an image, from some pixel on.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The pixels of the part.
    pub image: ImageView<'a>,
    /// The column and the row of the whole image with which the part begins.
    pub first: [usize; 2],
}

impl<'a> Part<'a> {
    /// All of an image.
    pub fn whole(image: impl Into<ImageView<'a>>) -> Self {
        Self { image: image.into(), first: [0, 0] }
    }
}

impl Image {
    /// The pixels in a window.
    #[must_use]
    pub fn cut(&self, window: &Window) -> Self {
        let columns = window.columns.start * 3..window.columns.end * 3;
        let rows = window.rows.clone().flat_map(|y| &self.row(y)[columns.clone()]);
        Self { width: window.columns.len(), height: window.rows.len(), data: rows.copied().collect() }
    }
}
