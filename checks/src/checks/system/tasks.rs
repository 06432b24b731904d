//! Whether a run may have as many processes and threads as it needs: by `ulimit -u`, which counts those of the
//! user, and by the control groups of this process, as containers, services and logins have them.

use super::raise_limit::{Limit, raise};
use yolo_base::format;

use crate::checks::cores;
use crate::facts::{Host, Place, TaskLimit};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Threads of the user's session, and those of a rank besides its workers: of CUDA, of NCCL and of the
/// supervisor. libtorch has one for each core of the machine, shared among the ranks.
const THREADS: (u64, u64) = (24, 24);
/// Workers of a rank, if the run does not say.
const WORKERS: usize = 8;

/// What a run needs, in numbers and in words.
struct Need {
    tasks: u64,
    words: String,
}

/// Both kinds of limits; one of them is enough to stop a run.
pub(super) fn findings(host: &Host, intent: &Intent) -> Option<Finding> {
    let (ranks, cores) = (intent.ranks_here() as u64, cores(host).unwrap_or(1) as u64);
    let workers = intent.workers.unwrap_or(WORKERS) as u64;
    let tasks = ranks * (THREADS.1 + workers) + cores;
    let words = format!(
        "{} with {workers} workers each and {cores} cores",
        format::count(intent.ranks_here(), "rank")
    );
    let need = Need { tasks, words };
    let status = if intent.run { Status::Error } else { Status::Warning };
    let finding = of_user(host, &need).or_else(|| of_group(host, &need))?;
    let text = finding.remedy.as_ref().map_or_else(String::new, |remedy| format!("{}; ", remedy.text));
    if text.contains("fewer ranks") {
        return Some(finding.status(status));
    }
    Some(finding.status(status).remedy(format!("{text}until then, use fewer ranks and fewer --workers")))
}

/// `ulimit -u`, which counts all threads of the user. Root has no such limit.
fn of_user(host: &Host, need: &Need) -> Option<Finding> {
    let most = host.soft_limit("Max processes").ok()?;
    let tasks = need.tasks + THREADS.0;
    if host.user().is_ok_and(|user| user.uid == Some(0)) || most >= tasks {
        return None;
    }
    let title = format!(
        "this user may have only {most} processes and threads (ulimit -u); {} need about {tasks}",
        need.words
    );
    let limit = Limit {
        resource: "Max processes",
        need: tasks,
        wanted: tasks.max(4096),
        flag: "-u",
        item: "nproc",
        words: "the limit on processes",
        unit: "LimitNPROC",
    };
    Some(raise(host, Finding::new("system.processes", title), &limit))
}

/// The limit of a control group, which root has as well, and which no shell can raise.
fn of_group(host: &Host, need: &Need) -> Option<Finding> {
    let limit = host.cgroup_task_limit()?;
    if limit.most.saturating_sub(limit.used) >= need.tasks {
        return None;
    }
    let whose = if host.is_container() { "this container" } else { "the control group of this shell" };
    let title = format!(
        "{whose} may have only {} processes and threads (pids), of which {} exist; {} need about {} more",
        limit.most, limit.used, need.words, need.tasks
    );
    let finding = Finding::new("system.processes", title).seen(format!("{} is {}", limit.file, limit.most));
    Some(raise_group(host, finding, &limit, need))
}

fn raise_group(host: &Host, finding: Finding, limit: &TaskLimit, need: &Need) -> Finding {
    if let Some(job) = host.job() {
        return finding.remedy(format!(
            "ask the administrator of this {} node to raise the limit on processes of a job (TasksMax)",
            job.name()
        ));
    }
    if host.rental().is_some() {
        return finding.remedy("nothing: the service sets this limit, so use fewer --workers");
    }
    match host.place() {
        Place::Colab | Place::Kaggle => {
            finding.remedy("nothing: the service sets this limit, so use fewer --workers")
        }
        Place::Docker | Place::DockerInWsl => finding
            .remedy("start the container without this limit, which is `pids_limit` in a compose file")
            .command("docker run --pids-limit -1 …"),
        Place::Podman => finding
            .remedy("start the container without this limit; Podman sets one of 2048 by itself")
            .command("podman run --pids-limit -1 …"),
        Place::Pod => finding.remedy(
            "the node's kubelet limits the processes of a pod: ask the administrator of the cluster to raise its \
             setting podPidsLimit",
        ),
        Place::Lxc => finding.remedy(
            "raise the container's limit on its host: limits.processes of LXD and Incus; Proxmox has none by itself",
        ),
        _ => of_systemd(host, finding, limit, need),
    }
}

/// systemd limits services and logins; other systems have no such limit unless somebody set one.
fn of_systemd(host: &Host, finding: Finding, limit: &TaskLimit, need: &Need) -> Finding {
    if !host.has_systemd() {
        return finding.remedy(format!("raise the limit in {}", limit.file));
    }
    let unit =
        limit.file.split('/').rev().find(|part| part.ends_with(".service") || part.ends_with(".slice"));
    match unit {
        // The unit of all sessions of a user; without any limit, one user could bring the machine to a standstill.
        Some(slice) if slice.starts_with("user-") => {
            let wanted = (limit.used + need.tasks).next_power_of_two().max(4096);
            finding
                .remedy(
                    "raise the limit of systemd for all sessions of this user (TasksMax); it takes effect immediately",
                )
                .command(format!("sudo systemctl set-property {slice} TasksMax={wanted}"))
        }
        Some(unit) => finding
            .remedy("raise the limit of this unit (TasksMax); it takes effect immediately")
            .command(format!("sudo systemctl set-property {unit} TasksMax=infinity")),
        None => finding.remedy(format!("raise the limit in {}", limit.file)),
    }
}
