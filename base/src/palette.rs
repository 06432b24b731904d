//! The colors of plots.

/// Okabe and Ito's palette as red, green and blue, distinguishable with any color vision.
pub const PALETTE: [[u8; 3]; 8] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [240, 228, 66],
    [0, 0, 0],
];
