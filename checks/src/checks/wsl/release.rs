//! Which release of WSL this is. The one built into Windows does not support `wsl --version`, and
//! ignores the newer settings of `.wslconfig`.

use super::start;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::exe_output;

pub(super) static CHECK: Check = Check {
    question: "Which version of WSL is installed?",
    reports: &["wsl.release", "wsl.inbox"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::has_wslconfig(host)? {
        return Ok(Vec::new());
    }
    // Without wsl.exe there is no WSL, which the installation check reports.
    let Some(answer) = host.wsl_versions()? else { return Ok(Vec::new()) };
    let Some(versions) = answer else {
        if host.is_windows()? && (installation_is_sick(host) || host.old_windows().is_some()) {
            return Ok(Vec::new());
        }
        let title = "WSL is the version built into Windows: it does not support `wsl --version`";
        let web = start::needs_web_download(host, &start::recorded(host));
        let update = if web { "wsl.exe --update --web-download" } else { "wsl.exe --update" };
        return Ok(vec![Finding::new("wsl.inbox", title).command(update).command(super::SHUTDOWN)]);
    };
    let windows = versions.windows.map_or(String::new(), |windows| format!(" on Windows {windows}"));
    let finding = Finding::ok("wsl.release", format!("WSL {}{windows}", versions.wsl));
    let kernel = versions.kernel.map(|kernel| format!("its kernel is {kernel}"));
    Ok(vec![kernel.into_iter().fold(finding, Finding::seen)])
}

/// Whether `wsl.exe` rejects every command: then its version is not the problem.
fn installation_is_sick(host: &Host) -> bool {
    let status = host.wsl_status().ok().flatten().unwrap_or_default();
    let version =
        host.wsl_exe(&["--version"]).ok().flatten().map(|output| output.all_text()).unwrap_or_default();
    // An old wsl.exe prints its help, without a code.
    exe_output::trouble(&status).is_some()
        || [status, version].iter().any(|text| exe_output::code(text).is_some())
}
