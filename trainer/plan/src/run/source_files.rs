//! The files that a source of `yolo predict` can name at once: those of a folder, and those that match a pattern. Here are
//! also the extensions by which files count as pictures and videos.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::dataset::{IMAGE_EXTENSIONS, is_image};
use crate::error::PlanError;

/// Extensions of videos that YOLOv5 accepts.
const VIDEO_EXTENSIONS: [&str; 12] =
    ["asf", "avi", "gif", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "ts", "webm", "wmv"];

/// Whether a file is a picture or a video by its extension.
pub(super) fn is_readable(path: &Path) -> bool {
    is_image(path) || is_video(path)
}

/// Whether a file is a video by its extension.
pub(super) fn is_video(path: &Path) -> bool {
    has_extension(path, &VIDEO_EXTENSIONS)
}

/// The pictures and videos in a folder, not those in its folders, as YOLOv5 sorts them.
pub(super) fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let unreadable = |error| {
        PlanError::new(format!("cannot list the folder {}: {error}", folder.display()))
            .with_hint("allow yourself to read it, or name the files in it")
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && is_readable(&path) && !path.is_dir() {
            found.push(path);
        }
    }
    Ok(sorted(found))
}

/// Whether a source can match several files.
pub(super) fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '['])
}

/// The pictures and videos that match a pattern with `*`, `?`, `[…]` or `**` in a folder, whose own name is no pattern;
/// of a folder that does, those in it. As in Python, a hidden file matches only a pattern that begins with a dot.
pub(super) fn of_pattern(source: &str, folder: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let name = folder.to_str().ok_or_else(|| does_not_exist(source))?;
    // Without the `.` of `./photos`: the paths of its pictures are shown.
    let pattern: PathBuf = Path::new(&glob::Pattern::escape(name)).join(source).components().collect();
    let matches = glob::glob(&pattern.to_string_lossy()).map_err(|error| {
        PlanError::usage(format!("--source {source} is not a valid pattern: {error}"))
            .with_hint("put [ and ] around characters that stand for themselves: [*]")
    })?;
    let is_fixed = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
    let base = folder.join(Path::new(source).components().take_while(is_fixed).collect::<PathBuf>());
    // glob's own option for this loses files that the pattern asks for, and panics at names that are not UTF-8.
    let asks_for_hidden = Path::new(source).components().skip_while(is_fixed).any(is_hidden);
    let mut found = Vec::new();
    let mut loops = Loops { base: base.clone(), known: BTreeMap::new() };
    // A folder that cannot be listed has no pictures that could be read.
    for path in matches.filter_map(Result::ok) {
        let found_hidden = path.strip_prefix(&base).is_ok_and(|rest| rest.components().any(is_hidden));
        if found_hidden && !asks_for_hidden || path.parent().is_some_and(|parent| loops.has(parent)) {
            continue;
        }
        if path.is_dir() {
            found.extend(of_folder(&path)?);
        } else if is_readable(&path) {
            found.push(path);
        }
    }
    Ok(sorted(found))
}

/// Whether a name begins with a dot.
fn is_hidden(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."))
}

/// The folders that a link leads back to: `**` would find the files in them again and again.
#[derive(Debug)]
struct Loops {
    /// The part of the pattern without wildcards; links in it are the user's wish.
    base: PathBuf,
    /// What is known of the folders so far.
    known: BTreeMap<PathBuf, bool>,
}

impl Loops {
    /// Whether the path of a folder passes through the same folder twice.
    fn has(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let real: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|part| part.starts_with(&self.base))
            .filter_map(|part| part.canonicalize().ok())
            .collect();
        let has = real.iter().collect::<BTreeSet<_>>().len() < real.len();
        self.known.insert(folder.to_owned(), has);
        has
    }
}

/// Python sorts paths as strings, not component by component.
fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    paths
}

/// Whether a file has one of these extensions, in upper or lower case.
pub(super) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
}

/// What `yolo predict` reads.
pub(super) fn readable() -> String {
    // These are pictures of YOLOv5, which are named and skipped.
    let pictures: Vec<&str> =
        IMAGE_EXTENSIONS.into_iter().filter(|extension| !matches!(*extension, "dng" | "pfm")).collect();
    format!(
        "yolo predict reads pictures ({}) and videos ({})",
        pictures.join(", "),
        VIDEO_EXTENSIONS.join(", ")
    )
}

/// The error for a source that is nothing known.
pub(super) fn does_not_exist(source: &str) -> PlanError {
    PlanError::new(format!("--source {source} does not exist")).with_hint(
        "name a picture, a video, a folder, a pattern in quotes, a URL, or a .txt file with a path per line",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_back_is_followed_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path();
        std::fs::create_dir_all(folder.join("in/deep")).unwrap();
        std::fs::create_dir(folder.join("elsewhere")).unwrap();
        for file in ["in/a.jpg", "in/deep/b.jpg", "elsewhere/c.jpg"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(folder.join("in"), folder.join("in/deep/back")).unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("in/other")).unwrap();
        let found = of_pattern("in/**/*.jpg", folder).unwrap();
        let expected = ["in/a.jpg", "in/deep/b.jpg", "in/other/c.jpg"].map(|file| folder.join(file));
        assert_eq!(found, expected);
        // The user asks for this one.
        let found = of_pattern("in/deep/back/*.jpg", folder).unwrap();
        assert_eq!(found, [folder.join("in/deep/back/a.jpg")]);
    }
}
