//! Pictures in the terminal, for `--view-img`. The terminal is asked which protocol it knows (`ask.rs`), and pictures
//! are written in it (`kitty`, `iterm2` and `sixel` in `encode.rs`). The cursor moves the same way with each.

#[cfg(unix)]
mod ask;
mod encode;
mod sixel;
mod terminal;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yolo_data::image::decode::decode_bytes;

pub(crate) use terminal::Graphics;
use terminal::Protocol;

/// Lines of the terminal that a picture leaves free, for the line about it and the one that changes.
const FREE_LINES: usize = 3;
/// No picture has more pixels on a side: it would take long to draw, above all over a network.
const MOST: usize = 1280;

impl Graphics {
    /// Asks the terminal on stderr.
    ///
    /// # Errors
    /// Why no picture can be shown.
    pub(crate) fn find() -> Result<Self, &'static str> {
        #[cfg(unix)]
        return ask::terminal();
        #[cfg(not(unix))]
        return Err("pictures are shown only in WSL and on Linux");
    }

    /// The height and width in pixels that a picture may have.
    pub(crate) fn most(&self) -> [usize; 2] {
        let [columns, lines] = self.size;
        let height = lines.saturating_sub(FREE_LINES).max(1) * self.cell[1];
        [height.min(MOST), (columns.max(1) * self.cell[0]).min(MOST)]
    }

    /// What draws a picture, which is JPEG in base64, and the lines that it takes. Afterwards the cursor is at the
    /// beginning of the next line. `None` if it is no picture. With `replaces`, it is drawn over an earlier one, which
    /// had so many lines, 0 if it is the first.
    pub(crate) fn draw(&self, picture: &str, replaces: Option<usize>) -> Option<(Vec<u8>, usize)> {
        let bytes = STANDARD.decode(picture).ok()?;
        let image = decode_bytes(&bytes).ok()?;
        let cells = [image.width.div_ceil(self.cell[0]), image.height.div_ceil(self.cell[1])];
        let shown = match self.protocol {
            Protocol::Kitty => encode::kitty(&image, replaces.is_some())?,
            Protocol::Iterm2 => encode::iterm2(picture, bytes.len(), cells),
            Protocol::Sixel => sixel::encode(&image),
        };
        let lines = cells[1];
        let mut drawn = Vec::new();
        // `ESC [ 0 A` would move up one line.
        if let Some(earlier) = replaces.filter(|lines| *lines > 0) {
            drawn.extend(format!("\x1b[{earlier}A").into_bytes());
        }
        // Terminals leave the cursor in different places after a picture. So its lines are made first, as the screen may
        // have to scroll for them, and the cursor is moved by what is known.
        drawn.extend(format!("{}\x1b[{lines}A\x1b7", "\n".repeat(lines)).into_bytes());
        drawn.extend(shown);
        drawn.extend(format!("\x1b8\x1b[{lines}B\r").into_bytes());
        Some((drawn, lines))
    }
}

#[cfg(test)]
mod tests {
    use yolo_data::image::Image;
    use yolo_data::image::encode::jpeg;

    use super::*;

    #[test]
    fn a_picture_takes_whole_lines_and_the_cursor_ends_below() {
        let image = Image::filled(30, 25, [200, 10, 10]);
        let picture = STANDARD.encode(jpeg(std::path::Path::new("a"), &image).unwrap());
        for protocol in [Protocol::Kitty, Protocol::Iterm2, Protocol::Sixel] {
            let graphics = Graphics { protocol, cell: [10, 20], size: [80, 24] };
            let (drawn, lines) = graphics.draw(&picture, None).unwrap();
            assert_eq!(lines, 2);
            assert!(drawn.starts_with(b"\n\n\x1b[2A\x1b7\x1b") && drawn.ends_with(b"\x1b8\x1b[2B\r"));
            let (drawn, _) = graphics.draw(&picture, Some(3)).unwrap();
            assert!(drawn.starts_with(b"\x1b[3A\n\n"), "{protocol:?}");
            assert!(graphics.draw("no picture", None).is_none());
        }
    }

    #[test]
    fn a_picture_leaves_lines_free_and_has_a_limit() {
        let graphics = |size| Graphics { protocol: Protocol::Sixel, cell: [10, 20], size };
        assert_eq!(graphics([80, 24]).most(), [420, 800]);
        assert_eq!(graphics([300, 100]).most(), [MOST, MOST]);
        assert_eq!(graphics([0, 1]).most(), [20, 10]);
    }
}
