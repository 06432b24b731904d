//! What `yolo setup --wsl` reports while it works. The command implements [`Observer`] with the
//! printer; tests collect the reports.

use yolo_checks::wsl::vm::{Difference, Vm};

use super::config::WrittenConfig;
use super::linux::plan::{LinuxPlan, LinuxStep};
use super::windows::facts::WindowsFacts;
use super::windows::plan::WindowsPlan;
use super::windows::step::WindowsStep;

/// One report.
#[derive(Debug)]
pub(crate) enum Progress<'a> {
    /// The plan on Windows, before its first step.
    WindowsPlan(&'a WindowsFacts, &'a WindowsPlan),
    /// A step on Windows is about to run.
    WindowsStep(&'a WindowsStep),
    /// The plan inside WSL, before its first step.
    LinuxPlan(&'a LinuxPlan),
    /// A step inside WSL, which setup takes or, where it cannot, leaves to the user.
    LinuxStep(&'a LinuxStep),
    /// `.wslconfig` was written.
    ConfigWritten(&'a WrittenConfig),
    /// The loader now searches the folder of the Windows driver's libraries.
    LoaderPathAdded,
    /// The virtual machine does not have a value of `.wslconfig`.
    NotInEffect(&'a Difference),
    /// The virtual machine has all values of `.wslconfig`.
    InEffect(&'a Vm),
    /// Setup has finished on Windows: the command that opens Linux.
    Ready(&'a str),
}

/// Receives the reports, and asks the user.
pub(crate) trait Observer {
    /// Takes note of a report.
    fn report(&self, progress: &Progress<'_>);

    /// Whether the user agrees to the step that was just reported; `None` if nobody can be asked.
    fn confirm(&self) -> Option<bool>;
}
