//! Defects that would be easy to make. A saboteur between the state machines and the world puts one back, so that a
//! test shows that some seed finds it.

use yolo_protocol::meeting::{FromWaiting, GatherAction, GatherInput, Hello, JoinInput, PrepareInput};

use crate::program::facts;

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The master waits for missing machines without end.
    WaitsForever,
    /// Those that have come are not told that there will be no run.
    OthersAreNotTold,
    /// A machine that left counts as there.
    LeftMachineCounts,
    /// Who gives a number that is taken replaces the one that was there.
    TwinReplaces,
    /// Who gives a number that is taken is refused before it can be known that the other one has left.
    TwinRefusedAtOnce,
    /// Machines are not compared.
    DifferenceIgnored,
    /// A machine that cannot start is waited for.
    FailedMachineIsAwaited,
    /// A machine that has left while it prepared is waited for.
    LeftWhilePreparing,
    /// The time for which the master was suspended counts.
    SuspendedTimeCounts,
    /// A machine waits for a silent master without end.
    SilentMasterIsAwaited,
    /// A machine that cannot connect once gives up.
    ConnectsOnce,
    /// What is not from yolo ends the waiting of a machine.
    StrangerTakesPlace,
}

impl Defect {
    pub(crate) const ALL: [Self; 12] = [
        Self::WaitsForever,
        Self::OthersAreNotTold,
        Self::LeftMachineCounts,
        Self::TwinReplaces,
        Self::TwinRefusedAtOnce,
        Self::DifferenceIgnored,
        Self::FailedMachineIsAwaited,
        Self::LeftWhilePreparing,
        Self::SuspendedTimeCounts,
        Self::SilentMasterIsAwaited,
        Self::ConnectsOnce,
        Self::StrangerTakesPlace,
    ];
}

/// Changes what passes between the state machines and the world.
pub(crate) struct Saboteur {
    defect: Option<Defect>,
    /// Machines that are there, by number, and their connections.
    present: Vec<(usize, u64)>,
}

impl Saboteur {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        Self { defect, present: Vec::new() }
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn counts_suspended_time(&self) -> bool {
        self.is(Defect::SuspendedTimeCounts)
    }

    pub(crate) fn waits_for_nobody(&self) -> bool {
        self.is(Defect::TwinRefusedAtOnce)
    }

    /// What a machine that joins is told instead.
    pub(crate) fn join_input(&self, input: JoinInput, connected: bool) -> Option<JoinInput> {
        match input {
            JoinInput::Tick if connected && self.is(Defect::SilentMasterIsAwaited) => None,
            JoinInput::Unreachable(_) if self.is(Defect::ConnectsOnce) => Some(JoinInput::Closed),
            other => Some(other),
        }
    }

    /// What the master is told instead while it gathers.
    pub(crate) fn gather_input(&mut self, input: GatherInput) -> Vec<GatherInput> {
        match input {
            GatherInput::Tick if self.is(Defect::WaitsForever) => Vec::new(),
            GatherInput::Closed(_) if self.is(Defect::LeftMachineCounts) => Vec::new(),
            GatherInput::Arrived { connection, from, line } => {
                let hello = line.as_deref().and_then(|line| serde_json::from_str::<Hello>(line).ok());
                let Some(hello) = hello else {
                    if self.is(Defect::StrangerTakesPlace)
                        && let Some((_, other)) = self.present.pop()
                    {
                        return vec![GatherInput::Closed(other)];
                    }
                    return vec![GatherInput::Arrived { connection, from, line }];
                };
                let mut inputs = Vec::new();
                let there = self.present.iter().position(|(machine, _)| *machine == hello.machine);
                if let Some(there) = there
                    && self.is(Defect::TwinReplaces)
                {
                    inputs.push(GatherInput::Closed(self.present.remove(there).1));
                }
                self.present.push((hello.machine, connection));
                let facts = if self.is(Defect::DifferenceIgnored) { facts("3") } else { hello.facts.clone() };
                let line = serde_json::to_string(&Hello { facts, ..hello }).ok();
                inputs.push(GatherInput::Arrived { connection, from, line });
                inputs
            }
            other => vec![other],
        }
    }

    /// What the master does instead while it gathers.
    pub(crate) fn gather_actions(&self, mut actions: Vec<GatherAction>) -> Vec<GatherAction> {
        if self.is(Defect::OthersAreNotTold) {
            actions.retain(|action| !matches!(action, GatherAction::Dismiss(..)));
        }
        actions
    }

    /// What the master is told instead while machines prepare.
    pub(crate) fn prepare_input(&self, input: PrepareInput) -> Option<PrepareInput> {
        match &input {
            PrepareInput::Closed(_) if self.is(Defect::LeftWhilePreparing) => None,
            PrepareInput::Line(_, line) if self.is(Defect::FailedMachineIsAwaited) => {
                let failed = matches!(serde_json::from_str(line), Ok(FromWaiting::Failed { .. }));
                (!failed).then_some(input)
            }
            _ => Some(input),
        }
    }
}
