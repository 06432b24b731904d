//! What the lookups through pip and uv share: the time limit, the location of a wheel, the credentials
//! for it, which are used for the download and never shown, and the most useful line of an error.

use std::process::Child;
use std::time::Duration;

use reqwest::Url;
use yolo_base::env::{
    PIP_EXTRA_INDEX_URL, PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_EXTRA_INDEX_URL, UV_INDEX, UV_INDEX_URL,
};

use crate::fetch::{Redacted, credentials_in_netrc};

/// Where a wheel is. The address may contain credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct WheelLocation {
    pub(super) address: String,
    pub(super) sha256: Option<String>,
}

/// How long pip or uv may be silent. They retry an unresponsive server within a minute or two, so longer
/// silence means that they hang.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_secs(180);

/// A child process that is killed when dropped.
pub(super) struct KillOnDrop(pub(super) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn hung() -> String {
    format!("it printed nothing for {} s and was stopped; run it by hand to see why", SILENCE_LIMIT.as_secs())
}

/// The file name in an address, in which `+` may be written as `%2B`.
pub(super) fn file_of(address: &str) -> String {
    let path = address.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+")
}

/// Adds the user names and passwords that pip omits from its report, from where pip has them.
pub(super) fn add_credentials(located: &mut [WheelLocation], configured: &[String]) {
    let variables = [PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, UV_INDEX_URL, UV_EXTRA_INDEX_URL];
    let variables = variables.into_iter().chain([UV_DEFAULT_INDEX, UV_INDEX]);
    let mut known: Vec<Url> = Vec::new();
    for text in variables.filter_map(|name| std::env::var(name).ok()).chain(configured.iter().cloned()) {
        known.extend(
            text.split_whitespace()
                // uv writes `name=https://…`.
                .filter_map(|word| Url::parse(word).ok().or_else(|| Url::parse(word.split_once('=')?.1).ok()))
                .filter(|url| !url.username().is_empty() || url.password().is_some()),
        );
    }
    for located in located {
        let Ok(mut url) = Url::parse(&located.address) else { continue };
        if !url.username().is_empty() || !matches!(url.scheme(), "http" | "https") {
            continue;
        }
        // Both setters fail only for addresses without a host, which were skipped above.
        if let Some(index) = known.iter().find(|index| {
            index.host() == url.host()
                && index.port_or_known_default() == url.port_or_known_default()
                && index.scheme() == url.scheme()
        }) {
            let _ = url.set_username(index.username());
            let _ = url.set_password(index.password());
        } else if let Some((login, password)) = url.host_str().and_then(credentials_in_netrc) {
            let _ = url.set_username(&login);
            let _ = url.set_password(Some(&password));
        }
        located.address = url.into();
    }
}

/// Parts of pip's warnings about an index that fails, which precede "no matching distribution".
const CAUSES: [&str; 9] = [
    "401 ",
    "403 ",
    "407 ",
    "404 Client",
    "Credentials",
    "ConnectionError",
    "ProxyError",
    "SSLError",
    "timed out",
];

/// Whether a line of pip's log says why an index failed.
pub(super) fn states_cause(line: &str) -> bool {
    CAUSES.iter().any(|cause| line.contains(cause))
}

/// The most useful line, without credentials, with the cause if an earlier line states it.
pub(super) fn last_error(text: &str) -> String {
    let cause = text.lines().find(|line| states_cause(line));
    let error = error_line(text);
    match cause.map(redacted) {
        Some(cause) if cause != error => format!("{error} ({cause})"),
        _ => error,
    }
}

fn error_line(text: &str) -> String {
    let line = text
        .lines()
        .rev()
        .find(|line| line.to_lowercase().contains("error"))
        .or_else(|| text.lines().rev().find(|line| !line.trim().is_empty()))
        .unwrap_or("it failed without a message");
    redacted(line)
}

fn redacted(line: &str) -> String {
    let words = line
        .split_whitespace()
        .map(|word| if word.contains("://") { Redacted::new(word).to_string() } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_an_index_go_to_its_own_host_only() {
        let place = |address: &str| WheelLocation { address: address.into(), sha256: None };
        let mut located = [place("https://index.example/t.whl"), place("https://other.example/t.whl")];
        add_credentials(&mut located, &["https://me:secret@index.example/simple".into()]);
        assert_eq!(located[0].address, "https://me:secret@index.example/t.whl");
        assert_eq!(located[1].address, "https://other.example/t.whl");
    }

    #[test]
    fn the_error_of_the_index_is_added_to_pips() {
        let text = "WARNING: 401 Error, Credentials not correct for https://me:secret@h/simple/torch/\n\
                    ERROR: No matching distribution found for torch==2.11.0\n";
        assert_eq!(
            last_error(text),
            "ERROR: No matching distribution found for torch==2.11.0 \
             (WARNING: 401 Error, Credentials not correct for https://h/simple/torch/)"
        );
    }

    #[test]
    fn pips_error_is_shown_without_secrets() {
        let text = "WARNING: x\nERROR: cannot reach https://me:secret@index.example/simple now\n\n";
        assert_eq!(last_error(text), "ERROR: cannot reach https://index.example/simple now");
    }
}
