//! The pictures of `yolo predict`: what its sources name, in their order. A source is a picture, a folder, a
//! pattern, a list of paths, or `-` for a list on stdin, which the command has read. Files that cannot be opened are
//! not noticed here: their names stay, so that the run can name and skip them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dataset::{IMAGE_EXTENSIONS, Places, is_image, path_in_list};
use crate::error::PlanError;

/// Extensions of videos that YOLOv5 accepts.
const VIDEO_EXTENSIONS: [&str; 12] =
    ["asf", "avi", "gif", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "ts", "webm", "wmv"];

/// A picture in which objects are to be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The file.
    pub path: PathBuf,
    /// The name of its results without extension. It is that of the file unless another picture has it.
    pub stem: String,
}

/// The pictures of all sources. `listed` is what stdin held.
///
/// # Errors
/// When a source does not exist, or there is no picture.
pub(super) fn find(
    sources: &[&str],
    listed: Option<&str>,
    places: &Places,
) -> Result<Vec<Picture>, PlanError> {
    if sources.is_empty() {
        return Err(PlanError::usage("no picture is named")
            .with_hint("name pictures, folders, patterns or lists: yolo predict photos/ --weights best.pt"));
    }
    let mut paths = Vec::new();
    for source in sources {
        let before = paths.len();
        of_source(source, listed, places, &mut paths)?;
        if paths.len() == before {
            return Err(nothing(source, places));
        }
    }
    Ok(with_names(paths))
}

fn of_source(
    source: &str,
    listed: Option<&str>,
    places: &Places,
    paths: &mut Vec<PathBuf>,
) -> Result<(), PlanError> {
    if source == "-" {
        let lines = listed.unwrap_or_default();
        paths.extend(of_list(lines, &places.working_dir, places));
        return Ok(());
    }
    if source.trim().is_empty() {
        return Err(PlanError::usage("--source is empty").with_hint("name a picture or a folder"));
    }
    if source.contains("://") {
        return Err(PlanError::usage(format!("--source {source}: yolo predict does not read URLs"))
            .with_hint("download it first, and name the file"));
    }
    let path = places.working_dir.join(source);
    if path.is_dir() {
        paths.extend(of_folder(&path)?);
    } else if path.is_file() && has_extension(&path, &["txt"]) {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| PlanError::new(format!("cannot read the list {source}: {error}")))?;
        paths.extend(of_list(&text, path.parent().unwrap_or(Path::new("")), places));
    } else if path.is_file() {
        if !is_image(&path) {
            return Err(no_picture(source, &path));
        }
        paths.push(path);
    } else if source.contains(['*', '?', '[']) {
        paths.extend(of_pattern(source, &path)?);
    } else {
        return Err(does_not_exist(source));
    }
    Ok(())
}

/// The pictures in a folder, not those in its folders, as YOLOv5 sorts them.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let unreadable = |error| PlanError::new(format!("cannot list the folder {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && is_image(&path) && !path.is_dir() {
            found.push(path);
        }
    }
    Ok(sorted(found))
}

/// The pictures that match a pattern with `*`, `?`, `[…]` or `**`; of a folder that does, those in it.
fn of_pattern(source: &str, pattern: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let text = pattern.to_str().ok_or_else(|| does_not_exist(source))?;
    let matches = glob::glob(text).map_err(|error| {
        PlanError::usage(format!("--source {source} is not a valid pattern: {error}"))
            .with_hint("put [ and ] around characters that stand for themselves: [*]")
    })?;
    let mut found = Vec::new();
    // A folder that cannot be listed has no pictures that could be read.
    for path in matches.filter_map(Result::ok) {
        if path.is_dir() {
            found.extend(of_folder(&path)?);
        } else if is_image(&path) {
            found.push(path);
        }
    }
    Ok(sorted(found))
}

/// The paths of a list, one per line.
fn of_list(text: &str, folder: &Path, places: &Places) -> Vec<PathBuf> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| path_in_list(line, folder, &places.working_dir)).collect()
}

/// Python sorts paths as strings, not component by component.
fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    paths
}

/// Gives each picture a name of its own: of equal ones, all but the first get a number.
fn with_names(paths: Vec<PathBuf>) -> Vec<Picture> {
    let mut taken = BTreeSet::new();
    // The first of equal names keeps it, whatever numbered names come before.
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let own: BTreeSet<String> = paths.iter().map(|path| stem(path)).collect();
    let name = |path: PathBuf| {
        let first = stem(&path);
        let mut name = first.clone();
        let mut number = 2_usize;
        while taken.contains(&name) || (name != first && own.contains(&name)) {
            name = format!("{first}-{number}");
            number += 1;
        }
        taken.insert(name.clone());
        Picture { path, stem: name }
    };
    paths.into_iter().map(name).collect()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
}

fn readable() -> String {
    format!("yolo predict reads {}", IMAGE_EXTENSIONS.join(", "))
}

fn does_not_exist(source: &str) -> PlanError {
    if !source.is_empty() && source.bytes().all(|byte| byte.is_ascii_digit()) {
        return PlanError::new(format!("--source {source} is a camera, which yolo predict does not read"))
            .with_hint("save its frames as pictures first: ffmpeg -i /dev/video0 frames/%05d.png");
    }
    PlanError::new(format!("--source {source} does not exist"))
        .with_hint("name a picture, a folder, a pattern in quotes, or a .txt file with a path per line")
}

fn no_picture(source: &str, path: &Path) -> PlanError {
    if has_extension(path, &VIDEO_EXTENSIONS) {
        return PlanError::new(format!("--source {source} is a video, which yolo predict does not read"))
            .with_hint("save its frames as pictures first: ffmpeg -i VIDEO frames/%05d.png");
    }
    PlanError::new(format!("--source {source} is not a picture by its extension")).with_hint(readable())
}

/// The error for a source without a picture.
fn nothing(source: &str, places: &Places) -> PlanError {
    if source == "-" {
        return PlanError::new("the list on stdin is empty").with_hint("write a path per line");
    }
    let path = places.working_dir.join(source);
    if !path.is_dir() {
        let what = if path.is_file() { "lists no pictures" } else { "matches no pictures" };
        return PlanError::new(format!("--source {source} {what}")).with_hint(readable());
    }
    let error = PlanError::new(format!("there is no picture in the folder {source}"));
    let folders = std::fs::read_dir(&path).into_iter().flatten().filter_map(Result::ok);
    let has_folders = folders.into_iter().any(|entry| entry.path().is_dir());
    if has_folders {
        let pattern = Path::new(source).join("**").join("*");
        return error.with_hint(format!("for the pictures in its folders, give '{}'", pattern.display()));
    }
    error.with_hint(readable())
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    /// A working folder with files of these names.
    fn places(files: &[&str]) -> (tempfile::TempDir, Places) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let places = Places { working_dir: root.path().to_owned(), data_sets: root.path().join("sets") };
        (root, places)
    }

    /// The pictures of these sources with their names, relative to the working folder.
    fn found(places: &Places, sources: &[&str], listed: Option<&str>) -> Vec<(String, String)> {
        let pictures = find(sources, listed, places).unwrap();
        let shown = |path: &Path| {
            path.strip_prefix(&places.working_dir).unwrap_or(path).to_string_lossy().replace('\\', "/")
        };
        pictures.iter().map(|picture| (shown(&picture.path), picture.stem.clone())).collect()
    }

    fn paths(found: &[(String, String)]) -> Vec<&str> {
        found.iter().map(|(path, _)| path.as_str()).collect()
    }

    #[test]
    fn a_folder_is_its_pictures_in_order() {
        let (_root, places) = places(&["in/b.JPG", "in/a.png", "in/.c.jpg", "in/notes.md", "in/deep/d.jpg"]);
        assert_eq!(paths(&found(&places, &["in"], None)), ["in/a.png", "in/b.JPG"]);
        assert_eq!(paths(&found(&places, &["in/**/*.jpg"], None)), ["in/.c.jpg", "in/deep/d.jpg"]);
        assert_eq!(paths(&found(&places, &["in/*"], None)).len(), 4, "files, and what folders hold");
    }

    #[test]
    fn a_list_is_its_lines_in_their_order_even_if_files_are_missing() {
        let (_root, places) = places(&["lists/x.jpg", "y.jpg"]);
        let text = "y.jpg\n\n ./x.jpg \nx.jpg\ngone.jpg\n";
        std::fs::write(places.working_dir.join("lists/all.txt"), text).unwrap();
        let expected = ["y.jpg", "lists/x.jpg", "lists/x.jpg", "lists/gone.jpg"];
        assert_eq!(paths(&found(&places, &["lists/all.txt"], None)), expected);
        let listed = found(&places, &["-", "y.jpg"], Some("lists/x.jpg\n"));
        assert_eq!(paths(&listed), ["lists/x.jpg", "y.jpg"]);
    }

    #[test]
    fn results_have_names_of_their_own() {
        let (_root, places) = places(&["a/x.jpg", "b/x.png", "b/x-2.jpg", "c/x.jpg"]);
        let found = found(&places, &["a/x.jpg", "b", "c"], None);
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["x", "x-2", "x-3", "x-4"], "{found:?}");
    }

    #[test]
    fn a_source_that_names_no_picture_is_explained() {
        let (_root, places) = places(&["notes.md", "film.mp4", "empty/readme", "outer/inner/a.jpg"]);
        std::fs::write(places.working_dir.join("none.txt"), "\n").unwrap();
        for (source, message, hint) in [
            ("gone.jpg", "--source gone.jpg does not exist", "name a picture"),
            ("notes.md", "--source notes.md is not a picture by its extension", "yolo predict reads bmp"),
            ("film.mp4", "--source film.mp4 is a video", "ffmpeg"),
            ("empty", "there is no picture in the folder empty", "yolo predict reads bmp"),
            ("outer", "there is no picture in the folder outer", "for the pictures in its folders"),
            ("none.txt", "--source none.txt lists no pictures", "yolo predict reads bmp"),
            ("*.jpg", "--source *.jpg matches no pictures", "yolo predict reads bmp"),
            ("[", "--source [ is not a valid pattern", "[*]"),
            ("https://h/a.jpg", "does not read URLs", "download it first"),
            ("-", "the list on stdin is empty", "a path per line"),
            ("", "--source is empty", "name a picture"),
        ] {
            let error = find(&[source], None, &places).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error}: {:?}", error.hint());
        }
        assert!(find(&[], None, &places).unwrap_err().is_usage());
    }
}
