//! `predictions.csv` (`--save-csv`): one line per object, in the order of the pictures and frames. The first columns are those
//! of YOLOv5.

use std::path::Path;

use yolo_base::format::csv_field;
use yolo_base::percent_g::percent_g;
use yolo_plan::event::Predicted;

use crate::error::TrainError;
use crate::publish::publish;
use crate::rank::context::Context;

const COLUMNS: &str = "Image Name,Prediction,Confidence,Left,Top,Right,Bottom";

/// The number of a picture or video, that of the frame, and the lines.
pub(super) type Rows = (usize, usize, String);

/// What a rank has done; of all ranks, what they have done together.
pub(super) struct Done {
    /// Whether it has done all of its pictures.
    pub(super) complete: bool,
    /// Whether it has searched at least one picture or frame, so that there are results.
    pub(super) any: bool,
    /// The lines of the table.
    pub(super) rows: Vec<Rows>,
}

/// The lines of a picture. `stem` is the name of its results, which no other has; without its extension, since a picture
/// keeps that of its file.
pub(super) fn rows_of(picture: &Predicted, stem: &str) -> Rows {
    let extension = picture.path.extension().map(|own| format!(".{}", own.to_string_lossy()));
    let name = format!("{stem}{}", extension.unwrap_or_default());
    let lines = picture.found.iter().map(|found| {
        let corners = found.corners.map(|side| side.to_string()).join(",");
        let confidence = percent_g(f64::from(found.confidence), 6);
        format!("{},{},{confidence},{corners}\n", csv_field(&name), csv_field(&found.name))
    });
    (picture.picture, picture.frame.unwrap_or(0), lines.collect())
}

/// What all ranks have done, with the lines in the order of the pictures. Every rank calls this.
///
/// # Errors
/// When a peer is lost.
pub(super) fn of_all_ranks(context: &Context, done: &Done) -> Result<Done, TrainError> {
    let message = |error: serde_json::Error| {
        TrainError::new(format!("a rank has sent incomplete results of its pictures: {error}"))
    };
    let mut all = Done { complete: true, any: false, rows: Vec::new() };
    let own = serde_json::to_vec(&(done.complete, done.any, &done.rows)).map_err(message)?;
    for bytes in context.gather(own)? {
        let (complete, any, rows): (bool, bool, Vec<Rows>) =
            serde_json::from_slice(&bytes).map_err(message)?;
        all.complete &= complete;
        all.any |= any;
        all.rows.extend(rows);
    }
    all.rows.sort();
    Ok(all)
}

/// Writes the table.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(path: &Path, rows: &[Rows]) -> Result<(), TrainError> {
    let mut text = format!("{COLUMNS}\n");
    rows.iter().for_each(|(.., lines)| text.push_str(lines));
    publish(path, text.as_bytes())
        .map_err(|error| TrainError::new(format!("cannot save the detections: {error}")))
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::FoundObject;

    use super::*;

    #[test]
    fn a_line_has_yolov5s_columns_and_the_box() {
        let found = FoundObject {
            class: 1,
            name: "white, blood".to_owned(),
            confidence: 0.5,
            corners: [1, 2, 30, 40],
        };
        let picture = Predicted {
            picture: 3,
            pictures: 9,
            path: "photos/a.jpg".into(),
            frame: None,
            frames: None,
            size: [50, 60],
            input: [64, 64],
            found: vec![found.clone(), found],
            milliseconds: 1.0,
            saved: None,
            preview: None,
        };
        let line = "a.jpg,\"white, blood\",0.5,1,2,30,40\n";
        assert_eq!(rows_of(&picture, "a"), (3, 0, line.repeat(2)));
        // Another picture is called a.jpg as well.
        assert!(rows_of(&picture, "a-2").2.starts_with("a-2.jpg,"));
        // A camera has no extension.
        let of_camera = Predicted { path: "/dev/video0".into(), frame: Some(7), ..picture };
        assert!(rows_of(&of_camera, "0").2.starts_with("0,"));
    }
}
