//! The screen among the sources of `yolo predict`, as YOLOv5 writes it: `screen`, `screen 0`,
//! `screen LEFT TOP WIDTH HEIGHT` or `screen 0 LEFT TOP WIDTH HEIGHT`.

use super::video::{Video, VideoKind};
use crate::error::PlanError;

/// The screen, or the part of it that a source names; `None` if it names none.
pub(super) fn screen(source: &str) -> Option<Result<Video, PlanError>> {
    let mut words = source.split_whitespace();
    if words.next() != Some("screen") {
        return None;
    }
    let numbers: Result<Vec<u32>, _> = words.map(str::parse).collect();
    let area = match numbers.as_deref() {
        Ok([] | [0]) => Ok(None),
        Ok(&[number]) => Err(one_monitor(source, number)),
        Ok(&[left, top, width, height]) => part(source, [left, top, width, height]),
        Ok(&[0, left, top, width, height]) => part(source, [left, top, width, height]),
        Ok(&[number, _, _, _, _]) => Err(one_monitor(source, number)),
        _ => Err(no_part(source)),
    };
    Some(area.map(|area| Video {
        source: "screen".into(),
        shown: "screen".into(),
        stem: "screen".to_owned(),
        kind: VideoKind::Screen,
        area,
    }))
}

fn part(source: &str, area: [u32; 4]) -> Result<Option<[u32; 4]>, PlanError> {
    let [_, _, width, height] = area;
    if width == 0 || height == 0 { Err(no_part(source)) } else { Ok(Some(area)) }
}

fn no_part(source: &str) -> PlanError {
    PlanError::usage(format!("--source {source} is no part of the screen")).with_hint(
        "give left, top, width and height in pixels: 'screen 100 50 640 480'; or screen for all of it",
    )
}

/// X knows one screen, whatever the number of monitors.
fn one_monitor(source: &str, number: u32) -> PlanError {
    PlanError::usage(format!(
        "--source {source}: yolo predict reads the whole screen or a part of it, and cannot look up monitor {number}"
    ))
    .with_hint(
        "give the monitor's part of it, 'screen LEFT TOP WIDTH HEIGHT', which xrandr --listmonitors shows",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_is_written_as_in_yolov5() {
        let area = |source: &str| screen(source).unwrap().unwrap().area;
        assert_eq!([area("screen"), area("screen 0")], [None, None]);
        assert_eq!(area("screen 10 20 640 480"), Some([10, 20, 640, 480]));
        assert_eq!(area("screen 0 10 20 640 480"), Some([10, 20, 640, 480]));
        assert!(screen("screenshot.png").is_none() && screen("").is_none());
        for wrong in ["screen 1", "screen 1 2 3", "screen -1", "screen 1 0 0 9 9", "screen 0 0 0 9"] {
            assert!(screen(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
