//! The driver of virtual GPUs (vGPU, formerly GRID), which only the provider of a machine offers: NVIDIA's public
//! drivers do not know these cards.

use super::generation::numbers;
use crate::facts::{Guest, Host};

/// The A10, of which Azure gives parts only (the sizes NVadsA10 v5).
const A10: u32 = 0x2236;

/// Whether the card of this machine is known to be a part of one on Azure.
pub(crate) fn is_of_azure(host: &Host) -> bool {
    host.guest() == Some(Guest::Cloud("Azure")) && numbers(host).contains(&A10)
}

/// What to do there, as a phrase.
pub(crate) const AZURE: &str = "install the vGPU guest driver (GRID driver) that Microsoft offers for this size of machine, with \
    the NVIDIA GPU Driver Extension or as a .run file from its pages; NVIDIA's public drivers and the distribution's do not know \
    this card, and with them the machine may not start";

/// The command, with the machine's names to fill in.
pub(crate) const AZURE_COMMAND: &str = "az vm extension set --publisher Microsoft.HpcCompute --name NvidiaGpuDriverLinux \
    --resource-group … --vm-name …  # with the Azure CLI";
