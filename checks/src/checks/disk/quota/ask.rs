//! Asking for quotas. A live host is asked only where a quota is likely, and no file server twice that did not answer.

use std::time::Duration;

use yolo_base::mounts;

use super::tables::Usage;
use crate::facts::{FileSystem, Host};

/// A file server that does not answer must not delay the doctor.
const BUDGET: Duration = Duration::from_millis(500);
/// The options with which local file systems are mounted that enforce quotas (quotactl(2), xfs(5)).
const ENFORCED: [&str; 8] =
    ["usrquota", "grpquota", "uquota", "gquota", "quota", "usrjquota", "grpjquota", "prjquota"];

/// The outputs that may name this file system. A live host is asked only where a quota is likely.
pub(super) fn asked(host: &Host, space: &FileSystem, table: &str, mount: &str, folder: &str) -> Vec<String> {
    let recorded: Vec<String> = ["quota", "lfs", "mmlsquota", "beegfs-ctl"]
        .into_iter()
        .flat_map(|tool| host.recorded_outputs(tool))
        .map(|(line, output)| {
            let text = output.text();
            // Its table does not say whom it counts.
            if line.contains("beegfs-ctl") && line.contains("--gid") {
                format!("group quota\n{text}")
            } else {
                text
            }
        })
        .collect();
    if host.is_recorded() && !recorded.is_empty() {
        return recorded;
    }
    let user = host.user().ok().and_then(|user| user.name).unwrap_or_default();
    let is_enforced = || {
        mounts::holding(table, mount).is_some_and(|mount| {
            mount
                .options
                .iter()
                .any(|option| ENFORCED.contains(&option.split('=').next().unwrap_or_default()))
        })
    };
    let output = match space.kind.as_deref().unwrap_or_default() {
        "lustre" if !user.is_empty() => return of_lustre(host, &user, mount, folder),
        "beegfs" => {
            let Some(number) = host.user().ok().and_then(|user| user.uid) else { return Vec::new() };
            let number = number.to_string();
            host.command_within(&["beegfs-ctl", "--getquota", "--uid", &number], BUDGET)
        }
        "gpfs" => host.command_within(&["/usr/lpp/mmfs/bin/mmlsquota"], BUDGET),
        "nfs" | "nfs4" => host.command_within(&["quota", "-w"], BUDGET),
        _ if is_enforced() => host.command_within(&["quota", "-w"], BUDGET),
        _ => return Vec::new(),
    };
    output.ok().flatten().map(|output| output.text()).into_iter().collect()
}

/// Lustre counts the files of a user, of a group, and of the project that a folder belongs to.
fn of_lustre(host: &Host, user: &str, mount: &str, folder: &str) -> Vec<String> {
    let ask = |arguments: &[&str]| {
        let output = host.command_within(arguments, BUDGET).ok().flatten();
        output.map(|output| output.text()).filter(|text| !text.is_empty())
    };
    // The answer for the user is kept, so that a second folder does not ask again; and where it does not come in time, the
    // next ones would not either.
    if host.command_within(&["lfs", "quota", "-u", user, mount], BUDGET).is_err() {
        return Vec::new();
    }
    let project = ask(&["lfs", "project", "-d", folder]);
    let project = project.and_then(|text| text.split_whitespace().next().map(ToOwned::to_owned));
    let project = project.filter(|number| number != "0" && number.parse::<u32>().is_ok());
    // New files belong to the group of the folder only if it says so (setgid).
    let stat = host.stat(folder).ok().flatten();
    let group = stat.filter(|stat| {
        let mode = stat.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        mode.is_some_and(|mode| mode & 0o2000 != 0)
    });
    let group = group.and_then(|stat| stat.gid).map(|gid| gid.to_string());
    [
        ask(&["lfs", "quota", "-u", user, mount]),
        project.and_then(|number| ask(&["lfs", "quota", "-p", &number, mount])),
        group.and_then(|number| ask(&["lfs", "quota", "-g", &number, mount])),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The fileset of GPFS that holds a folder, if the tables name filesets: `fileset name:  gvo00042`.
pub(super) fn fileset_of(host: &Host, folder: &str, all: &[Usage]) -> Option<String> {
    all.iter().find(|usage| usage.fileset.is_some())?;
    let asked = host.command_within(&["/usr/lpp/mmfs/bin/mmlsattr", "-L", folder], BUDGET).ok().flatten();
    let recorded = host.recorded_outputs("mmlsattr").into_iter();
    let recorded = recorded.filter(|(line, _)| line.split_whitespace().last() == Some(folder));
    let texts = asked.into_iter().chain(recorded.map(|(_, output)| output)).map(|output| output.text());
    texts.filter_map(|text| fileset_in(&text)).next()
}

fn fileset_in(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("fileset name:"))?;
    Some(line.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fileset_of_a_folder_is_read() {
        let text = "file name:            /gpfs/work/mara\nstorage pool name:    system\nfileset name:         lab_gull\n";
        assert_eq!(fileset_in(text).as_deref(), Some("lab_gull"));
        assert_eq!(fileset_in("fileset name:\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC|fileset name:| |\n){0,40}") {
            let _ = fileset_in(&text);
        }
    }
}
