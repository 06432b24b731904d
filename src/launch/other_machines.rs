//! What the supervisor hears from the other machines of a run, and tells them.

use yolo_plan::event::Event;
use yolo_protocol::{End, Input, Signal, ToMaster, ToMember};

use super::supervisor::Watch;

impl Watch<'_> {
    /// Tells the machine of a rank what to do about it.
    pub(super) fn send_about(&self, rank: usize, message: &ToMember) {
        if let Some(team) = self.terms.team {
            team.send(team.machine_of(rank), message);
        }
    }

    /// Ctrl-C on all machines at once, as some terminals send it, is one request: only a machine that asks
    /// again asks for more.
    pub(super) fn on_signal(&mut self, machine: usize, signal: Signal) {
        let again = self.signalled.contains(&machine);
        if again || self.signalled.is_empty() {
            self.handle(Input::Signal(signal));
        }
        if !again {
            self.signalled.push(machine);
        }
    }

    /// What another machine reports is about ranks that have their numbers among all.
    pub(super) fn on_machine(&mut self, machine: usize, message: ToMaster) {
        let now = self.start;
        let about = match &message {
            ToMaster::Event { rank, .. }
            | ToMaster::Garbled { rank, .. }
            | ToMaster::Ended { rank, .. }
            | ToMaster::State { rank, .. } => Some(*rank),
            _ => None,
        };
        // A machine can only speak of its own ranks.
        let own = self.terms.team.map_or(0..0, |team| team.ranks_of(machine));
        if about.is_some_and(|rank| !own.contains(&rank)) {
            return;
        }
        match message {
            ToMaster::Event { start, rank, event } if start == now => {
                self.handle(Input::Event(rank, event.clone()));
                (self.terms.listen)(Some(rank), &event);
            }
            ToMaster::Garbled { start, rank, line } if start == now => {
                self.handle(Input::Garbled(rank, line))
            }
            ToMaster::Ended { start, rank, end } if start == now => self.handle(Input::Ended(rank, end)),
            ToMaster::State { start, rank, state } if start == now => self.handle(Input::State(rank, state)),
            ToMaster::NotStarted { start, message, hint } if start == now => {
                for rank in own {
                    let (message, hint, doing) = (message.clone(), hint.clone(), "starting".to_owned());
                    let failed = Event::Failed {
                        message,
                        hint,
                        doing,
                        peer_lost: false,
                        of_data: false,
                        progress: None,
                    };
                    self.handle(Input::Event(rank, failed));
                    self.handle(Input::Ended(rank, End::Exited(1)));
                }
            }
            ToMaster::Signal { signal } => {
                let host = self.terms.team.map_or("", |team| team.host(machine));
                self.warn(format!("machine {machine} ({host}) asks to end the run"));
                self.on_signal(machine, signal);
            }
            // A heartbeat, or from a rank of an earlier start.
            _ => {}
        }
    }
}
