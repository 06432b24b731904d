//! What the user is told about a run in progress: that it makes no progress and because of whom, that it goes on, and
//! which ranks no signal ends.

use yolo_base::format::duration;
use yolo_plan::event::Stage;
use yolo_protocol::Notice;

use super::message::Message;
use super::rank::RankIo;
use super::ras;
use super::supervisor::Watch;

impl Watch<'_> {
    /// Shows a notice of the state machine.
    pub(super) fn tell(&mut self, notice: &Notice) {
        let text = match notice {
            Notice::Stalled { ranks, seconds, step } => {
                self.ask_nccl();
                self.stalled(ranks, *seconds, *step)
            }
            Notice::Recovered { seconds } => {
                format!("the run continues after {} without progress", duration(*seconds))
            }
            Notice::FailedAfterwards(failure) => {
                let failure = self.explain(failure);
                format!("the run is complete, but {failure}")
            }
            Notice::LeftBehind(ranks) => {
                let each: Vec<String> = ranks
                    .iter()
                    .map(|&rank| {
                        let whose = match self.ranks.get(rank) {
                            Some(process) => format!("process {}", process.former_pid()),
                            None => format!("on {}", self.host_of(rank).unwrap_or_default()),
                        };
                        format!("rank {} ({whose})", self.number(rank))
                    })
                    .collect();
                format!(
                    "no signal ends {}, probably because a disk, network drive or driver hangs; it may keep \
                     its GPU until the machine is restarted",
                    each.join(", ")
                )
            }
        };
        self.warn(text);
    }

    /// Asks NCCL who is behind, on a thread of its own, because ranks that hang do not answer.
    fn ask_nccl(&self) {
        let Some(address) = self.terms.ras else { return };
        let (sender, start) = (self.sender.clone(), self.start);
        std::thread::spawn(move || {
            if let Some(text) = ras::ask(address) {
                // Without a receiver, the run is over.
                let _ = sender.send(Message::Nccl(start, text));
            }
        });
    }

    fn stalled(&self, stalled: &[usize], seconds: f64, step: f64) -> String {
        let all = self.machine.ranks();
        let each: Vec<String> = stalled
            .iter()
            .map(|&rank| match (self.stopped(rank), all[rank].progress()) {
                (Some(process), _) => {
                    format!("rank {} is stopped (`kill -CONT {process}` continues it)", self.number(rank))
                }
                (None, Some(at)) => format!(
                    "rank {} is {} (epoch {}, batch {} of {})",
                    self.number(rank),
                    stage(at.stage),
                    at.epoch + 1,
                    (at.batch + 1).min(at.batches),
                    at.batches
                ),
                (None, None) => format!("rank {} is {}", self.number(rank), all[rank].doing()),
            })
            .collect();
        // A rank may have come to the end of its step before the others, and wait too.
        let waits = |&rank: &usize| {
            let stage = all[rank].progress().map(|at| at.stage);
            stage == Some(Stage::Exchanging) && self.stopped(rank).is_none()
        };
        let waiting = match stalled.len() {
            waiting if waiting == all.len() || stalled.iter().any(waits) => "",
            1 => "; the other ranks wait for it",
            _ => "; the other ranks wait for them",
        };
        format!(
            "no progress for {}, after steps of {step:.2} s: {}{waiting}. The run goes on; Ctrl-C ends it",
            duration(seconds),
            each.join(", ")
        )
    }

    /// The process of a rank of this machine that is stopped, for example by SIGSTOP.
    fn stopped(&self, rank: usize) -> Option<u32> {
        self.ranks.get(rank).filter(|process| process.state() == Some('T')).and_then(RankIo::pid)
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Loading => "loading images",
        Stage::Computing => "computing or exchanging gradients",
        Stage::Exchanging => "waiting for the others",
    }
}
