//! The supervisor of all ranks of a run, on this machine and on others. The first failure ends the run: the other ranks get a moment
//! to report what they saw, so that the rank that broke is named and not one that lost it; then they are
//! asked to end, then killed. The user's first signal asks all ranks to save and end, the second kills them.

use std::path::PathBuf;
use std::time::Duration;

use yolo_plan::event::{Event, PROTOCOL};

use crate::action::{Action, Notice, StopSignal};
use crate::blame;
use crate::clock::{Clock, LONGEST_WAIT};
use crate::input::{End, Input, Signal};
use crate::machines::Machines;
use crate::rank::{Lost, Rank, Reported};
use crate::silence::Silence;
use crate::stall::Stall;
use crate::times;
use crate::verdict::Verdict;

/// What a supervisor is told about its run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The number of ranks on each machine. The first is this one.
    pub machines: Vec<usize>,
    /// Whether there are ranks that other supervisors started, of which one may have been asked to stop.
    pub others: bool,
    /// How long a stopped rank may be silent.
    pub silence: Duration,
    /// The shortest time without progress that is reported.
    pub stall: Duration,
    /// The time within which the ranks must have ended.
    pub limit: Option<Duration>,
    /// How many times a failed run is started again.
    pub restarts: u32,
}

/// The next, harder measure against ranks that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Terminate,
    Kill,
    Abandon,
}

/// Watches the ranks of a run until all have ended.
#[derive(Debug, Clone)]
pub struct Supervisor {
    config: Config,
    clock: Clock,
    ranks: Vec<Rank>,
    machines: Machines,
    silence: Silence,
    stall: Stall,
    actions: Vec<Action>,
    next: Option<(Duration, Measure)>,
    first_failure: bool,
    /// The user's first signal, and when it came.
    interrupted: Option<(Duration, Signal)>,
    suspended: bool,
    /// Ranks that had not ended when the time limit was reached.
    late: Option<Vec<usize>>,
    /// Whether rank 0 reported that the run is complete.
    finished: bool,
    /// Whether rank 0 reported that the interrupted run is saved, and where.
    saved: bool,
    resume_from: Option<PathBuf>,
    /// Whether ranks were killed because they did not end after the user's signal, or at the second one.
    killed: bool,
    restarts: u32,
    /// Waiting for the answer to [`Action::Restart`].
    restarting: bool,
    verdict: Option<Verdict>,
}

impl Supervisor {
    /// Supervises ranks that were started just now.
    pub fn new(config: Config, now: Duration) -> Self {
        let mut clock = Clock::default();
        let start = clock.look(now);
        let next = config.limit.map(|limit| (start + limit, Measure::Kill));
        let machines = Machines::new(&config.machines, start);
        let ranks = machines.all_ranks();
        Self {
            ranks: vec![Rank::new(); ranks],
            machines,
            silence: Silence::new(ranks, config.silence),
            stall: Stall::new(config.stall, start),
            config,
            clock,
            actions: Vec::new(),
            next,
            first_failure: false,
            interrupted: None,
            suspended: false,
            late: None,
            finished: false,
            saved: false,
            resume_from: None,
            killed: false,
            restarts: 0,
            restarting: false,
            verdict: None,
        }
    }

    /// Takes what happened at `now`, a time that never goes back, and returns what to do.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Action> {
        let now = self.clock.look(now);
        match input {
            // What a machine sends after it was given up changes nothing.
            Input::Event(rank, _)
            | Input::Garbled(rank, _)
            | Input::Ended(rank, _)
            | Input::State(rank, _)
                if self.ranks[rank].lost.is_some() => {}
            Input::Heard(machine) => self.machines.heard(machine, now),
            Input::Closed(machine) => self.lose(machine, None),
            Input::Event(rank, event) => self.on_event(rank, event),
            // A rank that is killed while it writes leaves half a line.
            Input::Garbled(rank, _) if self.ranks[rank].greeted => {}
            Input::Garbled(rank, line) => self.on_other_version(rank, line),
            Input::Ended(rank, end) => self.on_end(rank, end),
            Input::Signal(signal) => self.on_signal(signal),
            Input::Suspend => self.on_suspend(),
            Input::Continue => self.on_continue(),
            Input::State(rank, state) => self.on_state(rank, state),
            Input::Restarted => self.on_restart(),
            Input::NotRestarted => (self.restarting, self.restarts) = (false, self.config.restarts),
            Input::Tick => {}
        }
        if self.verdict.is_none() && !self.restarting {
            self.notice_silent_machines();
            self.escalate();
            self.observe();
            self.conclude();
        }
        std::mem::take(&mut self.actions)
    }

    /// How long until the next [`Input::Tick`] is due, if nothing else happens.
    pub fn wake_in(&self) -> Duration {
        let due = self.next.map(|(at, _)| at.saturating_sub(self.clock.now()));
        due.map_or(LONGEST_WAIT, |due| due.min(LONGEST_WAIT))
    }

    /// How the run ended, once it has.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// The ranks, in order.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    fn on_event(&mut self, rank: usize, event: Event) {
        let now = self.clock.now();
        self.silence.heard(rank, now);
        let state = &mut self.ranks[rank];
        state.heard = now;
        match event {
            Event::Hello { protocol, version, .. } if protocol != PROTOCOL => {
                self.on_other_version(rank, format!("version {version}, protocol {protocol}"));
            }
            Event::Hello { device, .. } => (state.device, state.greeted) = (device, true),
            Event::Phase { doing, steps } => {
                (state.doing, state.counts_steps, state.moved) = (doing, steps, now);
                self.stall.restart(now);
            }
            Event::Alive { progress: Some(progress) } => {
                let before = state.progress.replace(progress);
                if before.is_none_or(|before| before.steps != progress.steps) {
                    state.moved = now;
                    let notice = self.stall.moved(now);
                    self.actions.extend(notice.map(Action::Notice));
                }
            }
            Event::Failed { message, hint, doing, peer_lost, of_data, progress } => {
                state.progress = progress.or(state.progress);
                state.failed = Some((now, Reported { message, hint, doing, peer_lost, of_data }));
                self.on_failure();
            }
            Event::Finished { .. } => {
                self.finished = true;
                self.schedule(times::FINISH_GRACE, Measure::Terminate);
            }
            Event::Interrupted { resume_from } => {
                (self.saved, self.resume_from) = (true, resume_from);
                if self.config.others && self.interrupted.is_none() {
                    // A rank elsewhere was asked to stop, and all stop together.
                    self.interrupted = Some((self.clock.now(), Signal::Terminate));
                    self.ranks.iter_mut().for_each(|rank| rank.asked = true);
                }
                self.schedule(times::FINISH_GRACE, Measure::Kill);
            }
            _ => {}
        }
    }

    fn on_other_version(&mut self, rank: usize, what: String) {
        self.ranks[rank].other_version.get_or_insert((self.clock.now(), what));
        self.on_failure();
    }

    fn on_end(&mut self, rank: usize, end: End) {
        let state = &mut self.ranks[rank];
        state.ended = Some((self.clock.now(), end));
        // After the user's signal, ending or being killed is what the user wants.
        let as_asked = state.asked && (state.ended_as_asked() || state.killed);
        if !end.is_success() && !as_asked {
            self.on_failure();
        }
    }

    /// Starts to end the ranks, once. Failures after the end of the work, or after the user had the ranks
    /// killed, are none.
    fn on_failure(&mut self) {
        if !self.first_failure && !self.finished && !self.killed {
            self.first_failure = true;
            if self.interrupted.is_some() {
                self.schedule(times::SAVE_GRACE, Measure::Kill);
                return;
            }
            self.next = None;
            self.schedule(times::SETTLE, Measure::Terminate);
        }
    }

    fn on_signal(&mut self, signal: Signal) {
        let now = self.clock.now();
        if let Some((at, first)) = self.interrupted {
            let person = signal == Signal::Interrupt || first == Signal::Interrupt;
            let twice = !person && now < at + times::SAME_SIGNAL;
            if !twice {
                self.killed = true;
                self.kill_for_user();
            }
            return;
        }
        self.interrupted = Some((now, signal));
        if self.first_failure {
            self.kill_for_user();
            return;
        }
        self.ranks.iter_mut().for_each(|rank| rank.asked = true);
        self.signal_all(StopSignal::Terminate);
        self.next = None;
        self.schedule(times::INTERRUPT_GRACE, Measure::Kill);
    }

    fn on_suspend(&mut self) {
        if !self.suspended {
            self.suspended = true;
            self.signal_all(StopSignal::Suspend);
            self.actions.push(Action::SuspendSelf);
        }
    }

    fn on_continue(&mut self) {
        if self.suspended {
            self.suspended = false;
            self.signal_all(StopSignal::Continue);
        }
        self.silence.restart(self.clock.now());
        self.stall.restart(self.clock.now());
        self.machines.restart(self.clock.now());
    }

    /// The connection to a machine is lost, and with it the ranks that still run there.
    fn lose(&mut self, machine: usize, silent: Option<Duration>) {
        if !self.machines.lose(machine) {
            return;
        }
        let now = self.clock.now();
        let at = now.saturating_sub(silent.unwrap_or_default());
        self.actions.push(Action::Disconnect(machine));
        let mut some = false;
        for rank in self.ranks[self.machines.ranks(machine)].iter_mut().filter(|rank| !rank.has_ended()) {
            rank.lost = Some(Lost { at, machine, silent: silent.map(|silent| silent.as_secs()) });
            some = true;
        }
        if some {
            self.on_failure();
        }
    }

    fn notice_silent_machines(&mut self) {
        if self.suspended {
            return;
        }
        let ending = self.first_failure || self.killed || self.finished;
        let limit = if ending { times::MACHINE_SILENCE_AT_END } else { times::MACHINE_SILENCE };
        self.lose_silent(limit);
    }

    fn lose_silent(&mut self, limit: Duration) {
        for (machine, silent) in self.machines.silent(self.clock.now(), limit) {
            self.lose(machine, Some(silent));
        }
    }

    fn on_state(&mut self, rank: usize, state: Option<char>) {
        let now = self.clock.now();
        let Some(state) = state else { return };
        if let Some(seconds) = self.silence.gives_up(rank, state, now).filter(|_| self.is_watching()) {
            self.ranks[rank].silent = Some((now, seconds, state));
            self.on_failure();
        }
    }

    fn on_restart(&mut self) {
        let now = self.clock.now();
        self.restarting = false;
        self.restarts += 1;
        let ranks = self.machines.all_ranks();
        self.ranks = vec![Rank::new(); ranks];
        self.machines.restart(now);
        self.silence = Silence::new(ranks, self.config.silence);
        self.stall = Stall::new(self.config.stall, now);
        (self.first_failure, self.saved, self.next) = (false, false, None);
        if self.interrupted.is_some() {
            self.ranks.iter_mut().for_each(|rank| rank.asked = true);
            self.kill();
        }
    }

    /// Whether ranks are expected to work.
    fn is_watching(&self) -> bool {
        !self.first_failure && !self.suspended && !self.finished && self.interrupted.is_none()
    }

    /// Looks for ranks that are silent or make no progress.
    fn observe(&mut self) {
        if !self.is_watching() {
            return;
        }
        let now = self.clock.now();
        let suspects = self.silence.suspects(now).into_iter().filter(|&rank| !self.ranks[rank].has_ended());
        self.actions.extend(suspects.map(Action::Observe));
        let stalled = self.stall.check(&self.ranks, now);
        self.actions.extend(stalled.map(Action::Notice));
    }

    /// Takes the next measure when its time has come, unless an earlier one is scheduled already.
    fn schedule(&mut self, after: Duration, measure: Measure) {
        let at = self.clock.now() + after;
        if self.next.is_none_or(|(next, _)| at < next) {
            self.next = Some((at, measure));
        }
    }

    /// The user does not want to wait until the ranks have ended by themselves.
    fn kill_for_user(&mut self) {
        let alive = self.ranks.iter_mut().filter(|rank| !rank.has_ended());
        alive.for_each(|rank| rank.killed_by_user = true);
        self.kill();
    }

    fn kill(&mut self) {
        self.signal_all(StopSignal::Kill);
        if !matches!(self.next, Some((_, Measure::Abandon))) {
            self.next = None;
            self.schedule(times::ABANDON, Measure::Abandon);
        }
    }

    fn escalate(&mut self) {
        let now = self.clock.now();
        let Some((_, measure)) = self.next.filter(|(at, _)| *at <= now) else { return };
        if self.suspended {
            return;
        }
        if !self.first_failure && self.interrupted.is_none() && !self.finished && self.late.is_none() {
            self.late = Some(self.running());
        }
        match measure {
            Measure::Terminate => {
                self.lose_silent(times::MACHINE_SUSPECT);
                let alive = self.ranks.iter_mut().filter(|rank| !rank.has_ended());
                alive.for_each(|rank| rank.torn_down = Some(now));
                self.signal_all(StopSignal::Terminate);
                self.next = None;
                self.schedule(times::GRACE, Measure::Kill);
            }
            Measure::Kill => {
                self.killed |= self.interrupted.is_some() && !self.first_failure;
                self.kill();
            }
            Measure::Abandon => {
                let left = self.running();
                self.next = None;
                self.actions.push(Action::Notice(Notice::LeftBehind(left)));
                self.verdict = Some(self.judge());
            }
        }
    }

    /// The ranks whose processes have not ended.
    fn running(&self) -> Vec<usize> {
        (0..self.ranks.len()).filter(|&rank| !self.ranks[rank].has_ended()).collect()
    }

    fn signal_all(&mut self, signal: StopSignal) {
        for (number, rank) in self.ranks.iter_mut().enumerate().filter(|(_, rank)| !rank.has_ended()) {
            rank.killed |= signal == StopSignal::Kill;
            self.actions.push(Action::Signal(number, signal));
        }
    }

    /// Ends the run, or starts it again, when all ranks have ended.
    fn conclude(&mut self) {
        if self.verdict.is_some() || self.ranks.iter().any(|rank| !rank.has_ended()) {
            return;
        }
        let verdict = self.judge();
        if let Verdict::Failed(failure) = &verdict
            && self.may_restart()
        {
            self.restarting = true;
            self.actions.push(Action::Restart { failure: failure.clone(), restart: self.restarts + 1 });
            return;
        }
        if verdict == Verdict::Finished
            && let Some(failure) = blame::failure(&self.ranks)
        {
            self.actions.push(Action::Notice(Notice::FailedAfterwards(failure)));
        }
        self.verdict = Some(verdict);
    }

    /// A run that failed before its first step would fail again.
    fn may_restart(&self) -> bool {
        let moved = |rank: &Rank| rank.progress.is_some_and(|progress| progress.steps > 0);
        self.restarts < self.config.restarts
            && self.interrupted.is_none()
            && !self.machines.some_lost()
            && self.ranks.iter().any(moved)
            && self.ranks.iter().all(|rank| rank.other_version.is_none())
    }

    fn judge(&self) -> Verdict {
        if let Some(late) = &self.late {
            return Verdict::TimedOut(late.clone());
        }
        if self.finished {
            return Verdict::Finished;
        }
        if self.first_failure
            && let Some(failure) = blame::failure(&self.ranks)
        {
            return Verdict::Failed(failure);
        }
        if self.interrupted.is_none() {
            return Verdict::Unfinished;
        }
        Verdict::Interrupted {
            resume_from: self.resume_from.clone(),
            killed: !self.saved && self.ranks.iter().any(|rank| rank.killed),
        }
    }
}
