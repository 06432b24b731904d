//! The HTTP client and its policy of timeouts and retries. Proxies come from `HTTPS_PROXY` and its
//! relatives, certificates from the system or `SSL_CERT_FILE`. The timeout applies to a connection that
//! delivers nothing, so a slow one may take as long as it needs.

use std::time::Duration;

use reqwest::Url;
use reqwest::blocking::Client as Http;

use super::error::FetchError;
use super::error_chain::chain;

/// Timeouts, retries and limits of a client.
#[derive(Debug, Clone)]
pub struct Policy {
    /// A connection that delivers no byte for this long is closed.
    pub stall: Duration,
    /// Consecutive attempts without a new byte before the download fails.
    pub attempts: u32,
    /// The pause before the first retry. Each following one is twice as long.
    pub first_pause: Duration,
    /// The longest pause, unless the server asks for more.
    pub longest_pause: Duration,
    /// The longest wait that a server may ask for (`Retry-After`).
    pub longest_wait: Duration,
    /// Parallel connections for one large file.
    pub connections: usize,
    /// Whether every request fails immediately.
    pub offline: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            attempts: 6,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            longest_wait: Duration::from_secs(120),
            connections: 8,
            offline: false,
        }
    }
}

/// Whether this is an http or https URL.
pub fn is_http(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// An HTTP client; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) http: Http,
    pub(super) policy: Policy,
    /// Why https does not work, if it does not.
    pub(super) without_https: Option<String>,
}

impl Client {
    /// A client with the system's certificates and proxies. A minimal system has no certificates: then http
    /// mirrors work, and https addresses fail when they are requested.
    ///
    /// # Errors
    /// When a proxy variable is malformed.
    pub fn new(policy: Policy) -> Result<Self, FetchError> {
        // Fails harmlessly if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Http::builder()
                .user_agent(concat!("yolo/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(policy.stall)
                // In the blocking client, this limits the wait for the headers and for each read.
                .timeout(policy.stall)
        };
        let (http, without_https) = match builder().build() {
            Ok(http) => (http, None),
            Err(error) => {
                let why = chain(&error);
                let plain = builder().tls_certs_only([]).build();
                (plain.map_err(|_| FetchError::Client { why: why.clone() })?, Some(why))
            }
        };
        Ok(Self { http, policy, without_https })
    }

    /// Whether downloads are disabled.
    pub fn is_offline(&self) -> bool {
        self.policy.offline
    }
}
