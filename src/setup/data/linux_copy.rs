//! `--data-to-linux`: a copy of a data set on a Windows drive, in the folder of data sets, which Linux reads many times
//! faster. Only the images of its splits and their label files are copied. Each is verified by a hash; the copy can be
//! interrupted, and appears by one rename. A later run copies what has changed since, by size and time.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use yolo_base::format::bytes;
use yolo_data::scan::{label_path, list_images};
use yolo_plan::dataset::DataSet;

use crate::dirs::YoloDirs;
use crate::fetch::{FolderLock, Progress, ProgressEvent, Sha256, Staging, free_bytes, sync_file_system};
use crate::setup::error::{DataSetError, SetupError};

/// What a copy says about itself.
const MANIFEST: &str = "copied-from.json";
/// What an unfinished copy has, a line for each file.
const JOURNAL: &str = "copied.jsonl";
/// Threads that copy: a Windows drive answers slowly, but many at once.
const THREADS: usize = 8;
/// Bytes that stay free on the disk.
const MARGIN: u64 = 1 << 30;

/// A copy that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinuxCopy {
    /// Its data YAML.
    pub(crate) yaml: PathBuf,
    /// How many files it has.
    pub(crate) files: usize,
    /// How many of them were copied now.
    pub(crate) copied: usize,
    /// The bytes of these.
    pub(crate) bytes: u64,
}

/// What identifies the state of a file, and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
    sha256: String,
}

impl Stamp {
    fn is_of(&self, state: State) -> bool {
        (self.size, self.modified) == (state.size, state.modified)
    }
}

/// The state of a file of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    modified: u64,
}

/// The content of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// The folder of the source that has all files.
    source: PathBuf,
    files: BTreeMap<String, Stamp>,
    /// The images of each split, and the names of the classes: what the YAML says.
    splits: BTreeMap<String, Vec<String>>,
    names: Vec<String>,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
struct Line {
    file: String,
    stamp: Stamp,
}

/// Copies a data set, or what has changed in it since it was copied.
pub(crate) fn copy_to_linux(
    data: &DataSet,
    dirs: &YoloDirs,
    progress: &dyn Progress,
) -> Result<LinuxCopy, SetupError> {
    progress.event(ProgressEvent::Step { text: "listing the files of the data set" });
    let source = Source::of(data)?;
    let stem = data.yaml.file_stem().map_or("data".into(), |stem| stem.to_string_lossy());
    let mut key = Sha256::new();
    key.update(data.yaml.as_os_str().as_encoded_bytes());
    let name = format!("{stem}-{}", &hex::encode(key.finish())[..8]);
    let target = dirs.data_sets().join(&name);
    let yaml = target.join(format!("{stem}.yaml"));
    let lock = FolderLock::acquire(&dirs.data_sets(), progress)?;
    let before = read_manifest(&target);
    if let Some(manifest) = &before
        && source.is_as_in(manifest)
        && manifest.splits == source.splits
        && manifest.names == data.names
        && yaml.is_file()
        && is_whole(&target, manifest)?
    {
        return Ok(LinuxCopy { yaml, files: source.files.len(), copied: 0, bytes: 0 });
    }
    let staging = Staging::open(&lock, &name)?;
    let journal = staging.parts().join(JOURNAL);
    let done = read_journal(&journal);
    if !done.is_empty() {
        progress.event(ProgressEvent::Step { text: "verifying what an interrupted copy has" });
    }
    let done = sound(done, staging.path())?;
    let old = before
        .filter(|manifest| manifest.source == source.folder)
        .map(|manifest| manifest.files)
        .unwrap_or_default();
    let (mut files, mut missing) = (BTreeMap::new(), Vec::new());
    for (file, state) in &source.files {
        let copy = staging.path().join(file);
        let has = |stamp: &&Stamp| stamp.is_of(*state) && size(&copy) == Some(state.size);
        if let Some(stamp) = done.get(file).filter(has) {
            files.insert(file.clone(), stamp.clone());
        } else if let Some(stamp) = old.get(file).filter(|stamp| stamp.is_of(*state))
            && size(&target.join(file)) == Some(state.size)
            && link(&target.join(file), &copy).is_ok()
        {
            files.insert(file.clone(), stamp.clone());
        } else {
            missing.push((file.as_str(), *state));
        }
    }
    let total: u64 = missing.iter().map(|(_, state)| state.size).sum();
    let free = free_bytes(&dirs.data_sets())?;
    if free < total.saturating_add(MARGIN) {
        return Err(DataSetError::NoRoomToCopy {
            name,
            needed: bytes(total + MARGIN),
            free: bytes(free),
            folder: dirs.data_sets(),
        }
        .into());
    }
    let copied = copy_all(&source.folder, &staging, &journal, &missing, total, progress)?;
    let count = copied.len();
    files.extend(copied);
    let manifest =
        Manifest { source: source.folder, files, splits: source.splits, names: data.names.clone() };
    write_description(staging.path(), &format!("{stem}.yaml"), &manifest)?;
    let number = manifest.files.len();
    progress.event(ProgressEvent::Step { text: "writing the copy to the disk" });
    // Otherwise a power cut after the rename could leave empty files under the final name.
    sync_file_system(staging.path()).map_err(SetupError::file("write", staging.path()))?;
    staging.publish(&target)?;
    Ok(LinuxCopy { yaml, files: number, copied: count, bytes: total })
}

/// The files of the source, by their path below its folder.
struct Source {
    folder: PathBuf,
    files: BTreeMap<String, State>,
    splits: BTreeMap<String, Vec<String>>,
}

impl Source {
    fn of(data: &DataSet) -> Result<Self, SetupError> {
        let mut splits = BTreeMap::new();
        for (name, roots) in [("train", &data.train), ("val", &data.val), ("test", &data.test)] {
            if !roots.is_empty() {
                splits.insert(name.to_owned(), list_images(roots, name)?);
            }
        }
        let mut all: Vec<PathBuf> = splits.values().flatten().cloned().collect();
        all.sort();
        all.dedup();
        let labels: Vec<PathBuf> = all.iter().map(|image| label_path(image)).collect();
        let folder = common_folder(all.iter().chain(&labels));
        let below = |path: &Path| {
            let relative = path.strip_prefix(&folder).unwrap_or(path);
            relative
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| DataSetError::NotUnicode { path: path.to_owned() })
        };
        // Asking a Windows drive about each file takes longer than anything else.
        let state = |(path, must_exist): (&PathBuf, bool)| match path.metadata() {
            Ok(data) => {
                let modified = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let modified = modified.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                Ok(Some((below(path)?, State { size: data.len(), modified })))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => Ok(None),
            Err(error) => Err(SetupError::file("read", path)(error)),
        };
        let wanted: Vec<(&PathBuf, bool)> =
            all.iter().map(|image| (image, true)).chain(labels.iter().map(|label| (label, false))).collect();
        let files: Vec<Option<(String, State)>> =
            pool()?.install(|| wanted.into_par_iter().map(state).collect::<Result<_, SetupError>>())?;
        let splits = splits
            .into_iter()
            .map(|(name, images)| {
                Ok((name, images.iter().map(|image| below(image)).collect::<Result<_, _>>()?))
            })
            .collect::<Result<_, DataSetError>>()?;
        Ok(Self { files: files.into_iter().flatten().collect(), folder, splits })
    }

    fn is_as_in(&self, manifest: &Manifest) -> bool {
        self.folder == manifest.source
            && self.files.len() == manifest.files.len()
            && self
                .files
                .iter()
                .all(|(file, state)| manifest.files.get(file).is_some_and(|stamp| stamp.is_of(*state)))
    }
}

fn pool() -> Result<rayon::ThreadPool, SetupError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build();
    pool.map_err(|error| {
        SetupError::file("start threads to read", "the data set")(std::io::Error::other(error))
    })
}

/// The deepest folder that has all these files.
fn common_folder<'a>(mut files: impl Iterator<Item = &'a PathBuf>) -> PathBuf {
    let mut folder = files.next().and_then(|file| file.parent()).unwrap_or(Path::new("/")).to_owned();
    for file in files {
        while !file.starts_with(&folder) && folder.pop() {}
    }
    folder
}

fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|data| data.len())
}

/// Whether all files of a copy are still there, and as long as they were.
fn is_whole(target: &Path, manifest: &Manifest) -> Result<bool, SetupError> {
    let files: Vec<_> = manifest.files.iter().collect();
    let is_there = |(file, stamp): &(&String, &Stamp)| size(&target.join(file)) == Some(stamp.size);
    let has_lists = manifest.splits.keys().all(|split| target.join(format!("{split}.txt")).is_file());
    Ok(has_lists && pool()?.install(|| files.par_iter().all(is_there)))
}

/// The files of an unfinished copy that have what was written to them: a machine that lost its power may have kept their
/// names and lengths only.
fn sound(journal: BTreeMap<String, Stamp>, folder: &Path) -> Result<BTreeMap<String, Stamp>, SetupError> {
    let is_sound = |(file, stamp): &(String, Stamp)| {
        let path = folder.join(file);
        size(&path) == Some(stamp.size) && hash_of(&path).is_ok_and(|hash| hash == stamp.sha256)
    };
    Ok(pool()?.install(|| journal.into_par_iter().filter(is_sound).collect()))
}

/// The hash of a file, in hexadecimal digits.
fn hash_of(path: &Path) -> std::io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    let mut file = std::fs::File::open(path)?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hash.finish())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The same file at another place.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    let _ = std::fs::remove_file(to);
    std::fs::hard_link(from, to)
}

/// Copies files on several threads, and returns their stamps.
fn copy_all(
    from: &Path,
    staging: &Staging,
    journal: &Path,
    files: &[(&str, State)],
    total: u64,
    progress: &dyn Progress,
) -> Result<Vec<(String, Stamp)>, SetupError> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(journal);
    let log = Mutex::new(log.map_err(SetupError::file("write", journal))?);
    let done = AtomicU64::new(0);
    let copy = |&(file, state): &(&str, State)| {
        let sha256 = copy_one(&from.join(file), &staging.path().join(file), state, |count| {
            let done = done.fetch_add(count, Ordering::Relaxed) + count;
            progress.event(ProgressEvent::Bytes { done, total: Some(total) });
        })?;
        let stamp = Stamp { size: state.size, modified: state.modified, sha256 };
        let line = Line { file: file.to_owned(), stamp };
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        let mut log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        log.write_all(text.as_bytes()).map_err(SetupError::file("write", journal))?;
        Ok((line.file, line.stamp))
    };
    progress.event(ProgressEvent::Step { text: "copying the data set from the Windows drive" });
    pool()?.install(|| files.par_iter().map(copy).collect())
}

/// Copies a file, reads the copy, and returns the hash of both.
fn copy_one(from: &Path, to: &Path, state: State, mut moved: impl FnMut(u64)) -> Result<String, SetupError> {
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder).map_err(SetupError::file("create", folder))?;
    let mut input = std::fs::File::open(from).map_err(SetupError::file("open", from))?;
    let mut output = std::fs::File::create(to).map_err(SetupError::file("write", to))?;
    let (mut hash, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        let count = input.read(&mut buffer).map_err(SetupError::file("read", from))?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        output.write_all(&buffer[..count]).map_err(SetupError::file("write", to))?;
        length += count as u64;
        moved(count as u64);
    }
    drop(output);
    let expected = hex::encode(hash.finish());
    if hash_of(to).map_err(SetupError::file("read", to))? != expected || length != state.size {
        return Err(DataSetError::BadCopy { from: from.to_owned(), to: to.to_owned() }.into());
    }
    Ok(expected)
}

fn read_manifest(target: &Path) -> Option<Manifest> {
    serde_json::from_slice(&std::fs::read(target.join(MANIFEST)).ok()?).ok()
}

/// The files of an unfinished copy. The last line may be incomplete.
fn read_journal(path: &Path) -> BTreeMap<String, Stamp> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.map(|line| (line.file, line.stamp)).collect()
}

/// Writes the lists of images, the YAML file and the manifest.
fn write_description(folder: &Path, yaml: &str, manifest: &Manifest) -> Result<(), SetupError> {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(SetupError::file("write", path))
    };
    let mut text = format!("# A copy of {}, made by yolo.\npath: .\n", manifest.source.display());
    for (split, images) in &manifest.splits {
        let lines: Vec<String> = images.iter().map(|image| format!("./{image}\n")).collect();
        write(&format!("{split}.txt"), lines.concat())?;
        text.push_str(&format!("{split}: {split}.txt\n"));
    }
    // JSON is YAML.
    text.push_str(&format!("names: {}\n", serde_json::json!(manifest.names)));
    write(yaml, text)?;
    write(MANIFEST, serde_json::to_string(manifest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::Silent;
    use yolo_plan::dataset::Places;

    /// A data set with two training images in folders of odd names, one of them without a label.
    fn data_set(root: &Path) -> PathBuf {
        for (file, text) in [
            ("a set/images/train/1 é.png", "one"),
            ("a set/images/train/2.png", "two"),
            ("a set/images/val/3.png", "three"),
            ("a set/labels/train/1 é.txt", "0 .5 .5 1 1\n"),
            ("a set/labels/val/3.txt", "0 .5 .5 1 1\n"),
            ("a set/private.docx", "not part of it"),
            ("a set/my.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: [a]\n"),
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root.join("a set/my.yaml")
    }

    fn load(yaml: &Path, dirs: &YoloDirs) -> DataSet {
        let places = Places { working_dir: "/".into(), data_sets: dirs.data_sets() };
        DataSet::load(yaml.to_str().unwrap(), &places).unwrap()
    }

    #[test]
    fn a_data_set_is_copied_once_and_then_what_has_changed() {
        let root = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(&root.path().join("home"));
        let yaml = data_set(root.path());
        let copy = || copy_to_linux(&load(&yaml, &dirs), &dirs, &Silent).unwrap();
        let first = copy();
        assert_eq!((first.files, first.copied), (5, 5));
        let copied = load(&first.yaml, &dirs);
        let folder = first.yaml.parent().unwrap();
        let images = list_images(&copied.train, "train").unwrap();
        assert_eq!(images, [folder.join("images/train/1 é.png"), folder.join("images/train/2.png")]);
        assert_eq!(std::fs::read_to_string(label_path(&images[0])).unwrap(), "0 .5 .5 1 1\n");
        assert_eq!(copied.names, ["a"]);
        assert!(!folder.join("private.docx").exists());

        assert_eq!(copy(), LinuxCopy { copied: 0, bytes: 0, ..copy() });
        std::fs::write(root.path().join("a set/images/train/2.png"), "other").unwrap();
        std::fs::remove_file(root.path().join("a set/labels/val/3.txt")).unwrap();
        let again = copy();
        assert_eq!((again.files, again.copied, again.bytes), (4, 1, 5));
        assert_eq!(std::fs::read_to_string(folder.join("images/train/2.png")).unwrap(), "other");
        assert!(!folder.join("labels/val/3.txt").exists());
    }

    #[test]
    fn files_that_a_copy_has_lost_are_copied_again() {
        let root = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(&root.path().join("home"));
        let yaml = data_set(root.path());
        let copy = || copy_to_linux(&load(&yaml, &dirs), &dirs, &Silent).unwrap();
        let first = copy();
        let folder = first.yaml.parent().unwrap();
        std::fs::remove_file(folder.join("labels/val/3.txt")).unwrap();
        std::fs::write(folder.join("images/train/2.png"), "").unwrap();
        assert_eq!(copy().copied, 2);
        assert_eq!(std::fs::read_to_string(folder.join("images/train/2.png")).unwrap(), "two");
        assert!(folder.join("labels/val/3.txt").exists());
        assert_eq!(copy().copied, 0);
    }

    #[test]
    fn an_unfinished_copy_is_continued() {
        let root = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(&root.path().join("home"));
        let yaml = data_set(root.path());
        let data = load(&yaml, &dirs);
        // Interrupted after three files, with a broken line.
        let complete = copy_to_linux(&data, &dirs, &Silent).unwrap();
        let folder = complete.yaml.parent().unwrap().to_owned();
        let manifest = read_manifest(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let lock = FolderLock::acquire(&dirs.data_sets(), &Silent).unwrap();
        let staging = Staging::open(&lock, folder.file_name().unwrap().to_str().unwrap()).unwrap();
        let mut journal = String::new();
        for (number, (file, stamp)) in manifest.files.iter().take(3).enumerate() {
            let copy = staging.path().join(file);
            link(&root.path().join("a set").join(file), &copy).unwrap();
            // What was in the third never reached the disk.
            if number == 2 {
                std::fs::remove_file(&copy).unwrap();
                std::fs::write(&copy, vec![0; stamp.size as usize]).unwrap();
            }
            journal += &serde_json::to_string(&Line { file: file.clone(), stamp: stamp.clone() }).unwrap();
            journal += "\n";
        }
        std::fs::write(staging.parts().join(JOURNAL), journal + "{\"file\":\"im").unwrap();
        drop((staging, lock));
        let continued = copy_to_linux(&data, &dirs, &Silent).unwrap();
        assert_eq!((continued.files, continued.copied), (5, 3));
        assert_eq!(read_manifest(&folder).unwrap(), manifest);
    }

    #[test]
    fn a_file_that_changes_while_it_is_copied_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        std::fs::write(&from, "longer").unwrap();
        let error =
            copy_one(&from, &root.path().join("to"), State { size: 3, modified: 0 }, |_| ()).unwrap_err();
        assert!(error.to_string().contains("changed while"), "{error}");
    }
}
