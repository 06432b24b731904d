//! The variants of libtorch that can be installed, and the choice of one for this machine.

use yolo_checks::libtorch_choice::{Choice, Machine, choose};

/// A variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names that PyTorch gives to its builds")]
pub enum Variant {
    Cpu,
    Cu126,
    Cu128,
    Cu130,
}

impl Variant {
    /// All of them, the smallest first.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Cu126, Self::Cu128, Self::Cu130];

    /// As PyTorch names it: `cpu`, `cu130`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cu126 => "cu126",
            Self::Cu128 => "cu128",
            Self::Cu130 => "cu130",
        }
    }

    /// The variant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }
}

/// A variant with the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The variant.
    pub variant: Variant,
    /// Why it was chosen, one sentence each; empty when the user named it.
    pub reasons: Vec<String>,
    /// What it cannot serve, one sentence each.
    pub unserved: Vec<String>,
}

impl Chosen {
    /// What the user named.
    pub fn named(variant: Variant) -> Self {
        Self { variant, reasons: Vec::new(), unserved: Vec::new() }
    }

    /// What fits the machine.
    pub fn for_machine(machine: &Machine) -> Self {
        let Choice { variant, reasons, unserved } = choose(machine);
        // The tables of checks name no other variant; the CPU's runs everywhere.
        Self { variant: Variant::named(variant).unwrap_or(Variant::Cpu), reasons, unserved }
    }
}
