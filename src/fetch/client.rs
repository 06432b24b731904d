//! The HTTP client, how patient it is, and addresses as they may be shown.
//! Proxies are those of `HTTPS_PROXY` and its kin, certificates those of the system or of
//! `SSL_CERT_FILE`. The time-out is for a connection on which nothing comes, so a slow line may take
//! as long as it needs.

use std::time::Duration;

use reqwest::Url;
use reqwest::blocking::Client as Http;

use super::error::FetchError;
use super::error_chain::chain;

/// How patient a client is.
#[derive(Debug, Clone)]
pub struct Policy {
    /// A connection on which no byte comes for this long is given up.
    pub stall: Duration,
    /// Attempts in a row without a new byte before the download fails.
    pub attempts: u32,
    /// The first pause; each following one is twice as long.
    pub first_pause: Duration,
    /// No pause of our own choice is longer.
    pub longest_pause: Duration,
    /// A server that asks for a longer wait (`Retry-After`) than this is not waited for.
    pub longest_wait: Duration,
    /// Connections at once for one large file.
    pub connections: usize,
    /// Nothing may be fetched: every request fails at once and says so.
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

/// Whether this is an address that a client can ask.
pub fn is_http(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// An HTTP client; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) http: Http,
    pub(super) policy: Policy,
    /// Why no `https` address can be asked, where none can.
    pub(super) without_https: Option<String>,
}

impl Client {
    /// A client with the system's certificates and proxies. An empty system has no certificates: a
    /// mirror by `http` serves it all the same, and an `https` address fails when it is asked.
    ///
    /// # Errors
    /// When a proxy variable is malformed.
    pub fn new(policy: Policy) -> Result<Self, FetchError> {
        // A second installation is refused and harmless: the first one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Http::builder()
                .user_agent(concat!("yolo/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(policy.stall)
                // In the blocking client this bounds the wait for the headers and each single read.
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

    /// Whether it was told to fetch nothing.
    pub fn is_offline(&self) -> bool {
        self.policy.offline
    }
}
