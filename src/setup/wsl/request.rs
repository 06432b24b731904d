//! What the user asked `yolo setup --wsl` for.

use yolo_checks::wsl::sizing::Training;

/// The options of `yolo setup --wsl`.
#[derive(Debug, Clone, Default)]
pub(crate) struct WslRequest {
    /// The distribution to use, by name.
    pub(crate) distribution: Option<String>,
    /// The training that the values of `.wslconfig` must suit.
    pub(crate) training: Training,
    /// Whether to stop after the plan.
    pub(crate) dry_run: bool,
}
