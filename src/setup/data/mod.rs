//! Data sets: those known by name, and any whose yaml has a `download:` with addresses of archives.
//! Archives come side by side, are unpacked beside the place where the set will be, and the set is
//! put in place only when the folders that its yaml names are there; then it is looked through.

mod known;
mod verify;
mod voc;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use yolo_plan::dataset::{self, DataSet, Description, Download};

pub use verify::{SplitSummary, Summary};

use super::{Context, SetupError};
use crate::fetch::{Event, Incoming, Lock, Measure, Meter, Redacted, Wanted, download, extract, measure};
use known::{Form, Known};
use verify::verify;

/// Archives that are fetched at once.
const AT_ONCE: usize = 3;

/// What an installed data set says of itself, in its folder.
const STAMP: &str = ".yolo-setup.json";

/// A data set that is in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// Where it came from, without credentials.
    pub sources: Vec<String>,
    /// Files that were unpacked, and their bytes.
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// What lies in it; absent when the run that installed it ended before it had looked.
    pub summary: Option<Summary>,
}

/// What is there, or what would have to be done.
#[derive(Debug)]
pub enum DataProspect {
    /// Its images are there; what an earlier run found in them, where there was one.
    There {
        /// The yaml.
        yaml: PathBuf,
        /// What was found.
        installed: Option<Installed>,
    },
    /// The program makes it itself, in this folder.
    Make(PathBuf),
    /// It can be fetched.
    Fetch(Box<PendingData>),
}

/// A data set that has to be fetched.
#[derive(Debug)]
pub struct PendingData {
    /// The word of `--data`.
    word: String,
    name: String,
    pieces: Vec<Piece>,
    target: PathBuf,
    known: Option<&'static Known>,
    places: dataset::Places,
}

/// An archive of it.
#[derive(Debug, Clone)]
struct Piece {
    wanted: Wanted,
    into: &'static str,
    size: Measure,
}

/// Looks whether a data set is there, and where it would come from.
///
/// # Errors
/// When its yaml is wrong, its `download:` is code, or no server has its archives.
pub fn data_prospect(
    context: &Context<'_>,
    word: &str,
    places: &dataset::Places,
) -> Result<DataProspect, SetupError> {
    if dataset::is_builtin(word) {
        let yaml = places.builtin_yaml(word);
        let there = DataProspect::There { installed: None, yaml: yaml.clone() };
        let folder = yaml.parent().unwrap_or(&places.data_sets).to_owned();
        return Ok(if yaml.is_file() { there } else { DataProspect::Make(folder) });
    }
    let by_name = dataset::fetchable(word).filter(|_| !places.working_dir.join(word).is_file());
    if let Some(known) = by_name.and_then(Known::named) {
        return known_prospect(context, word, known, places);
    }
    let description = Description::read(word, places)?;
    let target = description.target(places);
    if description.is_there() {
        let installed = Installed::read(&target);
        return Ok(DataProspect::There { yaml: description.yaml, installed });
    }
    let shown = description.yaml.display().to_string();
    let pieces = match &description.download {
        Download::Archives(addresses) => addresses
            .iter()
            .map(|address| {
                let redacted = Redacted::new(address).to_string();
                let name = redacted.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("archive");
                piece(context, name, vec![address.clone()], "", None)
            })
            .collect::<Result<_, _>>()?,
        Download::Code { kind, would } => {
            return Err(SetupError::DownloadIsCode { yaml: shown, kind, would: would.clone() });
        }
        // The plan's message says what is missing and where it was looked for.
        Download::Nothing => {
            return Err(DataSet::load(word, places)
                .err()
                .map_or_else(|| SetupError::NothingToFetch { yaml: shown.clone() }, SetupError::from));
        }
    };
    refuse_others_files(&target)?;
    let (word, name) = (word.to_owned(), description.name);
    Ok(DataProspect::Fetch(Box::new(PendingData {
        word,
        name,
        pieces,
        target,
        known: None,
        places: places.clone(),
    })))
}

fn known_prospect(
    context: &Context<'_>,
    word: &str,
    known: &'static Known,
    places: &dataset::Places,
) -> Result<DataProspect, SetupError> {
    let yaml = places.builtin_yaml(known.name);
    let target = places.data_sets.join(known.name);
    if yaml.is_file() && Description::read(word, places).is_ok_and(|description| description.is_there()) {
        return Ok(DataProspect::There { yaml, installed: Installed::read(&target) });
    }
    refuse_others_files(&target)?;
    let mirror = context.mirror()?;
    let pieces = known.pieces.iter().map(|one| {
        let on_mirror = mirror.iter().map(|mirror| format!("{}/{}", mirror.trim_end_matches('/'), one.file));
        let sources = on_mirror.chain([format!("{}{}", one.site, one.file)]).collect();
        piece(context, one.file, sources, one.into, Some(one.about))
    });
    let pieces = pieces.collect::<Result<_, _>>()?;
    let (word, name) = (word.to_owned(), known.name.to_owned());
    Ok(DataProspect::Fetch(Box::new(PendingData {
        word,
        name,
        pieces,
        target,
        known: Some(known),
        places: places.clone(),
    })))
}

/// Asks how large an archive is, and what it holds where that can be told before.
fn piece(
    context: &Context<'_>,
    name: &str,
    sources: Vec<String>,
    into: &'static str,
    about: Option<(u64, u64)>,
) -> Result<Piece, SetupError> {
    context.progress.event(Event::Step { text: &format!("looking for {name}") });
    let wanted = Wanted { name: name.to_owned(), sources, length: None, sha256: None };
    let (source, size) = measure(context.client()?, &wanted, &Meter::new(context.progress))?;
    // The one that answered first comes first; those before it have refused.
    let sources = wanted.sources.into_iter().skip(source).collect();
    let about = about.unwrap_or((0, 0));
    let size = Measure {
        packed: size.packed.or(Some(about.0)).filter(|bytes| *bytes > 0),
        unpacked: size.unpacked.or(Some(about.1)).filter(|bytes| *bytes > 0),
    };
    Ok(Piece { wanted: Wanted { sources, ..wanted }, into, size })
}

/// Files that setup did not put there are not replaced.
fn refuse_others_files(target: &Path) -> Result<(), SetupError> {
    let holds_something = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    if holds_something && !target.join(STAMP).is_file() {
        return Err(SetupError::Occupied { folder: target.to_owned() });
    }
    Ok(())
}

impl Installed {
    fn read(root: &Path) -> Option<Self> {
        let installed: Self = serde_json::from_slice(&fs::read(root.join(STAMP)).ok()?).ok()?;
        Some(Self { root: root.to_owned(), ..installed })
    }

    fn write(&self, root: &Path) -> Result<(), SetupError> {
        let path = root.join(STAMP);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        fs::write(&path, text).map_err(SetupError::file("write", path))
    }
}

/// The data sets that setup has put below this folder.
pub(super) fn installed_in(folder: &Path) -> Vec<Installed> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| Installed::read(&entry.path())).collect()
}

/// Looks through a data set that is in place, and remembers what it found where setup has put it.
///
/// # Errors
/// When its yaml is wrong, or no image of it can be used.
pub fn look_through(
    word: &str,
    places: &dataset::Places,
    installed: Option<Installed>,
) -> Result<Summary, SetupError> {
    if let Some(summary) = installed.as_ref().and_then(|installed| installed.summary.clone()) {
        return Ok(summary);
    }
    let summary = verify(&DataSet::load(word, places)?)?;
    if let Some(installed) = installed {
        let root = installed.root.clone();
        Installed { summary: Some(summary.clone()), ..installed }.write(&root)?;
    }
    Ok(summary)
}

impl PendingData {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its archives come from, without credentials.
    pub fn sources(&self) -> Vec<String> {
        let first =
            |piece: &Piece| piece.wanted.sources.first().map(|source| Redacted::new(source).to_string());
        self.pieces.iter().filter_map(first).collect()
    }

    /// Bytes that will travel; `None` where a server does not tell before.
    pub fn transfer(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.size.packed).sum()
    }

    /// Bytes on the disk afterwards, where they are known.
    pub fn unpacked(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.size.unpacked).sum()
    }

    /// Where it goes.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Fetches, unpacks, puts in place and looks through.
    ///
    /// # Errors
    /// When a source, an archive or the disk refuses, or the archives do not hold what the yaml names.
    pub fn run(&self, context: &Context<'_>) -> Result<Summary, SetupError> {
        // On the disk of the target, so that it is published by a rename.
        let folder = self.target.parent().unwrap_or(&self.target);
        let lock = Lock::acquire(folder, context.progress)?;
        lock.sweep();
        if let Some(installed) = Installed::read(&self.target)
            && Description::read(&self.word, &self.places).is_ok_and(|description| description.is_there())
        {
            // Another setup has finished while this one waited for the lock.
            return look_through(&self.word, &self.places, Some(installed));
        }
        context.progress.event(Event::Step { text: &format!("fetching the data set {}", self.name) });
        let incoming = Incoming::open(&lock, &self.name)?;
        let result = self.fill(&incoming, context);
        let installed = match result {
            Ok(root) => {
                let (files, bytes) = folder_count(&root);
                let (name, sources) = (self.name.clone(), self.sources());
                let root_now = self.target.clone();
                let installed = Installed { name, root: root_now, sources, files, bytes, summary: None };
                installed.write(&root)?;
                incoming.publish_path(&root, &self.target)?;
                installed
            }
            Err(error) => {
                let keep = match &error {
                    // Other archives of the set may have come whole.
                    SetupError::Fetch(error) => {
                        !error.is_full_disk() && (!error.is_bad_archive() || self.pieces.len() > 1)
                    }
                    _ => false,
                };
                if !keep {
                    incoming.discard();
                }
                return Err(error);
            }
        };
        let text = format!("looking through {} files of {}", installed.files, self.name);
        context.progress.event(Event::Step { text: &text });
        look_through(&self.word, &self.places, Some(installed))
    }

    /// Brings all archives and unpacks them; the folder that is the data set.
    fn fill(&self, incoming: &Incoming, context: &Context<'_>) -> Result<PathBuf, SetupError> {
        let meter = Meter::new(context.progress);
        let queue: Mutex<Vec<(usize, &Piece)>> = Mutex::new(self.pieces.iter().enumerate().rev().collect());
        let failed: Mutex<Option<SetupError>> = Mutex::new(None);
        let client = context.client()?;
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(self.pieces.len()) {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                        let Some((index, piece)) = next else { return };
                        if let Err(error) = piece.bring(index, client, incoming, &meter) {
                            queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                            // The first failure is the one to tell.
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                });
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        self.arrange(incoming)
    }

    /// Gives the unpacked files the form that the yaml describes, and finds their root.
    fn arrange(&self, incoming: &Incoming) -> Result<PathBuf, SetupError> {
        let tree = incoming.path();
        let Some(known) = self.known else {
            let description = Description::read(&self.word, &self.places)?;
            return self.root(tree, &description);
        };
        if known.form == Form::Voc {
            let root = tree.join(known.name);
            voc::convert(tree, &root)?;
            let kit = tree.join("VOCdevkit");
            fs::remove_dir_all(&kit).map_err(SetupError::file("remove", kit))?;
        }
        // The description is read where it will not be published, and written where it will.
        let yaml = incoming.parts().join(format!("{}.yaml", known.name));
        fs::write(&yaml, known.yaml()).map_err(SetupError::file("write", &yaml))?;
        let description = Description::read(&yaml.display().to_string(), &self.places)?;
        let root = self.root(tree, &description)?;
        let yaml = root.join(format!("{}.yaml", known.name));
        fs::write(&yaml, known.yaml()).map_err(SetupError::file("write", yaml))?;
        Ok(root)
    }

    /// The folder in `tree` below which train and val are: itself, the folder of the set's name, or
    /// the only folder there is.
    fn root(&self, tree: &Path, description: &Description) -> Result<PathBuf, SetupError> {
        let mut folders: Vec<PathBuf> = fs::read_dir(tree)
            .map_err(SetupError::file("read", tree))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        let mut candidates = vec![tree.join(&self.name), tree.to_owned()];
        candidates.extend(folders.iter().filter(|_| folders.len() == 1).cloned());
        let found = candidates.iter().find(|root| description.fits(root));
        found.cloned().ok_or_else(|| {
            let shown = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            SetupError::NotInArchive {
                name: self.name.clone(),
                wanted: description.wanted().join(", "),
                holds: folders.iter().take(8).map(shown).collect::<Vec<_>>().join(", "),
            }
        })
    }
}

impl Piece {
    /// Fetches and unpacks it, unless an earlier run has done so.
    fn bring(
        &self,
        index: usize,
        client: &crate::fetch::Client,
        incoming: &Incoming,
        meter: &Meter<'_>,
    ) -> Result<(), SetupError> {
        let done = incoming.parts().join(format!("{index}.done"));
        if done.exists() {
            return Ok(());
        }
        let part = incoming.parts().join(format!("{index}-{}", self.wanted.name));
        let fetched = download(client, &self.wanted, &part, meter)?;
        let into = incoming.path().join(self.into);
        if let Err(error) = extract(client, &fetched.path, &fetched.source, &into, meter) {
            if error.is_bad_archive() {
                // It is fetched anew the next time.
                let _ = fs::remove_file(&part);
            }
            return Err(error.into());
        }
        fs::write(&done, "").map_err(SetupError::file("write", done))?;
        // What is unpacked is not needed twice.
        let _ = fs::remove_file(&part);
        Ok(())
    }
}

fn folder_count(folder: &Path) -> (usize, u64) {
    let Ok(entries) = fs::read_dir(folder) else { return (0, 0) };
    entries.flatten().fold((0, 0), |(files, bytes), entry| match entry.metadata() {
        Ok(data) if data.is_dir() => {
            let (more, larger) = folder_count(&entry.path());
            (files + more, bytes + larger)
        }
        Ok(data) => (files + 1, bytes + data.len()),
        Err(_) => (files, bytes),
    })
}
