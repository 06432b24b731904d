//! Each device by itself, compared with others of its model and with what its clocks and links should give; and
//! page-locked memory.

use yolo_plan::event::Measure;

use super::administrator::setting;
use super::conclusion::{Conclusion, Verdict};
use crate::doctor::deep::observed::{Observed, Rank};

/// A GPU below this fraction of the best GPU of its model is slow.
const SLOW: f64 = 0.7;
/// A card reaches most of what its memory has; below this fraction something is wrong.
const POOR_MEMORY: f64 = 0.5;
/// A card reaches half or more of what its cores have at their highest clock, which its power may not allow.
const POOR_CORES: f64 = 0.3;
/// A power limit below this fraction of that of other cards explains why a card is slower.
const LOWER_LIMIT: f64 = 0.9;
/// A link reaches about four fifths of the bandwidth of its lanes; below this fraction something is wrong.
const POOR_LINK: f64 = 0.5;

/// What is compared between cards of one model.
const COMPARED: [(Measure, &str, &str); 3] = [
    (Measure::MatrixProduct, "TFLOP/s", "multiplies matrices at"),
    (Measure::LoadedProduct, "TFLOP/s", "under load multiplies matrices at"),
    (Measure::MemoryCopy, "GB/s", "copies in its memory at"),
];

pub(super) fn judge(seen: &Observed, verdict: &mut Verdict) {
    for (number, rank) in seen.ranks.iter().enumerate() {
        let slow =
            slower_than_others(seen, number, rank).or_else(|| slower_than_its_card(seen, number, rank));
        verdict.warnings.extend(slow);
        verdict.warnings.extend(slow_link(seen, number, rank));
        verdict.warnings.extend(little_pinned_memory(seen, number, rank));
    }
}

/// A card that is slower than others of its model: one sentence, for the measurement in which it is worst.
fn slower_than_others(seen: &Observed, number: usize, rank: &Rank) -> Option<Conclusion> {
    let card = rank.card.as_ref()?;
    let worst = COMPARED.iter().filter_map(|(measure, unit, does)| {
        let own = rank.value(*measure)?;
        let same = seen.ranks.iter().filter(|other| other.card.as_ref() == Some(card));
        let best = same.filter_map(|other| other.value(*measure)).fold(0.0, f64::max);
        (own < best * SLOW).then_some((own / best, own, best, unit, does))
    });
    let (_, own, best, unit, does) = worst.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let text = format!("{} {does} {own:.1} {unit}, another {card} at {best:.1}", seen.name_of(number));
    let limit = |rank: &Rank| rank.strain.as_ref().and_then(|strain| strain.power_limit);
    let same = seen.ranks.iter().filter(|other| other.card.as_ref() == Some(card));
    let most = same.filter_map(limit).fold(0.0, f64::max);
    let hint = match limit(rank).filter(|own| *own < most * LOWER_LIMIT) {
        Some(own) => format!(
            "its power limit is {own:.0} W, that of another {most:.0} W; to raise it: {}",
            setting(seen, number, &format!("-pl {most:.0}"))
        ),
        None => "look for heat, a power limit or another program".to_owned(),
    };
    Some(Conclusion::new(text).hint(format!("{hint}; all ranks wait for the slowest in each step")))
}

/// A card below what its own clocks and width give, where no other card of its model shows it.
fn slower_than_its_card(seen: &Observed, number: usize, rank: &Rank) -> Option<Conclusion> {
    let strain = rank.strain.as_ref()?;
    let expected = [
        (Measure::MemoryCopy, strain.memory_rate, POOR_MEMORY, "GB/s", "copies in its memory at"),
        (Measure::MatrixProduct, strain.single_rate, POOR_CORES, "TFLOP/s", "multiplies matrices at"),
    ];
    let mut poor = expected.into_iter().filter_map(|(measure, nominal, part, unit, does)| {
        let (own, nominal) = (rank.value(measure)?, nominal?);
        let card = rank.card.as_deref().unwrap_or("the card");
        (own < nominal * part).then(|| {
            format!("{} {does} {own:.1} {unit}; {card} has {nominal:.0} {unit}", seen.name_of(number))
        })
    });
    let text = poor.next()?;
    Some(
        Conclusion::new(text)
            .hint("see whether another program uses the card, and `yolo doctor` for its limits"),
    )
}

/// Copies from page-locked memory that are far below the bandwidth of the lanes.
fn slow_link(seen: &Observed, number: usize, rank: &Rank) -> Option<Conclusion> {
    let (own, nominal) = (rank.value(Measure::PinnedCopy)?, lanes(rank)?);
    let strain = rank.strain.as_ref()?;
    (own < nominal * POOR_LINK).then(|| {
        let (generation, width) = (strain.pcie_generation.unwrap_or(0), strain.pcie_width.unwrap_or(0));
        Conclusion::new(format!(
            "copies to {} reach {own:.1} GB/s; PCIe {generation}.0 x{width} should reach {:.0} GB/s",
            seen.name_of(number),
            nominal * 0.8
        ))
        .hint("look for a card that is not fully in its slot, a riser, or another program that copies")
    })
}

/// GB/s of the lanes that the link of a rank reached.
pub(super) fn lanes(rank: &Rank) -> Option<f64> {
    let strain = rank.strain.as_ref()?;
    let (generation, width) = (strain.pcie_generation?, strain.pcie_width?);
    // A lane of generation 3 carries 0.985 GB/s; each generation doubles that.
    Some(0.985 * 2.0_f64.powi(i32::try_from(generation).ok()? - 3) * f64::from(width))
}

/// Less page-locked memory than the loader wants.
fn little_pinned_memory(seen: &Observed, number: usize, rank: &Rank) -> Option<Conclusion> {
    let reached = rank.value(Measure::PinnedMemory)?;
    let wanted = seen.host.pinned_wanted;
    (reached < wanted).then(|| {
        let text = format!(
            "{} can page-lock {reached:.0} MiB of memory, of the {wanted:.0} MiB that its loader wants",
            seen.name_of(number)
        );
        let hint = if seen.host.is_wsl {
            "WSL gives all programs together about 1 GB, however much memory it has; the run uses ordinary memory for the \
             rest, from which copies are slower; a smaller --batch or --imgsz needs less"
        } else {
            "the run uses ordinary memory for the rest, from which copies are slower; end programs that hold memory, or \
             give the container more"
        };
        Conclusion::new(text).hint(hint)
    })
}
