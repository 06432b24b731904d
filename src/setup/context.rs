//! What every step of the setup needs: where things go, whether it may fetch, and who listens.

use std::path::Path;
use std::sync::OnceLock;

use crate::dirs::YoloDirs;
use crate::fetch::{Client, FetchError, Policy, Progress, Redacted};
use crate::setup::error::SetupError;

/// The surroundings of a setup.
pub struct Context<'a> {
    /// Where things go.
    pub dirs: &'a YoloDirs,
    /// Who hears what is done.
    pub progress: &'a dyn Progress,
    offline: bool,
    /// Made when it is first needed: reading all certificates of the system takes time.
    client: OnceLock<Client>,
}

impl<'a> Context<'a> {
    /// Surroundings in which something may be fetched unless `offline`.
    pub fn new(dirs: &'a YoloDirs, offline: bool, progress: &'a dyn Progress) -> Self {
        Self { dirs, progress, offline, client: OnceLock::new() }
    }

    /// Whether nothing may be fetched.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// The one client of this setup.
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

    /// The address or folder that `YOLO_MIRROR` names.
    ///
    /// # Errors
    /// When it names neither: a user who sets it does not want to be served by somebody else.
    pub fn mirror(&self) -> Result<Option<String>, SetupError> {
        let mirror = std::env::var("YOLO_MIRROR").unwrap_or_default().trim().to_owned();
        if mirror.is_empty() {
            return Ok(None);
        }
        let wrong =
            |why: &'static str| Err(SetupError::Mirror { mirror: Redacted::new(&mirror).to_string(), why });
        // The kind of an address is the same in small and in large letters.
        let kind = mirror.split_once("://").map(|(kind, rest)| (kind.to_ascii_lowercase(), rest));
        match kind.as_ref().map(|(kind, rest)| (kind.as_str(), *rest)) {
            Some(("http" | "https", rest)) if rest.contains(['?', '#']) => {
                wrong("behind a `?` or `#` no file name can follow")
            }
            Some(("http" | "https", rest)) if !rest.is_empty() => Ok(Some(mirror)),
            Some(("file", folder)) if Path::new(folder).is_dir() => Ok(Some(mirror)),
            Some(("file", _)) => wrong("there is no such folder"),
            Some(_) => wrong("only http, https and file are understood"),
            None if Path::new(&mirror).is_dir() => {
                let absolute = std::path::absolute(&mirror).map_err(SetupError::file("find", &mirror))?;
                Ok(Some(absolute.display().to_string()))
            }
            None => wrong("there is no such folder, and it is no address"),
        }
    }
}
