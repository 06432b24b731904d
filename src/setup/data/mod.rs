//! Data sets: those known by name, and any whose yaml has a `download:` with addresses of archives.
//! Archives come side by side, are unpacked beside the place where the set will be, and the set is
//! put in place only when the folders that its yaml names are there; then it is looked through.

mod builtin;
mod known;
mod pending;
mod stamp;
mod verify;
mod voc;

use std::fs;
use std::path::{Path, PathBuf};

use yolo_plan::PlanError;
use yolo_plan::dataset::{self, DataSet, Description, Download};

pub use builtin::make_builtin;
pub use pending::PendingData;
pub use stamp::Installed;
pub use verify::{SplitSummary, Summary};

use super::{Context, SetupError};
use crate::fetch::{Event, Measure, Meter, Redacted, Wanted, measure, printable};
use known::Known;
use pending::Piece;
use stamp::STAMP;
use verify::verify;
use voc::LeftOut;

/// What is there, or what would have to be done.
#[derive(Debug)]
pub enum DataProspect {
    /// Its images are there; what an earlier run found in them, where there was one.
    There {
        /// The yaml.
        yaml: PathBuf,
        /// What was found.
        installed: Option<Box<Installed>>,
    },
    /// The program makes it itself, in this folder.
    Make(PathBuf),
    /// It can be fetched.
    Fetch(Box<PendingData>),
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
    let installed = Installed::read(&target);
    let addresses = match &description.download {
        Download::Archives(addresses) => addresses.as_slice(),
        _ => &[],
    };
    if let Some(root) = description.root() {
        let is_installed = installed.as_ref().filter(|_| same_folder(root, &target));
        let Some(installed) = is_installed else {
            return Ok(DataProspect::There { yaml: description.yaml, installed: None });
        };
        if !addresses.is_empty() {
            refuse_another(installed, &redacted(addresses), false)?;
        }
        if addresses.is_empty() || is_kept(installed, context)? {
            return Ok(DataProspect::There {
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
    let missing = installed.map_or(0, |installed| installed.missing());
    Ok(DataProspect::Fetch(Box::new(PendingData {
        word,
        name,
        pieces,
        target,
        known: None,
        places: places.clone(),
        missing,
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
    let installed = Installed::read(&target);
    if let Some(installed) = &installed {
        refuse_another(installed, &known.addresses(), true)?;
    }
    if yaml.is_file() && Description::read(word, places).is_ok_and(|description| description.is_there()) {
        match &installed {
            Some(installed) if !is_kept(installed, context)? => {}
            _ => return Ok(DataProspect::There { yaml, installed: installed.map(Box::new) }),
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
    let (word, name) = (word.to_owned(), known.name.to_owned());
    Ok(DataProspect::Fetch(Box::new(PendingData {
        word,
        name,
        pieces,
        target,
        known: Some(known),
        places: places.clone(),
        missing,
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
    let is_file = target.symlink_metadata().is_ok_and(|data| !data.is_dir());
    let holds_something = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    let others = match Installed::read(target) {
        Some(installed) => installed.has_others_files(),
        None => holds_something && !target.join(STAMP).is_file(),
    };
    if is_file || others {
        return Err(SetupError::Occupied { folder: target.to_owned() });
    }
    Ok(())
}

/// One folder cannot be two data sets: refuses `wanted` where another is installed.
fn refuse_another(installed: &Installed, wanted: &[String], known: bool) -> Result<(), SetupError> {
    let of_name = Known::named(&installed.name).filter(|_| installed.known);
    // A set that is known by name is the same wherever its archives came from.
    let same = match of_name {
        Some(of_name) => known || wanted == of_name.addresses(),
        None => !known && wanted == installed.sources,
    };
    if same || wanted.is_empty() || installed.sources == wanted {
        return Ok(());
    }
    Err(SetupError::AnotherSet {
        folder: installed.root.clone(),
        there: installed.sources.join(", "),
        wanted: wanted.join(", "),
    })
}

fn redacted(addresses: &[String]) -> Vec<String> {
    addresses.iter().map(|address| Redacted::new(address).to_string()).collect()
}

/// Whether two paths, of which both are there, are one folder.
fn same_folder(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether what is installed can stay. Where files of it are missing it is fetched again, if anything
/// may be fetched.
fn is_kept(installed: &Installed, context: &Context<'_>) -> Result<bool, SetupError> {
    if installed.missing() == 0 {
        return Ok(true);
    }
    let text = format!("files of {} are missing in {}", installed.name, installed.root.display());
    let then = if context.is_offline() { "and nothing may be fetched" } else { "it is fetched again" };
    context.progress.event(Event::Note { text: &format!("{text}; {then}") });
    Ok(context.is_offline())
}

/// What is there of several data sets, and where they would come from.
///
/// # Errors
/// As [`data_prospect`], and when two of them would be one folder.
pub(super) fn data_prospects<'w>(
    context: &Context<'_>,
    words: &'w [String],
    places: &dataset::Places,
) -> Result<Vec<(&'w String, DataProspect)>, SetupError> {
    let mut prospects: Vec<(&String, DataProspect)> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if words[..index].contains(word) {
            continue;
        }
        let prospect = data_prospect(context, word, places)?;
        for (_, earlier) in &prospects {
            if let (DataProspect::Fetch(earlier), DataProspect::Fetch(later)) = (earlier, &prospect)
                && earlier.target == later.target
                && earlier.addresses() != later.addresses()
            {
                return Err(SetupError::AnotherSet {
                    folder: later.target.clone(),
                    there: earlier.addresses().join(", "),
                    wanted: later.addresses().join(", "),
                });
            }
        }
        prospects.push((word, prospect));
    }
    Ok(prospects)
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
    let Some(installed) = installed else { return Ok(verify(&DataSet::load(word, places)?)?) };
    let data = DataSet::load(word, places)?;
    let seen = installed.state(&data.yaml);
    if let Some(summary) = installed.summary.clone().filter(|_| installed.seen == seen) {
        return Ok(summary);
    }
    let mut summary = verify(&data)?;
    for LeftOut { split, why } in &installed.left_out {
        if let Some(split) = summary.splits.iter_mut().find(|of| Some(&of.name) == split.as_ref()) {
            split.corrupt += 1;
        }
        summary.wrong.push(printable(why));
    }
    let root = installed.root.clone();
    Installed { summary: Some(summary.clone()), seen, ..installed }.write(&root)?;
    Ok(summary)
}
