//! Letting a user use NVIDIA's device files, which some systems give to a group only. Inside a container that group
//! often has no name, and a change of the container's own groups does not count in processes that run.

use super::lxc;
use crate::facts::{Host, Place, Stat};
use crate::finding::Finding;

/// The number that a user namespace shows for a user or a group of outside.
const OUTSIDE: u32 = 65534;

/// The finding, with the way to get access to the device files, one of which is `device`, in this state if it is known.
pub(crate) fn join(host: &Host, finding: Finding, device: &str, stat: Option<&Stat>) -> Finding {
    let group = stat.and_then(|stat| stat.gid).filter(|group| *group != OUTSIDE);
    let for_all =
        "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-device-mode.conf";
    match host.place() {
        Place::Podman => finding
            .because(
                "the device files belong to a group of the host, of which a container without root keeps nothing unless it is \
                 told to",
            )
            .remedy(
                "on the host, be a member of the group of the device files, and start the container with the groups that you \
                 have there (with crun; in a compose file by the annotation `run.oci.keep_original_groups: \"1\"`); or let \
                 everybody use the files, from the next start of the host on",
            )
            .command(format!("sudo usermod -aG $(stat -c %G {device}) $USER  # on the host, then log in again"))
            .command("podman run --group-add keep-groups --device nvidia.com/gpu=all …")
            .command(format!("{for_all}  # on the host")),
        Place::Docker | Place::DockerInWsl => {
            let number = group.map_or(format!("$(stat -c %g {device})"), |group| group.to_string());
            finding
                .because("the device files belong to a group, and the user of the image is not in it")
                .remedy(
                    "start the container with the number of that group, or as root; the name of a group in the image does not \
                     count",
                )
                .command(format!("docker run --gpus all --group-add {number} …"))
                .command("docker run --gpus all --user root …")
        }
        Place::Pod => {
            let number = group.map_or("<number>".to_owned(), |group| group.to_string());
            finding
                .because("the device files belong to a group of the node, and the user of the pod is not in it")
                .remedy("give the pod the number of that group, which `stat -c %g` of the file shows on the node")
                .command(format!("securityContext: {{ supplementalGroups: [{number}] }}"))
        }
        Place::Lxc => {
            let finding = finding
                .because("the device files belong to a group of the host, which this container does not have")
                .remedy(
                    "give the container the device files with a mode that lets everybody use them (`mode=0666` of a device on \
                     Proxmox), or let everybody use them on the host, from its next start on",
                )
                .command(format!("{for_all}  # on the host"));
            lxc::commands(host, &lxc::Change::Restart).into_iter().fold(finding, Finding::command)
        }
        _ => finding
            .remedy(format!("add yourself to the group that owns {device}, then log in again"))
            .command(format!("sudo usermod -aG $(stat -c %G {device}) $USER")),
    }
}
