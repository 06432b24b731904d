//! Cards under load: heat, fans and power that slow them down, and cards that the driver wants to be reset.

use yolo_checks::GpuStrain;

use super::conclusion::{Conclusion, Verdict};
use crate::doctor::deep::observed::Observed;

/// Bits of nvml.h: slowed down by heat, as the driver or the hardware decided, and by the power supply.
const BY_HEAT: u64 = 0x20 | 0x40;
const BY_POWER_SUPPLY: u64 = 0x80;
/// Degrees below the slowdown at which a card that has only just begun is too hot for a long run.
const CLOSE: u32 = 3;
/// A fan that turns slower than this on a hot card does not work. Some cards report 0 when it stands still.
const NOT_TURNING: u32 = 5;

pub(super) fn judge(seen: &Observed, verdict: &mut Verdict) {
    for (number, rank) in seen.ranks.iter().enumerate() {
        let Some(strain) = &rank.strain else { continue };
        let name = seen.name_of(number);
        verdict.warnings.extend(heat(&name, strain));
        if strain.slowed_by & BY_POWER_SUPPLY != 0 {
            verdict.warnings.push(
                Conclusion::new(format!("the power supply slows {name} down")).hint(
                    "check the power cables of the card, and whether the power supply is strong enough",
                ),
            );
        }
        verdict.errors.extend(recovery(&name, strain));
    }
}

fn heat(name: &str, strain: &GpuStrain) -> Option<Conclusion> {
    let temperature = strain.temperature?;
    let is_slowed = strain.slowed_by & BY_HEAT != 0;
    let is_close = strain.slows_down_at.is_some_and(|limit| temperature + CLOSE >= limit);
    if !(is_slowed || is_close) {
        return None;
    }
    let mut text = format!("{name} reaches {temperature} °C after a few seconds of load");
    if let Some(limit) = strain.slows_down_at {
        text.push_str(&format!(" and slows down at {limit} °C"));
    }
    if let (true, Some(clock), Some(most)) = (is_slowed, strain.clock, strain.clock_max) {
        text.push_str(&format!("; its clock fell to {clock} of {most} MHz"));
    }
    let fan = strain.fan.map(|fan| match fan {
        0..=NOT_TURNING => ", and its fan does not turn".to_owned(),
        fan => format!(", with its fan at {fan} %"),
    });
    text.push_str(&fan.unwrap_or_default());
    Some(Conclusion::new(text).hint(
        "clear dust and give the card air; a lower power limit (`nvidia-smi -i N -pl WATTS`, as administrator) costs \
         little speed and much heat",
    ))
}

/// What the driver wants to be done with a card after an error.
fn recovery(name: &str, strain: &GpuStrain) -> Option<Conclusion> {
    let (what, hint) = match strain.recovery? {
        1 => (
            "must be reset",
            "end all programs that use the card, then reset it as administrator: `nvidia-smi -r -i N`",
        ),
        2 => (
            "needs a restart of the machine",
            "save your work, and restart the machine or ask its administrator",
        ),
        3 => (
            "must not be used for direct copies any more",
            "end all programs that use the card, and ask the administrator of the machine",
        ),
        4 => (
            "must get no new work and be reset",
            "let running programs end, start none, and ask the administrator for a reset",
        ),
        _ => return None,
    };
    Some(Conclusion::new(format!("the NVIDIA driver says that {name} {what}")).hint(hint))
}
