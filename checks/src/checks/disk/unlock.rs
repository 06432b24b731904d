//! The remedy for a folder that this user may not write to. Owners can change the permissions; an administrator returns
//! what belongs to root.

use super::{in_container, root_squash};
use crate::change::Change;
use crate::facts::{Host, Stat};
use crate::finding::Finding;
use crate::remedies::fit::is_without_rights;
use crate::shell_quote::quote;

/// The finding, with the owner and the permissions of the folder as evidence.
pub(super) fn with_remedy(host: &Host, finding: Finding, folder: &str, stat: &Stat) -> Finding {
    /// What the owner of a folder may do with it: read, write and enter.
    const OWNER: u32 = 0o700;
    let mode = stat.mode.as_deref().unwrap_or("unknown");
    let user = host.user().ok().and_then(|user| user.uid);
    let owner = stat.uid.map_or("unknown".to_owned(), |uid| uid.to_string());
    let finding = finding.seen(format!("{folder}: permissions {mode}, owner {owner}"));
    let read_only =
        host.file_system(folder).is_ok_and(|disk| disk.options.iter().any(|option| option == "ro"));
    if read_only {
        return finding
            .because("its disk is mounted read-only")
            .remedy("remount the disk as writable, or set YOLO_HOME to a folder on another disk");
    }
    if let Some(finding) = root_squash::explained(host, &finding, folder) {
        return finding;
    }
    let is_own = stat.uid.is_some() && stat.uid == user;
    if is_own && in_container::is_against_mode(host, stat) && needs_ticket(host, folder) {
        return finding
            .because(
                "it is yours, and on a server that asks for a ticket of Kerberos, which has ended: then everything there answers `Permission \
                 denied`",
            )
            .remedy("get a new ticket; `klist` shows until when it lasts")
            .command("kinit");
    }
    let in_container = in_container::forbidden_by_selinux(host, &finding, folder)
        .or_else(|| in_container::of_another_owner(host, &finding, folder, stat));
    if let Some(finding) = in_container {
        return finding;
    }
    match (stat.uid, user) {
        (Some(owner), Some(user)) if owner == user => finding
            .command(format!("chmod u+rwx {}", quote(folder)))
            .change(Change::Permissions { path: folder.to_owned(), add: OWNER }),
        // Those who administer a cluster give nobody the folders of others.
        (_, Some(_)) if is_without_rights(host) => {
            finding.because("it belongs to another user").remedy("set YOLO_HOME to a folder of your own")
        }
        (Some(0), Some(user)) => finding
            .because("it belongs to root, perhaps because a command run with sudo created it")
            .command(format!("sudo chown -R {user} {}", quote(folder))),
        _ => finding.because("it belongs to another user"),
    }
}

/// Whether files there can be used only with a ticket of Kerberos.
fn needs_ticket(host: &Host, folder: &str) -> bool {
    host.file_system(folder).is_ok_and(|disk| {
        disk.kind.as_deref() == Some("afs")
            || disk.options.iter().any(|option| option.starts_with("sec=krb5"))
    })
}
