//! What `yolo predict` says about pictures and the frames of videos: a line for each, and a summary of all.

use std::collections::BTreeSet;
use std::time::Instant;

use yolo_base::format::count;
use yolo_plan::event::Predicted;

/// What a run did with pictures.
#[derive(Debug, Default)]
pub(crate) struct Predictions {
    /// Pictures that could not be read.
    pub(crate) skipped: usize,
    /// Pictures, and videos that have begun.
    sources: BTreeSet<usize>,
    images: usize,
    frames: usize,
    objects: usize,
    /// Milliseconds of the network.
    network: f64,
    /// When the first picture was done.
    first: Option<Instant>,
}

impl Predictions {
    pub(super) fn add(&mut self, picture: &Predicted) {
        self.sources.insert(picture.picture);
        match picture.frame {
            Some(_) => self.frames += 1,
            None => self.images += 1,
        }
        self.objects += picture.found.len();
        self.network += picture.milliseconds;
        self.first.get_or_insert_with(Instant::now);
    }

    /// Pictures and videos that were done or skipped, or have begun.
    pub(super) fn done(&self) -> usize {
        self.sources.len() + self.skipped
    }

    /// Pictures and frames per second since the first.
    pub(super) fn rate(&self) -> f64 {
        let seconds = self.first.map_or(0.0, |first| first.elapsed().as_secs_f64());
        if seconds > 0.0 { (self.images + self.frames).saturating_sub(1) as f64 / seconds } else { 0.0 }
    }

    /// The line at the end of a run with pictures.
    pub(super) fn summary(&self) -> Option<String> {
        if self.done() == 0 {
            return None;
        }
        let skipped = match self.skipped {
            0 => String::new(),
            some if self.frames > 0 => format!("; {some} skipped in whole or in part, see the warnings"),
            some => format!("; {some} skipped, see the warnings"),
        };
        let mean = match (self.images, self.frames) {
            (0, 0) => String::new(),
            (0, frames) => format!(", {:.1} ms of the network per frame", self.network / frames as f64),
            (images, frames) => {
                format!(", {:.1} ms of the network per picture", self.network / (images + frames) as f64)
            }
        };
        let objects = count(self.objects, "object");
        let (images, frames) = (count(self.images, "picture"), count(self.frames, "frame"));
        let searched = match (self.images, self.frames) {
            (_, 0) => images,
            (0, _) => frames,
            _ => format!("{images} and {frames}"),
        };
        Some(format!("{objects} in {searched}{mean}{skipped}"))
    }
}

/// The objects of a picture by class: `12 RBC, 3 WBC`.
pub(super) fn objects(picture: &Predicted) -> String {
    let mut classes: Vec<(usize, &str, usize)> = Vec::new();
    for found in &picture.found {
        match classes.iter_mut().find(|(class, ..)| *class == found.class) {
            Some((.., number)) => *number += 1,
            None => classes.push((found.class, &found.name, 1)),
        }
    }
    classes.sort_unstable();
    let parts: Vec<String> = classes.iter().map(|(_, name, number)| format!("{number} {name}")).collect();
    if parts.is_empty() { "(no detections)".to_owned() } else { parts.join(", ") }
}

/// The number of a frame among those of its video, with a space: `(12/300) `.
pub(super) fn frame(picture: &Predicted) -> String {
    match (picture.frame, picture.frames) {
        (Some(frame), Some(frames)) => format!("({frame}/{frames}) "),
        (Some(frame), None) => format!("({frame}) "),
        (None, _) => String::new(),
    }
}

/// The line about a picture.
pub(super) fn predicted_line(picture: &Predicted) -> String {
    let [height, width] = picture.input;
    let what = if picture.frame.is_some() { "video" } else { "image" };
    format!(
        "{what} {}/{} {}{}: {height}x{width} {}, {:.1}ms",
        picture.picture + 1,
        picture.pictures,
        frame(picture),
        picture.path.display(),
        objects(picture),
        picture.milliseconds
    )
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::FoundObject;

    use super::*;

    fn picture(classes: &[usize]) -> Predicted {
        let object = |&class: &usize| FoundObject {
            class,
            name: ["RBC", "WBC"][class].to_owned(),
            confidence: 0.5,
            corners: [0; 4],
        };
        Predicted {
            picture: 0,
            pictures: 72,
            path: "blood.jpg".into(),
            frame: None,
            frames: None,
            size: [480, 640],
            input: [480, 640],
            found: classes.iter().map(object).collect(),
            milliseconds: 35.24,
            saved: None,
            preview: None,
        }
    }

    #[test]
    fn a_picture_has_a_line_as_in_yolov5() {
        assert_eq!(
            predicted_line(&picture(&[1, 0, 1, 0, 0])),
            "image 1/72 blood.jpg: 480x640 3 RBC, 2 WBC, 35.2ms"
        );
        let mut of_video = Predicted { frame: Some(12), frames: Some(300), ..picture(&[]) };
        let line = predicted_line(&of_video);
        assert_eq!(line, "video 1/72 (12/300) blood.jpg: 480x640 (no detections), 35.2ms");
        of_video.frames = None;
        assert!(predicted_line(&of_video).starts_with("video 1/72 (12) blood.jpg: "));
        assert_eq!(predicted_line(&picture(&[])), "image 1/72 blood.jpg: 480x640 (no detections), 35.2ms");
    }

    #[test]
    fn the_summary_counts_what_was_done_and_skipped() {
        let mut all = Predictions::default();
        assert_eq!(all.summary(), None);
        all.add(&picture(&[0]));
        assert_eq!(all.summary().unwrap(), "1 object in 1 picture, 35.2 ms of the network per picture");
        all.skipped = 2;
        all.add(&Predicted { picture: 1, ..picture(&[0, 1]) });
        assert_eq!(
            all.summary().unwrap(),
            "3 objects in 2 pictures, 35.2 ms of the network per picture; 2 skipped, see the warnings"
        );
        let mut films = Predictions::default();
        let frame = |number| Predicted { frame: Some(number), ..picture(&[0]) };
        films.add(&frame(1));
        films.add(&frame(2));
        assert_eq!(films.summary().unwrap(), "2 objects in 2 frames, 35.2 ms of the network per frame");
        films.add(&Predicted { picture: 1, ..picture(&[0]) });
        assert!(films.summary().unwrap().starts_with("3 objects in 1 picture and 2 frames, "));
        assert_eq!(films.done(), 2);
    }
}
