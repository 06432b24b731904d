//! Settings that keep NCCL from hanging or failing on this machine: those that the findings about its GPUs
//! advise. `yolo` sets them for the ranks of a run, so that the user need not.

use crate::checks::run_checks;
use crate::facts::Host;
use crate::intent::Intent;
use crate::remedies::user_shell::assignment;
use crate::status::Status;

/// The findings whose remedy is to set variables of NCCL.
pub const ANSWERED_BY_SETTINGS: [&str; 5] =
    ["gpu.peer-fault", "gpu.peer-redirected", "gpu.nvls", "wsl.several-gpus", "system.numa-uneven"];

/// A variable of NCCL, and why it is needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclSetting {
    /// `NCCL_P2P_DISABLE`
    pub name: String,
    /// `1`
    pub value: String,
    /// The title of the finding.
    pub why: String,
}

/// The settings for `ranks` ranks of this machine on these GPUs, by their nvidia-smi numbers.
pub fn nccl_settings(host: &Host, gpus: &[usize], ranks: usize) -> Vec<NcclSetting> {
    let intent = Intent { run: true, devices: gpus.to_vec(), ranks: Some(ranks), ..Intent::default() };
    let reports = |check: &crate::Check| check.reports.iter().any(|id| ANSWERED_BY_SETTINGS.contains(id));
    let findings = run_checks(host, &intent, reports).into_iter().flat_map(|verdict| verdict.findings);
    let mut settings: Vec<NcclSetting> = Vec::new();
    for finding in findings.filter(|finding| finding.status == Status::Warning) {
        let remedy = finding.remedy.iter().flat_map(|remedy| &remedy.commands);
        for (name, value) in remedy.filter_map(|command| assignment(command)) {
            if !settings.iter().any(|setting| setting.name == name) {
                let (name, value) = (name.to_owned(), value.to_owned());
                settings.push(NcclSetting { name, value, why: finding.title.clone() });
            }
        }
    }
    settings
}
