//! Ranks that exist but send no heartbeat: stopped by a signal, or frozen. Every rank sends
//! [`Event::Alive`](yolo_plan::event::Event::Alive) from a separate thread, however long a step takes,
//! so silence never means that a step is slow. A stopped rank is given up after [`silence_limit`];
//! one that gets no CPU time (the machine swaps) after five times as long; one that a debugger holds,
//! never.

use std::time::{Duration, Instant};

use yolo_plan::event::silence_limit;

/// A rank that runs or waits gets this many times the time of a stopped one.
const PATIENCE: u32 = 5;
/// Checks within the time of a stopped rank.
const CHECKS: u32 = 10;
/// The longest time between two checks.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// Measures the silence of every rank.
#[derive(Debug)]
pub(super) struct Silence {
    limit: Duration,
    interval: Duration,
    last_check: Instant,
    /// How long each rank has been silent; `None` until its first event, since a process may take
    /// long to load its libraries.
    silent: Vec<Option<Duration>>,
}

impl Silence {
    /// Starts to watch this many ranks.
    pub(super) fn new(ranks: usize) -> Self {
        let limit = silence_limit();
        Self {
            limit,
            interval: (limit / CHECKS).min(MAX_INTERVAL),
            last_check: Instant::now(),
            silent: vec![None; ranks],
        }
    }

    /// A rank has sent an event.
    pub(super) fn heard(&mut self, rank: usize) {
        self.silent[rank] = Some(Duration::ZERO);
    }

    /// How long to wait for events before the next [`Self::check`].
    pub(super) fn next_check(&self) -> Duration {
        self.interval.saturating_sub(self.last_check.elapsed())
    }

    /// The first rank whose silence means that it will not continue, and why it is given up.
    /// `pid_of` returns the process of a rank that has not ended.
    pub(super) fn check(&mut self, pid_of: impl Fn(usize) -> Option<u32>) -> Option<(usize, String)> {
        let passed = self.last_check.elapsed();
        if passed < self.interval {
            return None;
        }
        self.last_check = Instant::now();
        // If this process itself was stopped for a while, the ranks' events of that time wait in their
        // pipes, so that time does not count.
        let passed = passed.min(self.interval * 2);
        for rank in 0..self.silent.len() {
            let Some(silent) = &mut self.silent[rank] else { continue };
            *silent += passed;
            let silent = *silent;
            if silent < self.limit {
                continue;
            }
            let Some(pid) = pid_of(rank) else { continue };
            let (state, patience) = match state(pid) {
                Some('T') => ("the process is stopped, for example by SIGSTOP (state T)", 1),
                Some('t') => continue,
                Some('D') => ("the process is waiting for a disk or network drive (state D)", PATIENCE),
                Some('R') => ("the process gets no CPU time (state R)", PATIENCE),
                Some(_) => ("the process is sleeping", PATIENCE),
                // It has ended; the message about that follows.
                None => continue,
            };
            if silent >= self.limit * patience {
                let seconds = silent.as_secs();
                return Some((rank, format!("sent no heartbeat for {seconds} s: {state}")));
            }
        }
        None
    }
}

/// The state of a process as the kernel reports it: R, S, D, T, t or Z; `None` if it is gone, or on
/// systems without /proc.
fn state(pid: u32) -> Option<char> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name, in parentheses, may contain anything, including spaces and parentheses.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(silence: &mut Silence, passed: Duration) -> Option<(usize, String)> {
        silence.last_check = Instant::now().checked_sub(passed).unwrap();
        silence.check(|_| Some(std::process::id()))
    }

    #[test]
    fn a_rank_without_any_event_is_still_loading() {
        let mut silence = Silence::new(1);
        for _ in 0..1000 {
            assert_eq!(after(&mut silence, MAX_INTERVAL * 2), None);
        }
    }

    // Other systems do not show the state of a process.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_observed_time_counts() {
        let mut silence = Silence::new(2);
        silence.heard(1);
        assert_eq!(after(&mut silence, Duration::from_secs(3600)), None);
        // This process runs, so it gets five times as long as a stopped one.
        let checks = (0..).take_while(|_| after(&mut silence, MAX_INTERVAL).is_none()).take(1000).count();
        assert!((290..=300).contains(&checks), "{checks}");
        let (rank, why) = after(&mut silence, MAX_INTERVAL).unwrap();
        assert_eq!(rank, 1);
        assert!(why.starts_with("sent no heartbeat for 30"), "{why}");
        silence.heard(1);
        assert_eq!(after(&mut silence, MAX_INTERVAL), None);
    }

    #[test]
    fn the_state_of_this_process_is_known() {
        #[cfg(target_os = "linux")]
        assert!(matches!(state(std::process::id()), Some('R' | 'S')));
        assert_eq!(state(u32::MAX), None);
    }
}
