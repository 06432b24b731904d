//! The names of the results of `yolo predict`: each picture and each video has one of its own, which is that of its file
//! unless another source has it. Pictures come first, then videos, each in their order, as in YOLOv5.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source_files::is_video;
use super::video::{Video, VideoKind};

/// A picture in which objects are to be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The file.
    pub path: PathBuf,
    /// The name of its results without extension. It is that of the file unless another source has it.
    pub stem: String,
    /// Why it could not be fetched: it is named and skipped, and `path` is its address.
    #[serde(default)]
    pub unavailable: Option<String>,
    /// Where it was fetched from, without what may be secret.
    #[serde(default)]
    pub address: Option<String>,
}

impl Picture {
    /// What people call it: its address if it was fetched, else the file.
    #[must_use]
    pub fn shown(&self) -> &Path {
        self.address.as_ref().map_or(&self.path, |address| Path::new(address))
    }
}

/// What sources name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sources {
    pub(super) pictures: Vec<Picture>,
    pub(super) videos: Vec<Video>,
}

/// One thing that a source names, before it has a name of its own.
#[derive(Debug)]
pub(super) enum Entry {
    File(PathBuf),
    /// The file that was fetched from an address, which is shown.
    Fetched(PathBuf, String),
    /// A picture or video that could not be fetched: its address and the reason.
    Unavailable(String, String),
    Live(Video),
}

/// Parts pictures from videos, and gives each a name of its own: of equal ones, all but the first get a number.
pub(super) fn with_names(entries: Vec<Entry>) -> Sources {
    let stem = |entry: &Entry| match entry {
        Entry::File(path) | Entry::Fetched(path, _) => {
            path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
        }
        Entry::Unavailable(address, _) => address.clone(),
        Entry::Live(video) => video.stem.clone(),
    };
    let (videos, pictures): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| {
        matches!(entry, Entry::Live(_))
            || matches!(entry, Entry::File(path) | Entry::Fetched(path, _) if is_video(path))
    });
    // The first of equal names keeps it, whatever numbered names come before.
    let own: BTreeSet<String> = pictures.iter().chain(&videos).map(stem).collect();
    let mut taken = BTreeSet::new();
    let mut name = |entry: &Entry| {
        let first = stem(entry);
        let mut name = first.clone();
        let mut number = 2_usize;
        while taken.contains(&name) || (name != first && own.contains(&name)) {
            name = format!("{first}-{number}");
            number += 1;
        }
        taken.insert(name.clone());
        name
    };
    let mut sources = Sources::default();
    for entry in pictures.into_iter().chain(videos) {
        let stem = name(&entry);
        match entry {
            Entry::File(path) => sources.add_file(path, stem, None),
            Entry::Fetched(path, address) => sources.add_file(path, stem, Some(address)),
            Entry::Unavailable(address, why) => sources.pictures.push(Picture {
                path: address.into(),
                stem,
                unavailable: Some(why),
                address: None,
            }),
            Entry::Live(video) => sources.videos.push(Video { stem, ..video }),
        }
    }
    sources
}

impl Sources {
    /// Adds a picture or video of this machine, which may be fetched from an address.
    fn add_file(&mut self, path: PathBuf, stem: String, address: Option<String>) {
        if is_video(&path) {
            let shown = address.map_or_else(|| path.clone(), PathBuf::from);
            self.videos.push(Video { shown, source: path, stem, kind: VideoKind::File, area: None });
        } else {
            self.pictures.push(Picture { path, stem, unavailable: None, address });
        }
    }
}
