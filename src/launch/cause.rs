//! The words for a failure: what happened to the rank that failed first, what it means, and what to do.

use yolo_base::exit::{self, describe_signal};
use yolo_plan::event::Progress;
use yolo_protocol::{Cause, End, Failure, Rank};

use super::checkpoint::LastCheckpoint;
use super::failure::RankFailure;
use super::host::host_name;
use super::memory::{Killer, MemoryWatch};
use super::rank::RankIo;

/// Numbers of signals on Linux.
const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGKILL: i32 = 9;

/// What is known about the rank that failed.
pub(super) struct Seen<'a> {
    pub(super) rank: &'a Rank,
    /// Its process, if it is on this machine.
    pub(super) process: Option<&'a RankIo>,
    /// The name of its machine, if that is another.
    pub(super) host: Option<&'a str>,
}

/// The failure as it is reported. `number` is that of the failed rank among all ranks, of which there are
/// `world`.
pub(super) fn explain(
    failure: &Failure,
    (number, world): (usize, usize),
    Seen { rank: state, process, host }: Seen<'_>,
    checkpoint: &LastCheckpoint,
    memory: &MemoryWatch,
) -> RankFailure {
    let resume = checkpoint.advice();
    let words = Words::of(&failure.cause, process.map(RankIo::former_pid), (world, host), memory);
    let doing = match &failure.cause {
        Cause::Reported(reported) => reported.doing.clone(),
        _ => state.doing().to_owned(),
    };
    let reported = matches!(failure.cause, Cause::Reported(_) | Cause::OtherVersion(_));
    let hint = match (words.hint, resume) {
        // The rank's own advice comes first: a run that is resumed unchanged fails again.
        (hint, resume) if reported => hint.or(resume),
        (hint, resume) => {
            let hints: Vec<String> = hint.into_iter().chain(resume).collect();
            (!hints.is_empty()).then(|| hints.join("; "))
        }
    };
    RankFailure {
        rank: number,
        world,
        device: state.device().to_owned(),
        host: Some(host.map_or_else(host_name, str::to_owned)),
        doing: at_batch(doing, state.progress().filter(|_| state.counts_steps())),
        why: words.why,
        hint,
        last_lines: process.filter(|_| !reported).map(|process| process.log.quoted()).unwrap_or_default(),
        log: process.map(|process| process.log.path().to_owned()),
        reported,
        of_data: matches!(&failure.cause, Cause::Reported(reported) if reported.of_data),
    }
}

fn at_batch(doing: String, progress: Option<&Progress>) -> String {
    match progress {
        // After the last step of an epoch, the next one is still to begin.
        Some(at) if at.batches > 0 => {
            format!("{doing}, batch {} of {}", (at.batch + 1).min(at.batches), at.batches)
        }
        _ => doing,
    }
}

/// What happened, as words that follow "rank 1", and what to do about it.
struct Words {
    why: String,
    hint: Option<String>,
}

impl Words {
    /// `host` is the name of the rank's machine, if that is another.
    fn of(
        cause: &Cause,
        pid: Option<u32>,
        (world, host): (usize, Option<&str>),
        memory: &MemoryWatch,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let failed = |message: &str| match world {
            1 => message.to_owned(),
            _ => format!("failed: {message}"),
        };
        match cause {
            Cause::Reported(reported) => Self { why: failed(&reported.message), hint: reported.hint.clone() },
            Cause::OtherVersion(what) => Self::new(
                &failed(&format!("speaks a different protocol version than yolo {version}: {what}")),
                "use yolo and yolo-trainer from the same release, or unset YOLO_TRAINER",
            ),
            Cause::Silent { seconds, state } => Self {
                why: format!("sent no heartbeat for {seconds} s: {}", state_in_words(*state)),
                hint: None,
            },
            Cause::Hung => {
                Self { why: "hung, did not stop when asked to, and was killed".to_owned(), hint: None }
            }
            Cause::MachineLost { machine, silent } => {
                Self {
                    why: match silent {
                        Some(seconds) => {
                            format!("was lost with machine {machine}, which has sent nothing for {seconds} s")
                        }
                        None => format!("was lost with machine {machine}, whose connection was closed"),
                    },
                    hint: Some(match silent {
                        Some(_) => "look whether that machine runs, and at the network between the machines"
                            .to_owned(),
                        None => "look at the output of `yolo` on that machine: it was killed or has failed"
                            .to_owned(),
                    }),
                }
            }
            Cause::LeftEarly => Self {
                why: "exited before the run was finished, and reported no error".to_owned(),
                hint: None,
            },
            Cause::Ended(End::Signalled(signal)) => {
                Self::killed(*signal, host, || pid.map_or(Killer::Unknown, |pid| memory.killer(pid)))
            }
            Cause::Ended(End::Exited(127)) => {
                Self::new("could not load its libraries", "run `yolo setup` again")
            }
            Cause::Ended(End::Exited(code)) if *code == i32::from(exit::INTERRUPTED) => Self {
                why: "was asked to end by a signal that `yolo` did not send".to_owned(),
                hint: Some("to end a run, send the signal to `yolo`".to_owned()),
            },
            Cause::Ended(End::Exited(code)) => {
                Self { why: format!("exited with code {code} without reporting an error"), hint: None }
            }
        }
    }

    fn new(why: &str, hint: &str) -> Self {
        Self { why: why.to_owned(), hint: Some(hint.to_owned()) }
    }

    /// `host` is the name of the rank's machine, if that is another, whose files cannot be looked at.
    fn killed(signal: i32, host: Option<&str>, killer: impl FnOnce() -> Killer) -> Self {
        const LESS: &str = "reduce --batch, --imgsz or --workers, or omit --cache";
        let name = describe_signal(signal);
        match signal {
            SIGKILL => match killer() {
                Killer::Machine => Self {
                    why: format!("was killed by {name}: the machine ran out of memory"),
                    hint: Some(LESS.to_owned()),
                },
                Killer::ControlGroup => Self {
                    why: format!("was killed by {name}: its container or job reached its memory limit"),
                    hint: Some(format!("{LESS}, or raise the limit")),
                },
                Killer::MachineOrGroup => Self {
                    why: format!(
                        "was killed by {name}: the machine, its container or its job ran out of memory"
                    ),
                    hint: Some(LESS.to_owned()),
                },
                Killer::SomebodyElse => Self::new(
                    &format!("was killed by {name}, which another process sent"),
                    "the kernel's log does not say that memory ran out, so a user, a job scheduler or a memory \
                     guard such as earlyoom killed it",
                ),
                Killer::Unknown => {
                    let there = host.map_or(String::new(), |host| format!(" on {host}"));
                    let hint = format!(
                        "`sudo dmesg`{there} says whether memory ran out; if not, a user or a job scheduler killed it"
                    );
                    Self::new(&format!("was killed by {name}"), &hint)
                }
            },
            SIGBUS => {
                let hint = match host {
                    Some(host) => {
                        format!("check `df -h /dev/shm` and the disks with data and caches on {host}")
                    }
                    None => format!(
                        "{}: check `df -h /dev/shm` and the disks with data and caches",
                        shared_memory()
                    ),
                };
                Self::new(&format!("was killed by {name}"), &hint)
            }
            SIGABRT => {
                let there = host.map_or(String::new(), |host| format!(", on {host}"));
                Self::new(
                    &format!("was killed by {name}: a library gave up"),
                    &format!("the reason is in the last lines of its log{there}"),
                )
            }
            _ => Self { why: format!("was killed by {name}"), hint: None },
        }
    }
}

/// What SIGBUS means, by the space that is left in shared memory.
fn shared_memory() -> String {
    #[cfg(target_os = "linux")]
    if let Ok(shm) = rustix::fs::statvfs("/dev/shm") {
        let (free, all) = (shm.f_bavail * shm.f_frsize, shm.f_blocks * shm.f_frsize);
        let mebibytes = free >> 20;
        return match free < all / 20 {
            true => format!("shared memory is full ({mebibytes} MiB are free in /dev/shm)"),
            false => "a file that it had mapped was cut, or its disk or shared memory was full".to_owned(),
        };
    }
    "a file that it had mapped was cut, or its disk was full".to_owned()
}

fn state_in_words(state: char) -> String {
    match state {
        'T' => "the process is stopped, for example by SIGSTOP (state T)".to_owned(),
        'D' => "the process is waiting for a disk or network drive (state D)".to_owned(),
        'R' => "the process gets no CPU time (state R)".to_owned(),
        'S' => "the process is sleeping".to_owned(),
        other => format!("the process is in state {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_9_means_memory_only_if_the_kernel_says_so() {
        let why = |killer| Words::killed(SIGKILL, None, || killer).why;
        assert_eq!(why(Killer::Machine), "was killed by signal 9 (SIGKILL): the machine ran out of memory");
        assert!(why(Killer::ControlGroup).ends_with("its container or job reached its memory limit"));
        for killer in [Killer::SomebodyElse, Killer::Unknown] {
            assert!(!why(killer).contains("memory"), "{killer:?}");
        }
    }

    #[test]
    fn the_machine_to_look_at_is_named_if_it_is_another() {
        let hint = |signal, host| Words::killed(signal, host, || Killer::Unknown).hint.unwrap();
        assert!(hint(SIGKILL, None).starts_with("`sudo dmesg` says whether memory ran out"));
        assert!(
            hint(SIGKILL, Some("lab-2")).starts_with("`sudo dmesg` on lab-2 says whether memory ran out")
        );
        assert!(hint(SIGBUS, Some("lab-2")).ends_with("data and caches on lab-2"));
        assert!(hint(SIGABRT, Some("lab-2")).ends_with("its log, on lab-2"));
    }

    #[test]
    fn a_batch_is_named_where_batches_are_counted() {
        let stage = yolo_plan::event::Stage::Loading;
        let progress =
            Progress { epoch: 0, batch: 16, batches: 40, steps: 16, images: 0, stage, seconds: [0.0; 3] };
        let doing = at_batch("training epoch 1 of 3".to_owned(), Some(&progress));
        assert_eq!(doing, "training epoch 1 of 3, batch 17 of 40");
        assert_eq!(at_batch("validating".to_owned(), None), "validating");
    }
}
