//! The images on which a detector makes the most mistakes, with small pictures of them: labels that it misses,
//! detections where nothing is, and wrong classes. They show what a data set or a model lacks. What counts as a
//! mistake is the rule of the confusion matrix.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yolo_data::image::Image;
use yolo_data::image::encode::jpeg;
use yolo_data::image::resize::area;
use yolo_plan::report::{DetectionBox, LabelBox, Verdict, WorstImage};

use crate::detection::{Corners, ImageResult};
use crate::error::TrainError;
use crate::metrics::{is_confident, pairs};

/// The number of images that a report shows.
const WORST: usize = 20;
/// The longer side of a picture in pixels: two are next to each other on a page of about 1200.
const SIDE: usize = 544;
/// Most bytes of a picture, so that a report stays below 5 MB. One with more, such as noise, is made smaller.
const BYTES: usize = 100_000;
/// The side of that one. Even noise has less than two bytes per pixel, so it stays below [`BYTES`].
const SMALL_SIDE: usize = 220;

/// Collects the worst images of a validation.
#[derive(Debug, Default)]
pub struct WorstImages {
    /// The worst first; their JPEGs are empty until [`Self::finish`].
    worst: Vec<(WorstImage, Image)>,
}

impl WorstImages {
    /// Looks at an image.
    pub fn add(&mut self, result: &ImageResult<'_>) {
        let found: Vec<_> = result.detections.iter().filter(|found| is_confident(found)).collect();
        let pairs = pairs(&found, result.truths);
        let [height, width] = result.native.map(|side| side.max(1) as f32);
        let share = |[left, top, right, bottom]: Corners| {
            [left / width, top / height, right / width, bottom / height]
                .map(|part| (part * 1e4).round() / 1e4)
        };
        let labels: Vec<LabelBox> = result
            .truths
            .iter()
            .enumerate()
            .map(|(index, truth)| LabelBox {
                corners: share(truth.corners),
                class: truth.class,
                found: pairs.iter().any(|pair| pair.truth == index),
            })
            .collect();
        let verdict = |index: usize| match pairs.iter().find(|pair| pair.found == index) {
            Some(pair) if result.truths[pair.truth].class == found[index].class => Verdict::Correct,
            Some(_) => Verdict::Confused,
            None => Verdict::Unfounded,
        };
        let detections: Vec<DetectionBox> = found
            .iter()
            .enumerate()
            .map(|(index, detection)| DetectionBox {
                corners: share(detection.corners),
                class: detection.class,
                confidence: (detection.confidence * 1e3).round() / 1e3,
                verdict: verdict(index),
            })
            .collect();
        let count = |wanted| detections.iter().filter(|detection| detection.verdict == wanted).count();
        let mut image = WorstImage {
            path: result.sample.image.display().to_string(),
            size: [0; 2],
            jpeg: String::new(),
            missed: labels.iter().filter(|label| !label.found).count(),
            unfounded: count(Verdict::Unfounded),
            confused: count(Verdict::Confused),
            labels,
            detections,
        };
        let place = self.worst.partition_point(|(other, _)| order(other) <= order(&image));
        if image.mistakes() > 0 && place < WORST {
            let picture = picture(result);
            image.size = [picture.width, picture.height];
            self.worst.insert(place, (image, picture));
            self.worst.truncate(WORST);
        }
    }

    /// The images with their pictures, the worst first.
    ///
    /// # Errors
    /// When a picture cannot be encoded.
    pub fn finish(self) -> Result<Vec<WorstImage>, TrainError> {
        self.worst
            .into_iter()
            .map(|(image, picture)| {
                let mut bytes = jpeg(image.path.as_ref(), &picture)?;
                let mut size = image.size;
                if bytes.len() > BYTES {
                    let scale = SMALL_SIDE as f64 / size[0].max(size[1]) as f64;
                    size = size.map(|side| ((side as f64 * scale).round() as usize).max(1));
                    bytes = jpeg(image.path.as_ref(), &area(&picture, size[0], size[1]))?;
                }
                Ok(WorstImage { jpeg: STANDARD.encode(bytes), size, ..image })
            })
            .collect()
    }
}

/// The worst of the images of several ranks, of which each has sent its own.
pub fn worst_of_all(mut all: Vec<WorstImage>) -> Vec<WorstImage> {
    all.sort_by(|a, b| order(a).cmp(&order(b)));
    all.truncate(WORST);
    all
}

/// The order of images, in which the worst comes first. It does not depend on the ranks.
fn order(image: &WorstImage) -> (std::cmp::Reverse<usize>, &str) {
    (std::cmp::Reverse(image.mistakes()), &image.path)
}

/// The part of the batch that shows the image, scaled down. Each pixel is the mean of those that it replaces.
fn picture(result: &ImageResult<'_>) -> Image {
    let (batch, item) = (result.batch, &result.batch.items[result.index]);
    let [native_height, native_width] = result.native.map(|side| side as f32);
    let within = |start: f32, length: f32, end: usize| {
        let first = (start.round().max(0.0) as usize).min(end.saturating_sub(1));
        (first, ((length.round() as usize).max(1)).min(end - first))
    };
    let (left, width) = within(item.pad[0], native_width * item.ratio[1], batch.width);
    let (top, height) = within(item.pad[1], native_height * item.ratio[0], batch.height);
    let scale = (SIDE as f64 / width.max(height) as f64).min(1.0);
    let scaled = |side: usize| ((side as f64 * scale).round() as usize).max(1);
    let mut picture = Image::filled(scaled(width), scaled(height), [0; 3]);
    let plane = batch.width * batch.height;
    let pixels = &batch.pixels[result.index * 3 * plane..][..3 * plane];
    let range = |at: usize, small: usize, large: usize| {
        let begin = at * large / small;
        begin..((at + 1) * large / small).max(begin + 1)
    };
    for y in 0..picture.height {
        for x in 0..picture.width {
            let (rows, columns) = (range(y, picture.height, height), range(x, picture.width, width));
            let count = (rows.len() * columns.len()) as u32;
            for channel in 0..3 {
                let mut sum = 0;
                for row in rows.clone() {
                    let from = channel * plane + (top + row) * batch.width + left;
                    let line = &pixels[from + columns.start..from + columns.end];
                    sum += line.iter().map(|&value| u32::from(value)).sum::<u32>();
                }
                picture.data[(y * picture.width + x) * 3 + channel] = (sum / count) as u8;
            }
        }
    }
    picture
}

#[cfg(test)]
mod tests {
    use yolo_data::loader::{Batch, Item};
    use yolo_data::scan::Sample;

    use super::*;
    use crate::detection::{Detection, Truth};

    const HERE: Corners = [10.0, 10.0, 50.0, 50.0];
    const THERE: Corners = [100.0, 10.0, 150.0, 50.0];

    /// Adds an image of 200×100 pixels, of which the batch has half the size below 14 gray rows.
    fn add(worst: &mut WorstImages, name: &str, truths: &[Truth], detections: &[Detection]) {
        let item = Item { sample: 0, native: [100, 200], ratio: [0.5; 2], pad: [0.0, 14.0] };
        let mut pixels = vec![114; 3 * 78 * 100];
        for channel in 0..3 {
            pixels[channel * 7800 + 1400..][..5000].fill(200);
        }
        let batch = Batch { height: 78, width: 100, pixels, targets: Vec::new(), items: vec![item] };
        let sample = Sample { image: name.into(), ..Sample::default() };
        let native = [100, 200];
        worst.add(&ImageResult {
            sample: &sample,
            native,
            detections,
            truths,
            batch: &batch,
            batch_number: 0,
            index: 0,
        });
    }

    #[test]
    fn mistakes_are_counted_and_pictures_show_the_image_without_its_padding() {
        let mut worst = WorstImages::default();
        let truths = [Truth { corners: HERE, class: 0 }, Truth { corners: THERE, class: 1 }];
        let found = |corners, class, confidence| Detection { corners, confidence, class };
        add(&mut worst, "right.jpg", &truths, &[found(HERE, 0, 0.9), found(THERE, 1, 0.8)]);
        add(&mut worst, "confused.jpg", &truths, &[found(HERE, 1, 0.9), found(THERE, 1, 0.8)]);
        add(
            &mut worst,
            "missed.jpg",
            &truths,
            &[found([0.0, 60.0, 20.0, 90.0], 0, 0.5), found(HERE, 0, 0.1)],
        );
        let worst = worst.finish().unwrap();
        let paths: Vec<&str> = worst.iter().map(|image| image.path.as_str()).collect();
        assert_eq!(paths, ["missed.jpg", "confused.jpg"], "an image without mistakes is not shown");
        assert_eq!([worst[0].missed, worst[0].unfounded, worst[0].confused], [2, 1, 0]);
        assert_eq!([worst[1].missed, worst[1].unfounded, worst[1].confused], [0, 0, 1]);
        assert_eq!(worst[0].labels[0].corners, [0.05, 0.1, 0.25, 0.5]);
        assert_eq!(worst[0].size, [100, 50]);
        let jpeg = STANDARD.decode(&worst[0].jpeg).unwrap();
        let picture = yolo_data::image::decode::decode_bytes(&jpeg).unwrap();
        assert!([(0, 0), (99, 49)].iter().all(|&(x, y)| picture.pixel(x, y)[0] > 190), "padding is shown");
    }

    #[test]
    fn a_picture_is_as_large_as_a_report_can_carry() {
        let kept = |pixel: &dyn Fn(usize, usize) -> u8| {
            let mut picture = Image::filled(SIDE, SIDE, [0; 3]);
            for (at, value) in picture.data.iter_mut().enumerate() {
                *value = pixel(at / 3 % SIDE, at / 3 / SIDE);
            }
            let image = WorstImage {
                path: "a.jpg".to_owned(),
                size: [SIDE; 2],
                jpeg: String::new(),
                labels: Vec::new(),
                detections: Vec::new(),
                missed: 1,
                unfounded: 0,
                confused: 0,
            };
            let kept = WorstImages { worst: vec![(image, picture)] }.finish().unwrap().remove(0);
            assert!(kept.jpeg.len() * 3 / 4 <= BYTES, "{} characters", kept.jpeg.len());
            kept.size
        };
        assert_eq!(kept(&|x, y| (x / 8 + y / 8) as u8), [SIDE; 2]);
        let noise = |x: usize, y: usize| (((x * 7919 + y * 104_729) * 2_654_435_761) >> 16) as u8;
        assert_eq!(kept(&noise), [SMALL_SIDE; 2]);
    }

    #[test]
    fn twenty_images_are_kept_whatever_the_order() {
        let truth = Truth { corners: HERE, class: 0 };
        let run = |order: &[usize]| {
            let mut worst = WorstImages::default();
            for &number in order {
                add(&mut worst, &format!("{number:02}.jpg"), &vec![truth; 1 + number % 3], &[]);
            }
            worst_of_all(worst.finish().unwrap()).into_iter().map(|image| image.path).collect::<Vec<_>>()
        };
        let forward: Vec<usize> = (0..50).collect();
        let backward: Vec<usize> = forward.iter().rev().copied().collect();
        assert_eq!(run(&forward), run(&backward));
        assert_eq!(run(&forward).len(), WORST);
        assert_eq!(run(&forward)[0], "02.jpg");
    }
}
