//! Whether settings are in a file that WSL does not read: `.wslconfig.txt`, as Notepad saves it, or
//! a `.wslconfig` inside the distribution.

use yolo_base::env::HOME;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Is the WSL settings file in the right folder?",
    reports: &["wsl.config-misplaced"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::has_wslconfig(host)? {
        return Ok(Vec::new());
    }
    let windows = host.is_windows()?;
    let home = host.env(HOME).ok().flatten().filter(|_| !windows);
    let inside = home.iter().map(|home| format!("{home}/.wslconfig"));
    let inside: Vec<String> =
        inside.chain(["/etc/.wslconfig".to_owned(), "/etc/wslconfig".to_owned()]).collect();
    let mut wrong: Vec<String> = if windows {
        Vec::new()
    } else {
        inside.into_iter().filter(|path| host.exists(path) == Ok(true)).collect()
    };
    let profile = host.windows_profile();
    if let Ok(profile) = &profile {
        wrong.extend(host.misnamed_wslconfigs(profile));
    }
    let Some(first) = wrong.first() else {
        return profile.map(|_| Vec::new());
    };
    let right = match &profile {
        Ok(profile) => format!("{}\\.wslconfig", host.windows_path(profile)),
        Err(_) => "%UserProfile%\\.wslconfig".to_owned(),
    };
    let finding = Finding::new("wsl.config-misplaced", format!("WSL does not read {first}"))
        .remedy(format!("move its settings to {right}, then shut WSL down from Windows"));
    let finding = wrong[1..].iter().fold(finding, |finding, path| finding.seen(format!("nor {path}")));
    let command = match (&profile, host.wslconfig()) {
        (Ok(profile), Ok(config)) if !config.is_there && !windows => {
            Some(format!("mv {} {}", quote(first), quote(&format!("{profile}/.wslconfig"))))
        }
        _ => None,
    };
    Ok(vec![command.into_iter().fold(finding, Finding::command).command(super::SHUTDOWN)])
}
