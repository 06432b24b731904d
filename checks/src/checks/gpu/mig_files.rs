//! A card in MIG mode of which no instance can be used here. Either there is none, or the device files of one
//! are missing: CUDA opens /dev/nvidia-caps/nvidia-capN of an instance before it uses it, and a container has only
//! those that it was given.

use crate::facts::{Gpu, Host, Place};
use crate::finding::Finding;
use crate::remedies::start_container::restart_with_instance;

/// Where the driver lists the instances of cards, with the numbers of their device files.
const LIST: &str = "/proc/driver/nvidia/capabilities";
/// The folder of those device files.
const DEVICES: &str = "/dev/nvidia-caps";

/// `gpu.mig` for a card without a usable instance.
pub(super) fn without_instance(host: &Host, gpu: &Gpu, who: &str) -> Finding {
    let lost = if was_given_one(host) { missing_files(host, gpu) } else { Vec::new() };
    if let Some(first) = lost.first() {
        let title = format!(
            "{who} is in MIG mode and has an instance, but its device file {} does not exist here: CUDA cannot use it",
            first.device
        );
        let finding = Finding::new("gpu.mig", title).because(
            "CUDA opens the device files of a MIG instance in /dev/nvidia-caps before it uses it; without them it finds \
             no MIG device",
        );
        let finding = lost
            .iter()
            .fold(finding, |finding, file| finding.seen(format!("{} names {}", file.listed_in, file.device)));
        return match host.place() {
            Place::Machine => lost.iter().fold(
                finding.remedy("make the device files, which a program of the driver does"),
                |finding, file| finding.command(format!("sudo nvidia-modprobe -f {}", file.listed_in)),
            ),
            _ => restart_with_instance(host, finding),
        };
    }
    let title = format!("{who} is in MIG mode but has no instance: CUDA cannot use it");
    let finding = Finding::new("gpu.mig", title);
    // The administrator of a node decides how its cards are divided.
    if host.place() == Place::Pod {
        let title =
            format!("{who} is in MIG mode, and this pod was given no instance of it: CUDA cannot use it");
        return Finding::new("gpu.mig", title)
            .because("a pod is given instances by NVIDIA's device plugin; without one, CUDA finds no device in it")
            .remedy(
                "request an instance in the pod's container (resources.limits), by a name that `kubectl describe node` shows; \
                 if the pod does so, tell the cluster's administrator that NVIDIA's GPU Operator or device plugin did not \
                 give it one",
            )
            .command("resources: { limits: { nvidia.com/mig-<size>: 1 } }");
    }
    finding
        .remedy(format!(
            "turn MIG off (this waits until no program uses the card), or keep MIG and create one instance that covers the whole card \
             (`sudo nvidia-smi mig -i {} -cgi 0 -C`)",
            gpu.index
        ))
        .command(format!("sudo nvidia-smi -i {} -mig 0", gpu.index))
}

/// Whether this machine or container should have an instance. A pod may see the driver's list of all instances, although
/// it requested none of them.
fn was_given_one(host: &Host) -> bool {
    // nvidia-cap1 and nvidia-cap2 belong to no instance: they let a program configure and watch MIG.
    let of_instance = |name: &String| {
        name.strip_prefix("nvidia-cap")
            .and_then(|number| number.parse::<u32>().ok())
            .is_some_and(|number| number > 2)
    };
    let named = host.env("NVIDIA_VISIBLE_DEVICES").ok().flatten().unwrap_or_default();
    host.place() != Place::Pod
        || named.contains("MIG-")
        || host.folder(DEVICES).ok().flatten().is_some_and(|names| names.iter().any(of_instance))
}

/// A device file that an instance needs and that is missing.
struct Missing {
    device: String,
    /// The file of the driver that names it.
    listed_in: String,
}

/// The files of the first instance with a missing one: a container is not given those of others.
fn missing_files(host: &Host, gpu: &Gpu) -> Vec<Missing> {
    let Some(number) = number_of(host, gpu) else { return Vec::new() };
    let card = format!("{LIST}/gpu{number}/mig");
    let names = host.folder(&card).ok().flatten().unwrap_or_default();
    let instances: Vec<String> = names.into_iter().filter(|name| name.starts_with("gi")).collect();
    let of_instance = |instance: &String| -> Vec<Missing> {
        let folder = format!("{card}/{instance}");
        // An instance of the GPU has one or more for computing, mostly one.
        [format!("{folder}/access"), format!("{folder}/ci0/access")]
            .into_iter()
            .filter_map(|listed_in| {
                let text = host.text(&listed_in).ok().flatten()?;
                let number = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:"))?;
                let device = format!("{DEVICES}/nvidia-cap{}", number.trim().parse::<u32>().ok()?);
                (host.exists(&device) == Ok(false)).then_some(Missing { device, listed_in })
            })
            .collect()
    };
    let mut lost: Vec<Vec<Missing>> = instances.iter().map(of_instance).collect();
    // With the files of one instance, something else is wrong.
    if lost.iter().any(Vec::is_empty) || lost.is_empty() { Vec::new() } else { lost.swap_remove(0) }
}

/// The number in the name of the card's device file. In a container it may differ from that of nvidia-smi, which counts
/// the cards that it sees.
fn number_of(host: &Host, gpu: &Gpu) -> Option<usize> {
    let of_driver = || {
        // NVML writes 00000000:01:00.0, and the kernel 0000:01:00.0.
        let address = gpu.pci_bus_id().ok()?.to_ascii_lowercase();
        let address = address.get(address.len().checked_sub(12)?..)?;
        let text = host.text(&format!("/proc/driver/nvidia/gpus/{address}/information")).ok()??;
        let line = text.lines().find_map(|line| line.strip_prefix("Device Minor:"))?;
        line.trim().parse().ok()
    };
    let is_there = || host.exists(&format!("/dev/nvidia{}", gpu.index)) == Ok(true);
    of_driver().or_else(|| is_there().then_some(gpu.index))
}
