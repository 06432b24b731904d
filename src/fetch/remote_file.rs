//! A file on a server: range requests, validators, and which failures are transient.
//!
//! Invariant: two versions of a file are never mixed. Every response is compared with the first one, and
//! every request carries a strong validator (`If-Range`) once it is known.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::blocking::Response;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, DATE, ETAG, HeaderMap, HeaderName, IF_RANGE,
    LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use reqwest::{StatusCode, Url};
use yolo_base::env::{ALL_PROXY, HTTP_PROXY, HTTPS_PROXY, all_proxy, http_proxy, https_proxy};

use super::client::{Client, Policy};
use super::error::FetchError;
use super::error_chain::chain;
use super::progress::Progress;
use super::redacted::Redacted;
use super::retry::{AttemptError, Retries};

/// A date is a strong validator only if the file had not changed for this long before the response
/// (RFC 9110, 8.8.2.2).
const STRONG_AFTER: Duration = Duration::from_secs(60);

/// A file on a server, and what is known of it so far.
#[derive(Debug, Clone)]
pub(super) struct RemoteFile {
    client: Client,
    url: Url,
    pub(super) shown: Redacted,
    /// From the first response. Each later one is compared with it.
    identity: Arc<Mutex<Option<Identity>>>,
}

/// What identifies a version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) length: u64,
    /// A strong ETag, or a date that counts as strong.
    pub(super) validator: Option<String>,
}

/// The response to a range request.
pub(super) enum Answer {
    Part(Response),
    Whole(Response),
}

impl RemoteFile {
    pub(super) fn new(client: Client, url: &str) -> Result<Self, FetchError> {
        let shown = Redacted::new(url);
        if client.policy.offline {
            return Err(FetchError::Offline { url: shown.to_string() });
        }
        let bad = |why: String| FetchError::Address { url: shown.to_string(), why };
        let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad(format!("{} is not http or https", parsed.scheme())));
        }
        if let (Some(why), "https") = (&client.without_https, parsed.scheme()) {
            return Err(FetchError::Client { why: why.clone() });
        }
        Ok(Self { client, url: parsed, shown, identity: Arc::default() })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.client.policy
    }

    /// The version of the file, once known.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests one byte to learn the length and the validator. `None`: the server ignores ranges.
    pub(super) fn probe(&self, progress: &dyn Progress) -> Result<Option<Identity>, FetchError> {
        let mut tries = Retries::new(&self.shown, self.policy());
        loop {
            match self.request("bytes=0-0") {
                Ok(Answer::Part(response)) => match self.placed(&response) {
                    Err(FetchError::NoRanges { .. }) => return Ok(None),
                    placed => return placed.map(|_| self.identity()),
                },
                Ok(Answer::Whole(_)) => return Ok(None),
                // An empty file has no first byte.
                Err(AttemptError::Final(FetchError::Status { status: 400 | 416 | 501, .. })) => {
                    return Ok(None);
                }
                Err(attempt) => tries.failed(attempt, progress)?,
            }
        }
    }

    pub(super) fn no_ranges(&self) -> FetchError {
        FetchError::NoRanges { url: self.shown.to_string() }
    }

    /// Sends one request. `range` is the header's value, or empty for the whole file.
    pub(super) fn request(&self, range: &str) -> Result<Answer, AttemptError> {
        // A compressed transfer would shift every offset.
        let mut request = self.client.http.get(self.url.clone()).header(ACCEPT_ENCODING, "identity");
        let known = self.identity();
        if !range.is_empty() {
            request = request.header(RANGE, range);
            if let Some(validator) = known.as_ref().and_then(|known| known.validator.as_ref()) {
                request = request.header(IF_RANGE, validator);
            }
        }
        let response = request.send().map_err(|error| self.classify(&error))?;
        let status = response.status();
        // Some servers report the compression of the archive itself as a transfer encoding.
        let is_compressed = [".gz", ".tgz"].iter().any(|end| self.url.path().ends_with(end));
        if let Some(how) = header(response.headers(), CONTENT_ENCODING).filter(|how| *how != "identity")
            && !is_compressed
        {
            let why = format!("the server compressed it ({how}) although it was asked not to");
            return Err(AttemptError::Final(FetchError::Refused { url: self.shown.to_string(), why }));
        }
        match status {
            StatusCode::PARTIAL_CONTENT => Ok(Answer::Part(response)),
            StatusCode::OK => {
                // With If-Range, the whole file as the response means that it changed.
                if let (Some(length), Some(_)) = (response.content_length(), &known) {
                    let now = Identity { length, validator: validator(response.headers()) };
                    self.same_file(now).map_err(AttemptError::Final)?;
                }
                Ok(Answer::Whole(response))
            }
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(AttemptError::Transient {
                why: format!("the server returned status {status}"),
                after: retry_after(response.headers(), SystemTime::now()),
            }),
            _ => Err(AttemptError::Final(FetchError::Status {
                url: self.shown.to_string(),
                status: status.as_u16(),
                hint: status_hint(status),
            })),
        }
    }

    fn classify(&self, error: &reqwest::Error) -> AttemptError {
        let mut why = chain(error);
        // After a redirect, the failing host is another one.
        if let Some(asked) =
            error.url().filter(|asked| asked.host() != self.url.host() && !error.is_redirect())
        {
            why = format!("{why} at {}, the target of a redirect", Redacted::new(asked.as_str()));
        }
        let refused =
            |why: String| AttemptError::Final(FetchError::Refused { url: self.shown.to_string(), why });
        if error.is_redirect() {
            refused(format!("too many redirects: {why}"))
        } else if why.contains("CaUsedAsEndEntity") {
            refused(
                "its certificate belongs to a certificate authority and not to a server; its owner must issue one for the server"
                    .to_owned(),
            )
        } else if why.contains("certificate") {
            refused(format!(
                "{why}; if a proxy issues its own certificates, set SSL_CERT_FILE to its CA certificate"
            ))
        } else if why.contains("Name or service not known") || why.contains("No address associated") {
            // DNS answered that there is no such host. An unreachable DNS server is another error.
            refused(format!("{why}; check the address, and HTTPS_PROXY if this network needs a proxy"))
        } else if error.is_builder() || error.is_request() && PERMANENT.iter().any(|part| why.contains(part))
        {
            refused(why)
        } else if let (true, Some(proxy)) = (error.is_connect(), proxy_of(self.url.scheme())) {
            AttemptError::transient(format!("{why}; {proxy}"))
        } else {
            AttemptError::transient(why)
        }
    }

    /// Start and total length from `Content-Range`, compared with earlier responses.
    pub(super) fn placed(&self, response: &Response) -> Result<(u64, u64), FetchError> {
        let text = header(response.headers(), CONTENT_RANGE);
        // A range without a total length is useless.
        let parsed = text.and_then(parse_content_range).ok_or_else(|| self.no_ranges())?;
        self.same_file(Identity { length: parsed.1, validator: validator(response.headers()) })?;
        Ok(parsed)
    }

    /// Remembers the first identity and rejects another one.
    pub(super) fn same_file(&self, now: Identity) -> Result<(), FetchError> {
        let mut known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = known.as_ref() else {
            *known = Some(now);
            return Ok(());
        };
        let what = if before.length != now.length {
            format!("{} bytes, then {}", before.length, now.length)
        } else if before.validator.is_some() && now.validator.is_some() && before.validator != now.validator {
            "another ETag or date".to_owned()
        } else {
            return Ok(());
        };
        Err(FetchError::Changed { url: self.shown.to_string(), what })
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The strongest validator of a response, in the form that `If-Range` needs.
pub(super) fn validator(headers: &HeaderMap) -> Option<String> {
    // A weak one (W/"…") does not guarantee the same bytes.
    if let Some(tag) = header(headers, ETAG) {
        return (!tag.starts_with("W/")).then(|| tag.to_owned());
    }
    let modified = header(headers, LAST_MODIFIED)?;
    let changed = httpdate::parse_http_date(modified).ok()?;
    let answered = httpdate::parse_http_date(header(headers, DATE)?).ok()?;
    let age = answered.duration_since(changed).ok()?;
    (age >= STRONG_AFTER).then(|| modified.to_owned())
}

/// `bytes 0-99/1234` → (0, 1234).
fn parse_content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// The wait that the server asks for, in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = header(headers, RETRY_AFTER)?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

fn status_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; check the credentials of your index, mirror or proxy"
        }
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            "; add the proxy's user name and password to HTTPS_PROXY"
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => "; the file does not exist",
        _ => "",
    }
}

/// The proxy for a scheme and the variable that sets it.
fn proxy_of(scheme: &str) -> Option<String> {
    let own = if scheme == "https" { [HTTPS_PROXY, https_proxy] } else { [HTTP_PROXY, http_proxy] };
    own.into_iter().chain([ALL_PROXY, all_proxy]).find_map(|name| {
        let proxy = std::env::var(name).ok().filter(|proxy| !proxy.is_empty())?;
        Some(format!("{name} sets the proxy {}", Redacted::new(&proxy)))
    })
}

/// Parts of error messages that are permanent.
const PERMANENT: [&str; 4] =
    ["invalid", "unsupported scheme", "message head is too large", "InvalidContentType"];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn content_range_is_read() {
        assert_eq!(parse_content_range("bytes 5-9/100"), Some((5, 100)));
        assert_eq!(parse_content_range("bytes */100"), None);
        assert_eq!(parse_content_range("bytes 5-9/*"), None);
    }

    #[test]
    fn only_strong_validators_are_used() {
        let old = (LAST_MODIFIED, "Sat, 21 Nov 2026 10:00:00 GMT");
        let date = (DATE, "Sat, 21 Nov 2026 10:02:00 GMT");
        assert_eq!(validator(&headers(&[(ETAG, "\"a\"")])), Some("\"a\"".into()));
        assert_eq!(validator(&headers(&[(ETAG, "W/\"a\""), old.clone(), date.clone()])), None);
        assert_eq!(validator(&headers(&[old.clone(), date])), Some(old.1.into()));
        let just_now = (DATE, "Sat, 21 Nov 2026 10:00:20 GMT");
        assert_eq!(validator(&headers(&[old, just_now])), None);
    }

    #[test]
    fn a_wait_is_read_in_seconds_and_as_a_date() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 10:00:00 GMT").unwrap();
        let wait = |text: &str| retry_after(&headers(&[(RETRY_AFTER, text)]), now);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sat, 21 Nov 2026 10:01:00 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(wait("Sat, 21 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }
}
