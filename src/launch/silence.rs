//! Ranks that are alive but give no sign of life: stopped by a signal, or frozen. Every rank sends
//! [`Event::Alive`](yolo_plan::event::Event::Alive) from a thread of its own, however long a step
//! takes, so silence never means that a step is slow. A rank that is stopped is given up after
//! [`LIMIT`]; one that runs but is given no time (a machine that swaps) after five times as long;
//! one that a debugger holds, never.

use std::time::{Duration, Instant};

use yolo_plan::event::silence_limit;

/// A rank that runs or waits but does not speak is given so many times the time of a stopped one.
const PATIENCE: u32 = 5;
/// How often silence is looked at, as a share of the time of a stopped rank, and at most.
const LOOKS: u32 = 10;
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// Measures the silence of every rank.
#[derive(Debug)]
pub(super) struct Silence {
    limit: Duration,
    look: Duration,
    last_look: Instant,
    /// How long each rank has been silent; `None` until it has spoken for the first time, since a
    /// process may take long to load its libraries.
    silent: Vec<Option<Duration>>,
}

impl Silence {
    /// Begins to watch so many ranks.
    pub(super) fn new(ranks: usize) -> Self {
        let limit = silence_limit();
        Self {
            limit,
            look: (limit / LOOKS).min(LONGEST_LOOK),
            last_look: Instant::now(),
            silent: vec![None; ranks],
        }
    }

    /// A rank has spoken.
    pub(super) fn heard(&mut self, rank: usize) {
        self.silent[rank] = Some(Duration::ZERO);
    }

    /// How long to wait for events at most before [`Self::check`] is asked again.
    pub(super) fn next_look(&self) -> Duration {
        self.look.saturating_sub(self.last_look.elapsed())
    }

    /// The first rank whose silence means that it will not go on, and why it is given up.
    /// `pid_of` gives the process of a rank that has not ended.
    pub(super) fn check(&mut self, pid_of: impl Fn(usize) -> Option<u32>) -> Option<(usize, String)> {
        let passed = self.last_look.elapsed();
        if passed < self.look {
            return None;
        }
        self.last_look = Instant::now();
        // When this process itself was stopped for a while, what ranks said meanwhile waits in
        // their pipes: time counts only as far as it was watched.
        let passed = passed.min(self.look * 2);
        for rank in 0..self.silent.len() {
            let Some(silent) = &mut self.silent[rank] else { continue };
            *silent += passed;
            let silent = *silent;
            if silent < self.limit {
                continue;
            }
            let Some(pid) = pid_of(rank) else { continue };
            let (state, patience) = match state(pid) {
                Some('T') => ("it is stopped (state T), as by SIGSTOP", 1),
                Some('t') => continue,
                Some('D') => ("it waits for a disk or a network drive (state D)", PATIENCE),
                Some('R') => ("it is given no time by this machine (state R)", PATIENCE),
                Some(_) => ("its process sleeps", PATIENCE),
                // Its end is on the way.
                None => continue,
            };
            if silent >= self.limit * patience {
                let seconds = silent.as_secs();
                return Some((rank, format!("gave no sign of life for {seconds} s: {state}")));
            }
        }
        None
    }
}

/// The state of a process as the kernel tells it: R, S, D, T, t or Z; `None` when it is gone, and
/// where there is no /proc.
fn state(pid: u32) -> Option<char> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything, also spaces and parentheses.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(silence: &mut Silence, passed: Duration) -> Option<(usize, String)> {
        silence.last_look = Instant::now().checked_sub(passed).unwrap();
        silence.check(|_| Some(std::process::id()))
    }

    #[test]
    fn a_rank_that_never_spoke_is_still_loading() {
        let mut silence = Silence::new(1);
        for _ in 0..1000 {
            assert_eq!(after(&mut silence, LONGEST_LOOK * 2), None);
        }
    }

    // Elsewhere the state of a process is not known, and nothing is said of it.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_time_that_was_watched_counts() {
        let mut silence = Silence::new(2);
        silence.heard(1);
        assert_eq!(after(&mut silence, Duration::from_secs(3600)), None);
        // This process runs, so its silence is borne five times as long as that of a stopped one.
        let looks = (0..).take_while(|_| after(&mut silence, LONGEST_LOOK).is_none()).take(1000).count();
        assert!((290..=300).contains(&looks), "{looks}");
        let (rank, why) = after(&mut silence, LONGEST_LOOK).unwrap();
        assert_eq!(rank, 1);
        assert!(why.starts_with("gave no sign of life for 30"), "{why}");
        silence.heard(1);
        assert_eq!(after(&mut silence, LONGEST_LOOK), None);
    }

    #[test]
    fn the_state_of_this_process_is_known() {
        #[cfg(target_os = "linux")]
        assert!(matches!(state(std::process::id()), Some('R' | 'S')));
        assert_eq!(state(u32::MAX), None);
    }
}
