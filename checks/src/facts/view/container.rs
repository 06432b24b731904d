//! Whether this is a container, and of which kind. Docker and Podman each leave a file, Kubernetes
//! sets a variable, and all of them appear in the names of control groups unless those are hidden.

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// The kind of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Docker or compatible.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// Apptainer, formerly Singularity.
    Apptainer,
    /// LXC, LXD or Incus: a whole system in a container.
    Lxc,
}

impl Container {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
            Self::Kubernetes => "Kubernetes",
            Self::Apptainer => "Apptainer",
            Self::Lxc => "LXC",
        }
    }
}

impl Host {
    /// The container that this system is; `None` if it is not one.
    pub fn container(&self) -> Fact<Option<Container>> {
        if self.os().is_ok_and(|os| os != "linux") {
            return Ok(None);
        }
        let is_set = |name: &str| matches!(self.env(name), Ok(Some(_)));
        if is_set("KUBERNETES_SERVICE_HOST") {
            return Ok(Some(Container::Kubernetes));
        }
        if is_set("APPTAINER_CONTAINER") || is_set("SINGULARITY_CONTAINER") {
            return Ok(Some(Container::Apptainer));
        }
        let docker = self.exists("/.dockerenv");
        if docker == Ok(true) {
            return Ok(Some(Container::Docker));
        }
        if self.exists("/run/.containerenv") == Ok(true) {
            return Ok(Some(Container::Podman));
        }
        let named = self.env("container").ok().flatten().and_then(|kind| of_name(&kind));
        let groups = ["/proc/1/cgroup", "/proc/self/cgroup"].map(|file| self.text(file));
        let of_groups = groups.iter().flatten().flatten().find_map(|text| of_groups(text));
        match named.or(of_groups) {
            Some(kind) => Ok(Some(kind)),
            // Neither the file nor a control group is known.
            None if docker.is_err() && groups.iter().all(Result::is_err) => {
                Err(Unknown::because("neither /.dockerenv nor the control groups could be read"))
            }
            None => Ok(None),
        }
    }

    /// Whether this is known to be a container.
    pub fn is_container(&self) -> bool {
        matches!(self.container(), Ok(Some(_)))
    }
}

/// The variable `container`, which systemd asks container managers to set.
fn of_name(name: &str) -> Option<Container> {
    match name {
        "docker" | "oci" => Some(Container::Docker),
        "podman" => Some(Container::Podman),
        name if name.starts_with("lxc") => Some(Container::Lxc),
        _ => None,
    }
}

/// /proc/1/cgroup: `12:memory:/docker/0123…`, `0::/kubepods.slice/…` or `0::/../docker-0123….scope`.
fn of_groups(text: &str) -> Option<Container> {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(|path| {
        // A user's own slice may hold a `docker.service`, which is not a container.
        let has = |start: &str| path.split('/').any(|part| part.starts_with(start));
        if has("kubepods") {
            Some(Container::Kubernetes)
        } else if has("libpod-") {
            Some(Container::Podman)
        } else if has("lxc.payload") || path.starts_with("/lxc/") {
            Some(Container::Lxc)
        } else if has("docker-") || path.contains("/docker/") {
            Some(Container::Docker)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kind(files: Value, env: Value) -> Fact<Option<Container>> {
        let recording = json!({ "version": 1, "os": "linux", "files": files, "env": env });
        Host::from_value(recording).unwrap().0.container()
    }

    #[test]
    fn containers_leave_traces() {
        assert_eq!(kind(json!({ "/.dockerenv": "" }), json!({})), Ok(Some(Container::Docker)));
        let pod = json!({ "/.dockerenv": "" });
        assert_eq!(
            kind(pod, json!({ "KUBERNETES_SERVICE_HOST": "10.0.0.1" })),
            Ok(Some(Container::Kubernetes))
        );
        let first = json!({ "/proc/1/cgroup": "12:memory:/docker/0123\n" });
        assert_eq!(kind(first, json!({})), Ok(Some(Container::Docker)));
        let podman = json!({ "/run/.containerenv": "engine=\"podman-4\"\n" });
        assert_eq!(kind(podman, json!({})), Ok(Some(Container::Podman)));
    }

    #[test]
    fn a_machine_that_runs_docker_is_not_a_container() {
        let files = json!({ "/.dockerenv": null, "/proc/1/cgroup": "0::/init.scope\n",
            "/proc/self/cgroup": "0::/system.slice/docker.service\n" });
        assert_eq!(kind(files, json!({})), Ok(None));
        assert!(kind(json!({}), json!({})).is_err());
    }
}
