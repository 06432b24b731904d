//! `--data-to-linux`: before a run is planned, its data set is copied from a Windows drive to the Linux side.

use std::path::PathBuf;

use yolo_base::env::YOLO_HOME;
use yolo_base::format;
use yolo_base::windows_paths::Drives;
use yolo_plan::dataset::{DataSet, is_file};

use super::interrupt::Interrupt;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::machine;
use crate::printer::{Printer, SetupView};
use crate::setup::data::copy_to_linux;

/// The part of a path that exists, without links.
fn existing_part(path: PathBuf) -> PathBuf {
    path.ancestors().find_map(|part| part.canonicalize().ok()).unwrap_or(path)
}

/// The `--data` to use: that of the copy, if there is to be one.
pub(super) fn data_in_linux(
    wanted: bool,
    data: Option<&str>,
    printer: &Printer,
) -> Result<Option<String>, CommandError> {
    let (true, Some(data)) = (wanted, data) else { return Ok(data.map(str::to_owned)) };
    let dirs = YoloDirs::from_env()?;
    let places = machine::plan_places(&dirs)?;
    // What `yolo` downloads or generates is in Linux.
    if !is_file(data, &places) {
        return Ok(Some(data.to_owned()));
    }
    let found = DataSet::load(data, &places)?;
    let drives = Drives::of_this_system();
    let splits = [&found.train, &found.val, &found.test];
    if !splits.into_iter().flatten().any(|path| drives.holds(path)) {
        printer.say("--data-to-linux: the data set is not on a Windows drive, and is used where it is");
        return Ok(Some(data.to_owned()));
    }
    let target = existing_part(dirs.data_sets());
    if drives.holds(&target) {
        return Err(CommandError::Failed {
            what: format!(
                "--data-to-linux would copy the data set to {}, which is on a Windows drive and as slow",
                dirs.data_sets().display()
            ),
            hint: format!(
                "let {YOLO_HOME} name a folder of Linux, such as /home/you/yolo, or remove the variable: `yolo` then keeps its \
                 data in your Linux home folder"
            ),
        });
    }
    let _interrupt = Interrupt::with_message("run the same command again to continue the copy", printer);
    let view = SetupView::new(printer);
    let copy = copy_to_linux(&found, &dirs, &view);
    view.clear();
    drop(view);
    let copy = copy?;
    let yaml = copy.yaml.display();
    match copy.copied {
        0 => printer.say(format_args!("the copy of the data set is up to date: {yaml}")),
        count => printer.say(format_args!(
            "copied {} of {} of the data set ({}) to {yaml}",
            count,
            format::count(copy.files, "file"),
            format::bytes(copy.bytes)
        )),
    }
    Ok(Some(copy.yaml.to_string_lossy().into_owned()))
}
