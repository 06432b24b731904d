//! The files of one picture or frame: the picture with its boxes, its label file, and a picture of each object. Each
//! file appears complete, so an interrupted run leaves only files that can be used. Frames with their boxes go to a
//! video, which is written elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_data::image::encode::{by_extension, crop_jpeg};
use yolo_data::image::{Image, Window};
use yolo_plan::event::OutputFile;
use yolo_plan::run::PredictTask;

use crate::detection::{Detection, LabelFiles};
use crate::error::TrainError;
use crate::publish::publish;
use crate::report::{Area, BoxStyle, LabeledBox, draw_boxes, text_pixels, unwritable_letters};

/// The formats that are written as they were read; of others, such as MPO, JPEG is written.
const WRITTEN: [&str; 7] = ["bmp", "jpeg", "jpg", "png", "tif", "tiff", "webp"];
/// How much larger than its box the picture of an object is, and by how many pixels, as in YOLOv5.
const CROP: (f64, f64) = (1.02, 10.0);

/// Texts cover at most one of so many parts of a picture.
const TEXT_SHARE: usize = 3;

/// Where results go, and what is written.
pub(super) struct Outputs {
    folder: PathBuf,
    /// `None` without `--save-txt`.
    labels: Option<LabelFiles>,
    /// `None` without `--save-crop`.
    crops: Option<PathBuf>,
    /// What is written with boxes, for people.
    what: &'static str,
    /// Whether pictures and videos are written.
    save: bool,
    /// Whether feature maps are written, elsewhere.
    visualize: bool,
    line_thickness: Option<usize>,
    /// Whether boxes have names, and confidences after them.
    text: (bool, bool),
    names: Vec<String>,
}

/// One picture or frame to write.
pub(super) struct Writable {
    /// The file that was read.
    pub(super) path: PathBuf,
    /// The name of its results.
    pub(super) stem: String,
    /// The number of a frame.
    pub(super) frame: Option<usize>,
    pub(super) image: Image,
    /// In whole pixels of the picture, most confident first.
    pub(super) found: Vec<Detection>,
}

/// What became of a picture.
#[derive(Default)]
pub(super) struct Drawn {
    /// Where it was written with its boxes. A frame goes into a video instead.
    pub(super) saved: Option<PathBuf>,
    /// It with its boxes, unless nobody wants to see them.
    pub(super) image: Option<Image>,
}

impl Outputs {
    /// Creates the folders.
    pub(super) fn create(folder: &Path, task: &PredictTask, names: Vec<String>) -> Result<Self, TrainError> {
        let labels = |boxes| LabelFiles::create(folder.join("labels"), task.save_conf, boxes);
        let crops = task.save_crop.then(|| folder.join("crops"));
        if let Some(crops) = &crops {
            fs::create_dir_all(crops).map_err(unwritable)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            labels: task.save_txt.map(labels).transpose()?,
            crops,
            what: match (task.pictures.is_empty(), task.videos.is_empty()) {
                (_, true) => "pictures",
                (true, false) => "videos",
                (false, false) => "pictures and videos",
            },
            save: task.save,
            visualize: task.visualize,
            line_thickness: task.line_thickness,
            text: (!task.hide_labels, !task.hide_conf),
            names,
        })
    }

    /// The folders with what they hold.
    pub(super) fn folders(&self) -> Vec<OutputFile> {
        let file = |what: &str, path: &Path| OutputFile { what: what.to_owned(), path: path.to_owned() };
        let pictures = self.save.then(|| file(self.what, &self.folder));
        let labels = self.labels.as_ref().map(|labels| file("labels", labels.folder()));
        let crops = self.crops.as_ref().map(|crops| file("objects", crops));
        let features = self.visualize.then(|| file("feature maps", &self.folder));
        pictures.into_iter().chain(labels).chain(crops).chain(features).collect()
    }

    /// Whether pixels are needed after the network has seen them.
    pub(super) fn need_pixels(&self) -> bool {
        self.save || self.crops.is_some()
    }

    /// What the user should know about the names of classes on pictures.
    pub(super) fn warning(&self) -> Option<String> {
        unwritable_letters(self.names.iter().map(String::as_str))
    }

    /// The folder of the run.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of a class.
    pub(super) fn name(&self, class: usize) -> &str {
        self.names.get(class).map_or("?", String::as_str)
    }

    /// Where the video with boxes is written, if it is.
    pub(super) fn video(&self, stem: &str) -> Option<PathBuf> {
        self.save.then(|| self.folder.join(format!("{stem}.mp4")))
    }

    /// Writes the files of a picture, and draws its boxes. The files of a frame are called after the video and the
    /// frame, as in YOLOv5: `film_12.txt`. Boxes are also drawn if the picture is `shown`.
    pub(super) fn write(
        &self,
        mut picture: Writable,
        size: [u32; 2],
        shown: bool,
    ) -> Result<Drawn, TrainError> {
        if let Some(frame) = picture.frame {
            picture.stem = format!("{}_{frame}", picture.stem);
        }
        // As in YOLOv5, the least confident objects come first, and a picture without objects has no label file.
        let ascending = || picture.found.iter().rev();
        if let (Some(labels), false) = (&self.labels, picture.found.is_empty()) {
            labels.write(&picture.stem, size, ascending())?;
        }
        if let Some(crops) = &self.crops {
            self.write_crops(crops, &picture)?;
        }
        if !self.save && !shown {
            return Ok(Drawn::default());
        }
        let style = BoxStyle::of_picture([picture.image.height, picture.image.width], self.line_thickness);
        let area = Area::whole(&picture.image);
        let boxes = self.boxes(&picture, style);
        draw_boxes(&mut picture.image, area, &boxes, style);
        let mut saved = None;
        if self.save && picture.frame.is_none() {
            let path = self.folder.join(format!("{}.{}", picture.stem, extension(&picture.path)));
            publish(&path, &by_extension(&path, &picture.image)?).map_err(unwritable)?;
            saved = Some(path);
        }
        Ok(Drawn { saved, image: Some(picture.image) })
    }

    /// The boxes as they are drawn: the most confident objects come last, over the others. The most confident ones also
    /// get their texts first; those of the others are omitted where the texts would hide the picture.
    fn boxes(&self, picture: &Writable, style: BoxStyle) -> Vec<LabeledBox> {
        let mut room = picture.image.width * picture.image.height / TEXT_SHARE;
        let labeled = |found: &Detection| {
            let text = Some(self.text_of(found)).filter(|text| {
                let rest = room.checked_sub(text_pixels(text, style));
                room = rest.unwrap_or(room);
                rest.is_some()
            });
            LabeledBox { corners: found.corners, class: found.class, text: text.unwrap_or_default() }
        };
        let mut boxes: Vec<LabeledBox> = picture.found.iter().map(labeled).collect();
        boxes.reverse();
        boxes
    }

    /// What is written at a box.
    fn text_of(&self, found: &Detection) -> String {
        match self.text {
            (false, _) => String::new(),
            (true, false) => self.name(found.class).to_owned(),
            (true, true) => format!("{} {:.2}", self.name(found.class), found.confidence),
        }
    }

    /// Writes `crops/CLASS/STEM.jpg`, `STEM2.jpg` and so on, as YOLOv5 numbers them.
    fn write_crops(&self, crops: &Path, picture: &Writable) -> Result<(), TrainError> {
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for found in picture.found.iter().rev() {
            let number = numbers.entry(found.class).or_default();
            *number += 1;
            let number = if *number == 1 { String::new() } else { number.to_string() };
            let folder = crops.join(folder_name(self.name(found.class)));
            fs::create_dir_all(&folder).map_err(unwritable)?;
            let window = crop_window(found, &picture.image);
            if window.columns.is_empty() || window.rows.is_empty() {
                continue;
            }
            let path = folder.join(format!("{}{number}.jpg", picture.stem));
            publish(&path, &crop_jpeg(&path, &picture.image.cut(&window))?).map_err(unwritable)?;
        }
        Ok(())
    }
}

/// The pixels around an object: its box, somewhat enlarged.
fn crop_window(found: &Detection, image: &Image) -> Window {
    let [left, top, right, bottom] = found.corners.map(f64::from);
    let range = |low: f64, high: f64, side: usize| {
        let (middle, half) = (low.midpoint(high), ((high - low) * CROP.0 + CROP.1) / 2.0);
        let within = |value: f64| value.clamp(0.0, side as f64) as usize;
        within(middle - half)..within(middle + half)
    };
    Window { columns: range(left, right, image.width), rows: range(top, bottom, image.height) }
}

/// The name of a class as that of a folder.
fn folder_name(class: &str) -> String {
    let name: String =
        class.chars().map(|letter| if matches!(letter, '/' | '\\' | '\0') { '_' } else { letter }).collect();
    if name.trim_matches('.').is_empty() { format!("_{name}") } else { name }
}

/// The extension of the picture that is written for the one at `path`.
fn extension(path: &Path) -> String {
    let own = path.extension().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
    if WRITTEN.contains(&own.to_ascii_lowercase().as_str()) { own } else { "jpg".to_owned() }
}

pub(super) fn unwritable(error: std::io::Error) -> TrainError {
    TrainError::new(format!("cannot save the results: {error}"))
        .with_hint("free some space, or name another folder with --project")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_of_an_object_is_as_large_as_yolov5s() {
        // What detect.py 7.0.14 cut out of a picture of 640x480 for these boxes.
        let image = Image::filled(640, 480, [0; 3]);
        let size = |corners| {
            let found = Detection { corners, confidence: 0.5, class: 0 };
            let window = crop_window(&found, &image);
            [window.columns.len(), window.rows.len()]
        };
        assert_eq!(size([155.0, 10.0, 356.0, 218.0]), [216, 223]);
        assert_eq!(size([353.0, 141.0, 465.0, 303.0]), [125, 175]);
    }

    #[test]
    fn texts_do_not_hide_a_small_picture() {
        let outputs = Outputs {
            folder: PathBuf::new(),
            labels: None,
            crops: None,
            what: "pictures",
            save: true,
            visualize: false,
            line_thickness: None,
            text: (true, true),
            names: vec!["RBC".to_owned()],
        };
        let texts = |width: usize, height: usize| {
            let found = |index: u16| Detection {
                corners: [0.0, 0.0, 9.0, 9.0],
                confidence: 0.9 - f32::from(index) / 100.0,
                class: 0,
            };
            let picture = Writable {
                path: PathBuf::new(),
                stem: String::new(),
                frame: None,
                image: Image::filled(width, height, [0; 3]),
                found: (0..8).map(found).collect(),
            };
            let boxes = outputs.boxes(&picture, BoxStyle::of_picture([height, width], None));
            assert_eq!(boxes.len(), 8);
            boxes.into_iter().map(|labeled| labeled.text).collect::<Vec<_>>()
        };
        assert!(texts(40, 30).iter().all(String::is_empty));
        // The most confident is the last one.
        let of_small = texts(96, 72);
        assert_eq!(of_small.last().unwrap(), "RBC 0.90");
        assert!(of_small[0].is_empty());
        assert!(texts(640, 480).iter().all(|text| !text.is_empty()));
        assert!(texts(4000, 3000).iter().all(|text| !text.is_empty()));
    }

    #[test]
    fn no_class_leaves_its_folder() {
        let names = ["red cell", "a/b", "..", ""].map(folder_name);
        assert_eq!(names, ["red cell", "a_b", "_..", "_"]);
    }

    #[test]
    fn what_cannot_be_written_becomes_jpeg() {
        let names = ["a.PNG", "b.mpo", "c"].map(|name| extension(Path::new(name)));
        assert_eq!(names, ["PNG", "jpg", "jpg"]);
    }
}
