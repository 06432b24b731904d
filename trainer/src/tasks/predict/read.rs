//! Reads a picture and makes the input of the network from it, or from a frame of a video: letterboxed in auto mode (spec §12), which pads only
//! up to the next multiple of the stride.

use std::path::Path;

use yolo_data::error::DataError;
use yolo_data::image::Image;
use yolo_data::image::decode::decode_untrusted;
use yolo_data::image::finish::Finish;
use yolo_data::image::letterbox::{Letterbox, LetterboxOptions};
use yolo_data::loader::Item;
use yolo_plan::run::Picture;

/// Pictures with more pixels are refused: decoding them takes gigabytes.
const MOST_PIXELS: u64 = 100_000_000;

/// A frame among those of its video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameOf {
    /// From 1.
    pub(super) number: usize,
    /// All frames that are used, if the video says how many it has.
    pub(super) all: Option<usize>,
}

/// A picture that was read.
pub(super) struct Ready {
    /// Its number, or that of its video, among all pictures and videos.
    pub(super) number: usize,
    /// `None` for a picture.
    pub(super) frame: Option<FrameOf>,
    pub(super) image: Image,
    /// Height and width of the input.
    pub(super) input: [usize; 2],
    /// The input: planes R, G, B.
    pub(super) planes: Vec<u8>,
    /// How boxes go back to the picture.
    pub(super) item: Item,
}

/// Reads a picture; the error says why it cannot be used.
pub(super) fn read(
    number: usize,
    picture: &Picture,
    target: [usize; 2],
    stride: usize,
) -> Result<Ready, (usize, String)> {
    let image = decode_untrusted(&picture.path, MOST_PIXELS)
        .map_err(|error| (number, named(error, picture.shown()).to_string()))?;
    Ok(prepare(number, None, image, target, stride))
}

/// The error with the name that people know: of a picture that was fetched, its address.
fn named(error: DataError, shown: &Path) -> DataError {
    let path = shown.to_owned();
    match error {
        DataError::Io { action, source, .. } => DataError::Io { action, path, source },
        DataError::Decode { reason, .. } => DataError::Decode { path, reason },
        other => other,
    }
}

/// Makes the input of the network.
pub(super) fn prepare(
    number: usize,
    frame: Option<FrameOf>,
    image: Image,
    target: [usize; 2],
    stride: usize,
) -> Ready {
    let (height, width) = (image.height, image.width);
    let options = LetterboxOptions { target, auto: true, scale_fill: false, scale_up: true, stride };
    let letterbox = Letterbox::new(height, width, &options);
    let mut canvas = Image::default();
    letterbox.apply(&image, &mut canvas);
    let input = [canvas.height, canvas.width];
    let mut planes = vec![0; 3 * canvas.height * canvas.width];
    Finish::default().write(&canvas, &mut planes);
    let item = item(number, [height, width], input);
    Ready { number, frame, image, input, planes, item }
}

/// As in YOLOv5's detect.py, boxes go back by the sizes of the picture and of its input alone: the scale is that of
/// the tighter axis, and half of what is left is padding. A scaled side is rounded in the letterbox and not here.
fn item(number: usize, native: [usize; 2], input: [usize; 2]) -> Item {
    let [height, width] = native.map(|side| side as f64);
    let [input_height, input_width] = input.map(|side| side as f64);
    let gain = (input_height / height).min(input_width / width);
    let pad = [(input_width - width * gain) / 2.0, (input_height - height * gain) / 2.0];
    Item {
        sample: number,
        native: native.map(|side| side as u32),
        ratio: [gain as f32; 2],
        pad: pad.map(|side| side as f32),
    }
}

#[cfg(test)]
mod tests {
    use yolo_data::image::encode::by_extension;

    use super::*;
    use crate::detection::to_native;

    fn picture(path: std::path::PathBuf) -> Picture {
        Picture { path, stem: "a".to_owned(), unavailable: None, address: None }
    }

    #[test]
    fn a_picture_of_a_server_is_named_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        std::fs::write(&path, "no picture").unwrap();
        let address = Some("https://h/a.jpg".to_owned());
        for path in [path, folder.path().join("gone.jpg")] {
            let fetched = Picture { address: address.clone(), ..picture(path) };
            let Err((7, reason)) = read(7, &fetched, [64; 2], 32) else { panic!("it was read") };
            assert!(reason.contains(" https://h/a.jpg: "), "{reason}");
            assert!(!reason.contains(&*folder.path().to_string_lossy()), "{reason}");
        }
    }

    /// Reads a picture of this height and width.
    fn read_one(size: [usize; 2], target: [usize; 2]) -> Ready {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let image = Image::filled(size[1], size[0], [200; 3]);
        std::fs::write(&path, by_extension(&path, &image).unwrap()).unwrap();
        read(7, &picture(path), target, 32).map_err(|(_, reason)| reason).unwrap()
    }

    #[test]
    fn a_picture_is_padded_to_the_next_multiple_of_the_stride_only() {
        for (size, target, input) in [
            ([480, 640], [640; 2], [480, 640]),
            ([300, 500], [640; 2], [384, 640]),
            ([333, 500], [640; 2], [448, 640]),
            ([500, 333], [640; 2], [640, 448]),
            ([20, 10], [64; 2], [64, 32]),
            ([1, 2000], [640; 2], [32, 640]),
            ([480, 640], [320, 640], [320, 448]),
        ] {
            let ready = read_one(size, target);
            assert_eq!(ready.input, input, "{size:?}");
            assert_eq!(ready.planes.len(), 3 * input[0] * input[1]);
            assert_eq!((ready.number, ready.item.native), (7, size.map(|side| side as u32)));
        }
    }

    #[test]
    fn padding_is_gray_on_both_sides() {
        let ready = read_one([333, 500], [640; 2]);
        let column: Vec<u8> = (0..448).map(|y| ready.planes[y * 640]).collect();
        assert_eq!((column[10], column[11], column[436], column[437]), (114, 200, 200, 114));
        assert!((ready.item.pad[1] - 10.88).abs() < 1e-4 && ready.item.gain() == 1.28);
    }

    /// What YOLOv5 7.0.14 made of pictures of 40 sizes, see `generate_detect_geometry.py`.
    #[test]
    fn inputs_and_boxes_are_those_of_detect_py() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/detect_geometry.json");
        let cases: Vec<serde_json::Value> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(cases.len(), 40);
        for case in cases {
            let pair = |name: &str| [0, 1].map(|index| case[name][index].as_u64().unwrap() as usize);
            let four = |name: &str| [0, 1, 2, 3].map(|index| case[name][index].as_f64().unwrap() as f32);
            let (native, target) = (pair("picture"), pair("imgsz"));
            let options =
                LetterboxOptions { target, auto: true, scale_fill: false, scale_up: true, stride: 32 };
            let input = Letterbox::new(native[0], native[1], &options).size();
            assert_eq!(input, pair("input"), "{case}");
            let item = item(0, native, input);
            let corners = to_native(four("box"), item.gain(), item.pad, item.native);
            assert_eq!(corners.map(f32::round_ties_even), four("pixels"), "{case}");
        }
    }
}
