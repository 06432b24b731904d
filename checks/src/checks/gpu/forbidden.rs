//! Device files of the NVIDIA driver that this user may not open: by their mode and group, or by a rule of the
//! container, the service or a security module.

use crate::facts::{Host, Place, Stat};
use crate::finding::Finding;
use crate::remedies::device_group;
use crate::remedies::gpus_of_job::ask_for;
use crate::remedies::start_container::{Start, start_with};

/// `gpu.driver-silent` for NVML's "no permission". SELinux, which another finding names, is out of question.
pub(super) fn finding(host: &Host, device: Option<&Stat>) -> Finding {
    let known = device.and_then(|stat| Some((stat.mode.clone()?, stat.gid?)));
    let title = "this user may not use the NVIDIA driver: no permission for its device files";
    let finding = Finding::new("gpu.driver-silent", title);
    let Some((mode, group)) = known else { return by_group(host, finding, device) };
    let finding = finding.seen(format!("/dev/nvidiactl has mode {mode} and group {group}"));
    let is_open = u32::from_str_radix(&mode, 8).is_ok_and(|mode| mode & 0o006 == 0o006);
    if is_open { by_rule(host, finding) } else { by_group(host, finding, device) }
}

/// Everybody may open the files, so a rule forbids it.
fn by_rule(host: &Host, finding: Finding) -> Finding {
    let finding = finding.because(
        "the mode of the device files allows it, so a rule forbids it: the device rules of a container, a job or a service \
         (cgroup), or a security module such as AppArmor",
    );
    if let Some(job) = host.job() {
        return ask_for(job, finding, 1).remedy("ask for GPUs when you submit the job");
    }
    if host.is_container() {
        let remedy = "start the container with its GPUs, which also allows their device files";
        return start_with(host, finding.remedy(remedy), Start::Gpus(1));
    }
    finding
        .remedy(
            "if a service starts yolo, allow the devices in its unit (`DeviceAllow=char-nvidia* rw`, no `PrivateDevices=`); \
             otherwise look for the refusal in the kernel's log",
        )
        .command("sudo dmesg | grep -i denied")
}

/// A group may open the files. Nobody is to be added to the group of root, which may do much more.
fn by_group(host: &Host, finding: Finding, device: Option<&Stat>) -> Finding {
    let group = device.and_then(|stat| stat.gid);
    if host.job().is_some() {
        return finding.remedy(
            "ask the administrator of this node for access to the GPUs' device files, and submit the job again",
        );
    }
    match (host.place(), group) {
        (Place::Pod | Place::Colab | Place::Kaggle, Some(0)) => {
            finding.remedy("ask the administrator of this node to let everybody use the GPUs' device files")
        }
        (_, Some(0)) => {
            let (finding, end) = match host.place() {
                Place::Machine => (finding, ""),
                _ => (finding, "  # on the host"),
            };
            finding
                .remedy("let everybody use the GPUs, which is NVIDIA's default: change the mode of the device files")
                .command(format!("sudo chmod 666 /dev/nvidia*{end}"))
                .command(format!(
                    "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-device-files.conf{end}"
                ))
        }
        _ => device_group::join(host, finding, "/dev/nvidiactl", device),
    }
}
