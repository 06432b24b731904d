//! Ctrl-C: everything that the kit has started is stopped, and the report keeps the stages that ended.

use std::io;
use std::path::PathBuf;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use yolo_base::exit;

use crate::{print, processes};

/// From now on, a signal that asks the kit to stop kills the processes with these marks, removes the
/// working folder, and ends the program.
///
/// # Errors
/// When the system refuses.
pub fn stop_everything_on_signals(marks: Vec<String>, work: PathBuf) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            marks.iter().for_each(|mark| {
                processes::kill_all(mark);
            });
            // The next start of the system removes what is left of a temporary folder.
            let _ = fs_err::remove_dir_all(work);
            print::interrupted();
            signal_hook::low_level::exit(exit::INTERRUPTED.into());
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}
