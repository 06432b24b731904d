//! `yolo compare`.

use yolo_base::exit;
use yolo_report::{RunFiles, compare as compare_runs, comparison_page};

use crate::cli::CompareArgs;
use crate::error::CommandError;
use crate::output_file;
use crate::printer::{Printer, runs_table};

/// Shows runs side by side and returns the exit status.
pub(super) fn compare(args: &CompareArgs, printer: &Printer) -> Result<u8, CommandError> {
    if let Some(file) = &args.html {
        output_file::check(file)?;
    }
    let runs: Vec<RunFiles> =
        args.runs.iter().map(|folder| RunFiles::read(folder)).collect::<Result<_, _>>()?;
    let comparison = compare_runs(&runs);
    comparison.warnings.iter().for_each(|warning| printer.warning(warning));
    if let Some(file) = &args.html {
        output_file::write(file, &comparison_page(&comparison, &runs))?;
    }
    match args.json {
        true => printer.result(serde_json::to_string_pretty(&comparison).unwrap_or_default()),
        false => printer.result(runs_table(&comparison)),
    }
    if let Some(file) = &args.html {
        printer.say(format_args!("page: {}", file.display()));
    }
    Ok(exit::SUCCESS)
}
