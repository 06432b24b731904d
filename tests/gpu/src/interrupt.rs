//! Ctrl-C: everything that the kit has started is stopped, and the report keeps the stages that ended.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use yolo_base::exit;

use crate::{print, processes};

/// Whether the kit was asked to stop.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// From now on, a signal that asks the kit to stop kills the processes with these marks, removes the
/// working folder, and ends the program.
///
/// # Errors
/// When the system refuses.
pub fn stop_everything_on_signals(marks: Vec<String>, work: PathBuf) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            // Before anything is killed, so that no stage takes that for a failure.
            STOPPING.store(true, Ordering::SeqCst);
            marks.iter().for_each(|mark| {
                processes::kill_all(mark);
            });
            // A temporary folder that cannot be removed is left to the system.
            let _ = fs_err::remove_dir_all(work);
            print::interrupted();
            signal_hook::low_level::exit(exit::INTERRUPTED.into());
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

/// Never returns once the kit was asked to stop: whatever a program did since then, this run caused it. The
/// thread that handles the signal ends the program.
pub fn do_not_go_on_while_stopping() {
    while STOPPING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}
