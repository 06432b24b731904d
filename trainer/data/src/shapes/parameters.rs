//! The parameters of the built-in data set.

/// The parameters of the data set. A change makes another data set and must increment `VERSION`.
pub(crate) struct Parameters {
    /// The side of the square images in pixels.
    pub(crate) side: usize,
    /// The number of training images.
    pub(crate) train: usize,
    /// The number of validation images.
    pub(crate) val: usize,
    /// The largest number of objects in an image.
    pub(crate) objects: u32,
    /// The smallest and the largest diameter of an object in pixels.
    pub(crate) diameter: (i64, i64),
    /// One in this many images has no objects.
    pub(crate) empty_every: u32,
    /// The least percentage of an object that the border and later objects leave visible.
    pub(crate) visible_percent: i64,
    /// The seed of the random numbers.
    pub(crate) seed: u64,
}

pub(crate) const PARAMETERS: Parameters = Parameters {
    side: 160,
    train: 512,
    val: 128,
    objects: 6,
    diameter: (14, 110),
    empty_every: 16,
    visible_percent: 55,
    seed: 0x59_4f_4c_4f,
};
