//! The data sets that yolo knows by name: their archives, how to unpack them, and the yaml that
//! describes them.

use std::fmt::Write as _;

/// The 80 classes of COCO, in the order of its detection task.
const COCO_CLASSES: [&str; 80] = [
    "person",
    "bicycle",
    "car",
    "motorcycle",
    "airplane",
    "bus",
    "train",
    "truck",
    "boat",
    "traffic light",
    "fire hydrant",
    "stop sign",
    "parking meter",
    "bench",
    "bird",
    "cat",
    "dog",
    "horse",
    "sheep",
    "cow",
    "elephant",
    "bear",
    "zebra",
    "giraffe",
    "backpack",
    "umbrella",
    "handbag",
    "tie",
    "suitcase",
    "frisbee",
    "skis",
    "snowboard",
    "sports ball",
    "kite",
    "baseball bat",
    "baseball glove",
    "skateboard",
    "surfboard",
    "tennis racket",
    "bottle",
    "wine glass",
    "cup",
    "fork",
    "knife",
    "spoon",
    "bowl",
    "banana",
    "apple",
    "sandwich",
    "orange",
    "broccoli",
    "carrot",
    "hot dog",
    "pizza",
    "donut",
    "cake",
    "chair",
    "couch",
    "potted plant",
    "bed",
    "dining table",
    "toilet",
    "tv",
    "laptop",
    "mouse",
    "remote",
    "keyboard",
    "cell phone",
    "microwave",
    "oven",
    "toaster",
    "sink",
    "refrigerator",
    "book",
    "clock",
    "vase",
    "scissors",
    "teddy bear",
    "hair drier",
    "toothbrush",
];

/// The 20 classes of Pascal VOC, in alphabetical order.
pub(super) const VOC_CLASSES: [&str; 20] = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
];

/// The folder of the smaller data sets' archives.
const ASSETS: &str = "https://github.com/ultralytics/assets/releases/download/v0.0.0/";

/// The folder of COCO's images.
const COCO_IMAGES: &str = "http://images.cocodataset.org/zips/";

/// An archive of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) site: &'static str,
    pub(super) file: &'static str,
    /// The folder that it is unpacked into, relative to the root of all pieces.
    pub(super) into: &'static str,
    /// Approximate bytes of the archive and of its contents, for a server that does not report them.
    pub(super) about: (u64, u64),
}

/// The layout of the unpacked archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Images and labels in YOLOv5's layout.
    Ready,
    /// Pascal VOC's folders and XML annotations.
    Voc,
}

/// A data set that yolo knows by name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// As `yolo_plan::dataset::FETCHABLE` spells it.
    pub(super) name: &'static str,
    about: &'static str,
    train: &'static [&'static str],
    val: &'static [&'static str],
    classes: &'static [&'static str],
    pub(super) pieces: &'static [Piece],
    pub(super) form: Form,
}

const fn piece(
    site: &'static str,
    file: &'static str,
    into: &'static str,
    packed: u64,
    unpacked: u64,
) -> Piece {
    Piece { site, file, into, about: (packed, unpacked) }
}

const KNOWN: [Known; 4] = [
    Known {
        name: "coco128",
        about: "The first 128 images of COCO train2017, for training and validation alike: a quick check.",
        train: &["images/train2017"],
        val: &["images/train2017"],
        classes: &COCO_CLASSES,
        pieces: &[piece(ASSETS, "coco128.zip", "", 7_000_000, 7_500_000)],
        form: Form::Ready,
    },
    Known {
        name: "coco8",
        about: "Eight images of COCO train2017, four to train and four to validate: the smallest check.",
        train: &["images/train"],
        val: &["images/val"],
        classes: &COCO_CLASSES,
        pieces: &[piece(ASSETS, "coco8.zip", "", 440_000, 500_000)],
        form: Form::Ready,
    },
    Known {
        name: "VOC",
        about: "Pascal VOC 2007 and 2012: 16551 images to train (train and val of both years), 4952 to \
                validate (test of 2007).",
        train: &["images/train2012", "images/train2007", "images/val2012", "images/val2007"],
        val: &["images/test2007"],
        classes: &VOC_CLASSES,
        pieces: &[
            piece(ASSETS, "VOCtrainval_06-Nov-2007.zip", "", 446_000_000, 460_000_000),
            piece(ASSETS, "VOCtest_06-Nov-2007.zip", "", 438_000_000, 450_000_000),
            piece(ASSETS, "VOCtrainval_11-May-2012.zip", "", 1_950_000_000, 2_000_000_000),
        ],
        form: Form::Voc,
    },
    Known {
        name: "coco",
        about: "COCO 2017: 118287 images to train, 5000 to validate. The test images, which have no labels, \
                are not fetched.",
        train: &["train2017.txt"],
        val: &["val2017.txt"],
        classes: &COCO_CLASSES,
        pieces: &[
            piece(ASSETS, "coco2017labels.zip", "", 48_000_000, 500_000_000),
            piece(COCO_IMAGES, "train2017.zip", "coco/images", 19_300_000_000, 19_400_000_000),
            piece(COCO_IMAGES, "val2017.zip", "coco/images", 815_000_000, 820_000_000),
        ],
        form: Form::Ready,
    },
];

impl Known {
    /// The set of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        const ALL: &[Known; 4] = &KNOWN;
        ALL.iter().find(|known| known.name == name)
    }

    /// Where its archives are published.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.pieces.iter().map(|piece| format!("{}{}", piece.site, piece.file)).collect()
    }

    /// The yaml, for the root folder of the set.
    pub(super) fn yaml(&self) -> String {
        let list = |paths: &[&str]| match paths {
            [one] => (*one).to_owned(),
            more => format!("[{}]", more.join(", ")),
        };
        let mut text = format!(
            "# {} Written by `yolo setup`.\npath: .\ntrain: {}\nval: {}\nnames:\n",
            self.about,
            list(self.train),
            list(self.val)
        );
        for (class, name) in self.classes.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {class}: {name}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fetchable_set_has_a_description_that_reads_back() {
        for name in yolo_plan::dataset::FETCHABLE {
            let known = Known::named(name).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let yaml = folder.path().join("it.yaml");
            std::fs::write(&yaml, known.yaml()).unwrap();
            let places = yolo_plan::dataset::Places {
                working_dir: folder.path().into(),
                data_sets: folder.path().join("sets"),
            };
            let read = yolo_plan::dataset::Description::read("it.yaml", &places).unwrap();
            assert_eq!(read.names, known.classes, "{name}");
            assert!(!read.is_there());
        }
        assert_eq!(KNOWN.len(), yolo_plan::dataset::FETCHABLE.len());
    }
}
