//! Which failures of a request are final, and how often and after which pause the others are retried.

use std::thread;
use std::time::Duration;

use super::client::Policy;
use super::error::FetchError;
use super::progress::{Progress, ProgressEvent};
use super::redacted::Redacted;

/// Why an attempt failed, and whether the next one may succeed.
pub(super) enum AttemptError {
    Final(FetchError),
    Transient { why: String, after: Option<Duration> },
}

impl AttemptError {
    pub(super) fn transient(why: impl Into<String>) -> Self {
        Self::Transient { why: why.into(), after: None }
    }
}

/// Counts attempts without progress and pauses between them.
pub(super) struct Retries {
    shown: Redacted,
    policy: Policy,
    count: u32,
}

impl Retries {
    pub(super) fn new(shown: &Redacted, policy: &Policy) -> Self {
        Self { shown: shown.clone(), policy: policy.clone(), count: 0 }
    }

    /// Bytes have arrived: the next failure is the first again.
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }

    pub(super) fn failed(
        &mut self,
        attempt: AttemptError,
        progress: &dyn Progress,
    ) -> Result<(), FetchError> {
        let (why, after) = match attempt {
            AttemptError::Final(error) => return Err(error),
            AttemptError::Transient { why, after } => (why, after),
        };
        self.count += 1;
        if self.count >= self.policy.attempts {
            return Err(FetchError::Transport { url: self.shown.to_string(), why, attempts: self.count });
        }
        if let Some(wait) = after.filter(|wait| *wait > self.policy.longest_wait) {
            let why = format!("{why} and asks to wait {} s; try again after that", wait.as_secs());
            return Err(FetchError::Refused { url: self.shown.to_string(), why });
        }
        let doubled = self.policy.first_pause.saturating_mul(1 << (self.count - 1).min(16));
        let pause = after.unwrap_or(doubled.min(self.policy.longest_pause)).max(Duration::from_millis(1));
        progress.event(ProgressEvent::Retry { why: &format!("{}: {why}", self.shown), after: pause });
        thread::sleep(pause);
        Ok(())
    }
}
