//! Whether the run's paths are longer than Windows supports by default.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// The longest path in characters that Windows supports by default; a run appends file names of about
/// 60.
const LONGEST: usize = 260 - 60;
const SETTING: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem\LongPathsEnabled";

pub(super) static CHECK: Check = Check {
    question: "Are the run's paths short enough for Windows?",
    reports: &["windows.long-paths"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let paths = [intent.data.clone(), intent.project.clone(), places.working, places.data];
    let Some(path) = paths.into_iter().flatten().find(|path| path.chars().count() > LONGEST) else {
        return Ok(Vec::new());
    };
    if host.registry(SETTING)?.as_deref() == Some("1") {
        return Ok(Vec::new());
    }
    let title = format!(
        "one of the run's paths has {} characters; with the file names, it exceeds Windows' limit of 260",
        path.chars().count()
    );
    let command =
        r"reg add HKLM\SYSTEM\CurrentControlSet\Control\FileSystem /v LongPathsEnabled /t REG_DWORD /d 1 /f";
    Ok(vec![Finding::new("windows.long-paths", title).seen(path).command(command)])
}
