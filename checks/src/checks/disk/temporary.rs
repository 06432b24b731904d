//! Whether the folder for temporary files has enough space and allows programs to run, which
//! building the trainer and unpacking archives need.

use yolo_base::env::TMPDIR;
use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// What a build and an unpacked archive may use at a time.
const COMFORTABLE: u64 = 1_000_000_000;

pub(super) static CHECK: Check = Check {
    question: "Is the folder for temporary files usable?",
    reports: &["disk.temporary"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? == "windows" {
        return Ok(Vec::new());
    }
    let named = host.env(TMPDIR).ok().flatten().filter(|folder| !folder.is_empty());
    let folder = named.unwrap_or_else(|| "/tmp".to_owned());
    if host.exists(&folder) == Ok(false) {
        let title = format!("TMPDIR is {folder}, which does not exist");
        return Ok(vec![Finding::new("disk.temporary", title).command("unset TMPDIR")]);
    }
    let space = host.file_system(&folder)?;
    let what = if space.options.iter().any(|option| option == "noexec") {
        "does not allow programs to run (noexec)".to_owned()
    } else {
        match space.available {
            // A full disk shared with other folders is reported once, by their check.
            Some(free) if free < COMFORTABLE && !super::space::is_reported_elsewhere(host, &space) => {
                format!("has only {} free", format::bytes(free))
            }
            _ => return Ok(Vec::new()),
        }
    };
    let finding = Finding::new("disk.temporary", format!("{folder}, for temporary files, {what}"));
    Ok(vec![match host.places().ok().and_then(|places| places.cache) {
        Some(cache) => {
            let folder = quote(&format!("{cache}/tmp"));
            finding.command(format!("mkdir -p {folder}")).command(format!("export TMPDIR={folder}"))
        }
        None => finding,
    }])
}
