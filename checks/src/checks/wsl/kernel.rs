//! Whether WSL's kernel is new enough for CUDA. NVIDIA requires 4.19.121 and recommends 5.10.16.3;
//! before 5.10.43, training was reported to freeze.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// The minimum for CUDA (NVIDIA, CUDA on WSL User Guide, section 5).
const LEAST: [u32; 3] = [4, 19, 121];
/// What NVIDIA recommends.
const RECOMMENDED: [u32; 4] = [5, 10, 16, 3];
/// The first version not mentioned in reports of frozen training (microsoft/WSL#7443).
const WITHOUT_FREEZES: [u32; 3] = [5, 10, 43];

pub(super) static CHECK: Check = Check {
    question: "Is WSL's kernel new enough for CUDA?",
    reports: &["wsl.kernel-old"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? || intent.cpu {
        return Ok(Vec::new());
    }
    let kernel = host.kernel_version()?;
    let (status, why) = if kernel.is_below(&LEAST) {
        (Status::Error, "CUDA needs 4.19.121 or later")
    } else if kernel.is_below(&RECOMMENDED) {
        (Status::Warning, "NVIDIA recommends 5.10.16.3 or later")
    } else if kernel.is_below(&WITHOUT_FREEZES) {
        (
            Status::Warning,
            "with kernels before 5.10.43, training has been reported to freeze without a message",
        )
    } else {
        return Ok(Vec::new());
    };
    let title = format!("WSL's kernel is {kernel}: {why}");
    Ok(vec![
        Finding::new("wsl.kernel-old", title)
            .status(status)
            .command("wsl.exe --update")
            .command(super::SHUTDOWN),
    ])
}
