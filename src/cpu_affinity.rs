//! Which CPUs each rank runs on. On a machine with several NUMA nodes, a rank that runs on the node of its
//! GPU copies batches faster, and one that always runs on the same node finds its memory there. A rank is
//! only bound if none gets fewer CPUs by it, because loading images needs all of them.

use yolo_base::cpu_list::CpuList;
use yolo_checks::Host;
use yolo_plan::device::Device;

const NODES: &str = "/sys/devices/system/node";

/// The CPUs of each rank on these devices of this machine; empty if the ranks are better left alone: there
/// is one NUMA node, the places of the GPUs are not known, or a rank would have fewer CPUs than its share.
pub(crate) fn cpus_of_ranks(host: &Host, devices: &[Device]) -> Vec<CpuList> {
    choose(host, devices).unwrap_or_default()
}

fn choose(host: &Host, devices: &[Device]) -> Option<Vec<CpuList>> {
    let allowed = allowed(host)?;
    let nodes = nodes(host, &allowed);
    if devices.len() < 2 || nodes.len() < 2 {
        return None;
    }
    let chosen: Option<Vec<CpuList>> = devices
        .iter()
        .enumerate()
        .map(|(rank, device)| match device {
            Device::Cpu => Some(nodes[rank * nodes.len() / devices.len()].clone()),
            Device::Cuda(gpu) | Device::Mig { gpu, .. } => next_to_gpu(host, *gpu, &allowed),
        })
        .collect();
    let chosen = chosen?;
    let share = allowed.len() / devices.len();
    let enough = chosen.iter().all(|cpus| {
        let ranks = chosen.iter().filter(|other| *other == cpus).count();
        !cpus.is_empty() && cpus.len() / ranks >= share
    });
    // Lists that overlap in part would be shared by more ranks than counted.
    let apart = chosen
        .iter()
        .all(|one| chosen.iter().all(|other| one == other || one.intersection(other).is_empty()));
    (enough && apart).then_some(chosen)
}

/// The CPUs that this process may use.
fn allowed(host: &Host) -> Option<CpuList> {
    let status = host.text("/proc/self/status").ok()??;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// The CPUs of each NUMA node that this process may use.
fn nodes(host: &Host, allowed: &CpuList) -> Vec<CpuList> {
    let mut numbers: Vec<usize> = host
        .folder(NODES)
        .ok()
        .flatten()
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let cpus = |number: usize| read(host, &format!("{NODES}/node{number}/cpulist"), allowed);
    numbers.into_iter().filter_map(cpus).collect()
}

fn next_to_gpu(host: &Host, index: usize, allowed: &CpuList) -> Option<CpuList> {
    let gpu = host.gpus().ok()?.into_iter().find(|gpu| gpu.index == index)?;
    // NVML writes eight digits for the PCI domain, and the kernel four.
    let bus = gpu.pci_bus_id().ok()?.to_lowercase();
    let (domain, rest) = bus.split_once(':')?;
    let domain = domain.get(domain.len().checked_sub(4)?..)?;
    read(host, &format!("/sys/bus/pci/devices/{domain}:{rest}/local_cpulist"), allowed)
}

/// The CPUs in a file of the kernel that this process may use, if there are any.
fn read(host: &Host, file: &str, allowed: &CpuList) -> Option<CpuList> {
    let cpus: CpuList = host.text(file).ok()??.parse().ok()?;
    Some(cpus.intersection(allowed)).filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A machine with two nodes of eight CPUs and four GPUs, the first `near` of which are at node 0.
    fn machine(allowed: &str, near: usize) -> Value {
        let mut files = json!({
            "/proc/self/status": format!("Name:\tyolo\nCpus_allowed_list:\t{allowed}\n"),
            "/sys/devices/system/node/node0/cpulist": "0-7\n",
            "/sys/devices/system/node/node1/cpulist": "8-15\n",
        });
        let mut devices = Vec::new();
        for gpu in 0..4 {
            let bus = format!("{:02x}:00.0", 0x17 + gpu);
            let cpus = if gpu < near { "0-7\n" } else { "8-15\n" };
            files[format!("/sys/bus/pci/devices/0000:{bus}/local_cpulist")] = json!(cpus);
            devices.push(
                json!({ "name": "NVIDIA A40", "pci_bus_id": format!("00000000:{}", bus.to_uppercase()) }),
            );
        }
        json!({
            "version": 1, "os": "linux", "arch": "x86_64", "files": files,
            "folders": { "/sys/devices/system/node": ["node0", "node1", "online", "has_cpu"] },
            "nvml": { "driver_version": "580.95.05", "devices": devices },
        })
    }

    fn chosen(recording: Value, devices: &[Device]) -> Vec<String> {
        let (host, _) = Host::from_value(recording).unwrap();
        cpus_of_ranks(&host, devices).iter().map(ToString::to_string).collect()
    }

    fn gpus(numbers: &[usize]) -> Vec<Device> {
        numbers.iter().map(|&number| Device::Cuda(number)).collect()
    }

    #[test]
    fn each_rank_runs_next_to_its_gpu() {
        assert_eq!(chosen(machine("0-15", 2), &gpus(&[0, 2])), ["0-7", "8-15"]);
        assert_eq!(chosen(machine("0-15", 2), &gpus(&[0, 1, 2, 3])), ["0-7", "0-7", "8-15", "8-15"]);
    }

    #[test]
    fn no_rank_gets_fewer_cpus_than_without() {
        assert!(chosen(machine("0-15", 2), &gpus(&[0, 1])).is_empty(), "both would have half of the machine");
        assert!(chosen(machine("0-15", 3), &gpus(&[0, 1, 2, 3])).is_empty(), "three share one node");
    }

    #[test]
    fn what_the_user_allows_is_kept() {
        assert_eq!(chosen(machine("4-11", 2), &gpus(&[0, 2])), ["4-7", "8-11"]);
        assert!(chosen(machine("0-7", 2), &gpus(&[0, 2])).is_empty(), "one node is left");
    }

    #[test]
    fn ranks_on_the_cpu_are_spread_over_the_nodes() {
        assert_eq!(chosen(machine("0-15", 2), &[Device::Cpu; 2]), ["0-7", "8-15"]);
        assert!(chosen(machine("0-15", 2), &[Device::Cpu]).is_empty(), "one rank uses the whole machine");
    }

    #[test]
    fn ranks_are_left_alone_where_the_places_are_not_known() {
        let mut unknown = machine("0-15", 2);
        unknown["files"].as_object_mut().unwrap().retain(|name, _| !name.contains("pci"));
        assert!(chosen(unknown, &gpus(&[0, 2])).is_empty());
    }
}
