//! The headers that the NCCL plugin is built with. They come from the wheels on the package index, by
//! byte ranges and verified like libtorch: half a megabyte of the gigabyte that the wheels have.

use std::path::{Path, PathBuf};

use super::fetch_wheels::fetch_wheels;
use super::pinned_headers::{NCCL_HEADERS, NCCL_VERSION};
use super::sources::Source;
use super::wheel::{RECORDS, Wheel};
use super::wheel_set::WheelSet;
use crate::dirs::YoloDirs;
use crate::fetch::{FolderLock, Meter, ProgressEvent, Refusal, Staging};
use crate::setup::context::Context;
use crate::setup::error::{FailedSource, NcclError, SetupError};

/// Where the headers are kept.
fn folder(dirs: &YoloDirs) -> PathBuf {
    dirs.cache().join(format!("nccl-{NCCL_VERSION}-headers"))
}

/// Finds the headers or downloads them, and returns their folder.
///
/// # Errors
/// When no source has them, or the disk fails.
pub(crate) fn ensure_nccl_headers(context: &Context<'_>) -> Result<PathBuf, SetupError> {
    let target = folder(context.dirs);
    let include = target.join("include");
    if include.is_dir() {
        return Ok(include);
    }
    let lock = FolderLock::acquire(context.dirs.cache(), context.progress)?;
    Staging::sweep(&lock);
    // Another setup may have finished while this one waited for the lock.
    if include.is_dir() {
        return Ok(include);
    }
    let client = context.client()?;
    let mirror = context.mirror()?.map(Source::Mirror);
    let mut failed = Vec::new();
    for source in mirror.into_iter().chain([Source::Pip, Source::Uv]) {
        let text = format!("downloading the headers of NCCL {NCCL_VERSION} and CUDA");
        context.progress.event(ProgressEvent::Step { text: &text });
        let wheels = NCCL_HEADERS.map(Wheel::from).to_vec();
        let opened = source.ask_pinned(client, wheels, context.progress).and_then(|found| {
            WheelSet::open(client, found, false, &Meter::new(context.progress)).map_err(Refusal::from)
        });
        let refusal = match opened {
            Ok(wheels) => match install(&wheels, &lock, &target, context) {
                Ok(()) => return Ok(include),
                Err(SetupError::Fetch(error)) if !error.is_disk() => error.into(),
                Err(error) => return Err(error),
            },
            Err(refusal) => refusal,
        };
        failed.push(FailedSource { name: source.shown(), refusal });
    }
    Err(NcclError::NoHeaders { failed }.into())
}

fn install(
    wheels: &WheelSet,
    lock: &FolderLock,
    target: &Path,
    context: &Context<'_>,
) -> Result<(), SetupError> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut staging = Staging::open(lock, &name)?;
    // There is nothing worth resuming.
    staging.clear()?;
    if let Err(error) = fetch_wheels(wheels, &staging, context.progress) {
        staging.discard();
        return Err(error.into());
    }
    let records = staging.path().join(RECORDS);
    std::fs::remove_dir_all(&records).map_err(SetupError::file("remove", records))?;
    staging.publish(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;
    use crate::fetch::Silent;

    #[test]
    fn the_error_says_why_each_source_failed() {
        let home = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(home.path());
        let error = ensure_nccl_headers(&Context::new(&dirs, true, &Silent)).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("the headers for the NCCL plugin cannot be downloaded:\n"), "{message}");
        assert!(message.contains("the package index (pip): yolo is offline"), "{message}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--backend gloo")));
    }

    #[test]
    fn headers_that_are_there_are_not_downloaded_again() {
        let home = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(home.path());
        let include = folder(&dirs).join("include");
        std::fs::create_dir_all(&include).unwrap();
        assert_eq!(ensure_nccl_headers(&Context::new(&dirs, true, &Silent)).unwrap(), include);
    }
}
