//! Whether yolo can lock its own folders. It does so while it installs or downloads, and file systems of clusters and clouds
//! do not all have locks: Lustre has them only with a mount option, and some programs that show storage as a folder never.

use yolo_base::env::YOLO_HOME;

use crate::checks::{Answer, Check};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check =
    Check { question: "Can yolo lock its own folders?", reports: &["disk.no-locks"], preflight: true, run };

/// What the system says of a lock that it does not have: ENOSYS, ENOLCK and EOPNOTSUPP.
const REFUSED: [&str; 6] = [
    "os error 38)",
    "Function not implemented",
    "os error 37)",
    "No locks available",
    "os error 95)",
    "Operation not supported",
];

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    // What is not known is said by the check of free space.
    let Some(folder) = host.places().ok().and_then(|places| places.data) else { return Ok(Vec::new()) };
    let Ok(space) = host.file_system(&folder) else { return Ok(Vec::new()) };
    let message =
        host.recorded_outputs("yolo").into_iter().find_map(|(_, output)| refusal(&output.all_text()));
    if message.is_none() && !is_lustre_without_locks(&space) {
        return Ok(Vec::new());
    }
    let kind = space.kind.as_deref().unwrap_or("unknown");
    let title =
        format!("{folder} (libtorch, weights and data sets) is on a file system without locks ({kind})");
    let finding = Finding::new("disk.no-locks", title);
    let finding = match message {
        Some(message) => finding.seen(message),
        None => finding.seen("neither flock nor localflock is among its mount options"),
    };
    let finding = finding.command(format!("export {YOLO_HOME}={}", quote(&elsewhere(host))));
    const MOVE: &str = "set YOLO_HOME to a folder with locks, such as a local disk of the machine, or an NFS of version 4, on which homes of \
                        clusters often are";
    let of_mount = match kind {
        "lustre" => "mount Lustre with the option `flock`",
        "nfs" | "nfs4" => {
            "start the locks of NFS 3 (`sudo systemctl enable --now rpc-statd`, and lockd on the server), or mount it with `vers=4`"
        }
        _ => return Ok(vec![finding.remedy(MOVE)]),
    };
    Ok(vec![finding.remedy(MOVE).machine_remedy(of_mount)])
}

/// Whether this is Lustre with neither kind of locks. Only a complete list of options can say so, which has some that Lustre
/// alone has.
fn is_lustre_without_locks(space: &FileSystem) -> bool {
    const OF_LUSTRE: [&str; 4] = ["lazystatfs", "nolazystatfs", "noflock", "nouser_xattr"];
    let has = |name: &str| space.options.iter().any(|option| option == name);
    space.kind.as_deref() == Some("lustre")
        && OF_LUSTRE.iter().any(|name| has(name))
        && !has("flock")
        && !has("localflock")
}

/// The line with which yolo says that it cannot lock a folder.
fn refusal(text: &str) -> Option<String> {
    let is_it = |line: &&str| {
        line.contains("cannot lock ")
            && line.contains(".lock")
            && REFUSED.iter().any(|words| line.contains(words))
    };
    text.lines().find(is_it).map(|line| line.trim().to_owned())
}

/// A folder on a disk of this machine: scratch, if the cluster names it.
fn elsewhere(host: &Host) -> String {
    let named =
        ["SLURM_TMPDIR", "LOCAL_SCRATCH", "LSCRATCH"].iter().find_map(|name| host.env(name).ok().flatten());
    let user = host.user().ok().and_then(|user| user.name).unwrap_or_else(|| "yolo".to_owned());
    named
        .filter(|folder| folder.starts_with('/'))
        .map_or_else(|| format!("/tmp/{user}/yolo"), |folder| format!("{folder}/yolo"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_refused_lock_is_known_by_its_message() {
        let line = "error: cannot lock /lustre/mara/.lock: Function not implemented (os error 38)";
        assert_eq!(refusal(line), Some(line.to_owned()));
        assert_eq!(refusal("cannot open /lustre/mara/.lock: Permission denied (os error 13)"), None);
        assert_eq!(refusal("cannot lock /d/.lock: Interrupted system call (os error 4)"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cannot lock |\\.lock|os error 38\\)|\n|\\PC){0,8}") {
            let _ = refusal(&text);
        }
    }
}
