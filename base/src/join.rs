//! How long the processes of a run wait for each other before it starts: the machines of `--nnodes`, and the
//! ranks that another launcher starts. The user sets one limit for both.

use std::time::Duration;

use crate::env::YOLO_JOIN_SECONDS;

/// No run waits longer than a month, in seconds.
const LONGEST: u64 = 30 * 24 * 3600;

/// The limit that the user sets, or `default`.
pub fn limit(default: Duration) -> Duration {
    parse(std::env::var(YOLO_JOIN_SECONDS).ok().as_deref()).unwrap_or(default)
}

/// A number of seconds; `None` for 0, with which nobody could join, and for what is no number.
fn parse(text: Option<&str>) -> Option<Duration> {
    let seconds: u64 = text?.trim().parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds.min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_limit() {
        assert_eq!(parse(Some(" 30 ")), Some(Duration::from_secs(30)));
        assert_eq!(parse(Some("99999999999999")), Some(Duration::from_secs(LONGEST)));
        for text in [None, Some(""), Some("0"), Some("-1"), Some("10 min")] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
