//! The links between devices: sums that fail or need another path, bytes that arrive wrong, and links that are
//! slower than others of their kind.

use std::collections::BTreeMap;

use super::conclusion::{Conclusion, Verdict};
use super::devices::lanes;
use crate::doctor::deep::observed::{Again, Copy, Observed, Pair};

/// A link below this fraction of the median of its kind is bad.
const BAD: f64 = 0.5;
/// Direct copies over PCIe below this fraction of the slower card's lanes are worth a look.
const POOR: f64 = 0.4;

const WITHOUT_P2P: &str = "set NCCL_P2P_DISABLE=1 for the run, which is slower; direct copies often fail because of the \
     IOMMU (ACS) of the mainboard: disable it in the firmware, or boot with iommu=pt; on a rented machine, tell its owner";

pub(super) fn judge(seen: &Observed, verdict: &mut Verdict) {
    corrupt_copies(seen, verdict);
    failed_sums(seen, verdict);
    if let Some(failure) = &seen.copies_failure {
        let is_said = verdict.errors.iter().any(|error| error.hint.as_deref() == Some(WITHOUT_P2P));
        let hint = (!is_said && seen.has_gpu(0)).then(|| WITHOUT_P2P.to_owned());
        verdict.errors.push(Conclusion { text: failure.what.clone(), hint });
    }
    slow_links(seen, verdict);
}

/// Bytes that arrive wrong. No run may train with them.
fn corrupt_copies(seen: &Observed, verdict: &mut Verdict) {
    let wrong = |by_host: bool| -> Vec<&Copy> {
        seen.copies.iter().filter(|copy| copy.wrong > 0 && copy.by_host == by_host).collect()
    };
    for copy in wrong(true) {
        let text = format!(
            "bytes that go from {} to {} by the host's memory arrive wrong ({} of them): no result can be trusted",
            seen.name_of(copy.from),
            seen.name_of(copy.to),
            copy.wrong
        );
        let hint = "one of the two cards, its slot or the memory of the host is faulty: test them one by one, and train \
                    without them until then";
        verdict.errors.push(Conclusion::new(text).hint(hint));
    }
    for copy in wrong(false) {
        if wrong(true).iter().any(|other| (other.from, other.to) == (copy.from, copy.to)) {
            continue;
        }
        let text = format!(
            "bytes that are copied directly from {} to {} arrive wrong ({} of them), without an error of the driver; by \
             the host's memory they arrive right",
            seen.name_of(copy.from),
            seen.name_of(copy.to),
            copy.wrong
        );
        verdict.errors.push(Conclusion::new(text).hint(WITHOUT_P2P));
    }
}

/// Sums that fail, and whether they work without direct copies.
fn failed_sums(seen: &Observed, verdict: &mut Verdict) {
    if let Some(failure) = &seen.failure {
        verdict.errors.push(Conclusion { text: failure.what.clone(), hint: failure.hint.clone() });
    }
    let tried: Vec<&Pair> = seen.pairs.iter().filter(|pair| pair.tried).collect();
    let with = |is_bad: bool| -> Vec<&Pair> {
        tried.iter().copied().filter(|pair| pair.failure.is_some() == is_bad).collect()
    };
    let (bad, good) = (with(true), with(false));
    let needs_host = seen.again == Some(Again::Works)
        || !bad.is_empty() && bad.iter().all(|pair| pair.again == Some(Again::Works));
    if needs_host {
        let text = match bad.as_slice() {
            [] => "the GPUs cannot exchange data directly; with NCCL_P2P_DISABLE=1, sums over all ranks work"
                .to_owned(),
            bad => format!(
                "no data passes directly between {}; with NCCL_P2P_DISABLE=1, it does",
                pairs(seen, bad)
            ),
        };
        verdict.errors.push(Conclusion::new(text).hint(WITHOUT_P2P));
        return;
    }
    if let Some(rank) = culprit(&bad, &good) {
        let text = format!("{} fails with every other rank: run without it", seen.name_of(rank));
        verdict.errors.push(Conclusion::new(text));
        return;
    }
    if seen.failure.is_some() && bad.is_empty() && !good.is_empty() {
        verdict.errors.push(Conclusion::new("every pair works; only all ranks together fail"));
    }
    for pair in bad {
        let conclusion = Conclusion::new(format!("no data passes between {}", pairs(seen, &[pair])));
        verdict.errors.push(match pair.again {
            Some(Again::Works) => conclusion.hint(WITHOUT_P2P),
            _ => conclusion,
        });
    }
}

/// `rank 0 (CUDA device 0) and rank 1 (CUDA device 1)`.
fn pairs(seen: &Observed, pairs: &[&Pair]) -> String {
    let named: Vec<String> = pairs
        .iter()
        .map(|pair| format!("{} and {}", seen.name_of(pair.ranks.0), seen.name_of(pair.ranks.1)))
        .collect();
    named.join(", nor between ")
}

/// The one rank that is in all failed pairs and in no successful one, if there is one.
fn culprit(bad: &[&Pair], good: &[&Pair]) -> Option<usize> {
    let (one, other) = bad.first()?.ranks;
    let is_in = |rank: usize, pair: &Pair| pair.ranks.0 == rank || pair.ranks.1 == rank;
    let is_guilty = |&rank: &usize| {
        bad.iter().all(|pair| is_in(rank, pair)) && !good.iter().any(|pair| is_in(rank, pair))
    };
    let mut found = [one, other].into_iter().filter(is_guilty);
    match (found.next(), found.next()) {
        (Some(rank), None) => Some(rank),
        _ => None,
    }
}

/// Links that are slower than most of their kind, and direct copies far below their lanes.
fn slow_links(seen: &Observed, verdict: &mut Verdict) {
    // Of the two links, the one with the least bandwidth counts.
    let lanes_of = |copy: &Copy| {
        let both = [copy.from, copy.to].map(|rank| seen.ranks.get(rank).and_then(lanes));
        both[0].zip(both[1]).map(|(one, other)| one.min(other))
    };
    let kind = |copy: &Copy| -> (bool, Option<&String>, Option<u64>) {
        let key = format!("{},{}", copy.from.min(copy.to), copy.from.max(copy.to));
        // By the host, where the cards are matters little.
        let link = seen.host.links.get(&key).filter(|_| !copy.by_host);
        (copy.by_host, link, lanes_of(copy).map(f64::to_bits))
    };
    let mut kinds: BTreeMap<_, Vec<&Copy>> = BTreeMap::new();
    let of_gpus = seen.copies.iter().filter(|copy| seen.has_gpu(copy.from) && seen.has_gpu(copy.to));
    of_gpus.for_each(|copy| kinds.entry(kind(copy)).or_default().push(copy));
    for ((by_host, link, _), copies) in kinds {
        let Some(middle) = median(copies.iter().map(|copy| copy.rate).collect()) else { continue };
        let how = if by_host { "by the host" } else { "directly" };
        for copy in &copies {
            let names = format!("{} to {}", seen.name_of(copy.from), seen.name_of(copy.to));
            if copies.len() > 2 && copy.rate < middle * BAD {
                let text = format!(
                    "copies {how} from {names} reach {:.1} GB/s, those of most pairs {middle:.1} GB/s",
                    copy.rate
                );
                let hint = "the link between the two is bad or busy: look at the bridge or the slots of these cards; every \
                            step waits for the slowest link";
                verdict.warnings.push(Conclusion::new(text).hint(hint));
                continue;
            }
            // NVLink is faster than the lanes, and there this is never true.
            let Some(lanes) = lanes_of(copy) else { continue };
            let is_near = link.is_some_and(|link| ["PIX", "PXB", "PHB"].contains(&link.as_str()));
            if !by_host && is_near && copy.rate < lanes * POOR && copy.from < copy.to {
                let text = format!(
                    "copies directly from {names} reach {:.1} GB/s; their PCIe lanes should give {:.0} GB/s",
                    copy.rate,
                    lanes * 0.8
                );
                let hint = "direct copies may be off, so that they go through the host: see `nvidia-smi topo -p2p r`";
                verdict.warnings.push(Conclusion::new(text).hint(hint));
            }
        }
    }
}

/// The middle one of some numbers.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
