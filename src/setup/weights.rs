//! Weights by the names under which release v7.0 of YOLOv5 publishes them, or from any address or
//! path. A file is opened and its parameters are counted before it is put in place, so that a web
//! page, a cut file or another model never gets there.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use torch_checkpoint::WeightsFile;
use yolo_plan::model::{ModelSpec, builtin};

use crate::dirs::YoloDirs;
use crate::fetch::{
    FetchError, FileRequest, FolderLock, Meter, ProgressEvent, Redacted, Sha256, Staging, download, is_http,
    kept_in, length_of, staging_dir, tree_and_parts,
};
use crate::setup::context::Context;
use crate::setup::error::SetupError;

/// Where the release lies.
const RELEASE: &str = "https://github.com/ultralytics/yolov5/releases/download/v7.0/";

/// Classes of the published models, which were trained on COCO.
const CLASSES: usize = 80;

/// (name, bytes, SHA-256) of files of the release that were seen.
const SEEN: [(&str, u64, &str); 1] =
    [("yolov5n", 4_062_133, "4f180cf23ba0717ada0badd6c685026d73d48f184d00fc159c2641284b2ac0a3")];

/// Buffers of a model, which nobody counts as parameters.
const BUFFERS: [&str; 5] = ["running_mean", "running_var", "num_batches_tracked", "anchors", "anchor_grid"];

/// What a word of `--weights` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsName {
    /// A published name, without `.pt`.
    Published(String),
    /// An address.
    Address(String),
    /// Anything else: a path.
    Path(PathBuf),
}

impl WeightsName {
    /// Reads a word: `yolov5s`, `yolov5s.pt`, `https://…`, `path/to/best.pt`.
    pub fn parse(word: &str) -> Self {
        let name = word.strip_suffix(".pt").unwrap_or(word);
        if builtin::names().iter().any(|known| known == name) {
            Self::Published(name.to_owned())
        } else if word.contains("://") {
            Self::Address(word.to_owned())
        } else {
            Self::Path(PathBuf::from(word))
        }
    }

    /// The name under which the file is kept; `None` when an address ends in no name.
    fn file(&self) -> Option<String> {
        match self {
            Self::Published(name) => Some(format!("{name}.pt")),
            Self::Address(address) => {
                let shown = Redacted::new(address).to_string();
                let last = shown.rsplit('/').next().unwrap_or_default();
                let file =
                    percent_decode_str(last).decode_utf8().map_or_else(|_| last.to_owned(), Into::into);
                let is_name = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', '\0']);
                is_name.then_some(file)
            }
            Self::Path(path) => Some(path.file_name()?.to_string_lossy().into_owned()),
        }
    }
}

/// Weights that are in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// The file.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Numbers that learn.
    pub parameters: u64,
    /// Class names in the file.
    pub classes: Option<usize>,
    /// Where they came from, without credentials.
    pub source: String,
    /// Whether they are those that are published under this name.
    #[serde(default)]
    pub published: bool,
}

/// Weights that have to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingWeights {
    word: WeightsName,
    wanted: FileRequest,
    size: Option<u64>,
    target: PathBuf,
}

/// What is there, or what would have to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsStatus {
    /// In place and checked by an earlier run.
    Installed(Weights),
    /// To be fetched or copied.
    Missing(PendingWeights),
}

/// The folder of all weights.
pub fn folder(dirs: &YoloDirs) -> PathBuf {
    dirs.data().join("weights")
}

/// Looks whether weights are there, and where they would come from.
///
/// # Errors
/// When a path does not exist, or an address names no file.
pub fn weights_status(context: &Context<'_>, word: &str) -> Result<WeightsStatus, SetupError> {
    let parsed = WeightsName::parse(word);
    let unusable =
        |why: &str| SetupError::Weights { word: Redacted::new(word).to_string(), why: why.to_owned() };
    let file = parsed.file().ok_or_else(|| match &parsed {
        WeightsName::Path(path) if path.as_os_str().is_empty() => {
            unusable("is no word: give a name, address or path")
        }
        _ => unusable("names no file; end it with one, such as best.pt"),
    })?;
    let target = folder(context.dirs).join(&file);
    if let Some(weights) = standing(&parsed, &target)? {
        return Ok(WeightsStatus::Installed(weights));
    }
    let mut sources = Vec::new();
    let (mut length, mut sha256) = (None, None);
    match &parsed {
        WeightsName::Published(name) => {
            let mirror = context.mirror()?.map(|mirror| format!("{}/{file}", mirror.trim_end_matches('/')));
            sources.extend(mirror);
            sources.push(format!("{RELEASE}{file}"));
            if let Some((_, size, hash)) = SEEN.iter().find(|(known, ..)| known == name) {
                (length, sha256) = (Some(*size), Some((*hash).to_owned()));
            }
        }
        WeightsName::Address(address) => {
            if !is_http(address) {
                return Err(unusable("is not http or https; fetch the file yourself and give its path"));
            }
            sources.push(address.clone());
        }
        WeightsName::Path(path) => {
            match fs::metadata(path) {
                Ok(data) if data.is_file() => {}
                Ok(data) if data.is_dir() => return Err(unusable("is a folder; name the file in it")),
                Ok(_) => return Err(unusable("is no file but a device or a pipe")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(unusable("is not there, and is no name of published weights"));
                }
                Err(error) => return Err(unusable(&format!("cannot be read: {error}"))),
            }
            sources.push(absolute(path)?.display().to_string());
        }
    }
    let size = match (length, sources.first(), &parsed) {
        (None, Some(source), WeightsName::Path(_)) => fs::metadata(source).ok().map(|data| data.len()),
        (None, Some(source), _) if !context.is_offline() => {
            context.progress.event(ProgressEvent::Step { text: &format!("looking for {file}") });
            length_of(context.client()?, source, context.progress)
        }
        _ => length,
    };
    let wanted = FileRequest { name: file, sources, length, sha256 };
    Ok(WeightsStatus::Missing(PendingWeights { word: parsed, wanted, size, target }))
}

impl PendingWeights {
    /// Where they come from, without credentials, the best source first.
    pub fn sources(&self) -> Vec<String> {
        self.wanted.sources.iter().map(|source| Redacted::new(source).to_string()).collect()
    }

    /// Bytes, where they are known before.
    pub fn length(&self) -> Option<u64> {
        self.size
    }

    /// Bytes that will travel, without those that an earlier run has brought.
    pub fn transfer(&self) -> Option<u64> {
        let name = &self.wanted.name;
        let (_, parts) = tree_and_parts(&staging_dir(&self.target));
        Some(self.size?.saturating_sub(kept_in(&parts.join(name))))
    }

    /// Where they go.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Fetches, opens and counts them, and puts them in place.
    ///
    /// # Errors
    /// When no source can serve, the file holds no such model, or the disk refuses.
    pub fn run(&self, context: &Context<'_>) -> Result<Weights, SetupError> {
        let folder = folder(context.dirs);
        let lock = FolderLock::acquire(&folder, context.progress)?;
        Staging::sweep(&lock);
        // Another setup, or a step of this one, may have put something there in the meantime.
        if let Some(weights) = standing(&self.word, &self.target)? {
            return Ok(weights);
        }
        let name = &self.wanted.name;
        context.progress.event(ProgressEvent::Step { text: &format!("fetching {name}") });
        let incoming = Staging::open(&lock, name)?;
        let part = incoming.parts().join(name);
        let meter = Meter::new(context.progress);
        let mut refusals = Vec::new();
        for source in &self.wanted.sources {
            let wanted = FileRequest { sources: vec![source.clone()], ..self.wanted.clone() };
            match download(context.client()?, &wanted, &part, &meter) {
                Err(error) if error.is_full_disk() => {
                    incoming.discard();
                    return Err(error.into());
                }
                Err(error) if error.is_disk() => return Err(error.into()),
                Err(error) => refusals.push(error.to_string()),
                Ok(done) => {
                    let shown = &done.source;
                    match self.check(&done.path, shown) {
                        Ok((parameters, classes)) => {
                            let weights = Weights {
                                path: self.target.clone(),
                                size: done.size,
                                sha256: done.sha256,
                                parameters,
                                classes,
                                source: done.source,
                                published: matches!(self.word, WeightsName::Published(_)),
                            };
                            publish(incoming, &done.path, &part, &weights)?;
                            return Ok(weights);
                        }
                        Err(why) => {
                            // Bytes that hold no model are of no use to a later run.
                            let _ = fs::remove_file(&part);
                            refusals.push(why);
                        }
                    }
                }
            }
        }
        // An answer that was refused at its first bytes leaves an empty file.
        if fs::metadata(&part).map_or(0, |data| data.len()) == 0 {
            incoming.discard();
        }
        Err(FetchError::NoSource { name: name.clone(), refusals }.into())
    }

    /// Opens the file and counts its parameters.
    fn check(&self, path: &Path, shown: &str) -> Result<(u64, Option<usize>), String> {
        let file = torch_checkpoint::read(path).map_err(|error| {
            // The file lies under a name that the user does not know.
            error.to_string().replace(&path.display().to_string(), shown)
        })?;
        let (parameters, classes) = (count(&file), file.names.as_ref().map(Vec::len));
        if let WeightsName::Published(name) = &self.word {
            let summary = ModelSpec::load(name, CLASSES, None).and_then(|spec| spec.summary());
            let expected = summary.map_err(|error| error.to_string())?.parameters;
            if parameters != expected || classes.is_some_and(|classes| classes != CLASSES) {
                return Err(format!(
                    "{shown}: it is not {name}: it has {parameters} parameters and {} classes, not {expected} and {CLASSES}",
                    classes.map_or_else(|| "no".to_owned(), |classes| classes.to_string()),
                ));
            }
        }
        Ok((parameters, classes))
    }
}

/// Numbers that learn.
fn count(file: &WeightsFile) -> u64 {
    let learns = |name: &str| !BUFFERS.contains(&name.rsplit('.').next().unwrap_or_default());
    let numbers = |shape: &[usize]| shape.iter().map(|&side| side as u64).product::<u64>();
    file.tensors.iter().filter(|(name, _)| learns(name)).map(|(_, tensor)| numbers(&tensor.shape)).sum()
}

/// The record of weights, beside them.
fn record(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.json"))
}

/// The weights that a word means, where they are in place. `None`: there is nothing, or a damaged
/// file of the same source, which may be replaced.
///
/// # Errors
/// When other weights, or a file that setup did not put there, have that name.
fn standing(word: &WeightsName, target: &Path) -> Result<Option<Weights>, SetupError> {
    let taken = |by: String| SetupError::Taken { path: target.to_owned(), by };
    if fs::symlink_metadata(target).is_err() {
        return Ok(None);
    }
    let Some(recorded) = recorded(target) else {
        return Err(taken("was not put there by setup".to_owned()));
    };
    let is_whole = fs::metadata(target).is_ok_and(|data| data.len() == recorded.size);
    let same = match word {
        WeightsName::Published(name) => match SEEN.iter().find(|(known, ..)| known == name) {
            Some((_, _, hash)) => recorded.sha256 == *hash,
            None => recorded.published,
        },
        WeightsName::Address(address) => recorded.source == Redacted::new(address).as_str(),
        WeightsName::Path(path) => {
            recorded.source == absolute(path)?.display().to_string() && !is_whole
                || sha256_of(path)? == recorded.sha256
        }
    };
    match (same, is_whole) {
        (true, true) => Ok(Some(recorded)),
        (true, false) => Ok(None),
        (false, _) => Err(taken(format!("holds other weights, from {}", recorded.source))),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, SetupError> {
    std::path::absolute(path).map_err(SetupError::file("find", path))
}

fn sha256_of(path: &Path) -> Result<String, SetupError> {
    let (mut file, mut sum) = (fs::File::open(path).map_err(SetupError::file("open", path))?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(SetupError::file("read", path))? {
            0 => return Ok(hex::encode(sum.finish())),
            count => sum.update(&buffer[..count]),
        }
    }
}

/// What the record beside a file says.
fn recorded(target: &Path) -> Option<Weights> {
    let weights: Weights = serde_json::from_slice(&fs::read(record(target)).ok()?).ok()?;
    Some(Weights { path: target.to_owned(), ..weights })
}

/// Weights that were put in place and have not changed since.
pub(super) fn in_place(target: &Path) -> Option<Weights> {
    let size = fs::metadata(target).ok()?.len();
    recorded(target).filter(|weights| weights.size == size)
}

fn publish(incoming: Staging, from: &Path, part: &Path, weights: &Weights) -> Result<(), SetupError> {
    if from != part {
        fs::copy(from, part).map_err(SetupError::file("copy", from))?;
    }
    let text = serde_json::to_vec_pretty(weights).unwrap_or_default();
    let path = record(&weights.path);
    fs::write(&path, text).map_err(SetupError::file("write", path))?;
    incoming.publish_path(part, &weights.path)?;
    Ok(())
}

/// Removes weights and their record.
pub(super) fn remove(target: &Path) -> Result<(), SetupError> {
    fs::remove_file(target).map_err(SetupError::file("remove", target))?;
    // Without its file a record counts for nothing.
    let _ = fs::remove_file(record(target));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_paths_are_told_apart() {
        assert_eq!(WeightsName::parse("yolov5s.pt"), WeightsName::Published("yolov5s".into()));
        assert_eq!(WeightsName::parse("yolov5x6"), WeightsName::Published("yolov5x6".into()));
        assert_eq!(WeightsName::parse("https://h/best.pt"), WeightsName::Address("https://h/best.pt".into()));
        assert_eq!(WeightsName::parse("runs/best.pt"), WeightsName::Path("runs/best.pt".into()));
        assert_eq!(
            WeightsName::parse("https://me:secret@h/a/best.pt?token=x").file().as_deref(),
            Some("best.pt")
        );
        assert_eq!(WeightsName::parse("https://h/caf%C3%A9%20one.pt").file().as_deref(), Some("café one.pt"));
        assert_eq!(WeightsName::parse("https://h/").file(), None);
        assert_eq!(WeightsName::parse("https://h/..%2Fup.pt").file(), None);
    }
}
