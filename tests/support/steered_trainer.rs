//! A trainer to which something happens at a chosen moment of a run: a rank is killed, or the user presses
//! Ctrl-C, when the rank reports that it does something.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::user::{Finished, User};

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The rank gets SIGKILL.
    Kill,
    /// The user presses Ctrl-C. The rank stands still until the supervisor has asked it to stop, so the
    /// request comes at this moment and no later.
    Interrupt,
    /// The rank never gets further: it was replaced by a process that sleeps, and the user presses
    /// Ctrl-C. The moment is that of rank 0.
    InterruptWithoutRank1,
    /// The checkpoint to resume is not on the machines of ranks other than 0.
    HideCheckpoint,
}

/// When it happens: so many milliseconds after this rank has reported for the `count`-th time that it does
/// something whose description contains `doing`.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub rank: usize,
    pub doing: &'static str,
    pub count: usize,
    pub milliseconds: usize,
}

impl Moment {
    /// As soon as rank 0 reports this for the first time.
    pub fn when(doing: &'static str) -> Self {
        Self { rank: 0, doing, count: 1, milliseconds: 0 }
    }
}

/// Events go through the shell; `exec` gives the trainer the number of this process.
const SCRIPT: &str = r#"#!/usr/bin/env bash
fd=$YOLO_EVENTS_FD
rank=$$
supervisor=$PPID
plan=$1
if [ "$STEER_ACT" = InterruptWithoutRank1 ] && [ "$RANK" = 1 ]; then exec sleep 600; fi
if [ "$STEER_ACT" = HideCheckpoint ] && [ "$RANK" != 0 ]; then
  plan=$PWD/plan-of-rank$RANK.json
  sed 's#weights/last.pt#weights/not-here.pt#' "$1" > "$plan"
fi
# Waits until the status of the rank has a line like this, or the rank is gone.
until_status() {
  while [ -e /proc/$rank/status ] && ! grep -qE "$1" /proc/$rank/status; do sleep 0.01; done
}
# The rank does not wait for this script, which may be late on a busy machine. What a stopped rank has reported
# until now lies in the pipe: if it does something else by now, a file says so.
take_pending() {
  while IFS= read -r -t 0.1 line; do
    case $line in *'"doing":"'*"$STEER_DOING"*) ;; *'"doing":"'*) touch "$MISSED" ;; esac
    pending+=("$line")
  done
}
act() {
  sleep "$STEER_SECONDS"
  case $STEER_ACT in
    Kill) kill -KILL $rank ;;
    Interrupt*)
      kill -STOP $rank
      until_status '^State:.[TZ]'
      take_pending
      kill -INT $supervisor
      # Until SIGTERM, number 15, waits for the rank.
      until_status '^(State:.Z|ShdPnd:.0{12}[4-7c-f])'
      kill -CONT $rank ;;
  esac
}
watch() {
  local seen=0 line pending=()
  while IFS= read -r line; do
    case $line in *'"doing":"'*"$STEER_DOING"*)
      seen=$((seen + 1))
      if [ "$seen" = "$STEER_COUNT" ] && [ "$RANK" = "$STEER_RANK" ]; then act; fi ;;
    esac
    printf '%s\n' "$line" "${pending[@]}"
    pending=()
  done
}
eval "exec $fd> >(watch >&$fd)"
exec "$TRAINER" "$plan"
"#;

/// The trainer, as a program.
pub struct SteeredTrainer {
    program: PathBuf,
    missed: PathBuf,
}

impl SteeredTrainer {
    pub fn new(user: &User) -> Self {
        let program = user.write_program("steered-trainer", SCRIPT);
        Self { program, missed: user.path().join("moment-missed") }
    }

    /// Whether the rank did something else already when the user pressed Ctrl-C in the last run.
    pub fn missed(&self) -> bool {
        self.missed.exists()
    }

    /// Runs `yolo` with this trainer to its end.
    pub fn run(&self, user: &User, arguments: &str, threads: usize, act: Act, at: Moment) -> Finished {
        let trainer = std::env::var_os("YOLO_TRAINER").map_or_else(
            || Path::new(env!("CARGO_BIN_EXE_yolo")).with_file_name("yolo-trainer"),
            PathBuf::from,
        );
        let _ = std::fs::remove_file(&self.missed);
        let mut command = command(user, arguments, threads);
        command
            .env("YOLO_TRAINER", &self.program)
            .env("MISSED", &self.missed)
            .env("TRAINER", trainer)
            .env("STEER_ACT", format!("{act:?}"))
            .env("STEER_RANK", at.rank.to_string())
            .env("STEER_DOING", at.doing)
            .env("STEER_COUNT", at.count.to_string())
            .env("STEER_SECONDS", format!("0.{:03}", at.milliseconds));
        Finished::from(command.output().unwrap())
    }
}

/// How often Ctrl-C is tried until it comes in time.
const TRIES: usize = 50;

/// What `yolo` prints after Ctrl-C when the run can be resumed.
pub const SAVED: &str = "interrupted; the run's state is saved";

/// Runs `arguments` with Ctrl-C at this moment. The run must end as `expected` says; where it does not, and the
/// rank already did something else when Ctrl-C came, this is tried again.
#[track_caller]
pub fn interrupt(
    user: &User,
    arguments: &str,
    act: Act,
    at: Moment,
    expected: impl Fn(&Finished) -> bool,
) -> Finished {
    let trainer = SteeredTrainer::new(user);
    for _ in 0..TRIES {
        let output = trainer.run(user, arguments, 1, act, at);
        if expected(&output) {
            return output;
        }
        assert!(trainer.missed(), "{} {:?}: {}\n{}", at.doing, output.code, output.stdout, output.stderr);
        if let Some((_, rest)) = arguments.split_once("--name ") {
            let name = rest.split_whitespace().next().unwrap_or_default();
            std::fs::remove_dir_all(user.path().join("runs/train").join(name)).unwrap();
        }
    }
    panic!("Ctrl-C always came too late for \"{}\"", at.doing)
}

/// As [`interrupt`]: `yolo` must leave with status 130, without an error, and with the line `said`. A rank that
/// waited for another would have been killed after two minutes, and the output would say so.
#[track_caller]
pub fn interrupt_saying(user: &User, arguments: &str, act: Act, at: Moment, said: &str) -> Finished {
    interrupt(user, arguments, act, at, |output| {
        let failed = ["error", "killed"].iter().any(|word| output.stderr.contains(word));
        output.code == Some(130) && !failed && output.stderr.lines().any(|line| line == said)
    })
}

/// `yolo` with this many CPU threads per rank.
pub fn command(user: &User, arguments: &str, threads: usize) -> Command {
    let mut command = user.command(arguments);
    command.env("OMP_NUM_THREADS", threads.to_string()).stdin(Stdio::null());
    command
}

/// Runs `yolo` with its own trainer to its end.
pub fn run(user: &User, arguments: &str, threads: usize) -> Finished {
    Finished::from(command(user, arguments, threads).output().unwrap())
}
