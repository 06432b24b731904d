//! Whether the libtorch that a run needs is installed, and if not, the first source that has it. A
//! [`PendingLibtorch`] then downloads it, verifies it, runs the smoke test and publishes it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use yolo_base::format;

use super::install::Job;
use super::installation::{A_HEADER, LIBTORCH_VERSION, Libtorch, root_of};
use super::installed::{SELECTED, find, in_use, select};
use super::smoke_test::{self, SmokeTest};
use super::sources::Source;
use super::stamp::Stamp;
use super::variant::{Chosen, Variant};
use super::wheel_set::WheelSet;
use crate::fetch::{FolderLock, Meter, ProgressEvent, Refusal, Staging, staging_dir, tree_and_parts};
use crate::setup::context::Context;
use crate::setup::error::{FailedSource, LibtorchError, SetupError};
use crate::setup::noted::noted;
use crate::undo::{Entry, Step};

/// Whether libtorch is installed.
#[derive(Debug)]
pub enum LibtorchStatus {
    /// It is installed and complete.
    Installed(Libtorch),
    /// It can be downloaded.
    Missing(Box<PendingLibtorch>),
}

/// An installation that has a source and has not begun.
pub struct PendingLibtorch {
    chosen: Chosen,
    headers: bool,
    target: PathBuf,
    source: &'static str,
    wheels: WheelSet,
    /// The sources to try if this one fails, in reverse order.
    other_sources: Vec<Source>,
    failed: Vec<FailedSource>,
}

impl std::fmt::Debug for PendingLibtorch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLibtorch").field("chosen", &self.chosen).field("source", &self.source).finish()
    }
}

/// Finds libtorch or installs it, with headers if the trainer has to be built.
///
/// # Errors
/// As [`libtorch_status`] and [`PendingLibtorch::run`].
pub fn ensure_libtorch(
    context: &Context<'_>,
    choose: impl FnOnce() -> Chosen,
    headers: bool,
) -> Result<Libtorch, SetupError> {
    match libtorch_status(context, None, choose, headers)? {
        LibtorchStatus::Installed(libtorch) => Ok(libtorch),
        LibtorchStatus::Missing(pending) => pending.run(context),
    }
}

/// Looks for libtorch and, if it is missing, for a source that has it. `chosen` is what the user asked
/// for; without it, the variant that runs already use, otherwise the result of `choose`.
///
/// # Errors
/// When `LIBTORCH` names something else or no source has the variant.
pub fn libtorch_status(
    context: &Context<'_>,
    chosen: Option<Chosen>,
    choose: impl FnOnce() -> Chosen,
    headers: bool,
) -> Result<LibtorchStatus, SetupError> {
    if let Some(found) = find(context.dirs, chosen.as_ref().map(|chosen| chosen.variant), headers)? {
        return Ok(LibtorchStatus::Installed(found));
    }
    supported_platform()?;
    let chosen = match (chosen, in_use(context.dirs)) {
        (Some(chosen), _) => chosen,
        // A repair keeps the variant that was chosen before.
        (None, Some(variant)) => Chosen::named(variant),
        (None, None) => choose(),
    };
    if let Some(found) = find(context.dirs, Some(chosen.variant), headers)? {
        return Ok(LibtorchStatus::Installed(found));
    }
    let target = root_of(context.dirs, chosen.variant);
    // A repair keeps existing headers, so that a checkout can still be built.
    let headers = headers || target.join(A_HEADER).exists();
    let mut other_sources = Source::of(chosen.variant, context.mirror()?);
    other_sources.reverse();
    let mut failed = Vec::new();
    let (source, wheels) = next_source(context, chosen.variant, headers, &mut other_sources, &mut failed)?;
    Ok(LibtorchStatus::Missing(Box::new(PendingLibtorch {
        chosen,
        headers,
        target,
        source,
        wheels,
        other_sources,
        failed,
    })))
}

/// The first source that has all wheels. Sources are taken from the end of the list.
fn next_source(
    context: &Context<'_>,
    variant: Variant,
    headers: bool,
    sources: &mut Vec<Source>,
    failed: &mut Vec<FailedSource>,
) -> Result<(&'static str, WheelSet), SetupError> {
    let client = context.client()?;
    let what = format!("libtorch {LIBTORCH_VERSION} ({})", variant.name());
    while let Some(source) = sources.pop() {
        let text = format!("looking for {what} in {}", source.shown());
        context.progress.event(ProgressEvent::Step { text: &text });
        let found = source.ask(client, variant, context.progress);
        let wheels = found.and_then(|found| {
            WheelSet::open(client, found, headers, &Meter::new(context.progress)).map_err(Refusal::from)
        });
        match wheels {
            Ok(wheels) => return Ok((source.shown(), wheels)),
            Err(refusal) => {
                if let (Source::Mirror(_), false) = (&source, sources.is_empty()) {
                    let text =
                        format!("warning: YOLO_MIRROR failed: {}; trying the next source", refusal.why);
                    context.progress.event(ProgressEvent::Note { text: &text });
                }
                failed.push(FailedSource { name: source.shown(), refusal });
            }
        }
    }
    Err(LibtorchError::NoSource { variant: variant.name(), failed: std::mem::take(failed) }.into())
}

impl PendingLibtorch {
    /// The variant and why it was chosen.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// The name of the source.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The addresses or paths of the wheels, without credentials.
    pub fn addresses(&self) -> Vec<String> {
        self.wheels.opened.iter().map(|one| one.archive.shown()).collect()
    }

    /// Whether headers are included.
    pub fn headers(&self) -> bool {
        self.headers
    }

    /// Bytes to download, not counting what an earlier run has; `None` if a server does not report
    /// sizes in advance.
    pub fn transfer(&self) -> Option<u64> {
        let (tree, parts) = tree_and_parts(&staging_dir(&self.target));
        Some(self.wheels.transfer()?.saturating_sub(self.wheels.kept((&tree, &parts))))
    }

    /// Bytes of temporary files on the disk during the installation.
    pub fn temporary(&self) -> u64 {
        self.wheels.kept_meanwhile()
    }

    /// Bytes on the disk afterwards.
    pub fn unpacked(&self) -> u64 {
        self.wheels.unpacked()
    }

    /// Where it will be installed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Downloads and installs it, from this source or the next ones.
    ///
    /// # Errors
    /// When no source can serve it, the disk fails, or the result does not load.
    pub fn run(self, context: &Context<'_>) -> Result<Libtorch, SetupError> {
        let variant = self.chosen.variant;
        let what = format!(
            "installed libtorch {LIBTORCH_VERSION} ({}) in {}",
            variant.name(),
            self.target.display()
        );
        let (target, selected) = (self.target.clone(), context.dirs.libtorch().join(SELECTED));
        let describe = |entry: &mut Entry| {
            entry.file(&selected, Some(variant.name().as_bytes()))?;
            entry.step(Step::Download { path: target, sha256: None });
            Ok(())
        };
        noted((context.dirs, context.progress), what, describe, || self.install(context))
    }

    fn install(mut self, context: &Context<'_>) -> Result<Libtorch, SetupError> {
        let variant = self.chosen.variant;
        let began = Instant::now();
        let lock = FolderLock::acquire(&context.dirs.libtorch(), context.progress)?;
        Staging::sweep(&lock);
        // Another setup may have finished while this one waited for the lock.
        if Stamp::check(&self.target, self.headers).is_ok() {
            select(context.dirs, variant)?;
            return Ok(Libtorch::at(self.target, variant));
        }
        let name = self.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        loop {
            let text = format!("downloading libtorch {LIBTORCH_VERSION} ({})", variant.name());
            context.progress.event(ProgressEvent::Step { text: &text });
            let job =
                Job { wheels: &self.wheels, variant, headers: self.headers, progress: context.progress };
            match job.run(Staging::open(&lock, &name)?) {
                Ok(staging) => {
                    let result = smoke_test::run_in_child(&staging.path().join("lib"))?;
                    staging.publish(&self.target)?;
                    select(context.dirs, variant)?;
                    report(&self.target, &result, began, context);
                    return Ok(Libtorch::at(self.target, variant));
                }
                Err(SetupError::Fetch(error)) if !error.is_disk() => {
                    self.failed.push(FailedSource { name: self.source, refusal: error.into() });
                }
                Err(error) => return Err(error),
            }
            let (sources, failed) = (&mut self.other_sources, &mut self.failed);
            (self.source, self.wheels) = next_source(context, variant, self.headers, sources, failed)?;
        }
    }
}

fn supported_platform() -> Result<(), SetupError> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Ok(());
    }
    Err(LibtorchError::Platform(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)).into())
}

fn report(target: &Path, result: &SmokeTest, began: Instant, context: &Context<'_>) {
    let Ok(stamp) = Stamp::check(target, false) else { return };
    let size = stamp.files.iter().map(|file| file.size).sum();
    let text = format!(
        "installed libtorch {LIBTORCH_VERSION} ({}) in {} ({}, {}): {}; {}",
        stamp.variant,
        target.display(),
        format::bytes(size),
        format::duration(began.elapsed().as_secs_f64()),
        result.describe(),
        stamp.trust.describe(),
    );
    context.progress.event(ProgressEvent::Done { text: &text });
}
