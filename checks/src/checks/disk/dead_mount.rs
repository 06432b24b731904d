//! Whether the drives of the run answer. After a server went away, the program of a mount ended, or a disk was pulled
//! out, every path on it fails with an error of the system, while the mount still looks as if it were there.

use std::collections::BTreeSet;

use yolo_base::mounts::{self, Mount};

use super::remote;
use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{Described, is_absolute, join, parent};
use crate::facts::view::drive_fault::DriveFault;
use crate::facts::{Family, Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_of_service;
use crate::remedies::restart::restart_container;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check =
    Check { question: "Do the drives of the run answer?", reports: &["disk.io-error"], preflight: true, run };

/// How the reason begins when a question was given up for lack of an answer.
const NO_ANSWER: &str = "no answer within ";
/// Programs whose complaints about a path a recording may have.
const LISTED_BY: [&str; 4] = ["ls", "df", "stat", "mountpoint"];

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places().unwrap_or_default();
    let working = places.working.clone().unwrap_or_default();
    let mut paths: Vec<(String, String)> = Vec::new();
    if let Some(name) = intent.data.as_deref() {
        match host.data_set(name) {
            Ok(Described::Yaml(set)) => {
                paths.push((format!("the data set {name}"), set.yaml.clone()));
                for split in ["train", "val"] {
                    let entries = set.entries(split).into_iter().flat_map(|entry| set.candidates(&entry));
                    paths.extend(entries.map(|path| (format!("the folder of {split} {path}"), path)));
                }
            }
            // The name of a data set that yolo downloads is no path here.
            Ok(_) if !name.contains(['/', '\\', '.']) => {}
            _ => {
                paths.push((format!("the data set {name}"), join(&working, name)));
                let installed = places.data.as_ref().map(|data| join(&join(data, "datasets"), name));
                paths.extend(installed.map(|yaml| (format!("the data set {yaml}"), yaml)));
            }
        }
    }
    let folder =
        |what: &str, path: Option<String>| path.map(|path| (format!("{what} {path}"), join(&working, &path)));
    paths.extend(folder("the folder of runs", intent.project.clone()));
    paths.extend(folder("the working folder", places.working));
    paths.extend(folder("the folder of libtorch, weights and data sets", places.data));
    // Each question to a server that is away costs seconds, so each mount is asked once.
    let mut silent_mounts = BTreeSet::new();
    for (what, path) in paths {
        let mount = || mount_of(host, &path).map(|mount| mount.point);
        if !silent_mounts.is_empty() && mount().is_some_and(|point| silent_mounts.contains(&point)) {
            continue;
        }
        if let Some((fault, why)) = fault_at(host, &path) {
            let title = format!("{what} cannot be read: {why}");
            let finding = Finding::new("disk.io-error", title);
            return Ok(vec![with_remedy(host, finding, fault, &path)]);
        }
        if let Some(finding) = silent(host, &what, &path).or_else(|| unanswered(host, &what, &path)) {
            return Ok(vec![finding]);
        }
        if no_answer(host, &path).is_some() {
            silent_mounts.extend(mount());
        }
    }
    Ok(unread(host, intent).into_iter().collect())
}

/// A data set that could not be looked at because of a fault of a drive, at a path that is not among those above.
fn unread(host: &Host, intent: &Intent) -> Option<Finding> {
    let name = intent.data.as_deref()?;
    let (what, why, path) = match host.data_set(name) {
        Ok(Described::Yaml(set)) => ["train", "val"].into_iter().find_map(|split| {
            set.entries(split).into_iter().find_map(|entry| {
                let why = set.place(host, &entry).err()?;
                DriveFault::of(&why.0)?;
                Some((
                    format!("the folder of {split} {entry}"),
                    why.0,
                    set.candidates(&entry).into_iter().next()?,
                ))
            })
        })?,
        Ok(_) => return None,
        Err(why) => (format!("the data set {name}"), why.0, join(&host.places().ok()?.working?, name)),
    };
    let fault = DriveFault::of(&why)?;
    let finding = Finding::new("disk.io-error", format!("{what} cannot be read: {}", shown(&why)));
    Some(with_remedy(host, finding, fault, &path))
}

/// The fault with which a path answers, and the words for it. A recording may have the answer for a folder above.
fn fault_at(host: &Host, path: &str) -> Option<(DriveFault, String)> {
    let answers = |path: &str| {
        let metadata = host.stat(path).err();
        // The other questions would wait as long.
        let is_silent = metadata.as_ref().is_some_and(|why| why.0.contains(NO_ANSWER));
        if is_silent && !host.is_recorded() {
            return None;
        }
        let whys = [
            metadata,
            host.is_recorded().then(|| host.folder(path).err()).flatten(),
            host.file_system(path).err(),
            // A path whose metadata are known may still fail when it is read. Only a YAML file is read whole.
            (host.is_recorded() || is_yaml(path)).then(|| host.text(path).err()).flatten(),
        ];
        whys.into_iter().flatten().find_map(|why| Some((DriveFault::of(&why.0)?, shown(&why.0))))
    };
    if let Some(found) = answers(path) {
        return Some(found);
    }
    if !host.is_recorded() || !path.starts_with('/') {
        return None;
    }
    let mut folders = Vec::new();
    let mut above = parent(path);
    while let Some(folder) = above.filter(|folder| folder != "/") {
        above = parent(&folder);
        folders.push(folder);
    }
    folders.iter().find_map(|folder| answers(folder)).or_else(|| {
        folders.insert(0, path.to_owned());
        complaint(host, &folders)
    })
}

fn is_yaml(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// That a path did not answer in the time that the doctor waits for it: `within 2.0 s`.
fn no_answer(host: &Host, path: &str) -> Option<String> {
    let why = host.stat(path).err()?.0;
    let (_, within) = why.split_once(NO_ANSWER)?;
    Some(format!("within {}", within.trim_end_matches(')')))
}

/// A path on a server or of a program that does not answer. A disk of this machine may only have to start turning.
fn unanswered(host: &Host, what: &str, path: &str) -> Option<Finding> {
    let within = no_answer(host, path)?;
    let mount = mount_of(host, path)?;
    if remote::of_kind(&mount.kind).is_none() && mount.kind != "autofs" {
        return None;
    }
    let title = format!("{what} does not answer {within}");
    let is_program = mount.kind.starts_with("fuse");
    if host.place() == Place::Colab && path.starts_with("/content/") && is_program {
        let finding = Finding::new("disk.io-error", title).status(Status::Warning);
        return Some(with_remedy(host, finding, DriveFault::ServerAway, path));
    }
    let finding = Finding::new("disk.io-error", title)
        .seen(format!("{} is mounted at {} ({})", mount.source, mount.point, mount.kind))
        .because("the server, the network to it or the program of this mount does not respond, or is only slow: disks that sleep need up to 20 \
             seconds to start");
    let point = quote(&mount.point);
    let status = if mount.kind == "autofs" { Status::Info } else { Status::Warning };
    let finding = finding.status(status);
    let wait = format!("wait until `timeout 60 ls {point}` answers");
    let is_of_others = host.is_container() || host.job().is_some();
    // Neither an automount nor a slow server may be forced away: programs may use it.
    Some(if mount.kind == "autofs" && !is_of_others {
        finding.remedy(format!(
            "{wait}, which mounts the folder; if it does not, look whether the automount and its server are running \
             (`systemctl status '*.automount' autofs`)"
        ))
    } else if is_of_others {
        let who = match host.job() {
            Some(_) => "tell the administrator of the node",
            None if is_of_service(host) => "start a new session",
            None => {
                "look on the host or the node whether the folder can be read there, and start the container again"
            }
        };
        finding.remedy(format!(
            "{wait}; if it does not, {who}; or copy the data set to a local disk before the run"
        ))
    } else if is_program {
        let program = mount.kind.strip_prefix("fuse.").unwrap_or("the program of this mount");
        let start = match program {
            "sshfs" => {
                format!(" (`sshfs -o reconnect,ServerAliveInterval=15 {} {point}`)", quote(&mount.source))
            }
            _ => String::new(),
        };
        finding.remedy(format!(
            "{wait}; if it does not, make sure that the network works, then unmount the folder (`{} -uz {point}`) and start \
             {program} \
             again{start}; or copy the data set to a disk of this machine before the run",
            fusermount(host)
        ))
    } else {
        finding.remedy(format!(
            "{wait}; if it does not, make sure that the server is up and reachable, then mount the folder again; or copy the data set \
             to a disk of this machine before the run"
        ))
    })
}

/// The reason alone, as the system words it.
fn shown(why: &str) -> String {
    DriveFault::words(why).unwrap_or(why).to_owned()
}

/// What a recorded command says about one of these folders: `df: /mnt/nas: Stale file handle`.
fn complaint(host: &Host, folders: &[String]) -> Option<(DriveFault, String)> {
    let outputs = LISTED_BY.iter().flat_map(|program| host.recorded_outputs(program));
    let texts: Vec<String> = outputs.map(|(_, output)| output.error_text()).collect();
    texts.iter().flat_map(|text| text.lines()).find_map(|line| {
        let fault = DriveFault::of(line)?;
        let of_letters = |letter: char| {
            letter == '/' || letter == '-' || letter == '.' || letter.is_alphanumeric() || letter == '_'
        };
        let mut words = line.split(|letter: char| !of_letters(letter));
        words
            .any(|word| folders.iter().any(|folder| folder == word.trim_end_matches('.')))
            .then(|| (fault, shown(line)))
    })
}

/// A server of NFS or SMB that the kernel still waits for: the last line about it says so.
fn silent(host: &Host, what: &str, path: &str) -> Option<Finding> {
    let mount = mount_of(host, path)?;
    let server = match mount.kind.as_str() {
        "nfs" | "nfs4" => mount.source.split_once(':')?.0.to_owned(),
        "cifs" | "smb3" => mount.source.trim_start_matches(['/', '\\']).split(['/', '\\']).next()?.to_owned(),
        _ => return None,
    };
    if server.is_empty() {
        return None;
    }
    let of_nfs = format!("nfs: server {server} ");
    let lines = host.kernel_lines(&[of_nfs.as_str(), "CIFS", "cifs"]);
    let is_of_server = |line: &&String| {
        line.contains(&of_nfs)
            || line.contains(&server) && (line.contains("not responded") || line.contains("Reconnecting"))
    };
    let last = lines.iter().rfind(is_of_server)?;
    if !["not responding", "has not responded"].iter().any(|words| last.contains(words)) {
        return None;
    }
    // A line of days ago may be without its end; a live drive shows whether it answers.
    if !host.is_recorded() && !host.stat(path).is_err_and(|why| why.0.contains(NO_ANSWER)) {
        return None;
    }
    let title = format!("{what} is on the server {server}, which does not answer");
    let finding = Finding::new("disk.io-error", title).status(Status::Warning).seen(last.clone());
    Some(with_remedy(host, finding, DriveFault::ServerAway, path))
}

/// The program that removes mounts of FUSE: version 3 alone has the plain name only on Debian and what comes from it.
fn fusermount(host: &Host) -> &'static str {
    match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) | None => "fusermount",
        Some(_) => "fusermount3",
    }
}

fn mount_of(host: &Host, path: &str) -> Option<Mount> {
    let table = host.text("/proc/self/mountinfo").ok().flatten()?;
    mounts::holding(&table, path).filter(|mount| mount.point != "/")
}

fn with_remedy(host: &Host, finding: Finding, fault: DriveFault, path: &str) -> Finding {
    let mount = mount_of(host, path);
    let recorded = host.file_system(path).ok();
    let kind =
        mount.as_ref().map(|mount| mount.kind.clone()).or_else(|| recorded.and_then(|space| space.kind));
    let kind = kind.unwrap_or_default();
    // NTFS and exFAT on a disk of this machine are served by programs too.
    let is_fuse = kind.starts_with("fuse") && kind != "fuseblk";
    let finding = match &mount {
        Some(mount) => finding.seen(format!("{} is mounted at {} ({kind})", mount.source, mount.point)),
        None => finding,
    };
    let point = mount.as_ref().map(|mount| mount.point.clone());
    let is_windows_drive =
        ["9p", "drvfs", "virtiofs", ""].contains(&kind.as_str()) && path.starts_with("/mnt/");
    if host.is_wsl2() == Ok(true) && is_windows_drive {
        return finding
            .because(
                "WSL's connection to the Windows drive fails: virtiofs of pre-releases is known for that, and a drive that was \
                 pulled out or that is on a network does it too",
            )
            .remedy("shut WSL down from Windows and start it again; keep data on WSL's own disk")
            .command("wsl.exe --shutdown");
    }
    if host.place() == Place::Colab && path.starts_with("/content/") && (is_fuse || kind.is_empty()) {
        return finding
            .because("the notebook lost its connection to Google Drive, which happens after hours and after many small files")
            .remedy(
                "mount Google Drive again in the notebook, `from google.colab import drive; drive.mount('/content/drive', \
                 force_remount=True)`, or start a new \
                 session; copy the data set to /content before the run, and only results to Google Drive",
            );
    }
    if fault == DriveFault::Damaged && !is_fuse && remote::of_kind(&kind).is_none() {
        return super::space::damaged(host, finding, &kind);
    }
    let is_remote = is_fuse || remote::of_kind(&kind).is_some();
    if fault == DriveFault::Device && !is_remote {
        return finding;
    }
    if fault == DriveFault::KeyExpired {
        return finding
            .because("the server no longer accepts this session's key or ticket, which is valid for some hours only")
            .remedy(
                "get a new one with `kinit`, and with `aklog` for AFS; for a run of days, have it renewed (`krenew`, `k5start`)",
            );
    }
    let is_container = host.is_container() && host.place() != Place::Apptainer;
    if is_container {
        let finding = finding.because(
            "what was mounted into this container is gone: its server went away, its program ended, or the folder was replaced \
             on the host",
        );
        let finding = finding.remedy(
            "see on the host that the folder can be read there, and mount it again if not; then restart the container, which \
             keeps the old mount until then",
        );
        return restart_container(host, finding);
    }
    let place = point.clone().unwrap_or_else(|| path.to_owned());
    let at = quote(&place);
    let is_in_fstab = || {
        let table = host.text("/etc/fstab").ok().flatten().unwrap_or_default();
        table.lines().any(|line| line.split_whitespace().nth(1) == Some(place.as_str()))
    };
    if is_fuse {
        let finding = finding.because(match fault {
            DriveFault::NotConnected => {
                "the program that serves this mount has ended, or has lost its server; the mount stays and answers nothing"
            }
            _ => "the program that serves this mount gets no answer from its server, or errors",
        });
        let program = kind.strip_prefix("fuse.").unwrap_or("the program");
        let again = if is_in_fstab() {
            format!("mount it again with `mount {at}`")
        } else if program == "sshfs" {
            "mount it again with options that survive a lost connection".to_owned()
        } else {
            format!("start {program} again with the options of before")
        };
        let finding = finding.remedy(format!(
            "remove the dead mount, then {again}; better copy the data set to a disk of this machine before the run"
        ));
        let Some(mount) = mount else { return finding };
        let finding = finding.command(format!("{} -uz {at}", fusermount(host)));
        return if program == "sshfs" && !is_in_fstab() {
            let source = quote(&mount.source);
            finding.command(format!("sshfs -o reconnect,ServerAliveInterval=15 {source} {at}"))
        } else {
            finding
        };
    }
    let cause = match fault {
        DriveFault::Stale => {
            "the server has replaced or no longer exports what is mounted here, so this mount leads nowhere"
        }
        _ => {
            "the server of this mount is away, or the network to it; programs that use the mount hang or fail"
        }
    };
    let finding = finding.because(cause).remedy(
        "see that the server is running and can be reached, then mount the folder again; a run whose data is on a server \
         ends with it, so copy the data set to a disk of this machine before the run",
    );
    if point.is_none() || !is_absolute(&place) {
        return finding;
    }
    let finding = finding.command(format!("sudo umount -f -l {at}"));
    if is_in_fstab() || host.is_recorded() && host.text("/etc/fstab").is_err() {
        finding.command(format!("sudo mount {at}"))
    } else {
        finding
    }
}
