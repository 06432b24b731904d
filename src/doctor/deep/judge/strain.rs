//! Cards under load: heat, fans and power that slow them down, and cards that the driver wants to be reset.

use yolo_checks::GpuStrain;
use yolo_checks::power_limit::sparing;

use super::administrator::{is_at_hand, reset, restart, setting};
use super::conclusion::{Conclusion, Verdict};
use crate::doctor::deep::observed::{Administrator, Observed};

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
        verdict.warnings.extend(heat(seen, number, strain));
        if strain.slowed_by & BY_POWER_SUPPLY != 0 {
            verdict.warnings.push(
                Conclusion::new(format!("the power supply slows {name} down")).hint(
                    "check the power cables of the card, and whether the power supply is strong enough",
                ),
            );
        }
        verdict.errors.extend(recovery(seen, number, strain));
    }
}

fn heat(seen: &Observed, number: usize, strain: &GpuStrain) -> Option<Conclusion> {
    let name = seen.name_of(number);
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
    // A part of the present limit would shrink with each run of the doctor.
    let is_lower = |watts: &f64| strain.power_limit.is_none_or(|present| *watts < present);
    let cooler = strain.power_limit_default.map(sparing);
    let hint = match cooler.filter(is_lower).filter(|_| is_at_hand(seen)) {
        Some(watts) => format!(
            "clear dust and give the card air; a lower power limit takes away much heat and little speed: {} (`nvidia-smi -q -d \
             POWER` names the lowest that the card allows)",
            setting(seen, number, &format!("-pl {watts:.0}"))
        ),
        None if is_at_hand(seen) => "clear dust and give the card air".to_owned(),
        None => needs_air(seen),
    };
    Some(Conclusion::new(text).hint(hint))
}

/// The advice for a card that the user cannot touch. Where they get another one, the heat is that of the next user.
fn needs_air(seen: &Observed) -> String {
    let who = match &seen.host.administrator {
        Administrator::Service(name) => name,
        Administrator::Node => "the administrator of the cluster",
        _ => return format!("the card needs air or cleaning; {}", restart(seen)),
    };
    format!("this card needs air or cleaning, which only {who} can see to; until then, {}", restart(seen))
}

/// What the driver wants to be done with a card after an error.
fn recovery(seen: &Observed, number: usize, strain: &GpuStrain) -> Option<Conclusion> {
    let (what, first, then) = match strain.recovery? {
        1 => ("must be reset", "end all programs that use the card", reset(seen, number)),
        2 => ("needs a restart of the machine", "save your work", format!("then {}", restart(seen))),
        3 => (
            "must not be used for direct copies any more",
            "end the programs that copy between GPUs",
            "then look at the recovery action again (`nvidia-smi -q`)".to_owned(),
        ),
        4 => {
            ("must get no new work and be reset", "let running programs end, start none", reset(seen, number))
        }
        _ => return None,
    };
    let text = format!("the NVIDIA driver says that {} {what}", seen.name_of(number));
    // Where others administer the machine, they see to its programs.
    let hint = match strain.recovery {
        Some(3) => format!("{first}, {then}"),
        _ if is_at_hand(seen) => format!("{first}, {then}"),
        _ => then.strip_prefix("then ").map_or(then.clone(), ToOwned::to_owned),
    };
    Some(Conclusion::new(text).hint(hint))
}
