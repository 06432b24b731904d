//! Whether a data set is installed, and if not, where its archives come from and how large they are.

use std::path::{Path, PathBuf};

use yolo_plan::PlanError;
use yolo_plan::dataset::{self, DataSet, Description, Download};

use super::conflict::{refuse_another, refuse_others_files};
use super::known::Known;
use super::pending::{PendingData, Piece};
use super::stamp::Installed;
use crate::fetch::{ArchiveSize, FileRequest, Meter, ProgressEvent, Redacted, archive_size};
use crate::setup::context::Context;
use crate::setup::error::{DataSetError, SetupError};

/// Whether a data set is installed.
#[derive(Debug)]
pub enum DataStatus {
    /// Its images exist.
    Installed {
        /// The yaml.
        yaml: PathBuf,
        /// What setup recorded when it installed the data set, if it did.
        installed: Option<Box<Installed>>,
    },
    /// yolo generates it in this directory.
    Generate(PathBuf),
    /// It can be downloaded.
    Missing(Box<PendingData>),
}

/// Checks whether a data set is installed, and finds its archives if not.
///
/// # Errors
/// When its yaml is invalid, its `download:` is code, or no server has its archives.
pub fn data_status(
    context: &Context<'_>,
    argument: &str,
    places: &dataset::Places,
) -> Result<DataStatus, SetupError> {
    if dataset::is_builtin(argument) {
        let yaml = places.builtin_yaml(argument);
        let there = DataStatus::Installed { installed: None, yaml: yaml.clone() };
        let folder = yaml.parent().unwrap_or(&places.data_sets).to_owned();
        return Ok(if yaml.is_file() { there } else { DataStatus::Generate(folder) });
    }
    let by_name = dataset::fetchable(argument).filter(|_| !places.working_dir.join(argument).is_file());
    if let Some(known) = by_name.and_then(Known::named) {
        return known_status(context, argument, known, places);
    }
    let description = Description::read(argument, places)?;
    let target = description.target(places);
    let installed = Installed::read(&target);
    let addresses = match &description.download {
        Download::Archives(addresses) => addresses.as_slice(),
        _ => &[],
    };
    if let Some(root) = description.root() {
        let is_installed = installed.as_ref().filter(|_| same_folder(root, &target));
        let Some(installed) = is_installed else {
            return Ok(DataStatus::Installed { yaml: description.yaml, installed: None });
        };
        if !addresses.is_empty() {
            refuse_another(installed, &redacted(addresses), false)?;
        }
        if addresses.is_empty() || is_kept(installed, context)? {
            return Ok(DataStatus::Installed {
                yaml: description.yaml,
                installed: Some(Box::new(installed.clone())),
            });
        }
    } else if let Some(installed) = &installed {
        refuse_another(installed, &redacted(addresses), false)?;
    }
    let shown = description.yaml.display().to_string();
    let pieces = match &description.download {
        Download::Archives(addresses) => addresses
            .iter()
            .map(|address| {
                let redacted = Redacted::new(address).to_string();
                let name = redacted.rsplit(['/', '\\']).next();
                let name = name.filter(|name| !name.is_empty()).unwrap_or("archive");
                piece(context, name, vec![address.clone()], "", None)
            })
            .collect::<Result<_, _>>()?,
        Download::Refused { why, hint } => {
            return Err(PlanError::new(format!("the data set {shown}: {why}")).with_hint(*hint).into());
        }
        Download::Code { kind, would } => {
            return Err(DataSetError::DownloadIsCode { yaml: shown, kind, would: would.clone() }.into());
        }
        // This error lists the places that were searched.
        Download::Nothing => {
            return Err(DataSet::load(argument, places).err().map_or_else(
                || DataSetError::NothingToFetch { yaml: shown.clone() }.into(),
                SetupError::from,
            ));
        }
    };
    refuse_others_files(&target)?;
    let (argument, name) = (argument.to_owned(), description.name);
    let missing = installed.map_or(0, |installed| installed.missing());
    Ok(DataStatus::Missing(Box::new(PendingData {
        argument,
        name,
        pieces,
        target,
        known: None,
        places: places.clone(),
        missing,
    })))
}

fn known_status(
    context: &Context<'_>,
    argument: &str,
    known: &'static Known,
    places: &dataset::Places,
) -> Result<DataStatus, SetupError> {
    let yaml = places.builtin_yaml(known.name);
    let target = places.data_sets.join(known.name);
    let installed = Installed::read(&target);
    if let Some(installed) = &installed {
        refuse_another(installed, &known.addresses(), true)?;
    }
    if yaml.is_file() && Description::read(argument, places).is_ok_and(|description| description.is_there()) {
        match &installed {
            Some(installed) if !is_kept(installed, context)? => {}
            _ => return Ok(DataStatus::Installed { yaml, installed: installed.map(Box::new) }),
        }
    }
    refuse_others_files(&target)?;
    let missing = installed.map_or(0, |installed| installed.missing());
    let mirror = context.mirror()?;
    let pieces = known.pieces.iter().map(|one| {
        let on_mirror = mirror.iter().map(|mirror| format!("{}/{}", mirror.trim_end_matches('/'), one.file));
        let sources = on_mirror.chain([format!("{}{}", one.site, one.file)]).collect();
        piece(context, one.file, sources, one.into, Some(one.about))
    });
    let pieces = pieces.collect::<Result<_, _>>()?;
    let (argument, name) = (argument.to_owned(), known.name.to_owned());
    Ok(DataStatus::Missing(Box::new(PendingData {
        argument,
        name,
        pieces,
        target,
        known: Some(known),
        places: places.clone(),
        missing,
    })))
}

/// Asks the server for the size of an archive, and for the size of its contents if possible.
fn piece(
    context: &Context<'_>,
    name: &str,
    sources: Vec<String>,
    into: &'static str,
    about: Option<(u64, u64)>,
) -> Result<Piece, SetupError> {
    context.progress.event(ProgressEvent::Step { text: &format!("looking for {name}") });
    let wanted = FileRequest { name: name.to_owned(), sources, length: None, sha256: None };
    let (source, size) = archive_size(context.client()?, &wanted, &Meter::new(context.progress))?;
    // The sources before the first that answered have failed.
    let sources = wanted.sources.into_iter().skip(source).collect();
    let about = about.unwrap_or((0, 0));
    let size = ArchiveSize {
        packed: size.packed.or(Some(about.0)).filter(|bytes| *bytes > 0),
        unpacked: size.unpacked.or(Some(about.1)).filter(|bytes| *bytes > 0),
    };
    Ok(Piece { wanted: FileRequest { sources, ..wanted }, into, size })
}

fn redacted(addresses: &[String]) -> Vec<String> {
    addresses.iter().map(|address| Redacted::new(address).to_string()).collect()
}

/// Whether two existing paths are the same directory.
fn same_folder(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether an installed data set can be kept. If files are missing, it is downloaded again, unless yolo
/// is offline.
fn is_kept(installed: &Installed, context: &Context<'_>) -> Result<bool, SetupError> {
    if installed.missing() == 0 {
        return Ok(true);
    }
    let text = format!("files of {} are missing in {}", installed.name, installed.root.display());
    let then = if context.is_offline() { "yolo is offline" } else { "downloading it again" };
    context.progress.event(ProgressEvent::Note { text: &format!("{text}; {then}") });
    Ok(context.is_offline())
}

/// The status of several data sets.
///
/// # Errors
/// As [`data_status`], and when two of them would share a folder.
pub(in crate::setup) fn data_statuses<'w>(
    context: &Context<'_>,
    arguments: &'w [String],
    places: &dataset::Places,
) -> Result<Vec<(&'w String, DataStatus)>, SetupError> {
    let mut statuses: Vec<(&String, DataStatus)> = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        if arguments[..index].contains(argument) {
            continue;
        }
        let status = data_status(context, argument, places)?;
        for (_, earlier) in &statuses {
            if let (DataStatus::Missing(earlier), DataStatus::Missing(later)) = (earlier, &status)
                && earlier.target == later.target
                && earlier.addresses() != later.addresses()
            {
                return Err(DataSetError::AnotherSet {
                    folder: later.target.clone(),
                    there: earlier.addresses().join(", "),
                    wanted: later.addresses().join(", "),
                }
                .into());
            }
        }
        statuses.push((argument, status));
    }
    Ok(statuses)
}
