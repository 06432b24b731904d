//! Whether network adapters of a run on several machines can read the memory of GPUs (GPUDirect RDMA) without a detour:
//! if PCIe bridges (ACS) and the IOMMU send that traffic up to the CPU, it is slow or hangs.

use super::acs;
use super::iommu::{Iommu, iommu};
use crate::facts::{Fact, Host, pci_device};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::remedies::kernel_option::way;

/// Up to which distance NCCL lets an adapter read a GPU's memory. `LOC` and 0 mean never.
const LEVEL: &str = "NCCL_NET_GDR_LEVEL";

/// `gpu.peer-redirected` for a card and an adapter, if the run uses several machines.
pub(super) fn redirected(host: &Host, intent: &Intent) -> Fact<Option<Finding>> {
    if intent.cpu || !intent.has_several_nodes() {
        return Ok(None);
    }
    let setting =
        |name: &str| nccl_files::setting(host, name).map(|set| set.value.trim().to_ascii_uppercase());
    let is_off = setting(LEVEL).is_some_and(|level| level == "LOC" || level == "0")
        || setting("NCCL_IB_DISABLE").is_some_and(|set| set == "1");
    let Iommu::Translates(seen) = iommu(host) else { return Ok(None) };
    if is_off {
        return Ok(None);
    }
    let adapters: Vec<(String, String)> = host
        .infiniband_ports()
        .into_iter()
        .filter(|port| port.is_active() == Some(true) && !port.is_efa(host))
        .filter_map(|port| {
            let link = host.link(&format!("/sys/class/infiniband/{}/device", port.adapter)).ok().flatten()?;
            Some((port.adapter, link.rsplit('/').next()?.to_owned()))
        })
        .collect();
    for gpu in super::chosen(host, intent, host.gpus()?) {
        let Some(card) = gpu.pci_bus_id().ok().and_then(|id| pci_device(&id)) else { continue };
        for (name, adapter) in &adapters {
            let bridges = acs::redirecting_between(host, &card, adapter);
            if !bridges.is_empty() {
                return Ok(Some(finding(host, gpu.index, name, &bridges).seen(seen)));
            }
        }
    }
    Ok(None)
}

fn finding(host: &Host, gpu: usize, adapter: &str, bridges: &[String]) -> Finding {
    let title = format!(
        "what GPU {gpu} and the adapter {adapter} exchange (GPUDirect RDMA) goes up to the CPU and its IOMMU, which is slow and can hang"
    );
    Finding::new("gpu.peer-redirected", title)
        .seen(format!("ReqRedir+ in ACSCtl of {}", bridges.join(", ")))
        .because(
            "the access control of PCIe bridges (ACS) sends requests between devices of one switch up to the CPU, where the IOMMU \
             translates them",
        )
        .remedy("let NCCL copy through memory, without GPUDirect, until that is repaired")
        .command(format!("export {LEVEL}=LOC"))
        .machine_remedy(format!(
            "turn ACS off in the firmware (BIOS), or with setpci, which lasts until the next restart, such as `setpci -s {} \
             ECAP_ACS+6.w=0000`; and add iommu=pt to the kernel command line{}",
            bridges.first().map_or("", String::as_str),
            way(host, "iommu=pt")
        ))
}
