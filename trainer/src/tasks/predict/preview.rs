//! Small copies of pictures for `--view-img`, which `yolo` shows in the terminal: a rank has none.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yolo_data::image::encode::jpeg;
use yolo_data::image::letterbox::{Letterbox, LetterboxOptions};
use yolo_data::image::{Image, resize};

use crate::error::TrainError;

/// The time between two frames that are shown: a terminal draws few pictures per second.
const PACE: Duration = Duration::from_millis(200);

/// The picture as JPEG in base64, scaled down to this height and width at most.
pub(super) fn preview(image: &Image, most: [usize; 2]) -> Result<String, TrainError> {
    let [height, width] =
        Letterbox::new(image.height, image.width, &LetterboxOptions::exact(most, false)).scaled;
    let small;
    let shown = if [height, width] == [image.height, image.width] {
        image
    } else {
        small = resize::area(image, width, height);
        &small
    };
    Ok(STANDARD.encode(jpeg(Path::new("the preview"), shown)?))
}

/// Decides which frames of videos are shown.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    last: Option<Instant>,
}

impl Pacer {
    /// Whether it is time for another frame. If so, the next one waits.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= PACE);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use yolo_data::image::decode::decode_bytes;

    use super::*;

    #[test]
    fn a_preview_fits_and_is_never_larger_than_the_picture() {
        let size = |width, height, most| {
            let bytes =
                STANDARD.decode(preview(&Image::filled(width, height, [9; 3]), most).unwrap()).unwrap();
            let image = decode_bytes(&bytes).unwrap();
            [image.height, image.width]
        };
        assert_eq!(size(640, 480, [240, 800]), [240, 320]);
        assert_eq!(size(64, 48, [240, 800]), [48, 64]);
        assert_eq!(size(3000, 2, [240, 800]), [1, 800]);
    }

    #[test]
    fn frames_are_shown_at_a_pace() {
        let mut pacer = Pacer::default();
        assert!(pacer.is_due() && !pacer.is_due());
        pacer.last = Instant::now().checked_sub(PACE);
        assert!(pacer.is_due());
    }
}
