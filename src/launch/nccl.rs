//! Settings of NCCL that belong to one run: where it answers questions, and where its watchdog writes.

use std::net::SocketAddr;

use yolo_base::env::{TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DUMP_ON_TIMEOUT};
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;

use super::ras;

/// Writes the settings into the plan of a run that uses NCCL, and returns where NCCL answers.
pub(super) fn prepare(plan: &mut RunPlan) -> Option<SocketAddr> {
    if plan.ranks.backend != Some(Backend::Nccl) {
        return None;
    }
    // The watchdog appends the number of the rank. By default, all runs of a machine use the same files.
    let trace = plan.run_dir.join("logs").join("nccl_trace_rank_");
    let trace = std::path::absolute(&trace).unwrap_or(trace);
    let mut set = |name: &str, value: String| plan.ranks.variables.insert(name.to_owned(), value);
    set(TORCH_FR_DUMP_TEMP_FILE, trace.display().to_string());
    set(TORCH_NCCL_DUMP_ON_TIMEOUT, "1".to_owned());
    ras::choose_address(plan)
}
