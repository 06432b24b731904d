//! Rectangular batches: images of similar shape share a batch that is only as large as they need
//! (spec §7).

/// The order of the images and the shape of each batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RectBatches {
    /// Indices into the given sizes, by ascending height/width.
    pub order: Vec<usize>,
    /// Height and width of each batch in pixels, multiples of the stride.
    pub shapes: Vec<[usize; 2]>,
}

/// Sorts images by height/width and computes the shape of each batch of `batch` images. The last
/// batch may be smaller.
///
/// `sizes` are width and height. A shape is `ceil(relative shape · imgsz / stride + pad) · stride`, with
/// a pad of 0.5 for validation and 0 for training. Images of equal shape keep their order.
pub fn batch_shapes(sizes: &[[u32; 2]], batch: usize, imgsz: usize, stride: usize, pad: f64) -> RectBatches {
    let ratio = |index: usize| f64::from(sizes[index][1]) / f64::from(sizes[index][0]);
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
    let to_pixels = |side: f64| (side * imgsz as f64 / stride as f64 + pad).ceil() as usize * stride;
    let shapes = order
        .chunks(batch.max(1))
        .map(|members| {
            // The order is ascending, so the extremes are at the ends.
            let (least, most) = (ratio(members[0]), ratio(members[members.len() - 1]));
            let relative = if most < 1.0 {
                [most, 1.0]
            } else if least > 1.0 {
                [1.0, 1.0 / least]
            } else {
                [1.0, 1.0]
            };
            relative.map(to_pixels)
        })
        .collect();
    RectBatches { order, shapes }
}
