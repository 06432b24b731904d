//! The condition of a card: errors, heat, power, and its link to the machine.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "gpu.lost",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU is lost",
        cause: "the card no longer responds on the PCI bus; usual causes are its power supply, heat, a riser or its slot; \
            programs that used it have failed",
        remedy: Some(
            "restart the machine; if it happens again, reseat the card, check its power cables \
                and cooling, and try another slot; until then, exclude it from --device",
        ),
        fix: None,
        detects: &["gpu-lost-xid79", "power-cable-missing", "gpu-reset-required"],
    },
    Entry {
        id: "gpu.xid",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU reported an error that requires a reset",
        cause: "the driver logged a hardware or firmware error; until the card is reset, programs that use \
                it may hang or fail",
        remedy: Some(
            "restart the machine; if the error returns, check the card's power supply, cooling \
                and slot",
        ),
        fix: None,
        detects: &["xid-109-154-gsp"],
    },
    Entry {
        id: "gpu.xid-before-restart",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU failed before the last restart",
        cause: "the driver logged a hardware or firmware error, after which the card does not work until the machine is \
                restarted; the restart cleared the error, but not its cause, and a run can end in the same way",
        remedy: Some(
            "check the card's power cables (each plug on a cable of its own), its cooling and its seat in the slot; lower its \
             power limit to try, and continue the run with `yolo train --resume`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.recovery-action",
        area: Area::Gpu,
        status: Status::Error,
        title: "The driver asks for a GPU to be reset",
        cause: "after a fault the driver remembers what has to be done with the card; until then it lists the card \
                as usual, but programs on it fail",
        remedy: Some("stop the programs that use the card and reset it, or restart the machine"),
        fix: None,
        detects: &["nvml-recovery-action"],
    },
    Entry {
        id: "gpu.memory-errors",
        area: Area::Gpu,
        status: Status::Error,
        title: "A GPU's memory has errors",
        cause: "ECC found data in this memory that it could not correct, and the driver stops programs that read it (Xid 48, \
                94, 95)",
        remedy: Some("reset the card; if the errors return, have it replaced"),
        fix: None,
        detects: &["ecc-uncorrected"],
    },
    Entry {
        id: "gpu.memory-encrypted",
        area: Area::Gpu,
        status: Status::Error,
        title: "The memory of the machine is encrypted in a way that GPUs do not know",
        cause: "with AMD's SME the addresses of the machine's memory have a bit that most GPUs cannot use, and a confidential virtual \
                machine shows a GPU only a small buffer; copies to the GPU then fail (Xid 31, CUDA error 700), or have wrong contents, \
                although nvidia-smi works",
        remedy: Some("turn the encryption off, or use a card and a mode that know it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.mining-card",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is a card for mining",
        cause: "its maker cut the link to the machine down to a few lanes of the slowest generation, on most of these cards also the \
                speed of multiplications or of the tensor cores: training runs at a fraction of the chip's speed",
        remedy: Some(
            "expect a slow run, and do not combine the card with others in one run; keep its link free with a larger --batch, and compare \
             --precision fp32 with mixed precision, of which either may be faster",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.power-brake",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is throttled by its power supply",
        cause: "the power supply or the motherboard signals the card to slow down, often to a quarter of its speed",
        remedy: Some(
            "check the power supply, its cables to the card, and the event log of the server's management controller (BMC)",
        ),
        fix: None,
        detects: &["throttle-power-brake"],
    },
    Entry {
        id: "gpu.hot",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU is throttled because of heat",
        cause: "a hot card lowers its clocks until it cools down; with several GPUs all ranks wait for the slowest",
        remedy: Some(
            "clean the fans and improve the airflow; a lower power limit (nvidia-smi -pl) also \
                helps",
        ),
        fix: None,
        detects: &["throttle-thermal", "gpu-fan-stuck"],
    },
    Entry {
        id: "gpu.held-slow",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A busy GPU is held in a saving state",
        cause: "a card that computes goes to P0, P2 or P3; in P5 or P8 its memory has a fraction of its clock, and training takes \
                many times as long",
        remedy: Some(
            "remove the clock limits, which a program or a script may have set; if the state stays, restart the machine, \
             and check the power cables of the card",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.power-cap",
        area: Area::Gpu,
        status: Status::Info,
        title: "A GPU's power limit is below its default",
        cause: "a lower limit slows the GPU down under load; laptops lower it on battery power",
        remedy: Some("raise the limit, or plug the laptop in"),
        fix: None,
        detects: &["throttle-power-cap"],
    },
    Entry {
        id: "gpu.boost-off",
        area: Area::Gpu,
        status: Status::Info,
        title: "A laptop's GPU stays at its base power",
        cause: "the service nvidia-powerd lets the GPU use power that the CPU does not need (Dynamic Boost); without it \
                the GPU is slower under load",
        remedy: Some("start the service now and whenever the machine starts"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "gpu.link-narrow",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A GPU uses only part of its PCIe link",
        cause: "images and gradients travel over this link; a narrow link makes the card wait, especially \
                with several GPUs",
        remedy: Some(
            "move the card to a full-width slot, replace the riser, or check the slot's \
                bifurcation setting in the firmware",
        ),
        fix: None,
        detects: &["pcie-link-degraded"],
    },
    Entry {
        id: "gpu.link-errors",
        area: Area::Gpu,
        status: Status::Warning,
        title: "A PCIe link has errors",
        cause: "failed packets are sent again, which takes time; if the link gets worse, the card drops \
                off the bus",
        remedy: Some(
            "reseat the card, replace the riser or cable, or lower the slot's PCIe generation in \
                the firmware",
        ),
        fix: None,
        detects: &["pcie-aer-errors"],
    },
];
