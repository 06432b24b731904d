//! Device files of the NVIDIA driver that this user may not open: by their mode and group, or by a rule of the
//! container, the service or a security module.

use crate::facts::{Host, Stat};
use crate::finding::Finding;
use crate::remedies::device_group;
use crate::remedies::gpus_of_job::ask_for;
use crate::remedies::start_container::{Start, start_with};

const DEVICE: &str = "/dev/nvidiactl";

/// `gpu.driver-silent` for NVML's "no permission". SELinux, which another finding names, is out of question.
pub(super) fn finding(host: &Host, device: Option<&Stat>) -> Finding {
    let known = device.and_then(|stat| Some((stat.mode.clone()?, stat.gid?)));
    let title = "this user may not use the NVIDIA driver: no permission for its device files";
    let finding = Finding::new("gpu.driver-silent", title);
    let Some((mode, group)) = known else { return device_group::join(host, finding, DEVICE, device) };
    let finding = finding.seen(format!("{DEVICE} has mode {mode} and group {group}"));
    let is_open = u32::from_str_radix(&mode, 8).is_ok_and(|mode| mode & 0o006 == 0o006);
    if is_open { by_rule(host, finding) } else { device_group::join(host, finding, DEVICE, device) }
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
