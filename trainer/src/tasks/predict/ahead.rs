//! Work that threads do ahead of, or behind, the one that asked for it. Results come back in the order in which
//! the work was given.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rayon::ThreadPool;

use crate::error::TrainError;

/// Starts the threads that read and write.
///
/// # Errors
/// When the system refuses them.
pub(super) fn start_threads(threads: usize) -> Result<Arc<ThreadPool>, TrainError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(|index| format!("pictures-{index}"))
        // The result is missing then, which `Ahead::next` reports.
        .panic_handler(|_| ())
        .build()
        .map(Arc::new)
        .map_err(|error| {
            TrainError::new(format!("cannot start {threads} threads for pictures: {error}"))
                .with_hint("the limits on processes and memory of this user may be too low: see `ulimit -a`")
        })
}

/// Work in progress.
pub(super) struct Ahead<T> {
    threads: Arc<ThreadPool>,
    given: VecDeque<Receiver<T>>,
}

impl<T: Send + 'static> Ahead<T> {
    pub(super) fn new(threads: &Arc<ThreadPool>) -> Self {
        Self { threads: Arc::clone(threads), given: VecDeque::new() }
    }

    /// The number of results that are not taken yet.
    pub(super) fn len(&self) -> usize {
        self.given.len()
    }

    /// Gives work to the threads.
    pub(super) fn give(&mut self, work: impl FnOnce() -> T + Send + 'static) {
        let (done, receiver) = channel();
        self.given.push_back(receiver);
        self.threads.spawn_fifo(move || {
            // Nobody waits any more if the run was stopped.
            let _ = done.send(work());
        });
    }

    /// The next result, for which this waits; `None` if all are taken.
    pub(super) fn next(&mut self) -> Result<Option<T>, TrainError> {
        let Some(first) = self.given.pop_front() else { return Ok(None) };
        first
            .recv()
            .map(Some)
            .map_err(|_| TrainError::new("a thread that reads or writes pictures has ended unexpectedly"))
    }

    /// The next result if it is there, without waiting.
    pub(super) fn try_next(&mut self) -> Result<Option<T>, TrainError> {
        use std::sync::mpsc::TryRecvError;
        let Some(first) = self.given.front() else { return Ok(None) };
        match first.try_recv() {
            Ok(result) => {
                self.given.pop_front();
                Ok(Some(result))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => self.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let mut ahead = Ahead::new(&start_threads(3).unwrap());
        (0..50).for_each(|number| ahead.give(move || number));
        assert_eq!(ahead.len(), 50);
        let results: Vec<i32> = std::iter::from_fn(|| ahead.next().unwrap()).collect();
        assert_eq!(results, (0..50).collect::<Vec<_>>());
        assert_eq!(ahead.try_next().unwrap(), None);
    }

    #[test]
    fn a_thread_that_panics_is_an_error() {
        let mut ahead = Ahead::new(&start_threads(1).unwrap());
        ahead.give(|| assert_eq!(1, 2));
        assert!(ahead.next().unwrap_err().to_string().contains("has ended unexpectedly"));
    }
}
