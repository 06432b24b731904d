//! What the sources of `yolo predict` name: pictures first, then videos, each in their order, as in YOLOv5. A source
//! is a file, a folder, a pattern, an address, the number of a camera, the screen, a list of such, or `-` for a list on stdin,
//! which the command has read. Files that cannot be opened are not noticed here: their names stay, so that the run
//! can name and skip them.

use std::path::{Path, PathBuf};

use super::addresses::{Address, camera, shown_address, shown_file};
use super::screen::screen;
use super::source_files::{
    does_not_exist, has_extension, is_pattern, is_readable, of_folder, of_pattern, readable,
};
use super::source_names::{Entry, Sources, with_names};
use super::video::{Video, VideoKind};
use super::{Need, PlanContext};
use crate::dataset::{Places, path_in_list};
use crate::error::PlanError;

/// What all sources name. `listed` is what stdin held. What must be fetched first is added to `missing`.
///
/// # Errors
/// When a source does not exist, or there is neither a picture nor a video.
pub(super) fn find(
    sources: &[&str],
    listed: Option<&str>,
    context: &PlanContext,
    missing: &mut Vec<Need>,
) -> Result<Sources, PlanError> {
    if sources.is_empty() {
        return Err(PlanError::usage("no picture is named")
            .with_hint("name pictures, folders, videos or lists: yolo predict photos/ --weights best.pt"));
    }
    let mut finder = Finder { listed, context, missing, entries: Vec::new() };
    let mut gone = Vec::new();
    for source in sources {
        let before = (finder.entries.len(), finder.missing.len());
        let is_there = finder.add(source)?;
        if !is_there {
            gone.push(*source);
        } else if (finder.entries.len(), finder.missing.len()) == before {
            return Err(nothing(source, &context.places));
        }
    }
    // As in a list, one that does not exist costs only itself.
    if let (Some(first), true) = (gone.first(), gone.len() == sources.len()) {
        return Err(does_not_exist(first));
    }
    let unavailable = finder.entries.iter().map(|entry| match entry {
        Entry::Unavailable(_, why) => Some(why),
        Entry::File(_) | Entry::Fetched(..) | Entry::Live(_) => None,
    });
    if let (Some(reasons), true) = (unavailable.collect::<Option<Vec<_>>>(), finder.missing.is_empty())
        && let Some(first) = reasons.first()
    {
        return Err(PlanError::new(first.as_str())
            .with_hint("check the address and the network, or download the file yourself and name it"));
    }
    Ok(with_names(finder.entries))
}

/// The search of all sources.
struct Finder<'a> {
    listed: Option<&'a str>,
    context: &'a PlanContext,
    missing: &'a mut Vec<Need>,
    entries: Vec<Entry>,
}

impl Finder<'_> {
    /// Adds what a source names. Returns false if it names a file that does not exist, whose name is kept.
    fn add(&mut self, source: &str) -> Result<bool, PlanError> {
        let places = &self.context.places;
        if source == "-" {
            self.add_list(self.listed.unwrap_or_default(), &places.working_dir)?;
            return Ok(true);
        }
        if source.trim().is_empty() {
            return Err(PlanError::usage("--source is empty").with_hint("name a picture or a folder"));
        }
        if source.contains("://") {
            self.add_address(source)?;
            return Ok(true);
        }
        // Without the `.` of `./photos`: the paths of its pictures are shown.
        let path: PathBuf = places.working_dir.join(source).components().collect();
        if path.is_dir() {
            self.add_files(of_folder(&path)?);
        } else if path.is_file() && has_extension(&path, &["txt", "streams"]) {
            let text = yolo_base::text::read(&path).map_err(|error| {
                PlanError::new(format!("cannot read the list {source}: {error}"))
                    .with_hint("a list is text in UTF-8 or UTF-16, with a path or an address per line")
            })?;
            self.add_list(&text, path.parent().unwrap_or(Path::new("")))?;
        } else if path.is_file() {
            if !is_readable(&path) {
                return Err(PlanError::new(format!(
                    "--source {source} is neither a picture nor a video by its extension"
                ))
                .with_hint(readable()));
            }
            self.entries.push(Entry::File(path));
        } else if is_pattern(source) {
            self.add_files(of_pattern(source, &places.working_dir)?);
        } else if let Some(found) = camera(source).or_else(|| screen(source)) {
            self.entries.push(Entry::Live(found?));
        } else {
            self.entries.push(Entry::File(path));
            return Ok(false);
        }
        Ok(true)
    }

    fn add_files(&mut self, files: Vec<PathBuf>) {
        self.entries.extend(files.into_iter().map(Entry::File));
    }

    /// What the lines of a list name. Editors of Windows begin a file with a mark; `find -print0` ends each path with
    /// NUL, so that it may hold a line feed.
    fn add_list(&mut self, text: &str, folder: &Path) -> Result<(), PlanError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.contains('\0') {
            return text
                .split('\0')
                .filter(|path| !path.trim().is_empty())
                .try_for_each(|path| self.add_line(path, folder));
        }
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .try_for_each(|line| self.add_line(line, folder))
    }

    /// What a line of a list names. A file that is missing, and a pattern without matches, keep their names.
    fn add_line(&mut self, line: &str, folder: &Path) -> Result<(), PlanError> {
        let working_dir = &self.context.places.working_dir;
        if line.contains("://") {
            return self.add_address(line);
        }
        let path = path_in_list(line, folder, working_dir);
        if path.is_dir() {
            self.add_files(of_folder(&path)?);
        } else if path.is_file() {
            self.entries.push(Entry::File(path));
        } else if let Some(found) = camera(line).or_else(|| screen(line)) {
            self.entries.push(Entry::Live(found?));
        } else {
            let folders = match line.strip_prefix("./") {
                Some(rest) => vec![(rest, folder)],
                None => vec![(line, working_dir.as_path()), (line, folder)],
            };
            let mut matches = Vec::new();
            for (pattern, folder) in folders {
                if matches.is_empty() && is_pattern(pattern) {
                    matches = of_pattern(pattern, folder)?;
                }
            }
            if matches.is_empty() {
                matches.push(path);
            }
            self.add_files(matches);
        }
        Ok(())
    }

    fn add_address(&mut self, address: &str) -> Result<(), PlanError> {
        match Address::parse(address, is_readable)? {
            Address::File => {
                let PlanContext { fetched, unavailable, .. } = self.context;
                match (fetched.get(address), unavailable.get(address)) {
                    (Some(fetched), _) => {
                        self.entries.push(Entry::Fetched(fetched.clone(), shown_file(address)));
                    }
                    (None, Some(why)) => {
                        self.entries.push(Entry::Unavailable(shown_file(address), why.clone()));
                    }
                    (None, None) => self.missing.push(Need::Source(address.to_owned())),
                }
            }
            Address::Stream { stem } => self.entries.push(Entry::Live(Video {
                source: address.into(),
                shown: shown_address(address).into(),
                stem,
                kind: VideoKind::Stream,
                area: None,
            })),
        }
        Ok(())
    }
}

/// The error for a source that names nothing.
fn nothing(source: &str, places: &Places) -> PlanError {
    if source == "-" {
        return PlanError::new("the list on stdin is empty").with_hint("write a path per line");
    }
    let path = places.working_dir.join(source);
    if !path.is_dir() {
        let what = if path.is_file() {
            "lists no pictures and no videos"
        } else {
            "matches no pictures and no videos"
        };
        return PlanError::new(format!("--source {source} {what}")).with_hint(readable());
    }
    let error = PlanError::new(format!("there is no picture and no video in the folder {source}"));
    let folders = std::fs::read_dir(&path).into_iter().flatten().filter_map(Result::ok);
    let has_folders = folders.into_iter().any(|entry| entry.path().is_dir());
    if has_folders {
        let pattern = Path::new(source).join("**").join("*");
        return error.with_hint(format!("for those in its folders, give '{}'", pattern.display()));
    }
    error.with_hint(readable())
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;
    use crate::run::Picture;

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

    fn context(places: &Places) -> PlanContext {
        PlanContext {
            inventory: crate::device::Inventory::default(),
            places: places.clone(),
            fetched: Default::default(),
            generated: false,
            part: None,
            measured_batch: None,
            unavailable: Default::default(),
        }
    }

    /// What these sources name, pictures before videos, with the names of the results. Paths are relative to the
    /// working folder.
    fn found(places: &Places, sources: &[&str], listed: Option<&str>) -> Vec<(String, String)> {
        let found = find(sources, listed, &context(places), &mut Vec::new()).unwrap();
        let shown = |path: &Path| {
            path.strip_prefix(&places.working_dir).unwrap_or(path).to_string_lossy().replace('\\', "/")
        };
        let pictures = found.pictures.iter().map(|picture| (shown(&picture.path), picture.stem.clone()));
        pictures.chain(found.videos.iter().map(|video| (shown(&video.shown), video.stem.clone()))).collect()
    }

    fn paths(found: &[(String, String)]) -> Vec<&str> {
        found.iter().map(|(path, _)| path.as_str()).collect()
    }

    #[test]
    fn a_folder_is_its_pictures_in_order() {
        let (_root, places) = places(&["in/b.JPG", "in/a.png", "in/.c.jpg", "in/notes.md", "in/deep/d.jpg"]);
        assert_eq!(paths(&found(&places, &["in"], None)), ["in/a.png", "in/b.JPG"]);
        assert_eq!(paths(&found(&places, &["in/**/*.jpg"], None)), ["in/deep/d.jpg"]);
        assert_eq!(paths(&found(&places, &["in/.*.jpg"], None)), ["in/.c.jpg"], "it is asked for");
        let (_hidden, hidden) = self::places(&[".photos/a.jpg", ".photos/.b.jpg"]);
        assert_eq!(paths(&found(&hidden, &[".photos/*.jpg"], None)), [".photos/a.jpg"]);
        assert_eq!(paths(&found(&places, &["in/*"], None)).len(), 3, "files, and what folders hold");
    }

    #[test]
    fn a_path_is_shown_without_its_dots() {
        let (_root, places) = places(&["in/a.png"]);
        for source in ["./in", "in/.", "./in/./a.png", "./in/*.png"] {
            let found = find(&[source], None, &context(&places), &mut Vec::new()).unwrap();
            let shown = found.pictures[0].path.as_os_str();
            assert_eq!(shown, places.working_dir.join("in").join("a.png").as_os_str(), "{source}");
        }
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
        let utf16 =
            "\u{feff}y.jpg\r\nx.jpg\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        std::fs::write(places.working_dir.join("lists/all.txt"), utf16).unwrap();
        assert_eq!(paths(&found(&places, &["lists/all.txt"], None)), ["y.jpg", "lists/x.jpg"]);
        // As Windows writes it.
        let listed = found(&places, &["-"], Some("\u{feff}y.jpg\r\nlists/x.jpg\r\n"));
        assert_eq!(paths(&listed), ["y.jpg", "lists/x.jpg"]);
    }

    #[test]
    fn a_list_may_name_folders_and_patterns() {
        let (_root, places) = places(&["in/a.jpg", "in/b.png", "in/notes.md", "lists/near.jpg", "0/c.jpg"]);
        let listed = |text: &str| {
            std::fs::write(places.working_dir.join("lists/all.txt"), text).unwrap();
            found(&places, &["lists/all.txt"], None)
        };
        assert_eq!(paths(&listed("in\n")), ["in/a.jpg", "in/b.png"]);
        assert_eq!(paths(&listed("in/*.png\n*.jpg\n")), ["in/b.png", "lists/near.jpg"]);
        std::fs::write(places.working_dir.join("here.jpg"), "").unwrap();
        assert_eq!(paths(&listed("./*.jpg\n0\n")), ["lists/near.jpg", "0/c.jpg"]);
        assert_eq!(paths(&listed("none/*.jpg\n")), ["lists/none/*.jpg"], "is named and skipped");
    }

    #[test]
    fn a_source_that_is_missing_costs_only_itself() {
        let (_root, places) = places(&["a.jpg"]);
        assert_eq!(paths(&found(&places, &["a.jpg", "gone.jpg"], None)), ["a.jpg", "gone.jpg"]);
        let error = find(&["gone.jpg", "lost.jpg"], None, &context(&places), &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "--source gone.jpg does not exist");
    }

    #[test]
    fn a_list_may_have_paths_that_end_with_nul() {
        let (_root, places) = places(&["a.jpg", " b c.jpg"]);
        let listed = found(&places, &["-"], Some("a.jpg\0 b c.jpg\0"));
        assert_eq!(paths(&listed), ["a.jpg", " b c.jpg"]);
    }

    #[test]
    fn the_working_folder_is_no_pattern() {
        let (_root, mut places) = places(&["best [1]/a.jpg", "best 1/b.jpg"]);
        places.working_dir.push("best [1]");
        assert_eq!(paths(&found(&places, &["*.jpg"], None)), ["a.jpg"]);
    }

    #[test]
    fn results_have_names_of_their_own() {
        let (_root, places) = places(&["a/x.jpg", "b/x.png", "b/x-2.jpg", "c/x.jpg"]);
        let found = found(&places, &["a/x.jpg", "b", "c"], None);
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["x", "x-2", "x-3", "x-4"], "{found:?}");
    }

    #[test]
    fn videos_come_after_pictures() {
        let (_root, places) = places(&["in/a.MP4", "in/b.jpg", "in/c.gif", "in/a.jpg"]);
        let found = found(&places, &["in"], None);
        let expected = [("in/a.jpg", "a"), ("in/b.jpg", "b"), ("in/a.MP4", "a-2"), ("in/c.gif", "c")];
        assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    }

    #[test]
    fn files_of_servers_are_fetched_and_streams_are_not() {
        let (_root, places) = places(&[]);
        let mut context = context(&places);
        let mut missing = Vec::new();
        let sources = ["https://h/a.jpg?size=2", "rtsp://me:secret@h:554/live", "http://h/camera"];
        let found = find(&sources, None, &context, &mut missing).unwrap();
        assert_eq!(missing, [Need::Source("https://h/a.jpg?size=2".to_owned())]);
        let shown: Vec<_> =
            found.videos.iter().map(|video| (video.shown.to_str().unwrap(), &*video.stem)).collect();
        assert_eq!(shown, [("rtsp://h:554/live", "h_554_live"), ("http://h/camera", "h_camera")]);
        assert_eq!(found.videos[0].source.to_str(), Some(sources[1]));
        context.fetched.insert(sources[0].to_owned(), "/cache/a.jpg".into());
        let found = find(&sources[..1], None, &context, &mut missing).unwrap();
        let address = Some("https://h/a.jpg".to_owned());
        let cached =
            Picture { path: "/cache/a.jpg".into(), stem: "a".to_owned(), unavailable: None, address };
        assert_eq!(found.pictures, [cached]);
        assert_eq!(found.pictures[0].shown(), Path::new("https://h/a.jpg"));
        context.fetched.insert("https://me:secret@h/c.mp4?token=1".to_owned(), "/cache/c.mp4".into());
        let found = find(&["https://me:secret@h/c.mp4?token=1"], None, &context, &mut missing).unwrap();
        assert_eq!(found.videos[0].shown, Path::new("https://h/c.mp4"));
        context.unavailable.insert("https://me@h/b.mp4".to_owned(), "404".to_owned());
        let found = find(&["https://me@h/b.mp4", sources[0]], None, &context, &mut Vec::new()).unwrap();
        assert_eq!(found.pictures[0].path, Path::new("https://h/b.mp4"));
        assert_eq!(found.pictures[0].unavailable.as_deref(), Some("404"));
        // Without anything else to look at, it is an error.
        let error = find(&["https://me@h/b.mp4"], None, &context, &mut Vec::new()).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_usage()), ("404", false));
    }

    #[test]
    fn a_source_that_names_no_picture_is_explained() {
        let (_root, places) = places(&["notes.md", "empty/readme", "outer/inner/a.jpg"]);
        std::fs::write(places.working_dir.join("none.txt"), "\n").unwrap();
        for (source, message, hint) in [
            ("gone.jpg", "--source gone.jpg does not exist", "name a picture"),
            (
                "notes.md",
                "--source notes.md is neither a picture nor a video by its extension",
                "reads pictures (bmp",
            ),
            ("screen 1", "cannot look up monitor 1", "screen LEFT TOP"),
            ("screen 0 1 2", "--source screen 0 1 2 is no part of the screen", "width and height"),
            ("screen 0 0 0 9", "--source screen 0 0 0 9 is no part of the screen", "width and height"),
            ("screen a", "--source screen a is no part of the screen", "width and height"),
            ("empty", "there is no picture and no video in the folder empty", "reads pictures (bmp"),
            ("outer", "there is no picture and no video in the folder outer", "for those in its folders"),
            ("none.txt", "--source none.txt lists no pictures and no videos", "reads pictures (bmp"),
            ("*.jpg", "--source *.jpg matches no pictures and no videos", "reads pictures (bmp"),
            ("[", "--source [ is not a valid pattern", "[*]"),
            ("4711", "--source 4711 is the camera /dev/video4711, which does not exist", "ls /dev/video*"),
            ("https://youtu.be/x", "yolo predict does not read YouTube's pages", "yt-dlp"),
            ("ftp://h/a.jpg", "yolo predict does not know ftp addresses", "https"),
            ("-", "the list on stdin is empty", "a path per line"),
            ("", "--source is empty", "name a picture"),
        ] {
            let error = find(&[source], None, &context(&places), &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error}: {:?}", error.hint());
        }
        assert!(find(&[], None, &context(&places), &mut Vec::new()).unwrap_err().is_usage());
    }
}
