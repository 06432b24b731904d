//! Weights: those that release v7.0 of YOLOv5 publishes, by name, or from any URL or path. A file is
//! opened and its parameters are counted before it is installed, so that a web page, a truncated file
//! or another model is rejected.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use yolo_plan::model::ModelSpec;
use yolo_plan::run::WeightsName;

use crate::dirs::YoloDirs;
use crate::fetch::{
    FetchError, FileRequest, FolderLock, Meter, ProgressEvent, Redacted, Refusal, Sha256, Staging, download,
    is_http, kept_in, length_of, staging_dir, tree_and_parts,
};
use crate::setup::context::Context;
use crate::setup::error::{SetupError, WeightsError};
use crate::setup::noted::noted;
use crate::undo::{Entry, Step};
use crate::weights_file;

/// The download folder of the release.
const RELEASE: &str = "https://github.com/ultralytics/yolov5/releases/download/v7.0/";

/// Classes of the published models, which were trained on COCO.
const CLASSES: usize = 80;

/// (name, bytes, SHA-256) of release files with a known hash.
const KNOWN: [(&str, u64, &str); 1] =
    [("yolov5n", 4_062_133, "4f180cf23ba0717ada0badd6c685026d73d48f184d00fc159c2641284b2ac0a3")];

/// The file name under which weights are installed; `None` if a URL does not end in one.
fn file_name(weights: &WeightsName) -> Option<String> {
    match weights {
        WeightsName::Published(name) => Some(format!("{name}.pt")),
        WeightsName::Address(address) => {
            let shown = Redacted::new(address).to_string();
            let last = shown.rsplit('/').next().unwrap_or_default();
            let file = percent_decode_str(last).decode_utf8().map_or_else(|_| last.to_owned(), Into::into);
            let is_name = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', '\0']);
            is_name.then_some(file)
        }
        WeightsName::Path(path) => Some(path.file_name()?.to_string_lossy().into_owned()),
    }
}

/// Installed weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// The file.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// The number of trainable parameters.
    pub parameters: u64,
    /// The number of class names in the file.
    pub classes: Option<usize>,
    /// Where they were downloaded from, without credentials.
    pub source: String,
    /// Whether they are the published weights of this name.
    #[serde(default)]
    pub published: bool,
}

/// Weights to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingWeights {
    name: WeightsName,
    wanted: FileRequest,
    size: Option<u64>,
    target: PathBuf,
}

/// Whether weights are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsStatus {
    /// Installed and verified by an earlier run.
    Installed(Weights),
    /// To be downloaded or copied.
    Missing(PendingWeights),
}

/// The directory of all weights.
pub fn folder(dirs: &YoloDirs) -> PathBuf {
    dirs.data().join("weights")
}

/// The installed weights that a name such as `yolov5n` or `yolov5n.pt` stands for.
pub fn installed_file(name: &Path, dirs: &YoloDirs) -> Option<PathBuf> {
    let mut components = name.components();
    let is_name = matches!(components.next(), Some(Component::Normal(_))) && components.next().is_none();
    let file = folder(dirs).join(name);
    [file.with_added_extension("pt"), file].into_iter().find(|file| is_name && file.is_file())
}

/// Weights as an argument names them.
struct Named {
    name: WeightsName,
    file: String,
    target: PathBuf,
}

/// The reason why an argument cannot name weights.
fn unusable(argument: &str, why: &str) -> SetupError {
    WeightsError::Invalid { argument: Redacted::new(argument).to_string(), why: why.to_owned() }.into()
}

/// The places of the weights of a request, each with the argument that named them.
pub type TakenPlaces = BTreeMap<PathBuf, String>;

/// Weights whose place no other argument in `taken` has, if they are from an address.
fn named(dirs: &YoloDirs, argument: &str, taken: &TakenPlaces) -> Result<Named, SetupError> {
    let name = WeightsName::parse(argument);
    let file = file_name(&name).ok_or_else(|| match &name {
        WeightsName::Path(path) if path.as_os_str().is_empty() => {
            unusable(argument, "the value is empty; pass a model name, a URL or a path")
        }
        _ => unusable(argument, "it must end with a file name, such as best.pt"),
    })?;
    let (file, target) = match &name {
        WeightsName::Address(address) => place_of_address(&folder(dirs), file, address, taken),
        _ => (file.clone(), folder(dirs).join(file)),
    };
    Ok(Named { name, file, target })
}

/// The name and the place of weights from an address. Most are called `best.pt`, so those from another address than
/// the first ones get a name with a number of their own, which is always the same.
fn place_of_address(folder: &Path, file: String, address: &str, taken: &TakenPlaces) -> (String, PathBuf) {
    let source = Redacted::new(address);
    let mut hash = Sha256::new();
    hash.update(source.as_str().as_bytes());
    let number = hex::encode(&hash.finish()[..4]);
    let own = match file.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}-{number}.{extension}"),
        None => format!("{file}-{number}"),
    };
    let (first, own_target) = (folder.join(&file), folder.join(&own));
    let is_from_here = described(&first).is_some_and(|weights| weights.source == source.as_str());
    let is_free = taken.get(&first).is_none_or(|by| by == address)
        && fs::symlink_metadata(&first).is_err()
        && fs::symlink_metadata(&own_target).is_err();
    if is_from_here || is_free { (file, first) } else { (own, own_target) }
}

/// The file that the weights are or will be installed as, and the weights if they are installed. It
/// asks no server.
///
/// # Errors
/// When the argument names no file, or the folder cannot be read.
pub fn weights_target(dirs: &YoloDirs, argument: &str) -> Result<(PathBuf, Option<Weights>), SetupError> {
    let named = named(dirs, argument, &TakenPlaces::new())?;
    let installed = installed(&named.name, &named.target)?;
    Ok((named.target, installed))
}

/// Checks whether weights are installed, and finds their sources if not. `taken` are the places of the weights before
/// them in the same request; theirs is added.
///
/// # Errors
/// When a path does not exist, or a URL names no file.
pub fn weights_status(
    context: &Context<'_>,
    argument: &str,
    taken: &mut TakenPlaces,
) -> Result<WeightsStatus, SetupError> {
    let Named { name: parsed, file, target } = named(context.dirs, argument, taken)?;
    taken.entry(target.clone()).or_insert_with(|| argument.to_owned());
    let unusable = |why: &str| unusable(argument, why);
    if let Some(weights) = installed(&parsed, &target)? {
        return Ok(WeightsStatus::Installed(weights));
    }
    let mut sources = Vec::new();
    let (mut length, mut sha256) = (None, None);
    match &parsed {
        WeightsName::Published(name) => {
            let mirror = context.mirror()?.map(|mirror| format!("{}/{file}", mirror.trim_end_matches('/')));
            sources.extend(mirror);
            sources.push(format!("{RELEASE}{file}"));
            if let Some((_, size, hash)) = KNOWN.iter().find(|(known, ..)| known == name) {
                (length, sha256) = (Some(*size), Some((*hash).to_owned()));
            }
        }
        WeightsName::Address(address) => {
            if !is_http(address) {
                return Err(unusable(
                    "only http and https URLs are supported; download the file yourself and pass its path",
                ));
            }
            sources.push(address.clone());
        }
        WeightsName::Path(path) => {
            match fs::metadata(path) {
                Ok(data) if data.is_file() => {}
                Ok(data) if data.is_dir() => return Err(unusable("it is a folder; name the file in it")),
                Ok(_) => return Err(unusable("it is not a regular file")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(unusable("no such file, and not the name of a pretrained model"));
                }
                Err(error) => return Err(unusable(&format!("it cannot be read: {error}"))),
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
    Ok(WeightsStatus::Missing(PendingWeights { name: parsed, wanted, size, target }))
}

impl PendingWeights {
    /// Their sources, without credentials, the best one first.
    pub fn sources(&self) -> Vec<String> {
        self.wanted.sources.iter().map(|source| Redacted::new(source).to_string()).collect()
    }

    /// Whether the user named a file on this machine, which is copied.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.name, WeightsName::Path(_))
    }

    /// The size in bytes, if it is known in advance.
    pub fn length(&self) -> Option<u64> {
        self.size
    }

    /// Bytes to download, not counting what an earlier run has.
    pub fn transfer(&self) -> Option<u64> {
        if self.is_local() {
            return Some(0);
        }
        let name = &self.wanted.name;
        let (_, parts) = tree_and_parts(&staging_dir(&self.target));
        Some(self.size?.saturating_sub(kept_in(&parts.join(name))))
    }

    /// Where they will be installed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Downloads, verifies and installs them.
    ///
    /// # Errors
    /// When all sources fail, the file is not such a model, or the disk fails.
    pub fn run(&self, context: &Context<'_>) -> Result<Weights, SetupError> {
        let (name, target) = (&self.wanted.name, &self.target);
        let describe = |entry: &mut Entry| {
            if matches!(self.name, WeightsName::Published(_)) {
                for path in [target.clone(), description_file(target)] {
                    entry.step(Step::Download { path, sha256: None });
                }
            } else {
                entry.place(target);
                let remove = format!("yolo setup --remove {name}");
                entry.stays(
                    "weights that are not published ones may be all that is left of a training",
                    Some(remove),
                );
            }
            Ok(())
        };
        let what = format!("installed the weights {name} in {}", target.display());
        noted((context.dirs, context.progress), what, describe, || self.install(context))
    }

    fn install(&self, context: &Context<'_>) -> Result<Weights, SetupError> {
        let folder = folder(context.dirs);
        let lock = FolderLock::acquire(&folder, context.progress)?;
        Staging::sweep(&lock);
        // Another setup, or another step of this one, may have installed it in the meantime.
        if let Some(weights) = installed(&self.name, &self.target)? {
            return Ok(weights);
        }
        let name = &self.wanted.name;
        let doing = if self.is_local() { "checking" } else { "downloading" };
        context.progress.event(ProgressEvent::Step { text: &format!("{doing} {name}") });
        let staging = Staging::open(&lock, name)?;
        let part = staging.parts().join(name);
        let meter = Meter::new(context.progress);
        let mut refusals: Vec<Refusal> = Vec::new();
        for source in &self.wanted.sources {
            let wanted = FileRequest { sources: vec![source.clone()], ..self.wanted.clone() };
            match download(context.client()?, &wanted, &part, &meter) {
                Err(error) if error.is_full_disk() => {
                    staging.discard();
                    return Err(error.into());
                }
                Err(error) if error.is_disk() => return Err(error.into()),
                Err(error) => refusals.push(error.into()),
                Ok(done) => {
                    let shown = &done.source;
                    match self.check(&done.path) {
                        Ok((parameters, classes)) => {
                            let weights = Weights {
                                path: self.target.clone(),
                                size: done.size,
                                sha256: done.sha256,
                                parameters,
                                classes,
                                source: done.source,
                                published: matches!(self.name, WeightsName::Published(_)),
                            };
                            publish(staging, &done.path, &part, &weights)?;
                            return Ok(weights);
                        }
                        Err(why) => {
                            // Bytes that are not a model are useless to a later run.
                            let _ = fs::remove_file(&part);
                            let subject = if self.is_local() { "it" } else { shown };
                            refusals.push(format!("{subject} {why}").into());
                        }
                    }
                }
            }
        }
        // A response that was rejected at its first bytes leaves an empty file.
        if fs::metadata(&part).map_or(0, |data| data.len()) == 0 {
            staging.discard();
        }
        if self.is_local() {
            let argument = self.wanted.sources.join(", ");
            let why: Vec<&str> = refusals.iter().map(|refusal| refusal.why.as_str()).collect();
            return Err(WeightsError::Invalid { why: why.join("; "), argument }.into());
        }
        Err(FetchError::NoSource { name: name.clone(), refusals }.into())
    }

    /// Opens the file and counts its parameters and classes. The error is what the file "is" or "has".
    fn check(&self, path: &Path) -> Result<(u64, Option<usize>), String> {
        // Without the path: the user does not know that of the staged file.
        let file = torch_checkpoint::read(path).map_err(|error| error.problem().to_string())?;
        let (parameters, classes) = (weights_file::parameters(&file), file.names.as_ref().map(Vec::len));
        if let WeightsName::Published(name) = &self.name {
            let summary = ModelSpec::load(name, CLASSES, None).and_then(|spec| spec.summary());
            let expected = summary.map_err(|error| error.to_string())?.parameters;
            if parameters != expected || classes.is_some_and(|classes| classes != CLASSES) {
                return Err(format!(
                    "is not {name}: it has {parameters} parameters and {} classes instead of {expected} and {CLASSES}",
                    classes.map_or_else(|| "no".to_owned(), |classes| classes.to_string()),
                ));
            }
        }
        Ok((parameters, classes))
    }
}

/// The file that describes installed weights, next to them.
fn description_file(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.json"))
}

/// The installed weights for a value of `--weights`. `None`: there are none, or a damaged file from the
/// same source, which may be replaced.
///
/// # Errors
/// When other weights, or a file that setup did not install, have that name.
fn installed(wanted: &WeightsName, target: &Path) -> Result<Option<Weights>, SetupError> {
    let taken = |by: String| SetupError::from(WeightsError::Taken { path: target.to_owned(), by });
    if fs::symlink_metadata(target).is_err() {
        return Ok(None);
    }
    let Some(described) = described(target) else {
        return Err(taken("was not installed by setup".to_owned()));
    };
    let is_whole = fs::metadata(target).is_ok_and(|data| data.len() == described.size);
    let same = match wanted {
        WeightsName::Published(name) => match KNOWN.iter().find(|(known, ..)| known == name) {
            Some((_, _, hash)) => described.sha256 == *hash,
            None => described.published,
        },
        WeightsName::Address(address) => described.source == Redacted::new(address).as_str(),
        WeightsName::Path(path) => {
            described.source == absolute(path)?.display().to_string() && !is_whole
                || sha256_of(path)? == described.sha256
        }
    };
    match (same, is_whole) {
        (true, true) => Ok(Some(described)),
        (true, false) => Ok(None),
        (false, _) => Err(taken(format!("contains other weights, from {}", described.source))),
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

/// The description next to the weights.
fn described(target: &Path) -> Option<Weights> {
    let weights: Weights = serde_json::from_slice(&fs::read(description_file(target)).ok()?).ok()?;
    Some(Weights { path: target.to_owned(), ..weights })
}

/// Weights that setup installed and that have not changed since.
pub(super) fn in_place(target: &Path) -> Option<Weights> {
    let size = fs::metadata(target).ok()?.len();
    described(target).filter(|weights| weights.size == size)
}

fn publish(staging: Staging, from: &Path, part: &Path, weights: &Weights) -> Result<(), SetupError> {
    if from != part {
        fs::copy(from, part).map_err(SetupError::file("copy", from))?;
    }
    let text = serde_json::to_vec_pretty(weights).unwrap_or_default();
    let path = description_file(&weights.path);
    fs::write(&path, text).map_err(SetupError::file("write", path))?;
    staging.publish_path(part, &weights.path)?;
    Ok(())
}

/// Removes weights and their description.
pub(super) fn remove(target: &Path) -> Result<(), SetupError> {
    fs::remove_file(target).map_err(SetupError::file("remove", target))?;
    // Without the weights, the description has no effect.
    let _ = fs::remove_file(description_file(target));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_installed_under_the_last_part_of_their_name() {
        let file = |argument: &str| file_name(&WeightsName::parse(argument));
        assert_eq!(file("yolov5s").as_deref(), Some("yolov5s.pt"));
        assert_eq!(file("https://me:secret@h/a/best.pt?token=x").as_deref(), Some("best.pt"));
        assert_eq!(file("https://h/caf%C3%A9%20one.pt").as_deref(), Some("café one.pt"));
        assert_eq!(file("https://h/"), None);
        assert_eq!(file("https://h/..%2Fup.pt"), None);
    }
}
