//! Whether the files of a run can be read only as long as a ticket of Kerberos lasts, as on AFS and on NFS with `sec=krb5`.
//! Tickets end after some hours, often in the middle of a run, which then can neither read images nor save.

use std::time::Duration;

use crate::checks::{Answer, Check};
use crate::facts::{FileSystem, Host, Job};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does access to the files of the run end with a ticket?",
    reports: &["disk.ticket"],
    preflight: false,
    run,
};

/// What a run needs that is longer than the ticket.
const RENEW: &str = "have the ticket renewed while the run lasts, by `krenew` (package kstart), for which it has to be renewable (`klist` \
    says until when)";
/// It reads one small file, which may be in the kernel's memory or at a daemon.
const BUDGET: Duration = Duration::from_millis(300);

fn run(host: &Host, intent: &Intent) -> Answer {
    // Root of a machine has the ticket of the machine.
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    if host.os()? != "linux" || !intent.run || is_root {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let data = intent.data.clone().filter(|path| path.starts_with('/'));
    let folders = [data, intent.project.clone().or(places.working), places.data];
    let needs = |folder: String| {
        let space = host.file_system(&folder).ok()?;
        kind_of(&space).map(|kind| (folder, kind))
    };
    let Some((folder, kind)) = folders.into_iter().flatten().find_map(needs) else { return Ok(Vec::new()) };
    // It prints nothing: its exit status says whether there is a ticket that has not ended.
    let Ok(Some(output)) = host.command_within(&["klist", "-s"], BUDGET) else { return Ok(Vec::new()) };
    const OF_KEYS: [&str; 2] = ["os error 126)", "os error 127)"];
    if host.stat(&folder).is_err_and(|why| OF_KEYS.iter().any(|words| why.0.contains(words))) {
        return Ok(Vec::new());
    }
    let is_afs = kind == "AFS";
    // A service may have a ticket for this user that `klist` does not see.
    let has_ticket = output.exit == 0 || !is_refused(host, &folder);
    let finding = if has_ticket {
        let title = format!("access to {folder} ({kind}) ends with the ticket of Kerberos");
        Finding::new("disk.ticket", title).status(Status::Info)
    } else {
        let title =
            format!("there is no valid ticket of Kerberos, without which {folder} ({kind}) cannot be used");
        let finding = Finding::new("disk.ticket", title).command("kinit -r 7d");
        if is_afs { finding.command("aklog") } else { finding }
    };
    let remedy = if has_ticket { RENEW.to_owned() } else { format!("get a ticket, and {RENEW}") };
    let renew = if is_afs { "krenew -K 60 -t -- yolo train …" } else { "krenew -K 60 -- yolo train …" };
    let finding = finding.command(renew);
    Ok(vec![match host.job() {
        // Its nodes have no ticket of the user, unless the site passes them on.
        Some(Job::Slurm) => finding.remedy(format!(
            "{remedy}; if the site has AUKS, let it pass your ticket to the node and renew it (`sbatch --auks=yes`), or keep data and runs \
             on the cluster's scratch"
        )),
        Some(_) => finding.remedy(format!("{remedy}; or keep data and runs on the cluster's scratch")),
        None => finding.remedy(remedy),
    }])
}

/// Whether this user may not use the folder now. The check of drives that do not answer reports keys that have expired.
fn is_refused(host: &Host, folder: &str) -> bool {
    const WORDS: [&str; 2] = ["os error 13)", "Permission denied"];
    match host.stat(folder) {
        Ok(stat) => stat.is_some_and(|stat| stat.readable == Some(false)),
        Err(why) => WORDS.iter().any(|words| why.0.contains(words)),
    }
}

/// How messages name a file system that needs a ticket.
fn kind_of(space: &FileSystem) -> Option<&'static str> {
    match space.kind.as_deref()? {
        "afs" => Some("AFS"),
        "nfs" | "nfs4" if has(space, "sec=krb5") => Some("NFS with Kerberos"),
        "cifs" | "smb3" if has(space, "sec=krb5") => Some("SMB with Kerberos"),
        _ => None,
    }
}

fn has(space: &FileSystem, option: &str) -> bool {
    space.options.iter().any(|one| one.starts_with(option))
}
