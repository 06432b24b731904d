//! What every step of the setup needs: where things go, whether it may fetch, and who listens.

use std::sync::OnceLock;

use crate::fetch::{Client, FetchError, Policy, Progress};
use crate::places::Places;

/// The surroundings of a setup.
pub struct Context<'a> {
    /// Where things go.
    pub places: &'a Places,
    /// Who hears what is done.
    pub progress: &'a dyn Progress,
    offline: bool,
    /// Made when it is first needed: reading all certificates of the system takes time.
    client: OnceLock<Client>,
}

impl<'a> Context<'a> {
    /// Surroundings in which something may be fetched unless `offline`.
    pub fn new(places: &'a Places, offline: bool, progress: &'a dyn Progress) -> Self {
        Self { places, progress, offline, client: OnceLock::new() }
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
    pub fn mirror(&self) -> Option<String> {
        std::env::var("YOLO_MIRROR").ok().filter(|mirror| !mirror.trim().is_empty())
    }
}
