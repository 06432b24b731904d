//! The one error of this crate: what was being done, libtorch's words about it
//! without the C++ around them, and whether a peer or time was the cause.

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, as far as a training loop must tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An answer did not come within the time-out: a peer hangs, is stopped, or
    /// never started.
    Timeout,
    /// The connection to a peer broke: its process ended.
    PeerLost,
    /// Anything else: wrong shapes, wrong arguments, no memory.
    Other,
}

/// A call into libtorch that failed.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {message}")]
pub struct Error {
    kind: ErrorKind,
    action: String,
    message: String,
}

impl Error {
    /// An error from libtorch's own words.
    pub(crate) fn from_libtorch(action: impl Into<String>, text: &str) -> Self {
        Self { kind: classify(text), action: action.into(), message: clean(text) }
    }

    /// An error in this crate's words.
    pub(crate) fn new(kind: ErrorKind, action: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, action: action.into(), message: message.into() }
    }

    /// Makes an error of one that tch returned while doing `action`. A
    /// collective inside `f_backward` fails this way.
    #[must_use]
    pub fn from_tch(action: impl Into<String>, error: &tch::TchError) -> Self {
        match error {
            tch::TchError::Torch(text) => Self::from_libtorch(action, text),
            other => Self::new(ErrorKind::Other, action, other.to_string()),
        }
    }

    /// Whether a peer or time was the cause.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// libtorch's words: one line, without source places and backtrace.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Tells the kind by libtorch's and gloo's words, since gloo's exception types
/// are not in the wheel's headers and tch passes on the text alone.
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
    ];
    let text = text.to_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // A lost peer is the better explanation when both are named: waiting for a
    // dead one ends in a time-out as well.
    if holds(PEER_LOST) {
        ErrorKind::PeerLost
    } else if holds(TIMEOUT) {
        ErrorKind::Timeout
    } else {
        ErrorKind::Other
    }
}

/// The first line that says something, without gloo's `[file.cc:12]` before it
/// and without what c10 appends about where it was thrown.
fn clean(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
    let line = line.split("Exception raised from ").next().unwrap_or(line).trim_end();
    let place = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match place {
        Some((place, rest)) if is_source_place(place) => rest.trim().to_owned(),
        _ => line.to_owned(),
    }
}

/// Whether this is `path/file.cc:123`.
fn is_source_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(file, line)| {
        !line.is_empty()
            && line.bytes().all(|byte| byte.is_ascii_digit())
            && [".cc", ".cpp", ".h", ".hpp"].iter().any(|end| file.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Written in the form of gloo's texts, not recorded: what libtorch really says is met in
    // `tests/failures.rs`, where a peer is killed, stopped, or never comes.
    const CLOSED: &str = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:47314";
    const LATE: &str = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete";

    #[test]
    fn a_closed_connection_is_a_lost_peer() {
        assert_eq!(classify(CLOSED), ErrorKind::PeerLost);
        assert_eq!(clean(CLOSED), "Connection closed by peer [127.0.0.1]:47314");
    }

    #[test]
    fn a_late_answer_is_a_timeout() {
        assert_eq!(classify(LATE), ErrorKind::Timeout);
        assert_eq!(clean(LATE), "Timed out waiting 2000ms for recv operation to complete");
    }

    #[test]
    fn the_backtrace_is_cut_off() {
        let text = "Expected a and b\nException raised from f at x.cpp:3 (most recent call first):\nframe #0";
        assert_eq!(clean(text), "Expected a and b");
        assert_eq!(classify(text), ErrorKind::Other);
    }

    #[test]
    fn other_brackets_stay() {
        assert_eq!(clean("[2, 3] does not fit [3, 2]"), "[2, 3] does not fit [3, 2]");
        assert_eq!(clean(""), "no message");
    }
}
