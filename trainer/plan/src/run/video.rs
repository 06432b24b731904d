//! A video, camera or stream among the sources of `yolo predict`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A video in whose frames objects are to be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Video {
    /// The file, the device of the camera, or the address of the stream, which may hold a password.
    pub source: PathBuf,
    /// The source without a password, for people.
    pub shown: PathBuf,
    /// The name of its results without extension.
    pub stem: String,
    /// What it is.
    pub kind: VideoKind,
    /// The part of the screen in pixels: left, top, width and height. `None` for all of it, and for other videos.
    #[serde(default)]
    pub area: Option<[u32; 4]>,
}

/// What a video is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VideoKind {
    /// A file, which has an end.
    File,
    /// A camera of this machine.
    Camera,
    /// A stream of a server.
    Stream,
    /// The screen, whose source is the X display.
    Screen,
}
