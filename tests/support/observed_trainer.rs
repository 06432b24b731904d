//! A trainer whose events a test can follow, so that it acts at a chosen moment of a run.

#![allow(unreachable_pub, reason = "each test program has this file as a module")]

use std::path::{Path, PathBuf};

use crate::user::{Running, User, wait_for};

/// A trainer that also writes its events to a file, so that a test can wait for one of them.
pub struct ObservedTrainer {
    program: PathBuf,
    events: PathBuf,
}

impl ObservedTrainer {
    pub fn new(user: &User) -> Self {
        let trainer = Path::new(env!("CARGO_BIN_EXE_yolo")).with_file_name("yolo-trainer");
        let events = user.path().join("events");
        // The events go through `tee`; `exec` lets the signals of the supervisor reach the trainer.
        let script = format!(
            "#!/usr/bin/env bash\nfd=$YOLO_EVENTS_FD\neval \"exec $fd> >(exec tee -a '{}' >&$fd)\"\nexec '{}' \"$@\"\n",
            events.display(),
            trainer.display()
        );
        let program = user.write_program("observed-trainer", &script);
        Self { program, events }
    }

    pub fn start(&self, user: &User, arguments: &str) -> Running {
        user.start_with(arguments, &[("YOLO_TRAINER", self.program.to_str().unwrap())])
    }

    /// Waits until the trainer reports that it is doing this.
    #[track_caller]
    pub fn wait_for(&self, doing: &str) {
        let phase = format!("\"doing\":\"{doing}\"");
        wait_for(doing, || std::fs::read_to_string(&self.events).ok().filter(|text| text.contains(&phase)));
    }
}
