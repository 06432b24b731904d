//! What goes wrong in the simulated world, and what its user does.

use std::cmp::Reverse;
use std::time::Duration;

use yolo_protocol::{End, Input, RankInput, Signal};

use crate::process::Process;
use crate::program::Op;
use crate::schedule::Fault;
use crate::world::{Happening, SECOND, World};

const SIGHUP: i32 = 1;

impl World<'_> {
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.supervisor.is_some() {
            self.history.signals.push((self.now, signal));
            self.tell_supervisor(Input::Signal(signal));
        }
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        self.log(|| format!("fault: {fault:?}"));
        match fault {
            Fault::DiskFull => self.disk_full = true,
            Fault::Interrupt => self.signal(Signal::Interrupt),
            Fault::TerminateTwice => {
                self.signal(Signal::Terminate);
                self.signal(Signal::Terminate);
            }
            Fault::TerminateAndHangUp => {
                self.signal(Signal::Terminate);
                self.signal(Signal::HangUp);
            }
            Fault::Suspend(seconds) => {
                self.tell_supervisor(Input::Suspend);
                self.after(SECOND * seconds as u32, Happening::Foreground);
            }
            Fault::Sleep(seconds) => self.sleep(SECOND * seconds as u32),
            Fault::SupervisorKilled => self.kill_supervisor(),
            Fault::AgentKilled(machine)
            | Fault::MachineGone(machine)
            | Fault::Cut(machine)
            | Fault::Broken(machine)
            | Fault::Delayed(machine, _)
            | Fault::InterruptOn(machine) => self.machine_fault(machine, fault),
            Fault::Signal(rank, _)
            | Fault::Exit(rank)
            | Fault::LeaveEarly(rank)
            | Fault::Error(rank)
            | Fault::Hang(rank)
            | Fault::Unkillable(rank)
            | Fault::Stop(rank) => self.rank_fault(rank, fault),
        }
    }

    pub(crate) fn rank_fault(&mut self, rank: usize, fault: Fault) {
        let state = &mut self.processes[rank];
        let usual = !state.hung && !state.stopped;
        let works = state.runs() && usual && !(state.token > 0 && state.ops.as_slice().is_empty());
        let needs_main = matches!(fault, Fault::Error(_) | Fault::Exit(_) | Fault::LeaveEarly(_));
        // Nobody is there to deal with what happens to an orphan.
        let orphan = self.supervisor.is_none() || !self.has_agent(rank);
        let state = &mut self.processes[rank];
        if !works || (needs_main && state.waiting) || orphan {
            return;
        }
        self.history.causes.push((self.now, rank, fault));
        let state = &mut self.processes[rank];
        match fault {
            Fault::Signal(_, signal) => {
                self.history.deaths.push(self.now);
                self.die(rank, End::Signalled(signal));
            }
            Fault::Exit(_) => {
                self.history.deaths.push(self.now);
                self.die(rank, End::Exited(3));
            }
            Fault::LeaveEarly(_) => self.die(rank, End::Exited(0)),
            Fault::Error(_) => {
                self.history.deaths.push(self.now);
                self.fail(rank, "out of memory", false);
            }
            Fault::Hang(_) => {
                state.hung = true;
                self.note_hang(rank);
            }
            Fault::Unkillable(_) => (state.hung, state.unkillable) = (true, true),
            _ => state.stopped = true,
        }
    }

    /// Remembers a hang that the supervisor can notice: the others train and will wait for this rank.
    pub(crate) fn note_hang(&mut self, rank: usize) {
        let trains = |rank: &Process| rank.trains && rank.progress.is_some_and(|progress| progress.steps > 1);
        let next = self.processes[rank]
            .ops
            .as_slice()
            .iter()
            .find(|op| matches!(op, Op::Phase { .. } | Op::Collective | Op::StepDone));
        if self.processes.iter().all(trains)
            && next == Some(&Op::Collective)
            && self.history.hung_in_training.is_none()
        {
            self.history.hung_in_training = Some((self.now, rank));
        }
    }

    /// The machine sleeps: nothing happens, and the clock goes on.
    pub(crate) fn sleep(&mut self, time: Duration) {
        let waiting: Vec<_> =
            self.queue.drain().map(|Reverse((at, key))| Reverse((at + time, key))).collect();
        self.queue.extend(waiting);
        self.now += time;
        self.slept += time;
    }

    pub(crate) fn foreground(&mut self) {
        if !self.suspended {
            return;
        }
        self.suspended = false;
        self.tell_supervisor(Input::Continue);
        for input in std::mem::take(&mut self.inbox) {
            self.tell_supervisor(input);
        }
    }

    pub(crate) fn kill_supervisor(&mut self) {
        if self.supervisor.take().is_none() {
            return;
        }
        self.history.supervisor_killed = Some(self.now);
        for machine in 1..self.schedule.machines.len() {
            self.close(machine, true);
        }
        self.orphan(self.schedule.ranks_of(0));
    }

    /// The supervisor or the agent of these ranks has died.
    pub(crate) fn orphan(&mut self, ranks: std::ops::Range<usize>) {
        for rank in ranks {
            let state = &mut self.processes[rank];
            if !state.runs() || state.unkillable {
                continue;
            }
            if state.stopped {
                // The kernel sends SIGHUP and SIGCONT to stopped processes whose group lost its parent.
                self.die(rank, End::Signalled(SIGHUP));
                continue;
            }
            state.life.note(self.now, RankInput::SupervisorGone);
            self.terminate(rank);
        }
    }
}
