//! Calls that may never return. They run on worker threads; when one takes too long, its worker is
//! abandoned and the next call gets a new one, so a dead network drive costs one timeout and never
//! hangs the program.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::facts::answer::of_error;

type Job = Box<dyn FnOnce() + Send>;

/// Idle workers, each waiting for its next call.
#[derive(Debug, Default)]
pub(super) struct Budget {
    idle: Mutex<Vec<Sender<Job>>>,
}

impl Budget {
    /// The result, or `None` if it took too long or panicked.
    pub(super) fn within<T: Send + 'static>(
        &self,
        budget: Duration,
        ask: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answered, answer) = mpsc::channel();
        let job: Job = Box::new(move || {
            // The caller may have given up.
            let _ = answered.send(ask());
        });
        let worker = self.worker()?;
        worker.send(job).ok()?;
        let answer = answer.recv_timeout(budget).ok()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        Some(answer)
    }

    fn worker(&self) -> Option<Sender<Job>> {
        if let Some(worker) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Some(worker);
        }
        let (sender, jobs) = mpsc::channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        thread::Builder::new().name("fact".to_owned()).spawn(work).ok()?;
        Some(sender)
    }
}

/// The answer to a question that timed out.
pub(super) fn too_late(budget: Duration) -> Value {
    of_error(format_args!("no answer within {:.1} s", budget.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn an_answer_in_time_is_returned() {
        let budget = Budget::default();
        assert_eq!(budget.within(Duration::from_secs(5), || 7), Some(7));
        assert_eq!(budget.within(Duration::from_secs(5), || 8), Some(8));
    }

    #[test]
    fn a_call_that_hangs_is_abandoned_and_the_next_one_is_answered() {
        let budget = Budget::default();
        let began = Instant::now();
        assert_eq!(budget.within(Duration::from_millis(20), || thread::sleep(Duration::from_secs(60))), None);
        assert_eq!(budget.within(Duration::from_secs(5), || 1), Some(1));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_call_that_panics_has_no_answer() {
        let budget = Budget::default();
        assert_eq!(budget.within::<()>(Duration::from_secs(5), || panic!("a fact that panics")), None);
        assert_eq!(budget.within(Duration::from_secs(5), || 1), Some(1));
    }
}
