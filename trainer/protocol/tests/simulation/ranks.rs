//! What the processes of the ranks do: their programs, their collectives, their heartbeats, and how they
//! react to signals.

use std::time::Duration;

use yolo_plan::event::{Event, Progress, Stage};
use yolo_protocol::{End, Input, RankAction, RankInput, StopSignal};

use crate::process::Process;
use crate::program::{self, Op};
use crate::schedule::Fault;
use crate::world::{COLLECTIVE, Happening, MILLISECOND, SECOND, World};

const SIGKILL: i32 = 9;

impl World<'_> {
    pub(crate) fn main_thread(&mut self, rank: usize) {
        self.processes[rank].in_long_work = false;
        // A signal takes its time to another machine.
        if self.suspended && !self.processes[rank].stopped && self.schedule.machine_of(rank) == 0 {
            self.history.ran_while_suspended = true;
        }
        let Some(op) = self.processes[rank].ops.next() else { return };
        match op {
            Op::Phase { doing, steps } => {
                self.processes[rank].trains = steps;
                self.send(rank, Event::Phase { doing: doing.to_owned(), steps });
                self.continue_main(rank, Duration::ZERO);
            }
            Op::Work(time, stage) => {
                if let Some(stage) = stage {
                    self.enter(rank, stage, time);
                }
                let stops = self.processes[rank].life.should_stop() && time > SECOND * 5;
                self.processes[rank].in_long_work = time > SECOND * 5;
                self.continue_main(rank, if stops { SECOND } else { time });
            }
            Op::StepDone => {
                if let Some(progress) = &mut self.processes[rank].progress {
                    progress.steps += 1;
                }
                self.continue_main(rank, Duration::ZERO);
            }
            Op::Collective => self.join(rank),
            Op::Save if self.disk_full => {
                self.history.causes.push((self.now, rank, Fault::DiskFull));
                self.fail(rank, "no space left on device", false);
            }
            Op::Save => {
                self.saved = true;
                self.continue_main(rank, MILLISECOND * 300);
            }
            Op::Finished => {
                self.history.finished = Some(self.now);
                self.send(
                    rank,
                    Event::Finished { files: Vec::new(), epochs: 1, seconds: 1.0, stopped_early: false },
                );
                self.continue_main(rank, Duration::ZERO);
            }
            Op::Interrupted => {
                self.send(rank, Event::Interrupted { resume_from: Some("last.pt".into()) });
                self.continue_main(rank, Duration::ZERO);
            }
            Op::Exit(_) if self.schedule.stays == Some(rank) => {
                self.log(|| format!("rank {rank} hangs at its exit"));
                self.processes[rank].hung = true;
            }
            Op::Exit(status) => self.die(rank, End::Exited(status)),
        }
    }

    pub(crate) fn enter(&mut self, rank: usize, stage: Stage, time: Duration) {
        let batches = self.schedule.steps;
        let none = Progress { epoch: 0, batch: 0, batches, steps: 0, images: 0, stage, seconds: [0.0; 3] };
        let progress = self.processes[rank].progress.get_or_insert(none);
        progress.stage = stage;
        progress.seconds[1] += time.as_secs_f64();
    }

    /// A rank waits for the others. The last one wakes all, and all learn whether one should stop.
    pub(crate) fn join(&mut self, rank: usize) {
        self.processes[rank].waiting = true;
        let completed = self.processes[rank].completed;
        let together = !self.is_cut_off()
            && self
                .processes
                .iter()
                .all(|other| other.waiting && other.completed == completed && other.ended.is_none());
        if !together {
            self.processes[rank].token += 1;
            let Process { token, number: life, .. } = self.processes[rank];
            self.after(COLLECTIVE, Happening::Timeout { rank, life, token });
            self.notice_lost_peers();
            return;
        }
        let stop = self.processes.iter().any(|other| other.life.should_stop());
        for other in 0..self.processes.len() {
            let state = &mut self.processes[other];
            state.waiting = false;
            state.completed += 1;
            let stopping = matches!(state.ops.as_slice().last(), Some(Op::Exit(130)));
            if stop && !stopping {
                state.ops = program::stop(other).into_iter();
            }
            self.continue_main(other, MILLISECOND);
        }
    }

    /// Ranks that wait for one that is gone lose it.
    pub(crate) fn notice_lost_peers(&mut self) {
        for rank in 0..self.processes.len() {
            let state = &self.processes[rank];
            let gone = |(number, other): (usize, &Process)| {
                other.ended.is_some()
                    && other.completed <= state.completed
                    && self.are_connected(rank, number)
            };
            if state.waiting
                && state.runs()
                && !state.stopped
                && !state.hung
                && self.processes.iter().enumerate().any(gone)
            {
                self.fail(rank, "the connection was closed by a peer", true);
            }
        }
    }

    pub(crate) fn fail(&mut self, rank: usize, message: &str, peer_lost: bool) {
        self.log(|| format!("rank {rank} fails: {message}"));
        self.processes[rank].waiting = false;
        self.processes[rank].token += 1;
        let progress = self.processes[rank].progress;
        let (message, doing) = (message.to_owned(), "training".to_owned());
        self.send(rank, Event::Failed { message, hint: None, doing, peer_lost, of_data: false, progress });
        let life = self.processes[rank].number;
        self.after(MILLISECOND * 5, Happening::Die { rank, life, end: End::Exited(1) });
    }

    pub(crate) fn die(&mut self, rank: usize, end: End) {
        self.log(|| format!("rank {rank} ends: {end:?}"));
        let state = &mut self.processes[rank];
        state.ended = Some(end);
        let (at, life) = (state.delivered.max(self.now) + MILLISECOND, state.number);
        self.history.last_end = Some(self.now);
        if self.schedule.machine_of(rank) > 0 {
            self.history.last_end_elsewhere = Some(self.now);
        }
        self.at(at, Happening::Deliver { life, input: Input::Ended(rank, end) });
        self.notice_lost_peers();
    }

    pub(crate) fn beat(&mut self, rank: usize) {
        if self.processes[rank].stopped {
            return;
        }
        match self.processes[rank].life.tick(self.now) {
            Some(RankAction::Heartbeat) => {
                let progress = self.processes[rank].progress;
                self.send(rank, Event::Alive { progress });
            }
            Some(RankAction::Exit(status))
                if self.saboteur.lets_orphans_end() && !self.processes[rank].unkillable =>
            {
                self.die(rank, End::Exited(status.into()));
                return;
            }
            _ => {}
        }
        let (wait, life) = (self.processes[rank].life.wake_in(self.now), self.processes[rank].number);
        self.after(wait.max(MILLISECOND), Happening::Beat { rank, life });
    }

    pub(crate) fn signal_rank(&mut self, rank: usize, signal: StopSignal) {
        let state = &mut self.processes[rank];
        if !state.runs() || state.unkillable {
            return;
        }
        match signal {
            StopSignal::Kill => self.die(rank, End::Signalled(SIGKILL)),
            StopSignal::Suspend => state.stopped = true,
            StopSignal::Continue => {
                state.stopped = false;
                if std::mem::take(&mut state.pending_term) {
                    self.terminate(rank);
                }
                let state = &mut self.processes[rank];
                let life = state.number;
                if std::mem::take(&mut state.held) {
                    self.continue_main(rank, Duration::ZERO);
                }
                if self.processes[rank].waiting {
                    self.processes[rank].token += 1;
                }
                let token = self.processes[rank].token;
                self.after(COLLECTIVE, Happening::Timeout { rank, life, token });
                self.after(Duration::ZERO, Happening::Beat { rank, life });
                self.notice_lost_peers();
            }
            StopSignal::Terminate if state.stopped => state.pending_term = true,
            StopSignal::Terminate => self.terminate(rank),
        }
    }

    pub(crate) fn terminate(&mut self, rank: usize) {
        let state = &mut self.processes[rank];
        state.life.note(self.now, RankInput::AskedToStop);
        if state.in_long_work {
            state.in_long_work = false;
            self.continue_main(rank, SECOND);
        }
    }
}
