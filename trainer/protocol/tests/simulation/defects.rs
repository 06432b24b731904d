//! Defects that were in the supervisor once, or could easily come back. A saboteur between the machines and
//! the world puts one back, so that a test shows that some seed finds it.

use std::time::Duration;

use yolo_plan::event::Event;
use yolo_protocol::{
    Action, Cause, Failure, Input, MemberInput, Notice, Signal, StopSignal, ToMember, Verdict,
};

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Ranks that ignore the request to end live for as long as they like.
    NeverKills,
    /// Heartbeats count as progress, so a rank whose main thread hangs is never noticed.
    HeartbeatIsProgress,
    /// A blocked rank outlives its supervisor.
    OrphanStays,
    /// Ctrl-C while the ranks finish makes a complete run an interrupted one.
    CompleteRunIsInterrupted,
    /// A second Ctrl-C within a second is ignored.
    QuickInterruptIgnored,
    /// SIGTERM sent twice at once counts as a second request.
    TerminateCountsTwice,
    /// Ranks that the user's second Ctrl-C killed are reported as hung.
    KilledByUserIsHung,
    /// Ctrl-Z stops the supervisor only.
    SuspendNotForwarded,
    /// The lowest number is named, not the first failure.
    LowestRankIsNamed,
    /// Ctrl-C has no effect after a failure.
    InterruptIgnoredAfterFailure,
    /// A rank that does not exit after the work is waited for without end.
    WaitsForExit,
    /// The time of a sleeping machine counts as silence.
    SleepIsSilence,
    /// Stopped ranks are never noticed.
    StoppedNotNoticed,
    /// What stays behind is not said.
    LeftBehindNotSaid,
    /// An agent that loses the master lets its ranks run.
    AgentWaitsForMaster,
    /// A machine that is silent, with its connection open, is waited for.
    SilentMachineIsAwaited,
    /// The closed connection of a machine is not noticed.
    ClosedConnectionIgnored,
    /// Ranks that lost a machine are named, not the machine.
    CascadeIsNamed,
    /// Agents do not know that the master was suspended with Ctrl-Z.
    SuspendedMasterIsLost,
    /// Ctrl-C on another machine has no effect.
    InterruptNotForwarded,
}

impl Defect {
    pub(crate) const ALL: [Self; 20] = [
        Self::NeverKills,
        Self::HeartbeatIsProgress,
        Self::OrphanStays,
        Self::CompleteRunIsInterrupted,
        Self::QuickInterruptIgnored,
        Self::TerminateCountsTwice,
        Self::KilledByUserIsHung,
        Self::SuspendNotForwarded,
        Self::LowestRankIsNamed,
        Self::InterruptIgnoredAfterFailure,
        Self::WaitsForExit,
        Self::SleepIsSilence,
        Self::StoppedNotNoticed,
        Self::LeftBehindNotSaid,
        Self::AgentWaitsForMaster,
        Self::SilentMachineIsAwaited,
        Self::ClosedConnectionIgnored,
        Self::CascadeIsNamed,
        Self::SuspendedMasterIsLost,
        Self::InterruptNotForwarded,
    ];
}

/// Changes what passes between the supervisor and the world.
pub(crate) struct Saboteur {
    defect: Option<Defect>,
    beats: u64,
    last_signal: Option<(Duration, Signal)>,
    failed: bool,
    last: Duration,
    machines: usize,
}

impl Saboteur {
    pub(crate) fn new(defect: Option<Defect>, machines: usize) -> Self {
        Self { machines, defect, beats: 0, last_signal: None, failed: false, last: Duration::ZERO }
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn lets_orphans_end(&self) -> bool {
        !self.is(Defect::OrphanStays)
    }

    /// What the supervisor is told instead, and when.
    pub(crate) fn input(&mut self, now: Duration, input: Input, interrupted: bool) -> Vec<(Duration, Input)> {
        let mut inputs = Vec::new();
        while self.is(Defect::SleepIsSilence) && now > self.last + Duration::from_secs(2) {
            self.last += Duration::from_secs(1);
            inputs.push((self.last, Input::Tick));
        }
        self.last = now;
        self.failed |= match &input {
            Input::Event(_, Event::Failed { .. }) => true,
            Input::Ended(_, end) => !end.is_success(),
            _ => false,
        };
        let changed = match input {
            Input::Event(rank, Event::Alive { progress: Some(mut progress) })
                if self.is(Defect::HeartbeatIsProgress) =>
            {
                self.beats += 1;
                progress.steps = self.beats;
                Some(Input::Event(rank, Event::Alive { progress: Some(progress) }))
            }
            Input::Event(_, Event::Finished { .. })
                if interrupted && self.is(Defect::CompleteRunIsInterrupted) =>
            {
                None
            }
            Input::State(..) if self.is(Defect::StoppedNotNoticed) => None,
            Input::Closed(_) if self.is(Defect::ClosedConnectionIgnored) => None,
            Input::Tick if self.is(Defect::SilentMachineIsAwaited) && self.machines > 1 => {
                inputs.extend((1..self.machines).map(|machine| (now, Input::Heard(machine))));
                Some(Input::Tick)
            }
            Input::Signal(signal) => self.signal(now, signal),
            other => Some(other),
        };
        inputs.extend(changed.map(|input| (now, input)));
        inputs
    }

    fn signal(&mut self, now: Duration, signal: Signal) -> Option<Input> {
        let before = self.last_signal.replace((now, signal));
        let soon = before.is_some_and(|(at, _)| now < at + Duration::from_secs(1));
        match signal {
            Signal::Interrupt if soon && self.is(Defect::QuickInterruptIgnored) => None,
            _ if self.failed && self.is(Defect::InterruptIgnoredAfterFailure) => None,
            Signal::Terminate if self.is(Defect::TerminateCountsTwice) => {
                Some(Input::Signal(Signal::Interrupt))
            }
            _ => Some(Input::Signal(signal)),
        }
    }

    /// What an agent is told instead.
    pub(crate) fn member_input(&self, input: MemberInput) -> Option<MemberInput> {
        match input {
            MemberInput::Closed if self.is(Defect::AgentWaitsForMaster) => None,
            MemberInput::Signal(_) if self.is(Defect::InterruptNotForwarded) => None,
            MemberInput::Message(ToMember::Signal { signal: StopSignal::Suspend, .. })
                if self.is(Defect::SuspendedMasterIsLost) =>
            {
                None
            }
            other => Some(other),
        }
    }

    /// What is done instead.
    pub(crate) fn actions(&mut self, mut actions: Vec<Action>, done: bool) -> Vec<Action> {
        let kills = |action: &Action| matches!(action, Action::Signal(_, StopSignal::Kill));
        match self.defect {
            Some(Defect::NeverKills) if self.failed => actions.retain(|action| !kills(action)),
            Some(Defect::WaitsForExit) if done => actions.retain(|action| !kills(action)),
            Some(Defect::SuspendNotForwarded) => {
                actions.retain(|action| !matches!(action, Action::Signal(_, StopSignal::Suspend)));
            }
            Some(Defect::LeftBehindNotSaid) => {
                actions.retain(|action| !matches!(action, Action::Notice(Notice::LeftBehind(_))));
            }
            _ => {}
        }
        actions
    }

    /// What is said instead.
    pub(crate) fn verdict(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Interrupted { killed: true, .. } if self.is(Defect::KilledByUserIsHung) => {
                Verdict::Failed(Failure { rank: 0, cause: Cause::Hung })
            }
            Verdict::Failed(Failure { cause: Cause::MachineLost { .. }, .. })
                if self.is(Defect::CascadeIsNamed) =>
            {
                Verdict::Failed(Failure { rank: 0, cause: Cause::Hung })
            }
            Verdict::Failed(failure) if self.is(Defect::LowestRankIsNamed) => {
                Verdict::Failed(Failure { rank: 0, ..failure })
            }
            other => other,
        }
    }
}
