//! Which version of WSL this is: WSL 1 translates system calls and has no GPU support.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Wsl};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::exe_output;

pub(super) static CHECK: Check =
    Check { question: "Is this WSL 2?", reports: &["wsl.two", "wsl.one"], preflight: true, run };

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(wsl) = host.wsl()? else { return Ok(of_windows(host).into_iter().collect()) };
    let kernel = host.kernel_release()?;
    if wsl == Wsl::Two {
        return Ok(vec![Finding::ok("wsl.two", format!("WSL 2 with kernel {kernel}"))]);
    }
    let name = host.env("WSL_DISTRO_NAME").ok().flatten().unwrap_or_else(|| "<distribution>".to_owned());
    let status = if intent.cpu { Status::Warning } else { Status::Error };
    Ok(vec![
        Finding::new("wsl.one", "this is WSL 1, which has no GPU support")
            .status(status)
            .seen(format!("kernel {kernel}"))
            .command(format!("wsl.exe --set-version {name} 2")),
    ])
}

/// On Windows, the list of distributions shows the version of the one that `wsl` starts.
fn of_windows(host: &Host) -> Option<Finding> {
    if host.is_windows() != Ok(true) {
        return None;
    }
    let all = exe_output::distributions(&host.wsl_list().ok()??);
    let one = all.iter().find(|one| one.default && one.version == 1 && one.is_usable())?;
    let title = format!("{}, which `wsl` starts, is WSL 1, which has no GPU support", one.name);
    let finding = Finding::new("wsl.one", title).status(Status::Warning);
    Some(finding.command(format!("wsl.exe --set-version {} 2", one.name)))
}
