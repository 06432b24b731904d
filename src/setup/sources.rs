//! Pictures and videos that `yolo predict` names by their address. Each run downloads them anew, because what is at
//! an address may have changed; they lie in the cache.

use std::fs;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::context::Context;
use super::error::SetupError;
use crate::fetch::{FetchError, FileRequest, FolderLock, Meter, ProgressEvent, Redacted, Sha256, download};

/// Downloads the file at an address, and returns where it is. It has the name that the address ends in.
///
/// # Errors
/// When the server does not send it, or the disk fails.
pub(crate) fn fetch_source(context: &Context<'_>, address: &str) -> Result<PathBuf, SetupError> {
    let shown = Redacted::new(address).to_string();
    if context.is_offline() {
        return Err(FetchError::Offline { url: shown }.into());
    }
    let last = shown.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let decoded = percent_decode_str(last).decode_utf8_lossy().replace(['/', '\\', '\0'], "_");
    let name = decoded.trim_start_matches('.');
    // Files of the same name at different addresses have folders of their own.
    let mut hash = Sha256::new();
    hash.update(address.as_bytes());
    let place = hex::encode(&hash.finish()[..8]);
    let folder = context.dirs.cache().join("sources").join(place);
    fs::create_dir_all(&folder).map_err(FetchError::disk("create", &folder))?;
    let _lock = FolderLock::acquire(&folder, context.progress)?;
    context.progress.event(ProgressEvent::Step { text: &format!("downloading {shown}") });
    let wanted =
        FileRequest { name: name.to_owned(), sources: vec![address.to_owned()], length: None, sha256: None };
    let part = folder.join(format!("{name}.part"));
    let done = download(context.client()?, &wanted, &part, &Meter::new(context.progress))?;
    let target = folder.join(name);
    fs::rename(&done.path, &target).map_err(FetchError::disk("write", &target))?;
    context.progress.event(ProgressEvent::Done { text: &format!("downloaded {shown}") });
    Ok(target)
}
