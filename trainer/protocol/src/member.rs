//! The agent on a machine that is not the master: it forwards what its ranks report, and carries out what
//! the master wants. Without the master it ends its ranks by itself: nobody would name what they fail of.

use std::time::Duration;

use yolo_plan::event::Event;

use crate::action::StopSignal;
use crate::clock::{Clock, LONGEST_WAIT};
use crate::input::{End, Signal};
use crate::messages::{ToMaster, ToMember};
use crate::times;

/// Something that happens to an agent. Ranks have their numbers among all ranks of the run.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberInput {
    /// The master sent a message.
    Message(ToMember),
    /// The connection to the master was closed.
    Closed,
    /// The answer to [`MemberAction::Start`]: the ranks run.
    Started,
    /// The other answer to [`MemberAction::Start`]: why they do not, and what to do about it.
    NotStarted(String, Option<String>),
    /// A rank sent an event.
    Event(usize, Event),
    /// A rank sent a line that is no event.
    Garbled(usize, String),
    /// The process of a rank ended. Its events of before have all arrived.
    Ended(usize, End),
    /// The answer to [`MemberAction::Observe`].
    State(usize, Option<char>),
    /// This process received a signal that asks it to end.
    Signal(Signal),
    /// Time passed.
    Tick,
}

/// Something that an agent wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberAction {
    /// Send a message to the master.
    Send(ToMaster),
    /// Start the ranks of this plan, which meet at this address.
    Start(String, String),
    /// Send a signal to the process of a rank.
    Signal(usize, StopSignal),
    /// Look at the process of a rank, and answer with [`MemberInput::State`].
    Observe(usize),
}

/// How a run ended for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberVerdict {
    /// The master said so.
    Over {
        /// The exit status of the master's command.
        status: u8,
        /// How the run ended.
        how: String,
    },
    /// The connection to the master was lost, and the ranks of this machine were ended.
    MasterLost {
        /// Seconds of silence; `None` if the connection was closed.
        silent: Option<u64>,
        /// Ranks that no signal could end.
        left: Vec<usize>,
    },
}

/// The next, harder measure against ranks that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Kill,
    Abandon,
}

/// Carries out what the master wants on this machine.
#[derive(Debug, Clone)]
pub struct Member {
    clock: Clock,
    /// The number of the first rank of this machine.
    first: usize,
    /// Whether each rank runs.
    runs: Vec<bool>,
    start: u32,
    /// When the master was last heard.
    heard: Duration,
    /// Whether the master suspended the run, and may be suspended itself.
    suspended: bool,
    /// Since when the master is lost, and seconds of silence before.
    lost: Option<Option<u64>>,
    over: Option<(u8, String)>,
    next: Option<(Duration, Measure)>,
    actions: Vec<MemberAction>,
    verdict: Option<MemberVerdict>,
}

impl Member {
    /// An agent of this many ranks, of which none runs yet.
    pub fn new(first: usize, ranks: usize, now: Duration) -> Self {
        let mut clock = Clock::default();
        let heard = clock.look(now);
        Self {
            clock,
            first,
            runs: vec![false; ranks],
            start: 0,
            heard,
            suspended: false,
            lost: None,
            over: None,
            next: None,
            actions: Vec::new(),
            verdict: None,
        }
    }

    /// Takes what happened at `now`, a time that never goes back, and returns what to do.
    pub fn handle(&mut self, now: Duration, input: MemberInput) -> Vec<MemberAction> {
        self.clock.look(now);
        let start = self.start;
        match input {
            MemberInput::Message(message) => self.on_message(message),
            MemberInput::Closed => self.lose_master(None),
            MemberInput::Started => self.on_started(),
            MemberInput::NotStarted(message, hint) => {
                self.send(ToMaster::NotStarted { start, message, hint });
            }
            MemberInput::Event(rank, event) => self.send(ToMaster::Event { start, rank, event }),
            MemberInput::Garbled(rank, line) => self.send(ToMaster::Garbled { start, rank, line }),
            MemberInput::Ended(rank, end) => {
                self.runs[rank - self.first] = false;
                self.send(ToMaster::Ended { start, rank, end });
            }
            MemberInput::State(rank, state) => self.send(ToMaster::State { start, rank, state }),
            MemberInput::Signal(_) if self.lost.is_some() => self.kill(),
            MemberInput::Signal(signal) => self.send(ToMaster::Signal { signal }),
            MemberInput::Tick => {}
        }
        if self.verdict.is_none() {
            self.notice_silence();
            self.escalate();
            self.conclude();
        }
        std::mem::take(&mut self.actions)
    }

    /// How long to wait for an input before passing a [`MemberInput::Tick`].
    pub fn wake_in(&self) -> Duration {
        let due = self.next.map(|(at, _)| at.saturating_sub(self.clock.now()));
        due.map_or(LONGEST_WAIT, |due| due.min(LONGEST_WAIT))
    }

    /// How the run ended, once it has.
    pub fn verdict(&self) -> Option<&MemberVerdict> {
        self.verdict.as_ref()
    }

    /// The number of the present start of the ranks.
    pub fn start(&self) -> u32 {
        self.start
    }

    fn on_message(&mut self, message: ToMember) {
        self.heard = self.clock.now();
        if self.lost.is_some() {
            return;
        }
        match message {
            ToMember::Beat => {}
            ToMember::Start { start, plan, store } => {
                self.start = start;
                self.actions.push(MemberAction::Start(plan, store));
            }
            ToMember::Signal { rank, signal } => {
                self.suspended = match signal {
                    StopSignal::Suspend => true,
                    StopSignal::Continue => false,
                    _ => self.suspended,
                };
                self.actions.push(MemberAction::Signal(rank, signal));
            }
            ToMember::Observe { rank } => self.actions.push(MemberAction::Observe(rank)),
            ToMember::Over { status, how } => {
                self.over = Some((status, how));
                // The master has waited for them already.
                self.kill();
            }
        }
    }

    fn on_started(&mut self) {
        self.runs.fill(true);
        // The connection may have been lost while the ranks were started.
        if self.lost.is_some() || self.over.is_some() {
            self.kill();
        }
    }

    fn send(&mut self, message: ToMaster) {
        if self.lost.is_none() {
            self.actions.push(MemberAction::Send(message));
        }
    }

    /// A master that is silent is lost, if there are ranks to be ended. It says nothing while it is suspended,
    /// and does not tell that to ranks that have ended. If it dies then, the connection is closed.
    fn notice_silence(&mut self) {
        let silent = self.clock.now().saturating_sub(self.heard);
        let waits = self.suspended || self.over.is_some() || self.running().next().is_none();
        if !waits && silent >= times::MACHINE_SILENCE {
            self.lose_master(Some(silent.as_secs()));
        }
    }

    fn lose_master(&mut self, silent: Option<u64>) {
        if self.lost.is_some() || self.over.is_some() {
            return;
        }
        self.lost = Some(silent);
        self.signal_all(StopSignal::Terminate);
        self.signal_all(StopSignal::Continue);
        self.next = Some((self.clock.now() + times::GRACE, Measure::Kill));
    }

    fn kill(&mut self) {
        self.signal_all(StopSignal::Kill);
        if !matches!(self.next, Some((_, Measure::Abandon))) {
            self.next = Some((self.clock.now() + times::ABANDON, Measure::Abandon));
        }
    }

    fn escalate(&mut self) {
        let now = self.clock.now();
        match self.next.filter(|(at, _)| *at <= now) {
            Some((_, Measure::Kill)) => self.kill(),
            Some((_, Measure::Abandon)) => self.end(),
            None => {}
        }
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        let running = self.runs.iter().enumerate().filter(|(_, runs)| **runs);
        running.map(|(rank, _)| self.first + rank)
    }

    fn signal_all(&mut self, signal: StopSignal) {
        let all: Vec<_> = self.running().map(|rank| MemberAction::Signal(rank, signal)).collect();
        self.actions.extend(all);
    }

    fn conclude(&mut self) {
        let none_runs = self.running().next().is_none();
        if self.verdict.is_none() && none_runs && (self.lost.is_some() || self.over.is_some()) {
            self.end();
        }
    }

    fn end(&mut self) {
        self.verdict = match (&self.over, self.lost) {
            (Some((status, how)), _) => Some(MemberVerdict::Over { status: *status, how: how.clone() }),
            (None, Some(silent)) => {
                Some(MemberVerdict::MasterLost { silent, left: self.running().collect() })
            }
            (None, None) => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const KILL: MemberAction = MemberAction::Signal(2, StopSignal::Kill);

    fn started() -> Member {
        let mut member = Member::new(2, 1, Duration::ZERO);
        member.handle(Duration::ZERO, MemberInput::Started);
        member
    }

    fn beat() -> MemberInput {
        MemberInput::Message(ToMember::Beat)
    }

    /// Ticks each second until `end`, and returns the actions.
    fn ticks(member: &mut Member, seconds: std::ops::Range<u32>) -> Vec<MemberAction> {
        seconds.flat_map(|second| member.handle(SECOND * second, MemberInput::Tick)).collect()
    }

    #[test]
    fn what_ranks_report_is_forwarded_and_orders_are_carried_out() {
        let mut member = started();
        let end = End::Exited(1);
        assert_eq!(
            member.handle(SECOND, MemberInput::Ended(2, end)),
            [MemberAction::Send(ToMaster::Ended { start: 0, rank: 2, end })]
        );
        let order = ToMember::Signal { rank: 2, signal: StopSignal::Terminate };
        let done = member.handle(SECOND, MemberInput::Message(order));
        assert_eq!(done, [MemberAction::Signal(2, StopSignal::Terminate)]);
        assert_eq!(member.verdict(), None, "the master decides when the run is over");
        let over = ToMember::Over { status: 1, how: "rank 2 failed".to_owned() };
        member.handle(SECOND, MemberInput::Message(over));
        assert!(matches!(member.verdict(), Some(MemberVerdict::Over { status: 1, .. })));
    }

    #[test]
    fn without_the_master_the_ranks_are_ended_and_then_killed() {
        let mut member = started();
        member.handle(SECOND, beat());
        assert!(ticks(&mut member, 1..11).is_empty());
        let actions = ticks(&mut member, 11..14);
        assert!(
            actions.contains(&MemberAction::Signal(2, StopSignal::Terminate)) && !actions.contains(&KILL)
        );
        assert!(ticks(&mut member, 14..15).contains(&KILL));
        member.handle(SECOND * 15, MemberInput::Ended(2, End::Signalled(9)));
        let lost = MemberVerdict::MasterLost { silent: Some(10), left: Vec::new() };
        assert_eq!(member.verdict(), Some(&lost));
    }

    #[test]
    fn a_suspended_master_is_not_lost_unless_it_dies() {
        let mut member = started();
        let suspend = ToMember::Signal { rank: 2, signal: StopSignal::Suspend };
        member.handle(SECOND, MemberInput::Message(suspend));
        assert!(ticks(&mut member, 2..4000).is_empty());
        let actions = member.handle(SECOND * 4000, MemberInput::Closed);
        assert!(actions.contains(&MemberAction::Signal(2, StopSignal::Continue)), "{actions:?}");
    }

    #[test]
    fn what_no_signal_ends_is_named() {
        let mut member = started();
        member.handle(SECOND, MemberInput::Closed);
        ticks(&mut member, 2..20);
        let left = MemberVerdict::MasterLost { silent: None, left: vec![2] };
        assert_eq!(member.verdict(), Some(&left));
    }
}
