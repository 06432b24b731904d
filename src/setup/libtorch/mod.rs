//! libtorch for this machine: the one that `LIBTORCH` names, the one that an earlier run installed,
//! or a new one from the first source that answers (DESIGN.md, "Where libtorch comes from").
//! Variants lie side by side; a small file says which of them runs use.

mod asked;
mod index;
mod install;
pub mod look;
mod offer;
mod pins;
mod pip;
mod sources;
mod stamp;
mod user;
mod uv;
mod variant;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use variant::{Chosen, Variant};

use super::{Context, LIBTORCH_VERSION, Refusal, SetupError, megabytes};
use crate::dirs::YoloDirs;
use crate::fetch::{Event, Incoming, Lock, Meter, tree_and_parts, unfinished};
use install::Job;
use look::Seen;
use offer::Offer;
use sources::Source;
use stamp::{A_HEADER, Stamp};

/// Names the variant that runs use, in the folder of all variants.
const SELECTED: &str = "selected";

/// A libtorch that a trainer can run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// The folder that holds `lib`.
    pub root: PathBuf,
    /// The folder of the shared libraries.
    pub lib_dir: PathBuf,
    /// The headers, where they are there.
    pub include: Option<PathBuf>,
    /// `cpu`, `cu130`; for a libtorch that `LIBTORCH` names, what its version says.
    pub variant: String,
    /// Whether `libtorch_cuda.so` is among the libraries.
    pub has_cuda: bool,
}

/// What is there, or what would have to be done.
#[derive(Debug)]
pub enum Prospect {
    /// It is there and whole.
    There(Libtorch),
    /// It can be fetched.
    Fetch(Box<Pending>),
}

/// An installation that has a source and has not begun.
pub struct Pending {
    chosen: Chosen,
    headers: bool,
    target: PathBuf,
    source: &'static str,
    offer: Offer,
    /// Sources that come next, should this one fail.
    further: Vec<Source>,
    refusals: Vec<Refusal>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("chosen", &self.chosen).field("source", &self.source).finish()
    }
}

/// Finds libtorch, and installs nothing: `None` when it is not there, or not whole.
///
/// # Errors
/// When `LIBTORCH` names something else.
pub fn find_libtorch(dirs: &YoloDirs) -> Result<Option<Libtorch>, SetupError> {
    find(dirs, None, false)
}

/// Finds libtorch or installs it, with headers where the trainer must be built.
///
/// # Errors
/// As [`prospect`] and [`Pending::run`].
pub fn ensure_libtorch(
    context: &Context<'_>,
    choose: impl FnOnce() -> Chosen,
    headers: bool,
) -> Result<Libtorch, SetupError> {
    match prospect(context, None, choose, headers)? {
        Prospect::There(libtorch) => Ok(libtorch),
        Prospect::Fetch(pending) => pending.run(context),
    }
}

/// Looks for libtorch, and where it is missing for a source that has it. `chosen` is what the user
/// asked for; without it, what runs use already, else what `choose` says.
///
/// # Errors
/// When `LIBTORCH` names something else or no source can serve.
pub fn prospect(
    context: &Context<'_>,
    chosen: Option<Chosen>,
    choose: impl FnOnce() -> Chosen,
    headers: bool,
) -> Result<Prospect, SetupError> {
    if let Some(found) = find(context.dirs, chosen.as_ref().map(|chosen| chosen.variant), headers)? {
        return Ok(Prospect::There(found));
    }
    supported_platform()?;
    let chosen = match (chosen, in_use(context.dirs)) {
        (Some(chosen), _) => chosen,
        // A repair stays with the variant that was chosen before.
        (None, Some(variant)) => Chosen::named(variant),
        (None, None) => choose(),
    };
    if let Some(found) = find(context.dirs, Some(chosen.variant), headers)? {
        return Ok(Prospect::There(found));
    }
    let target = place_of(context.dirs, chosen.variant);
    // Headers that are there once are kept by a repair, so that a checkout goes on building.
    let headers = headers || target.join(A_HEADER).exists();
    let mut sources = Source::of(chosen.variant, context.mirror()?);
    sources.reverse();
    let mut refusals = Vec::new();
    let (source, offer) = next_offer(context, chosen.variant, headers, &mut sources, &mut refusals)?;
    Ok(Prospect::Fetch(Box::new(Pending {
        chosen,
        headers,
        target,
        source,
        offer,
        further: sources,
        refusals,
    })))
}

/// The first offer of the sources, which are taken from the end.
fn next_offer(
    context: &Context<'_>,
    variant: Variant,
    headers: bool,
    sources: &mut Vec<Source>,
    refusals: &mut Vec<Refusal>,
) -> Result<(&'static str, Offer), SetupError> {
    let client = context.client()?;
    let what = format!("libtorch {LIBTORCH_VERSION} ({})", variant.name());
    while let Some(source) = sources.pop() {
        let text = format!("looking for {what}: {}", source.shown());
        context.progress.event(Event::Step { text: &text });
        let found = source.ask(client, variant, context.progress);
        let offer = found.and_then(|found| {
            Offer::look(client, found, headers, &Meter::new(context.progress)).map_err(|e| e.to_string())
        });
        match offer {
            Ok(offer) => return Ok((source.shown(), offer)),
            Err(why) => {
                if let (Source::Mirror(_), false) = (&source, sources.is_empty()) {
                    let text =
                        format!("warning: YOLO_MIRROR does not serve: {why}; going on to the next source");
                    context.progress.event(Event::Note { text: &text });
                }
                refusals.push(Refusal { source: source.shown().to_owned(), why });
            }
        }
    }
    Err(SetupError::NoSource { variant: variant.name(), refusals: std::mem::take(refusals) })
}

impl Pending {
    /// The variant and why.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Who serves it, in words.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The servers or folders that it comes from, without credentials.
    pub fn addresses(&self) -> Vec<String> {
        self.offer.prepared.iter().map(|one| one.archive.shown()).collect()
    }

    /// Whether headers come along.
    pub fn headers(&self) -> bool {
        self.headers
    }

    /// Bytes that will travel, without those that an earlier run has brought; `None` where a server
    /// does not tell before.
    pub fn transfer(&self) -> Option<u64> {
        let (tree, parts) = tree_and_parts(&unfinished(&self.target));
        Some(self.offer.transfer()?.saturating_sub(self.offer.kept((&tree, &parts))))
    }

    /// Bytes on the disk beside those of the libraries, while it runs.
    pub fn beside(&self) -> u64 {
        self.offer.kept_meanwhile()
    }

    /// Bytes on the disk afterwards.
    pub fn unpacked(&self) -> u64 {
        self.offer.unpacked()
    }

    /// Where it goes.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Fetches and installs it, from this source or the next ones.
    ///
    /// # Errors
    /// When no source can serve, the disk refuses, or the result does not load.
    pub fn run(mut self, context: &Context<'_>) -> Result<Libtorch, SetupError> {
        let variant = self.chosen.variant;
        let began = Instant::now();
        let lock = Lock::acquire(&context.dirs.libtorch(), context.progress)?;
        lock.sweep();
        // Another setup may have finished while this one waited for the lock.
        if Stamp::check(&self.target, self.headers).is_ok() {
            select(context.dirs, variant)?;
            return Ok(installed(self.target, variant));
        }
        let name = self.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        loop {
            let text = format!("fetching libtorch {LIBTORCH_VERSION} ({})", variant.name());
            context.progress.event(Event::Step { text: &text });
            let job = Job { offer: &self.offer, variant, headers: self.headers, progress: context.progress };
            match job.run(Incoming::open(&lock, &name)?) {
                Ok(incoming) => {
                    let seen = look::ask(&incoming.path().join("lib"))?;
                    incoming.publish(&self.target)?;
                    select(context.dirs, variant)?;
                    report(&self.target, &seen, began, context);
                    return Ok(installed(self.target, variant));
                }
                Err(SetupError::Fetch(error)) if !error.is_disk() => {
                    let why = error.to_string();
                    self.refusals.push(Refusal { source: self.source.to_owned(), why });
                }
                Err(error) => return Err(error),
            }
            let (further, refusals) = (&mut self.further, &mut self.refusals);
            (self.source, self.offer) = next_offer(context, variant, self.headers, further, refusals)?;
        }
    }
}

/// The installed variants, and where they are.
pub fn installed_variants(dirs: &YoloDirs) -> Vec<(Variant, PathBuf)> {
    let all = Variant::ALL.into_iter().map(|variant| (variant, place_of(dirs, variant)));
    all.filter(|(_, root)| root.symlink_metadata().is_ok()).collect()
}

/// The variant that runs use, if one was ever chosen.
pub fn in_use(dirs: &YoloDirs) -> Option<Variant> {
    Variant::named(fs::read_to_string(dirs.libtorch().join(SELECTED)).ok()?.trim())
}

/// Makes runs use this variant.
///
/// # Errors
/// When the disk refuses.
pub fn select(dirs: &YoloDirs, variant: Variant) -> Result<(), SetupError> {
    if in_use(dirs) == Some(variant) {
        return Ok(());
    }
    let path = dirs.libtorch().join(SELECTED);
    let new = dirs.libtorch().join(format!(".{SELECTED}.{}", std::process::id()));
    fs::write(&new, variant.name()).map_err(SetupError::file("write", &new))?;
    fs::rename(&new, &path).map_err(SetupError::file("write", &path))
}

/// Forgets which variant runs use.
pub(super) fn unselect(dirs: &YoloDirs) -> Result<(), SetupError> {
    let path = dirs.libtorch().join(SELECTED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SetupError::File { action: "remove", path, source: error })
        }
        _ => Ok(()),
    }
}

fn find(
    dirs: &YoloDirs,
    variant: Option<Variant>,
    want_headers: bool,
) -> Result<Option<Libtorch>, SetupError> {
    if let Some(path) = user::named() {
        return user::libtorch(&path, want_headers).map(Some);
    }
    let candidates = match variant.or_else(|| in_use(dirs)) {
        Some(variant) => vec![variant],
        None => Variant::ALL.into_iter().rev().collect(),
    };
    let whole = |variant: &Variant| Stamp::check(&place_of(dirs, *variant), want_headers).is_ok();
    let found = candidates.into_iter().find(whole);
    Ok(found.map(|variant| installed(place_of(dirs, variant), variant)))
}

fn place_of(dirs: &YoloDirs, variant: Variant) -> PathBuf {
    dirs.libtorch().join(format!("{LIBTORCH_VERSION}-{}", variant.name()))
}

fn installed(root: PathBuf, variant: Variant) -> Libtorch {
    let include = root.join("include");
    Libtorch {
        lib_dir: root.join("lib"),
        include: root.join(A_HEADER).is_file().then_some(include),
        variant: variant.name().to_owned(),
        has_cuda: root.join("lib/libtorch_cuda.so").exists(),
        root,
    }
}

fn supported_platform() -> Result<(), SetupError> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Ok(());
    }
    Err(SetupError::Platform(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)))
}

fn report(target: &Path, seen: &Seen, began: Instant, context: &Context<'_>) {
    let Ok(stamp) = Stamp::check(target, false) else { return };
    let bytes = stamp.files.iter().map(|file| file.size).sum();
    let text = format!(
        "libtorch {LIBTORCH_VERSION} ({}) is in {} ({}, {:.0} s): {}; {}",
        stamp.variant,
        target.display(),
        megabytes(bytes),
        began.elapsed().as_secs_f64(),
        seen.in_words(),
        stamp.trust.in_words(),
    );
    context.progress.event(Event::Done { text: &text });
}
