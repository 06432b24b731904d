//! How long Windows lets a GPU be busy before it resets it. WSL has the same limit.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

const DELAY: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\GraphicsDrivers\TdrDelay";
/// The default of Windows, in seconds.
const USUAL: u64 = 2;

pub(super) static CHECK: Check = Check {
    question: "After how long does Windows reset a busy GPU?",
    reports: &["windows.tdr"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !(host.is_windows()? || host.is_wsl2()?) || intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let delay = host.windows_registry(DELAY)?.and_then(|value| value.parse::<u64>().ok());
    let seconds = delay.unwrap_or(USUAL);
    let title = format!("Windows resets a GPU if one kernel keeps it busy for {seconds} s");
    // Nobody sets the default or less on purpose; nearly every PC has it unset.
    let status = if delay.is_some_and(|delay| delay <= USUAL) { Status::Info } else { Status::Ok };
    let command =
        r"reg add HKLM\SYSTEM\CurrentControlSet\Control\GraphicsDrivers /v TdrDelay /t REG_DWORD /d 60 /f";
    Ok(vec![Finding::new("windows.tdr", title).status(status).command(command)])
}
