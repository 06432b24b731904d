//! The quota of this user. A file server or a shared disk limits what each user may store; the file system still
//! reports the free space of all, and writing fails with "Disk quota exceeded". `quota`, Lustre's `lfs quota`, GPFS's
//! `mmlsquota` and BeeGFS's `beegfs-ctl` tell how much of it is used. On clusters the limit is often that of a project
//! or of a group, whose members share it.

mod ask;
mod tables;

use ask::{asked, fileset_of};
use tables::{Usage, Whose, usages};
use yolo_base::{format, mounts};

use super::make_room;
use super::room::{COMFORTABLE, LEAST, LEAST_FILES, place};
use crate::facts::{FileSystem, Host};
use crate::finding::Finding;
use crate::status::Status;

/// `disk.full` for a file system with space on which this user may store no more.
pub(super) fn used_up(host: &Host, purpose: &str, folder: &str, space: &FileSystem) -> Option<Finding> {
    let mount = space.mount.as_deref().unwrap_or(folder);
    let table = host.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
    let source = mounts::source_of(&table, mount);
    let texts = asked(host, space, &table, mount, folder);
    let all: Vec<Usage> = texts.iter().flat_map(|text| usages(text)).collect();
    let is_beegfs = space.kind.as_deref() == Some("beegfs");
    let is_it = |usage: &&Usage| {
        usage.of == mount
            || usage.of.is_empty() && is_beegfs
            || Some(&usage.of) == source.as_ref()
            || source.is_none() && is_mounted_at(host, &usage.of, mount)
    };
    // A file system of GPFS is divided into filesets with limits of their own.
    let mut of_here = all.iter().filter(is_it).peekable();
    let fileset = of_here.peek().and_then(|_| fileset_of(host, folder, &all));
    let is_of_folder = |usage: &&Usage| match (&usage.fileset, &fileset) {
        (None, _) => true,
        (Some(one), Some(own)) => one == own,
        // Most are mounted under their names.
        (Some(one), None) => folder.split('/').any(|part| part == one),
    };
    let finding = of_here
        .filter(is_of_folder)
        .find_map(|usage| finding(usage, purpose, &place(space, folder)))
        .or_else(|| refused(host, purpose, folder, space, &table))?;
    // A local disk of a node is erased after the job, and no other node has it; and that of a rented container lasts as long
    // as it.
    if host.job().is_some() || host.rental().is_some() {
        return Some(finding);
    }
    Some(make_room::elsewhere(host, &finding, space, folder).unwrap_or(finding))
}

/// A recorded command could not write here although no tool shows a quota, as for network volumes, projects and filesets.
fn refused(host: &Host, purpose: &str, folder: &str, space: &FileSystem, table: &str) -> Option<Finding> {
    const MESSAGES: [&str; 3] = ["Disk quota exceeded", "Errno 122", "os error 122"];
    let mount = space.mount.as_deref().unwrap_or(folder);
    let is_here = |line: &str| {
        let paths = line
            .split([' ', '\'', '"', '\u{2018}', '\u{2019}', ':', ','])
            .filter(|word| word.starts_with('/'));
        let paths: Vec<&str> = paths.filter(|word| word.len() > 1).collect();
        paths.iter().any(|path| match mounts::holding(table, path) {
            Some(holding) => holding.point == mount,
            None => path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/')) && mount != "/",
        })
    };
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let line = outputs.filter_map(|text| {
        let said = |line: &&str| MESSAGES.iter().any(|words| line.contains(words)) && is_here(line);
        text.lines().find(said).map(|line| line.trim().to_owned())
    });
    let line = line.into_iter().next()?;
    let finding = Finding::new("disk.full", format!("a quota for {purpose}{} is exhausted", place(space, folder)))
        .seen(line)
        .because("the disk has free space, but a quota of the user, the group, the project or the volume allows no more");
    let is_volume =
        mounts::source_of(table, mount).is_some_and(|source| source.starts_with(make_room::MOOSEFS));
    Some(if is_volume || host.rental().is_some() {
        finding.remedy(format!(
            "this is a network volume with a size of its own, which `df` does not show: delete old runs, archives and caches there \
             (`du -xhd 2 {mount}` finds them), or enlarge the volume on the service's page (Storage)"
        ))
    } else {
        finding.remedy(
            "delete what can be made again, such as Python environments, caches and old runs; or work in another folder, such as the \
             cluster's scratch (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators which quota it is \
             and for a larger one",
        )
    })
}

/// Whether a recorded `df` or `mount` names this source and mount in one line.
fn is_mounted_at(host: &Host, source: &str, mount: &str) -> bool {
    let outputs = ["df", "mount"].into_iter().flat_map(|tool| host.recorded_outputs(tool));
    outputs.map(|(_, output)| output.text()).any(|text| {
        text.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(source) && words.any(|word| word == mount)
        })
    })
}

fn finding(usage: &Usage, purpose: &str, place: &str) -> Option<Finding> {
    let (space, files) = (&usage.space, &usage.files);
    let quota = match usage.whose {
        Whose::User => "your quota",
        Whose::Group => "the quota of your group",
        Whose::Project => "the quota of your project",
    };
    let left = space.left().map(|kib| kib.saturating_mul(1024));
    let (title, is_over) = if left.is_some_and(|bytes| bytes < LEAST) || space.is_expired() {
        let title = match (space.is_expired(), left) {
            (true, _) => format!(
                "{quota} for {purpose}{place} is exceeded, and its grace period is over: nothing more can be written"
            ),
            (_, None | Some(0)) => format!("{quota} for {purpose}{place} is used up"),
            (_, Some(bytes)) => {
                format!("only {} of {quota} are left for {purpose}{place}", format::bytes(bytes))
            }
        };
        (title, true)
    } else if files.left().is_some_and(|files| files < LEAST_FILES) || files.is_expired() {
        let left = match files.left() {
            Some(left @ 1..) if !files.is_expired() => {
                format!("only {} more", format::count(left as usize, "file"))
            }
            _ => "no more files".to_owned(),
        };
        (format!("{quota} allows {left} on the disk for {purpose}{place}"), true)
    } else if space.is_over() || files.is_over() {
        let grace =
            [space, files].into_iter().find(|amount| amount.is_over()).and_then(|it| it.grace.clone());
        let when = grace.map_or_else(|| "soon".to_owned(), |grace| format!("in {}", spaced(&grace)));
        (format!("{quota} for {purpose}{place} is exceeded: writing will fail {when}"), false)
    } else if let Some(bytes) = left.filter(|&bytes| bytes < COMFORTABLE) {
        (format!("only {} of {quota} are left for {purpose}{place}", format::bytes(bytes)), false)
    } else {
        return None;
    };
    let finding = Finding::new("disk.full", title)
        .seen(usage.to_string())
        .because(
            "the disk has free space, but not for this user: a checkpoint that does not fit into the quota is lost, with \
             \"Disk quota exceeded\"",
        )
        .remedy(
            "delete what can be made again, such as Python environments, caches and old runs; or work in another folder, \
             such as the cluster's scratch (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators \
             for a larger quota",
        );
    let finding = match usage.whose {
        Whose::User => finding,
        Whose::Group | Whose::Project => finding
            .because(
                "the disk has free space, but not for the members of this group or project, who share a limit: a checkpoint that does \
                 not fit is lost, with \"Disk quota exceeded\" or \"No space left on device\"",
            )
            .remedy(
                "delete what can be made again, and ask all members to do so: Python environments, which count by their many \
                 files (`du --inodes -xd 2` \
                 finds them, `conda clean -a` helps), caches, old runs; or work in another folder, such as the cluster's scratch \
                 (--project for runs, YOLO_HOME for what yolo installs); or ask the administrators for a larger quota",
            ),
    };
    Some(if is_over { finding } else { finding.status(Status::Warning) })
}

/// `6 days` of `6days`
fn spaced(grace: &str) -> String {
    match grace.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at @ 1..) if grace[at..].chars().all(char::is_alphabetic) => {
            format!("{} {}", &grace[..at], &grace[at..])
        }
        _ => grace.to_owned(),
    }
}
