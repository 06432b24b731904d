//! Whether a card was made for mining. Its chip is that of a card for games or servers, of which the maker cut off what
//! training needs most.

use super::merge::merge_alike;
use super::{label, of_run};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is a GPU one for mining, which is slow at training?",
    reports: &["gpu.mining-card"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu {
        return Ok(Vec::new());
    }
    // Other checks say why the cards are not known.
    let gpus = of_run(host, intent).unwrap_or_default();
    let findings = gpus.iter().filter_map(|gpu| {
        let kind = kind(&gpu.name().ok()?)?;
        let finding = Finding::new("gpu.mining-card", format!("{} is a card for mining", label(gpu)));
        let finding = match (gpu.number("pcie_generation_max"), gpu.number("pcie_width_max")) {
            (Ok(generation), Ok(width)) => {
                finding.seen(format!("its link is PCIe generation {generation}, with {width} lanes at most"))
            }
            _ => finding,
        };
        Some(match kind {
            Kind::Cmp => finding,
            Kind::Pascal => finding
                .status(Status::Info)
                .because("its maker cut the link to the machine down to a few lanes of the slowest generation; it computes as fast as its chip can")
                .remedy("nothing while the images arrive in time; a larger --batch keeps the link free"),
        })
    });
    Ok(merge_alike(findings.collect()))
}

/// Which cards for mining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `NVIDIA CMP 50HX`, `NVIDIA CMP 170HX`, `CMP 100-210`
    Cmp,
    /// `P106-100`, `P104-100`, `P102-100`, which are slow in their link only.
    Pascal,
}

fn kind(name: &str) -> Option<Kind> {
    let mut words = name.split_whitespace();
    words.find_map(|word| match word {
        "CMP" => Some(Kind::Cmp),
        _ => ["P102-", "P104-", "P106-"].iter().any(|start| word.starts_with(start)).then_some(Kind::Pascal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_for_mining_are_known_by_their_name() {
        for name in ["NVIDIA CMP 50HX", "NVIDIA CMP 170HX", "NVIDIA CMP 100-210"] {
            assert_eq!(kind(name), Some(Kind::Cmp), "{name}");
        }
        for name in ["NVIDIA P106-100", "P104-100"] {
            assert_eq!(kind(name), Some(Kind::Pascal), "{name}");
        }
        for name in ["NVIDIA GeForce GTX 1060 6GB", "Tesla P100-PCIE-16GB", "NVIDIA A100-SXM4-80GB"] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
