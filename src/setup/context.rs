//! What every step of setup needs: the installation's directories, the HTTP client and the progress.

use std::path::Path;
use std::sync::OnceLock;

use yolo_base::env::YOLO_MIRROR;

use crate::dirs::YoloDirs;
use crate::fetch::{Client, FetchError, Policy, Progress, Redacted};
use crate::setup::error::SetupError;

/// The context of a setup.
pub struct Context<'a> {
    /// Where files are installed.
    pub dirs: &'a YoloDirs,
    /// Receives progress events.
    pub progress: &'a dyn Progress,
    offline: bool,
    /// Created on first use: reading the system's certificates takes time.
    client: OnceLock<Client>,
}

impl<'a> Context<'a> {
    /// A context that may download, unless `offline`.
    pub fn new(dirs: &'a YoloDirs, offline: bool, progress: &'a dyn Progress) -> Self {
        Self { dirs, progress, offline, client: OnceLock::new() }
    }

    /// Whether downloads are disabled.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// The HTTP client, shared by all steps.
    ///
    /// # Errors
    /// When no certificate store can be read or a proxy variable is malformed.
    pub fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::new(Policy { offline: self.offline, ..Policy::default() })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The URL or folder in `YOLO_MIRROR`.
    ///
    /// # Errors
    /// When it is neither. Ignoring it would download from servers that the user wanted to avoid.
    pub fn mirror(&self) -> Result<Option<String>, SetupError> {
        let mirror = std::env::var(YOLO_MIRROR).unwrap_or_default().trim().to_owned();
        if mirror.is_empty() {
            return Ok(None);
        }
        let wrong =
            |why: &'static str| Err(SetupError::Mirror { mirror: Redacted::new(&mirror).to_string(), why });
        // URL schemes are case-insensitive.
        let kind = mirror.split_once("://").map(|(kind, rest)| (kind.to_ascii_lowercase(), rest));
        match kind.as_ref().map(|(kind, rest)| (kind.as_str(), *rest)) {
            Some(("http" | "https", rest)) if rest.contains(['?', '#']) => {
                wrong("the URL must not contain `?` or `#`")
            }
            Some(("http" | "https", rest)) if !rest.is_empty() => Ok(Some(mirror)),
            Some(("file", folder)) if Path::new(folder).is_dir() => Ok(Some(mirror)),
            Some(("file", _)) => wrong("the folder does not exist"),
            Some(_) => wrong("only http, https and file URLs are supported"),
            None if Path::new(&mirror).is_dir() => {
                let absolute = std::path::absolute(&mirror).map_err(SetupError::file("find", &mirror))?;
                Ok(Some(absolute.display().to_string()))
            }
            None => wrong("it is neither an existing folder nor a URL"),
        }
    }
}
