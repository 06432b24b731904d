//! What ffprobe says about a video before it is read: frames per second, the number of frames, and whether it ends.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::encode::Pace;
use super::program::Process;

/// How long the answer may take; a stream that says nothing has none.
const LIMIT: Duration = Duration::from_secs(20);

/// What is known of a video.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Facts {
    /// Frames per second.
    pub(crate) pace: Pace,
    /// Frames, if the file says it.
    pub(crate) frames: Option<usize>,
    /// Frames in its duration, if all are as far apart as most.
    pub(crate) lasts: Option<usize>,
    /// Whether it has an end.
    pub(crate) ends: bool,
}

/// Asks ffprobe; the error says why the video cannot be read.
pub(crate) fn probe(source: &Path) -> Result<Facts, String> {
    let shown = "stream=avg_frame_rate,r_frame_rate,nb_frames,duration:format=duration";
    let options = ["-v", "error", "-select_streams", "v:0", "-show_entries", shown, "-of", "json", "-i"];
    let arguments = options.iter().map(std::ffi::OsStr::new).chain([source.as_os_str()]);
    let started = Process::start("ffprobe", arguments, Stdio::null(), Stdio::piped());
    let mut process = started.map_err(|error| format!("ffprobe cannot be started: {error}"))?;
    let reader = process.stdout().map(|mut stdout| {
        std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        })
    });
    let (status, said) =
        process.wait(LIMIT).map_err(|error| format!("ffprobe cannot be waited for: {error}"))?;
    let text = reader.and_then(|reader| reader.join().ok()).and_then(Result::ok).unwrap_or_default();
    match status {
        None => Err(format!("ffprobe gave no answer in {} seconds", LIMIT.as_secs())),
        Some(status) if !status.success() => Err(reason(&said.last(), source)),
        Some(_) => facts(&text).ok_or_else(|| "it has no video".to_owned()),
    }
}

/// A message of ffmpeg without the name of the file, which the line begins with already.
pub(super) fn reason(said: &str, source: &Path) -> String {
    let name = source.to_string_lossy();
    let said = said.strip_prefix("Error opening input: ").unwrap_or(said);
    let said = said.strip_prefix(&*name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(said);
    if said.is_empty() { "ffmpeg cannot read it".to_owned() } else { said.to_owned() }
}

/// Reads ffprobe's JSON; `None` if there is no video in the file.
fn facts(text: &str) -> Option<Facts> {
    let value: Value = serde_json::from_str(text).ok()?;
    let stream = value["streams"].as_array()?.first()?;
    let pace = ["avg_frame_rate", "r_frame_rate"]
        .iter()
        .find_map(|name| Pace::parse(stream[*name].as_str()?))
        .unwrap_or_default();
    let number = |value: &Value| value.as_str()?.parse::<f64>().ok().filter(|number| *number > 0.0);
    let seconds = number(&stream["duration"]).or_else(|| number(&value["format"]["duration"]));
    let frames = stream["nb_frames"].as_str().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
    let lasts = seconds.map(|seconds| pace.frames_in(seconds));
    Some(Facts { pace, frames, lasts, ends: seconds.is_some() || frames.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_stream_are_told_apart() {
        let file = r#"{"programs": [], "streams": [{"r_frame_rate": "30/1", "avg_frame_rate": "30000/1001",
            "duration": "2.0", "nb_frames": "60"}], "format": {"duration": "2.1"}}"#;
        let pace = Pace::parse("30000/1001").unwrap();
        assert_eq!(facts(file), Some(Facts { pace, frames: Some(60), lasts: Some(59), ends: true }));
        let webm = r#"{"streams": [{"r_frame_rate": "25/1", "avg_frame_rate": "0/0"}], "format": {"duration": "4"}}"#;
        let pace = Pace::parse("25/1").unwrap();
        assert_eq!(facts(webm), Some(Facts { pace, frames: None, lasts: Some(100), ends: true }));
        let live = r#"{"streams": [{"r_frame_rate": "90000/1", "avg_frame_rate": "15/1"}], "format": {}}"#;
        let pace = Pace::parse("15/1").unwrap();
        assert_eq!(facts(live), Some(Facts { pace, frames: None, lasts: None, ends: false }));
        for none in ["", "{}", r#"{"streams": []}"#] {
            assert_eq!(facts(none), None);
        }
    }

    #[test]
    fn a_reason_does_not_repeat_the_name() {
        let said = "/a/film.mp4: Invalid data found when processing input";
        assert_eq!(reason(said, Path::new("/a/film.mp4")), "Invalid data found when processing input");
        assert_eq!(reason("", Path::new("a")), "ffmpeg cannot read it");
    }
}
