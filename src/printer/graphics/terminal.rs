//! What is known about a terminal that shows pictures. Asking it and drawing on it are elsewhere.

/// A terminal that shows pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "only terminals of Unix are asked"))]
pub(crate) struct Graphics {
    pub(super) protocol: Protocol,
    /// Width and height of a character in pixels.
    pub(super) cell: [usize; 2],
    /// Width and height of the terminal in characters.
    pub(super) size: [usize; 2],
}

/// How a terminal is told to show a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "only terminals of Unix are asked"))]
pub(super) enum Protocol {
    Kitty,
    Iterm2,
    Sixel,
}
