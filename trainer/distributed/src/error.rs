//! The error of this crate: what it was doing, libtorch's message without C++ details, and which lost or
//! slow ranks were the cause.

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of failure that a training loop has to distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A peer did not respond within the timeout: it hangs, is stopped, or never started.
    Timeout,
    /// The connection to a peer is broken, because its process ended.
    PeerLost,
    /// Anything else, such as a wrong shape or argument, or no memory.
    Other,
}

/// A call into libtorch that failed.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {message}")]
pub struct Error {
    kind: ErrorKind,
    action: String,
    message: String,
    ranks: Vec<usize>,
}

impl Error {
    /// An error with libtorch's message.
    pub(crate) fn from_libtorch(action: impl Into<String>, text: &str) -> Self {
        Self { kind: classify(text), action: action.into(), message: clean(text), ranks: Vec::new() }
    }

    /// An error with a message of this crate.
    pub(crate) fn new(kind: ErrorKind, action: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, action: action.into(), message: message.into(), ranks: Vec::new() }
    }

    /// An error that tch returned during `action`. A collective inside `f_backward` fails this way.
    #[must_use]
    pub fn from_tch(action: impl Into<String>, error: &tch::TchError) -> Self {
        match error {
            tch::TchError::Torch(text) => Self::from_libtorch(action, text),
            other => Self::new(ErrorKind::Other, action, other.to_string()),
        }
    }

    /// Names the ranks that are the cause; the message tells why already.
    pub(crate) fn with_ranks(mut self, ranks: Vec<usize>) -> Self {
        self.ranks = ranks;
        self
    }

    /// Names the ranks that are the cause, and puts the reason before libtorch's message.
    pub(crate) fn due_to(mut self, ranks: Vec<usize>, reason: &str, lost: bool) -> Self {
        self.message = format!("{reason} ({})", self.message);
        self.ranks = ranks;
        self.kind = if lost { ErrorKind::PeerLost } else { self.kind };
        self
    }

    /// An error that a peer caused whatever its text says: a time-out, unless it says more.
    pub(crate) fn into_failure_of_peer(mut self) -> Self {
        if self.kind == ErrorKind::Other {
            self.kind = ErrorKind::Timeout;
        }
        self
    }

    /// Puts a larger action before that of the error.
    pub(crate) fn within(mut self, action: &str) -> Self {
        self.action = format!("{action}: {}", self.action);
        self
    }

    /// Whether a lost or slow peer was the cause.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The ranks that are the cause, where they are known: those that are lost, late, stopped or in another
    /// call. Empty otherwise.
    #[must_use]
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The reason: which ranks are the cause, if they are known, and libtorch's message without source
    /// locations and backtrace. One line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Finds the kind by the text, because the headers in the wheel lack gloo's exception types and tch
/// passes only the text on.
fn classify(text: &str) -> ErrorKind {
    const TIMEOUT: &[&str] = &["timed out", "time out", "timeout"];
    const PEER_LOST: &[&str] = &[
        "connection closed by peer",
        "connection reset by peer",
        "connection refused",
        "connection was likely closed",
        "broken pipe",
        "socket closed",
        "failed to recv, got 0 bytes",
        "failed to send",
        // NCCL's words for ncclRemoteError.
        "remote process exiting",
    ];
    let text = text.to_lowercase();
    let contains = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    // If the text names both, the peer is lost: waiting for a dead peer also ends in a timeout.
    if contains(PEER_LOST) {
        ErrorKind::PeerLost
    } else if contains(TIMEOUT) {
        ErrorKind::Timeout
    } else {
        ErrorKind::Other
    }
}

/// The first line that is not empty, without gloo's prefix `[file.cc:12]` and without c10's note of
/// where the exception was raised.
fn clean(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
    let line = line.split("Exception raised from ").next().unwrap_or(line).trim_end();
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((location, rest)) if is_source_location(location) => rest.trim().to_owned(),
        _ => line.to_owned(),
    }
}

/// Whether this has the form `path/file.cc:123`.
fn is_source_location(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(file, line)| {
        !line.is_empty()
            && line.bytes().all(|byte| byte.is_ascii_digit())
            && [".cc", ".cpp", ".h", ".hpp"].iter().any(|end| file.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Modeled on gloo's messages, not recorded. `tests/failures.rs` checks libtorch's real messages,
    // with peers that are killed, stopped, or never join.
    const CLOSED: &str = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:47314";
    const LATE: &str = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete";

    #[test]
    fn a_closed_connection_is_a_lost_peer() {
        assert_eq!(classify(CLOSED), ErrorKind::PeerLost);
        assert_eq!(clean(CLOSED), "Connection closed by peer [127.0.0.1]:47314");
    }

    #[test]
    fn a_slow_peer_is_a_timeout() {
        assert_eq!(classify(LATE), ErrorKind::Timeout);
        assert_eq!(clean(LATE), "Timed out waiting 2000ms for recv operation to complete");
    }

    #[test]
    fn the_backtrace_is_removed() {
        let text = "Expected a and b\nException raised from f at x.cpp:3 (most recent call first):\nframe #0";
        assert_eq!(clean(text), "Expected a and b");
        assert_eq!(classify(text), ErrorKind::Other);
    }

    #[test]
    fn other_brackets_are_kept() {
        assert_eq!(clean("[2, 3] does not fit [3, 2]"), "[2, 3] does not fit [3, 2]");
        assert_eq!(clean(""), "no message");
    }
}
