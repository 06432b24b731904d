//! What pip and uv have in common as one asks them: how long they are waited for, the place of a wheel
//! and the credentials for it, which are used for the download and never shown, and the line that
//! tells most when they fail.

use std::process::Child;
use std::time::Duration;

use reqwest::Url;

use crate::fetch::{Redacted, credentials_in_netrc};

/// Where a wheel lies. The address may hold credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct WheelLocation {
    pub(super) address: String,
    pub(super) sha256: Option<String>,
}

/// pip and uv give up a server that does not answer, and try again, within a minute or two. One that
/// says nothing for longer hangs.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_secs(180);

/// A child that does not outlive the question.
pub(super) struct KillOnDrop(pub(super) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself in the meantime.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn hung() -> String {
    format!("it said nothing for {} s and was ended; try it by hand", SILENCE_LIMIT.as_secs())
}

/// The file's name in an address: `+` may be written as `%2B`.
pub(super) fn file_of(address: &str) -> String {
    let path = address.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+")
}

/// pip leaves user and password out of its report: they are taken from where pip had them.
pub(super) fn add_credentials(located: &mut [WheelLocation], configured: &[String]) {
    let variables = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"];
    let variables = variables.into_iter().chain(["UV_DEFAULT_INDEX", "UV_INDEX"]);
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
        // Both setters fail only for addresses without a host, which have been left out.
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

/// What pip warns of when an index refuses or cannot be reached, before it says that it found nothing.
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

/// Whether a line of pip's tells why an index did not serve.
pub(super) fn states_cause(line: &str) -> bool {
    CAUSES.iter().any(|cause| line.contains(cause))
}

/// The line that tells most, without credentials, and the cause where pip tells it in an earlier one.
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
        .unwrap_or("it failed and said nothing");
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
    fn what_an_index_said_stands_beside_what_pip_made_of_it() {
        let text = "WARNING: 401 Error, Credentials not correct for https://me:secret@h/simple/torch/\n\
                    ERROR: No matching distribution found for torch==2.11.0\n";
        assert_eq!(
            last_error(text),
            "ERROR: No matching distribution found for torch==2.11.0 \
             (WARNING: 401 Error, Credentials not correct for https://h/simple/torch/)"
        );
    }

    #[test]
    fn the_reason_of_pip_is_shown_without_secrets() {
        let text = "WARNING: x\nERROR: cannot reach https://me:secret@index.example/simple now\n\n";
        assert_eq!(last_error(text), "ERROR: cannot reach https://index.example/simple now");
    }
}
