//! Letting a user use NVIDIA's device files, which some systems give to a group only. Inside a container that group
//! often has no name, and a change of the container's own groups does not count in processes that run.

use super::fit::is_without_rights;
use super::lxc;
use crate::facts::{Host, Place, Stat};
use crate::finding::Finding;

/// The number that a user namespace shows for a user or a group of outside.
const OUTSIDE: u32 = 65534;

/// The switch of the driver that lets everybody use its device files, from the next start on.
const FOR_ALL: &str =
    "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-device-mode.conf";
/// Without the folders beside them, /dev/nvidia-caps among them, which nobody could look into with this mode.
const OPEN: &str = "sudo chmod 666 /dev/nvidiactl /dev/nvidia[0-9]* /dev/nvidia-uvm*";

/// The finding, with the way to get access to the device files, one of which is `device`, in this state if it is known.
/// Nobody is to be added to the group of root, which may do much more.
pub(crate) fn join(host: &Host, finding: Finding, device: &str, stat: Option<&Stat>) -> Finding {
    let group = stat.and_then(|stat| stat.gid).filter(|group| *group != OUTSIDE);
    if host.job().is_some() {
        return finding.remedy(
            "ask the administrator of this node for access to the GPUs' device files, and submit the job again",
        );
    }
    if group == Some(0) {
        return of_root(host, finding);
    }
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
            .command(format!("{FOR_ALL}  # on the host")),
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
                .command(format!("{FOR_ALL}  # on the host"));
            lxc::commands(host, &lxc::Change::Restart).into_iter().fold(finding, Finding::command)
        }
        _ if is_without_rights(host) => finding.remedy(format!(
            "ask the administrator of this machine to add you to the group that owns {device}, then log in again"
        )),
        _ => finding
            .remedy(format!("add yourself to the group that owns {device}, then log in again"))
            .command(format!("sudo usermod -aG $(stat -c %G {device}) $USER")),
    }
}

/// The files are root's alone.
fn of_root(host: &Host, finding: Finding) -> Finding {
    let (end, then) = match host.place() {
        Place::Pod | Place::Colab | Place::Kaggle => {
            return finding
                .remedy("ask the administrator of this node to let everybody use the GPUs' device files");
        }
        Place::Machine => ("", ""),
        _ => ("  # on the host", "; then start the container again"),
    };
    finding
        .remedy(format!(
            "let everybody use the GPUs, which is NVIDIA's default: change the mode of the device files, now and for the next \
             start of the machine{then}"
        ))
        .command(format!("{OPEN}{end}"))
        .command(format!("{FOR_ALL}{end}"))
}
