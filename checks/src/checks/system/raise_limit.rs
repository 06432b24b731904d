//! How to raise a limit. A shell can raise its own up to the hard limit; beyond that `ulimit` fails
//! with "Operation not permitted", and the limit must be raised where it was set: for logins, a
//! systemd service, a batch system or a container.

use crate::facts::{Container, Host, Job, Place};
use crate::finding::Finding;
use crate::remedies::fit::is_without_rights;
use crate::remedies::lxc;

/// A limit of /proc/self/limits that is too low.
pub(super) struct Limit {
    /// Its name there, in bytes or files.
    pub(super) resource: &'static str,
    /// What a run needs.
    pub(super) need: u64,
    /// The best value; `u64::MAX` is unlimited.
    pub(super) wanted: u64,
    /// The option of `ulimit`, which takes memory in KiB.
    pub(super) flag: &'static str,
    /// Its name in limits.conf and for containers.
    pub(super) item: &'static str,
    /// What messages call it.
    pub(super) words: &'static str,
    /// Its name for systemd.
    pub(super) unit: &'static str,
}

impl Limit {
    /// Whether the limit is in bytes, which `ulimit` and the messages give in KiB.
    fn is_memory(&self) -> bool {
        matches!(self.item, "memlock" | "as" | "fsize")
    }

    fn value(&self, unlimited: &str) -> String {
        if self.wanted == u64::MAX { unlimited.to_owned() } else { self.wanted.to_string() }
    }

    /// The argument for `ulimit`, at most the hard limit.
    fn of_shell(&self, hard: u64) -> String {
        match self.wanted.min(hard) {
            u64::MAX => "unlimited".to_owned(),
            bytes if self.is_memory() => (bytes >> 10).to_string(),
            number => number.to_string(),
        }
    }
}

/// The finding with the remedy that works on this host.
pub(super) fn raise(host: &Host, finding: Finding, limit: &Limit) -> Finding {
    let hard = host.hard_limit(limit.resource).unwrap_or(u64::MAX);
    let container = host.container().ok().flatten();
    // The processes of Apptainer and Enroot keep the limits of the shell that started it.
    let container = container.filter(|kind| !matches!(kind, Container::Apptainer | Container::Enroot));
    // Outside containers, root may also raise hard limits.
    let is_root = container.is_none() && host.user().is_ok_and(|user| user.uid == Some(0));
    if hard >= limit.need || is_root {
        let hard = if is_root { u64::MAX } else { hard };
        return finding.command(format!("ulimit {} {}", limit.flag, limit.of_shell(hard)));
    }
    let most = if limit.is_memory() { format!("{} KB", hard >> 10) } else { hard.to_string() };
    let finding = finding.seen(format!("the hard limit is {most}, which no shell can exceed"));
    match container {
        Some(container) => in_container(host, finding, limit, container),
        None => on_machine(host, finding, limit),
    }
}

fn in_container(host: &Host, finding: Finding, limit: &Limit, container: Container) -> Finding {
    if matches!(host.place(), Place::Colab | Place::Kaggle) || host.rental().is_some() {
        return finding.remedy(match limit.item {
            // Each worker opens files and is a process.
            "nofile" | "nproc" => "nothing: the service sets this limit, so use fewer --workers",
            _ => "nothing here: the service sets this limit, so choose another machine or session type there",
        });
    }
    // Docker has no option for it.
    if limit.item == "as" && matches!(container, Container::Docker | Container::Podman) {
        return finding.remedy(format!(
            "a container inherits this limit from what starts it: remove it there, or in the settings of the \
             runtime's service ({})",
            limit.unit
        ));
    }
    let (item, value) = (limit.item, limit.value("-1"));
    match container {
        Container::Kubernetes => {
            let text = "a pod has the limits of its node's container runtime: raise them there, then \
                        restart the pod";
            of_systemd(limit, "containerd.service", "  # on the node")
                .into_iter()
                .fold(finding.remedy(text), Finding::command)
        }
        Container::Lxc => {
            let change = lxc::Change::Limit(limit.item, limit.value("unlimited"));
            let finding = finding.remedy("raise the container's limit on its host");
            lxc::commands(host, &change).into_iter().fold(finding, Finding::command)
        }
        other => {
            let program = if other == Container::Podman { "podman" } else { "docker" };
            finding
                .remedy("start the container with a higher limit")
                .command(format!("{program} run --ulimit {item}={value}:{value} …"))
        }
    }
}

fn on_machine(host: &Host, finding: Finding, limit: &Limit) -> Finding {
    let groups = host.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
    if host.env("SLURM_JOB_ID").is_ok_and(|job| job.is_some()) || groups.contains("slurm") {
        let text =
            "a Slurm job has the hard limits of the node's slurmd: ask the administrator to raise them";
        return of_systemd(limit, "slurmd.service", "  # on the node")
            .into_iter()
            .fold(finding.remedy(text), Finding::command);
    }
    if host.job() == Some(Job::GridEngine) && limit.item == "as" {
        return finding.remedy(
            "Grid Engine sets this limit from h_vmem: submit the job without h_vmem, and with more of the resource that your site \
             limits memory by (often m_mem_free); if h_vmem is the only one, with an `-l h_vmem=SIZE` of at least what a rank \
             reserves, which is much more than it uses (each slot counts it), or ask the administrator for a queue without h_vmem",
        );
    }
    if let Some(job) = host.job() {
        return finding.remedy(format!(
            "a job has the limits of the daemon of {} on its node: ask the administrator to raise {} there",
            job.name(),
            limit.words
        ));
    }
    // These containers have the limits of the login from which they were started.
    if is_without_rights(host) {
        return finding.remedy(format!(
            "ask the administrator of this machine to raise {} for your logins, then log out of all sessions and log in again",
            limit.words
        ));
    }
    if let Some(service) = service(&groups) {
        let text = "this is a systemd service: raise its limit, then restart it";
        return of_systemd(limit, service, "").into_iter().fold(finding.remedy(text), Finding::command);
    }
    let (item, value) = (limit.item, limit.value("unlimited"));
    finding
        .remedy("raise the limit for your logins, then log out of all sessions and log in again")
        .command(format!("echo \"$USER - {item} {value}\" | sudo tee /etc/security/limits.d/90-{item}.conf"))
}

/// The commands that raise a service's limit and restart it.
fn of_systemd(limit: &Limit, service: &str, place: &str) -> [String; 3] {
    let folder = format!("/etc/systemd/system/{service}.d");
    let line = format!("{}={}", limit.unit, limit.value("infinity"));
    [
        format!("sudo mkdir -p {folder}{place}"),
        format!("printf '[Service]\\n{line}\\n' | sudo tee {folder}/limits.conf{place}"),
        format!("sudo systemctl daemon-reload && sudo systemctl restart {service}{place}"),
    ]
}

/// The system service that this process is part of; user sessions are in user.slice.
fn service(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.splitn(3, ':').nth(2)?.strip_prefix("/system.slice/"))?;
    path.split('/').find(|part| part.ends_with(".service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_services_are_distinguished_from_sessions() {
        assert_eq!(service("0::/system.slice/training.service\n"), Some("training.service"));
        assert_eq!(service("0::/user.slice/user-1000.slice/session-2.scope\n"), None);
        let of_user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n";
        assert_eq!(service(of_user), None);
        assert_eq!(service("0::/\n"), None);
    }
}
