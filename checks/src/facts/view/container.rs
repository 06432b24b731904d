//! Whether this is a container, and of which kind. Docker and Podman each leave a file, Kubernetes
//! sets a variable, and all of them appear in the names of control groups unless those are hidden. A login by ssh has no
//! variables of the container, and other managers leave no file: then the mounts show where its root comes from.

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
    /// Enroot, alone or by Slurm's plugin Pyxis.
    Enroot,
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
            Self::Enroot => "Enroot",
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
        let mounts = self.text("/proc/self/mountinfo").ok().flatten();
        let of_mounts = mounts.as_deref().and_then(of_mounts);
        if of_mounts == Some(Container::Kubernetes) || self.has_files_of_kubelet() {
            return Ok(Some(Container::Kubernetes));
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
        match named.or(of_groups).or(of_mounts) {
            Some(kind) => Ok(Some(kind)),
            // Neither the file nor a control group is known.
            None if docker.is_err() && groups.iter().all(Result::is_err) => {
                Err(Unknown::because("neither /.dockerenv nor the control groups could be read"))
            }
            None => Ok(None),
        }
    }

    /// What the kubelet of a node puts into each container of a pod.
    fn has_files_of_kubelet(&self) -> bool {
        let hosts = self.text("/etc/hosts").ok().flatten();
        hosts.is_some_and(|hosts| hosts.starts_with("# Kubernetes-managed hosts file"))
            || self.exists("/var/run/secrets/kubernetes.io/serviceaccount") == Ok(true)
    }

    /// Whether programs that start containers may be a part of this system: a machine, or LXC, which is a whole system in
    /// a container. In any other container they belong to its host.
    pub fn may_start_containers(&self) -> bool {
        matches!(self.container(), Ok(Some(Container::Lxc))) || !self.is_container()
    }

    /// Whether root of this container is another user on its host, who may not set rules for devices there.
    pub(crate) fn has_mapped_root(&self) -> bool {
        let map = self.text("/proc/self/uid_map").ok().flatten().unwrap_or_default();
        let first: Vec<&str> = map.lines().next().unwrap_or_default().split_whitespace().collect();
        matches!(first.as_slice(), ["0", outside, _] if *outside != "0")
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

/// /proc/self/mountinfo: the kubelet mounts its own /etc/hosts, and the layers of the root lie in the folder of the
/// manager. `628 557 0:52 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/…`
fn of_mounts(table: &str) -> Option<Container> {
    const KUBELET: &str = "/kubelet/pods/";
    const LAYERS: [(&str, Container); 5] = [
        ("/containers/storage/", Container::Podman),
        ("/containerd/", Container::Docker),
        ("/docker/overlay2/", Container::Docker),
        ("/docker/rootfs/", Container::Docker),
        ("/buildkit/", Container::Docker),
    ];
    let mut root = None;
    for line in table.lines() {
        let mut words = line.split(' ').skip(3);
        let (Some(source), Some(point)) = (words.next(), words.next()) else { continue };
        if point == "/etc/hosts" && source.contains(KUBELET) {
            return Some(Container::Kubernetes);
        }
        if point == "/" {
            root = Some((source, line));
        }
    }
    let (source, line) = root?;
    // Enroot unpacks an image into a folder, or stacks it on one, below its own.
    let layers = line.split_once(" - ").map_or("", |(_, rest)| rest);
    let is_enroot = |path: &str| path.contains("/enroot") || path.contains("/pyxis_");
    if is_enroot(source) || layers.starts_with("overlay") && is_enroot(layers) {
        return Some(Container::Enroot);
    }
    let of_layers = |(folder, kind): &(&str, Container)| layers.contains(folder).then_some(*kind);
    if layers.starts_with("overlay") || layers.starts_with("fuse.fuse-overlayfs") {
        LAYERS.iter().find_map(of_layers)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
    fn mounts_show_a_container_without_marks() {
        let of = |line: &str| kind(json!({ "/.dockerenv": null, "/proc/self/mountinfo": line }), json!({}));
        let overlay = |folder: &str| {
            let layers = format!("lowerdir={folder}/snapshots/7/fs,upperdir={folder}/snapshots/8/fs");
            format!("628 557 0:52 / / rw,relatime - overlay overlay rw,{layers}\n")
        };
        let containerd = overlay("/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs");
        assert_eq!(of(&containerd), Ok(Some(Container::Docker)));
        assert_eq!(
            of(&overlay("/home/mara/.local/share/containers/storage/overlay")),
            Ok(Some(Container::Podman))
        );
        let hosts = "9 8 8:1 /var/lib/kubelet/pods/1f/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
        assert_eq!(of(&format!("{containerd}{hosts}")), Ok(Some(Container::Kubernetes)));
        let pyxis = "7 6 0:42 /enroot-data/user-1000/pyxis_4711.0 / rw - tmpfs tmpfs rw\n";
        assert_eq!(of(pyxis), Ok(Some(Container::Enroot)));
        // A machine with such managers, a live USB stick, and Fedora Silverblue.
        let machine = "29 1 8:2 / / rw - ext4 /dev/sda2 rw\n30 29 0:52 / \
                       /var/lib/docker/overlay2/1/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l\n";
        assert_eq!(of(machine), Ok(None));
        assert_eq!(
            of("29 1 0:25 / / rw - overlay /cow rw,lowerdir=/installer.squashfs,upperdir=/cow/upper\n"),
            Ok(None)
        );
        assert_eq!(
            of("29 1 0:25 / / ro - overlay composefs ro,lowerdir+=/run/ostree/.private/cfsroot\n"),
            Ok(None)
        );
    }

    #[test]
    fn kubelet_leaves_files_for_a_login_without_variables() {
        let hosts = json!({ "/.dockerenv": null, "/etc/hosts": "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n" });
        assert_eq!(kind(hosts, json!({})), Ok(Some(Container::Kubernetes)));
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in ".*") {
            of_mounts(&text);
        }
    }

    #[test]
    fn a_machine_that_runs_docker_is_not_a_container() {
        let files = json!({ "/.dockerenv": null, "/proc/1/cgroup": "0::/init.scope\n",
            "/proc/self/cgroup": "0::/system.slice/docker.service\n" });
        assert_eq!(kind(files, json!({})), Ok(None));
        assert!(kind(json!({}), json!({})).is_err());
    }
}
