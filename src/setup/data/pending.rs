//! A data set to download. Its archives are downloaded in parallel and unpacked in a staging directory.
//! The folder that its yaml describes is then published by one rename.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use yolo_base::format;
use yolo_plan::dataset::{self, Description};

use super::builtin::stays;
use super::conflict::{refuse_another, refuse_others_files};
use super::known::{Form, Known};
use super::stamp::{Installed, folders_of};
use super::summary::Summary;
use super::verify::verify_data_set;
use super::voc::{self, LeftOut};
use crate::fetch::{
    ArchiveSize, Client, FileRequest, FolderLock, Meter, ProgressEvent, Redacted, Staging, download, extract,
    kept_in, printable, staging_dir, tree_and_parts,
};
use crate::setup::context::Context;
use crate::setup::error::{DataSetError, SetupError};
use crate::setup::noted::noted;
use crate::undo::Entry;

/// Archives that are downloaded at the same time.
const AT_ONCE: usize = 3;

/// A data set to download.
#[derive(Debug)]
pub struct PendingData {
    /// The value of `--data`.
    pub(super) argument: String,
    pub(super) name: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) target: PathBuf,
    pub(super) known: Option<&'static Known>,
    pub(super) places: dataset::Places,
    /// Files of an earlier download that no longer exist.
    pub(super) missing: usize,
}

/// One archive.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) wanted: FileRequest,
    pub(super) into: &'static str,
    pub(super) size: ArchiveSize,
}

impl PendingData {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sources of its archives, without credentials.
    pub fn sources(&self) -> Vec<String> {
        let first =
            |piece: &Piece| piece.wanted.sources.first().map(|source| Redacted::new(source).to_string());
        self.pieces.iter().filter_map(first).collect()
    }

    /// The addresses where its archives are published, without credentials, even if a mirror serves them.
    pub(super) fn addresses(&self) -> Vec<String> {
        let last =
            |piece: &Piece| piece.wanted.sources.last().map(|source| Redacted::new(source).to_string());
        self.known.map_or_else(|| self.pieces.iter().filter_map(last).collect(), Known::addresses)
    }

    /// Why it is downloaded again.
    pub(in crate::setup) fn reasons(&self) -> Vec<String> {
        match self.missing {
            0 => Vec::new(),
            missing => {
                let are = if missing == 1 { "is" } else { "are" };
                vec![format!("{} of an earlier download {are} missing", format::count(missing, "file"))]
            }
        }
    }

    /// Bytes of all archives; `None` if a server does not report sizes in advance.
    pub fn archives(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.size.packed).sum()
    }

    /// Bytes to download, not counting what an earlier run has; `None` if a server does not report sizes in
    /// advance.
    pub fn transfer(&self) -> Option<u64> {
        let (_, parts) = tree_and_parts(&staging_dir(&self.target));
        let left = |(index, piece): (usize, &Piece)| {
            let is_done = piece.done(index, &parts).exists();
            let left = piece.size.packed?.saturating_sub(kept_in(&piece.part(index, &parts)));
            Some(if is_done { 0 } else { left })
        };
        self.pieces.iter().enumerate().map(left).sum()
    }

    /// Bytes on the disk afterwards, if known.
    pub fn unpacked(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.size.unpacked).sum()
    }

    /// Where it will be installed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Downloads, unpacks, publishes and verifies it.
    ///
    /// # Errors
    /// When a source, an archive or the disk fails, or the archives do not contain what the yaml names.
    pub fn run(&self, context: &Context<'_>) -> Result<Summary, SetupError> {
        let what = format!("installed the data set {} in {}", self.name, self.target.display());
        let describe = |entry: &mut Entry| stays(entry, &self.target, &self.name);
        noted((context.dirs, context.progress), what, describe, || self.install(context))
    }

    fn install(&self, context: &Context<'_>) -> Result<Summary, SetupError> {
        // On the target's file system, so that it can be published by a rename.
        let folder = self.target.parent().unwrap_or(&self.target);
        let lock = FolderLock::acquire(folder, context.progress)?;
        Staging::sweep(&lock);
        if let Some(installed) = Installed::read(&self.target)
            && Description::read(&self.argument, &self.places).is_ok_and(|description| description.is_there())
            && installed.missing() == 0
        {
            refuse_another(&installed, &self.addresses(), self.known.is_some())?;
            // Another setup finished while this one waited for the lock.
            return verify_data_set(&self.argument, &self.places, Some(installed));
        }
        refuse_others_files(&self.target)?;
        context
            .progress
            .event(ProgressEvent::Step { text: &format!("downloading the data set {}", self.name) });
        let mut staging = Staging::open(&lock, &self.name)?;
        let (of, addresses) = (staging.parts().join("of"), self.addresses().join("\n"));
        if staging.resumed() && fs::read_to_string(&of).ok().as_ref() != Some(&addresses) {
            // The interrupted download was of another data set of this name.
            staging.clear()?;
        }
        fs::write(&of, addresses).map_err(SetupError::file("write", of))?;
        let result = self.fill(&staging, context);
        let installed = match result {
            Ok((root, left_out)) => {
                let folders = folders_of(&root);
                let installed = Installed {
                    name: self.name.clone(),
                    root: self.target.clone(),
                    sources: self.sources(),
                    files: folders.values().map(|files| files.count).sum(),
                    bytes: folders.values().map(|files| files.bytes).sum(),
                    summary: None,
                    seen: String::new(),
                    known: self.known.is_some(),
                    folders,
                    left_out,
                    now: OnceLock::new(),
                };
                installed.write(&root)?;
                staging.publish_path(&root, &self.target)?;
                installed
            }
            Err(error) => {
                let keep = match &error {
                    // Other archives of the data set may be complete.
                    SetupError::Fetch(error) => {
                        !error.is_full_disk() && (!error.is_bad_archive() || self.pieces.len() > 1)
                    }
                    _ => false,
                };
                if !keep {
                    staging.discard();
                }
                return Err(error);
            }
        };
        let text = format!("checking {} of {}", format::count(installed.files, "file"), self.name);
        context.progress.event(ProgressEvent::Step { text: &text });
        verify_data_set(&self.argument, &self.places, Some(installed))
    }

    /// Downloads and unpacks all archives. Returns the folder of the data set, and what was left out of it.
    fn fill(&self, staging: &Staging, context: &Context<'_>) -> Result<(PathBuf, Vec<LeftOut>), SetupError> {
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
                        if let Err(error) = piece.fetch(index, client, staging, &meter) {
                            queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                            // Only the first failure is reported.
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                });
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        self.arrange(staging)
    }

    /// Converts the unpacked files to the layout that the yaml describes, and finds their root.
    fn arrange(&self, staging: &Staging) -> Result<(PathBuf, Vec<LeftOut>), SetupError> {
        let tree = staging.path();
        let Some(known) = self.known else {
            let description = Description::read(&self.argument, &self.places)?;
            return Ok((self.root(staging, &description)?, Vec::new()));
        };
        let mut left_out = Vec::new();
        if known.form == Form::Voc {
            let root = tree.join(known.name);
            if let Some(wanted) = voc::lacking(tree) {
                return Err(self.not_in_archive(staging, vec![wanted]));
            }
            // The rest of the development kit is not published.
            left_out = voc::convert(tree, &root)?;
        }
        // The yaml is first read from outside the tree, since the root is only known afterwards.
        let yaml = staging.parts().join(format!("{}.yaml", known.name));
        fs::write(&yaml, known.yaml()).map_err(SetupError::file("write", &yaml))?;
        let description = Description::read(&yaml.display().to_string(), &self.places)?;
        let root = self.root(staging, &description)?;
        let yaml = root.join(format!("{}.yaml", known.name));
        fs::write(&yaml, known.yaml()).map_err(SetupError::file("write", yaml))?;
        Ok((root, left_out))
    }

    /// The folder that contains train and val: the folder of the data set's name, the tree itself, or the
    /// only folder in it.
    fn root(&self, staging: &Staging, description: &Description) -> Result<PathBuf, SetupError> {
        let tree = staging.path();
        let folders = folders_in(tree);
        let mut candidates = vec![tree.join(&self.name), tree.to_owned()];
        candidates.extend(folders.iter().filter(|_| folders.len() == 1).cloned());
        let found = candidates.iter().find(|root| description.fits(root));
        found.cloned().ok_or_else(|| {
            // Report the candidate that lacks the least.
            let lacking = candidates.iter().map(|root| description.lacking(root));
            self.not_in_archive(staging, lacking.min_by_key(Vec::len).unwrap_or_default())
        })
    }

    /// The error for archives that contain something else.
    fn not_in_archive(&self, staging: &Staging, wanted: Vec<String>) -> SetupError {
        let shown = |path: &PathBuf| printable(&path.file_name().unwrap_or_default().to_string_lossy());
        let mut holds: Vec<String> = folders_in(staging.path()).iter().take(8).map(shown).collect();
        if holds.is_empty() {
            holds.push("files without a folder".to_owned());
        }
        let (wanted, holds) = (wanted.join(", "), holds.join(", "));
        if self.known.is_none() {
            return DataSetError::NotInArchive { name: self.name.clone(), wanted, holds }.into();
        }
        let came = |(index, piece): (usize, &Piece)| {
            let source = fs::read_to_string(piece.done(index, staging.parts())).unwrap_or_default();
            if source.is_empty() { piece.wanted.name.clone() } else { source }
        };
        let sources: Vec<String> = self.pieces.iter().enumerate().map(came).collect();
        DataSetError::WrongArchive { name: self.name.clone(), sources: sources.join(", "), wanted, holds }
            .into()
    }
}

fn folders_in(tree: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(tree).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

impl Piece {
    /// The file whose existence means that the archive is unpacked. It contains the source.
    fn done(&self, index: usize, parts: &Path) -> PathBuf {
        parts.join(format!("{index}.done"))
    }

    /// The archive during the download.
    fn part(&self, index: usize, parts: &Path) -> PathBuf {
        parts.join(format!("{index}-{}", self.wanted.name))
    }

    /// Downloads and unpacks it, unless an earlier run did.
    fn fetch(
        &self,
        index: usize,
        client: &Client,
        staging: &Staging,
        meter: &Meter<'_>,
    ) -> Result<(), SetupError> {
        let done = self.done(index, staging.parts());
        if done.exists() {
            return Ok(());
        }
        let part = self.part(index, staging.parts());
        let fetched = download(client, &self.wanted, &part, meter)?;
        let into = staging.path().join(self.into);
        if let Err(error) = extract(client, &fetched.path, &fetched.source, &into, meter) {
            if error.is_bad_archive() {
                // The next run downloads it again.
                let _ = fs::remove_file(&part);
            }
            return Err(error.into());
        }
        fs::write(&done, &fetched.source).map_err(SetupError::file("write", done))?;
        // The archive is no longer needed.
        let _ = fs::remove_file(&part);
        Ok(())
    }
}
