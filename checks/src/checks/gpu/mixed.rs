//! Whether the run's GPUs are alike. All ranks wait for each other at every step and get equal
//! shares of the batch unless it is split, so the slowest GPU sets the pace and the smallest limits the
//! batch.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::{self, Capability};

pub(super) static CHECK: Check =
    Check { question: "Are the run's GPUs alike?", reports: &["gpu.mixed"], preflight: true, run };

/// Cards whose memory differs by less can hold the same batch.
const NOTABLE: f64 = 1.3;

/// What matters about a card when comparing it with the others.
struct Card {
    number: usize,
    name: String,
    memory: u64,
    capability: Capability,
}

fn run(host: &Host, intent: &Intent) -> Answer {
    // Layers are spread by memory.
    if intent.devices.len() < 2 || intent.batch_split.is_some() || intent.is_model_parallel() {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let Some(cards) = gpus.iter().map(card).collect::<Option<Vec<Card>>>() else { return Ok(Vec::new()) };
    let smallest = cards.iter().min_by_key(|card| card.memory);
    let largest = cards.iter().max_by_key(|card| card.memory);
    let (Some(smallest), Some(largest)) = (smallest, largest) else { return Ok(Vec::new()) };
    let differs = largest.memory as f64 > smallest.memory as f64 * NOTABLE;
    let others = cards.iter().find(|card| card.capability != smallest.capability);
    let other = if differs { Some(largest) } else { others };
    // Cards without a common build of libtorch are reported by that check.
    let capabilities: Vec<Capability> = cards.iter().map(|card| card.capability).collect();
    let Some(other) = other.filter(|_| libtorch_builds::best_for(&capabilities, u32::MAX).is_some()) else {
        return Ok(Vec::new());
    };
    let title = format!(
        "GPU {} ({}, {}) and GPU {} ({}, {}) share the work equally, so the smaller or slower one limits \
         the other",
        smallest.number,
        smallest.name,
        format::memory(smallest.memory),
        other.number,
        other.name,
        format::memory(other.memory)
    );
    let finding = cards.iter().fold(Finding::new("gpu.mixed", title), |finding, card| {
        let (major, minor) = card.capability;
        finding.seen(format!(
            "GPU {}: {}, {}, compute capability {major}.{minor}",
            card.number,
            card.name,
            format::memory(card.memory)
        ))
    });
    let alike: Vec<String> =
        cards.iter().filter(|card| card.name == largest.name).map(|card| card.number.to_string()).collect();
    Ok(vec![finding.command(format!("yolo train --device {} …", alike.join(",")))])
}

fn card(gpu: &Gpu) -> Option<Card> {
    let name = gpu.name().ok()?;
    Some(Card {
        number: gpu.index,
        name,
        memory: gpu.memory().ok()?.total,
        capability: gpu.capability().ok()?,
    })
}
