//! Files of a data set that this user may not read: those of another user, or behind a file system that merges
//! folders of several.

use yolo_base::format;

use super::{in_container, root_squash};
use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::shell_quote::quote;
use crate::status::Status;

/// Whether the system refuses to read this file: an answer says so, or its permissions do.
pub(super) fn is_refused(host: &Host, path: &str, answer: Option<&Unknown>) -> bool {
    let words = |why: &Unknown| {
        let why = why.0.to_ascii_lowercase();
        why.contains("permission denied") || why.contains("access is denied")
    };
    answer.is_some_and(words)
        || match host.stat(path) {
            Ok(stat) => stat.is_some_and(|stat| stat.readable == Some(false)),
            Err(why) => words(&why),
        }
}

/// The finding for some of the sampled files, `what` such as "sampled image" and `of` such as " of val".
pub(super) fn finding(
    host: &Host,
    id: &'static str,
    refused: &[String],
    looked: usize,
    (what, of): (&str, &str),
) -> Option<Finding> {
    let first = refused.first()?;
    let title = format!("this user may not read {} of {}{of}", refused.len(), format::count(looked, what));
    let finding = Finding::new(id, title);
    // None can be used at all.
    let finding = if refused.len() == looked { finding.status(Status::Error) } else { finding };
    let finding = finding
        .because("the permissions of these files, or of a folder above them, exclude this user; training cannot use them");
    let stat = host.stat(first).ok().flatten();
    let owner = stat.as_ref().and_then(|stat| stat.uid);
    let finding = finding.seen(match &stat {
        Some(stat) => format!(
            "{first}: permissions {}, owner {}",
            stat.mode.as_deref().unwrap_or("unknown"),
            owner.map_or("unknown".to_owned(), |owner| owner.to_string())
        ),
        None => format!("{first}: permission denied"),
    });
    if host.is_windows() == Ok(true) {
        return Some(finding.remedy("give yourself permission to read them: Properties, Security"));
    }
    if let Some(finding) = root_squash::explained(host, &finding, first) {
        return Some(finding);
    }
    if let Some(finding) = in_container::forbidden_by_selinux(host, &finding, first) {
        return Some(finding);
    }
    let folder = quote(first.rsplit_once('/').map_or(".", |(folder, _)| folder));
    let is_ours = owner.is_some() && owner == host.user().ok().and_then(|user| user.uid);
    if is_ours {
        return Some(
            finding
                .remedy("give yourself permission to read them")
                .command(format!("chmod -R u+rX {folder}")),
        );
    }
    let space = host.file_system(first).ok();
    let kind = space.as_ref().and_then(|space| space.kind.as_deref()).unwrap_or_default();
    if MERGING.iter().any(|program| kind.contains(program)) {
        let finding = finding.seen(format!("the file system is {kind}"));
        return Some(finding.remedy(
            "give this user permission to read the original files, in the folders that this file system merges (chmod a+r, or \
             a group that both users are in); or copy the data sets together as a user who may read them all",
        ));
    }
    if host.is_wsl2() == Ok(true) && space.is_some_and(|space| space.is_windows_drive()) {
        return Some(finding.remedy(
            "in Windows, give yourself permission to read the folder (Properties, Security); or copy the data set to WSL's disk",
        ));
    }
    // Not `chmod`: it would show all files there to everybody, and a closed folder above stays closed.
    let owner = owner.map_or("their owner".to_owned(), |owner| format!("their owner (user {owner})"));
    Some(
        finding
            .remedy(format!(
                "ask {owner} for permission to read them, by a group that both users are in or an ACL, or copy the data set as \
                 a user who may read it; this shows which file or folder is closed"
            ))
            .command(format!("namei -l {}", quote(first))),
    )
}

/// Programs in user space that show the files of several folders as one.
const MERGING: [&str; 3] = ["unionfs", "mergerfs", "mhddfs"];
