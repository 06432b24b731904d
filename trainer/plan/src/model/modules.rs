//! One row's module: which arguments it takes, its channels in and out, and whether a repeat
//! count goes into the module or makes copies of it (spec §1 and §2).

use serde_json::Value;

use super::args::{MAX_CHANNELS, MAX_SIZE, Row, whole};
use super::count::mixed_shares;
use super::grammar::{Scope, anchors_of};
use super::{Activation, ConvSpec, CspSpec, Module};
use crate::error::PlanError;
use crate::yaml::show;

/// The channels of a row's sources, never empty.
pub(crate) struct Sources<'a> {
    pub(crate) channels: &'a [usize],
}

/// What a row became.
pub(crate) struct Built {
    pub(crate) module: Module,
    pub(crate) copies: usize,
    pub(crate) out_channels: usize,
}

/// Modules whose first argument is a number of output channels.
const CHANNEL_MODULES: [&str; 18] = [
    "Conv",
    "GhostConv",
    "Bottleneck",
    "GhostBottleneck",
    "SPP",
    "SPPF",
    "DWConv",
    "MixConv2d",
    "Focus",
    "CrossConv",
    "BottleneckCSP",
    "C3",
    "C3TR",
    "C3SPP",
    "C3Ghost",
    "nn.ConvTranspose2d",
    "DWConvTranspose2d",
    "C3x",
];
/// Modules that hold their repeats themselves.
const WITH_REPEATS: [&str; 5] = ["BottleneckCSP", "C3", "C3TR", "C3Ghost", "C3x"];
/// The rest of what a row may name.
const OTHER_MODULES: [&str; 8] = [
    "nn.BatchNorm2d",
    "Concat",
    "Detect",
    "Contract",
    "Expand",
    "nn.Upsample",
    "nn.MaxPool2d",
    "nn.ZeroPad2d",
];

pub(crate) fn build_module(
    name: &str,
    n: usize,
    mut row: Row<'_>,
    sources: &Sources<'_>,
    scope: &Scope,
) -> Result<Built, PlanError> {
    let c1 = sources.channels[0];
    if sources.channels.len() > 1 && !matches!(name, "Concat" | "Detect") {
        return Err(
            row.error(format!("{} sources, but only Concat and Detect take several", sources.channels.len()))
        );
    }
    if CHANNEL_MODULES.contains(&name) {
        if row.args.is_empty() {
            return Err(row.error("its first argument, the number of output channels, is missing"));
        }
        let given = row.args.remove(0);
        let c2 = whole(&given)
            .filter(|c2| (1..=MAX_CHANNELS).contains(c2))
            .ok_or_else(|| row.error(format!("{} is not a number of output channels", show(&given))))?;
        let c2 = scope.scale_channels(c2);
        if c2 > MAX_CHANNELS {
            return Err(row.error(format!("{c2} output channels cannot be built")));
        }
        let with_repeats = WITH_REPEATS.contains(&name);
        let (inner, copies) = if with_repeats { (n, 1) } else { (1, n) };
        let module = channel_module(name, c1, c2, inner, &row)?;
        if copies > 1 && c1 != c2 {
            return Err(row.error(format!(
                "{copies} copies in sequence need as many channels out as in, these have {c1} in and {c2} out"
            )));
        }
        return Ok(Built { module, copies, out_channels: c2 });
    }
    let (module, out_channels) = match name {
        "nn.BatchNorm2d" => (Module::BatchNorm2d { c: c1 }, c1),
        "Concat" => {
            row.at_most(1)?;
            match row.args.first().map_or(Some(1), Value::as_i64) {
                Some(1 | -3) => {}
                _ => return Err(row.error("only dimension 1, the channels, can be concatenated")),
            }
            (Module::Concat { dim: 1 }, sources.channels.iter().sum())
        }
        "Detect" => detect(&row, sources, scope)?,
        "Contract" => {
            row.at_most(1)?;
            let gain = row.size(0, "the gain", 2, 1)?;
            (Module::Contract { gain }, c1 * gain * gain)
        }
        "Expand" => {
            row.at_most(1)?;
            let gain = row.size(0, "the gain", 2, 1)?;
            if !c1.is_multiple_of(gain * gain) {
                return Err(row.error(format!("{c1} channels cannot be divided by {gain}²")));
            }
            (Module::Expand { gain }, c1 / (gain * gain))
        }
        "nn.Upsample" => (upsample(&row)?, c1),
        "nn.MaxPool2d" => (max_pool(&row)?, c1),
        "nn.ZeroPad2d" => (zero_pad(&row)?, c1),
        _ => {
            let known: Vec<&str> = CHANNEL_MODULES.into_iter().chain(OTHER_MODULES).collect();
            return Err(row
                .error(format!("there is no module {name} for detectors"))
                .with_hint(format!("the modules of a detection yaml are {}", known.join(", "))));
        }
    };
    if n > 1 && out_channels != c1 {
        return Err(row.error(format!("it cannot be repeated {n} times, since it changes the channels")));
    }
    Ok(Built { module, copies: n, out_channels })
}

fn channel_module(name: &str, c1: usize, c2: usize, n: usize, row: &Row<'_>) -> Result<Module, PlanError> {
    let act = row.default_act;
    Ok(match name {
        "Conv" => {
            row.at_most(6)?;
            Module::Conv(conv(row, c1, c2, row.size(3, "groups", 1, 1)?, 2, [4, 5])?)
        }
        "DWConv" => {
            // k, s, d, act: the padding follows from the kernel.
            row.at_most(4)?;
            let d = row.size(2, "the dilation", 1, 1)?;
            let k = row.pair(0, "the kernel", 1, 1)?;
            let s = row.pair(1, "the stride", 1, 1)?;
            Module::DwConv(ConvSpec {
                c1,
                c2,
                k,
                s,
                p: same(k, d),
                g: gcd(c1, c2),
                d,
                act: row.activation(3)?,
            })
        }
        "Focus" => {
            row.at_most(5)?;
            let spec = conv(row, c1, c2, row.size(3, "groups", 1, 1)?, 2, [usize::MAX, 4])?;
            Module::Focus(spec)
        }
        "GhostConv" => {
            row.at_most(4)?;
            even(row, c2)?;
            let g = row.size(2, "groups", 1, 1)?;
            divides(row, g, c1, c2 / 2)?;
            let k = row.size(0, "the kernel", 1, 1)?;
            Module::GhostConv { c1, c2, k, s: row.size(1, "the stride", 1, 1)?, g, act: row.activation(3)? }
        }
        "GhostBottleneck" => {
            row.at_most(2)?;
            ghost(row, c2)?;
            let s = row.size(1, "the stride", 1, 1)?;
            if s > 2 || (s == 1 && c1 != c2) {
                return Err(row.error(format!("stride {s} from {c1} to {c2} channels cannot be built")));
            }
            Module::GhostBottleneck { c1, c2, k: row.size(0, "the kernel", 3, 1)?, s, act }
        }
        "Bottleneck" => {
            row.at_most(3)?;
            let (g, e) = (row.size(1, "groups", 1, 1)?, row.expansion(2, 0.5)?);
            divides(row, g, hidden(row, c2, e)?, c2)?;
            Module::Bottleneck { c1, c2, shortcut: row.flag(0, "shortcut", true)?, g, e, act }
        }
        "CrossConv" => {
            row.at_most(5)?;
            let (g, e) = (row.size(2, "groups", 1, 1)?, row.expansion(3, 1.0)?);
            divides(row, g, hidden(row, c2, e)?, c2)?;
            let (k, s) = (row.size(0, "the kernel", 3, 1)?, row.size(1, "the stride", 1, 1)?);
            Module::CrossConv { c1, c2, k, s, g, e, shortcut: row.flag(4, "shortcut", false)?, act }
        }
        "SPP" => {
            row.at_most(1)?;
            half(row, c1)?;
            Module::Spp { c1, c2, k: odd(row, row.kernels(0, &[5, 9, 13])?)?, act }
        }
        "SPPF" => {
            row.at_most(1)?;
            half(row, c1)?;
            let k = row.size(0, "the kernel", 5, 1)?;
            odd(row, vec![k])?;
            Module::Sppf { c1, c2, k, act }
        }
        "MixConv2d" => {
            row.at_most(3)?;
            let k = row.kernels(0, &[1, 3])?;
            let equal_ch = row.flag(2, "equal_ch", true)?;
            let shares = mixed_shares(c2, &k, equal_ch);
            if shares.contains(&0) || shares.iter().sum::<usize>() != c2 {
                return Err(row.error(format!("{c2} channels cannot be shared by {} kernels", k.len())));
            }
            Module::MixConv2d { c1, c2, k, s: row.size(1, "the stride", 1, 1)?, equal_ch }
        }
        "nn.ConvTranspose2d" => {
            row.at_most(4)?;
            let (k, s) = (row.size(0, "the kernel", 1, 1)?, row.size(1, "the stride", 1, 1)?);
            let (p, op) = (row.size(2, "the padding", 0, 0)?, row.size(3, "the output padding", 0, 0)?);
            transpose(row, s, op)?;
            Module::ConvTranspose2d { c1, c2, k, s, p, op }
        }
        "DWConvTranspose2d" => {
            row.at_most(4)?;
            let (k, s) = (row.size(0, "the kernel", 1, 1)?, row.size(1, "the stride", 1, 1)?);
            let (p1, p2) = (row.size(2, "the padding", 0, 0)?, row.size(3, "the output padding", 0, 0)?);
            transpose(row, s, p2)?;
            Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 }
        }
        "C3SPP" => {
            // Its kernels stand before the arguments that all others of the family share.
            row.at_most(5)?;
            let k = odd(row, row.kernels(0, &[5, 9, 13])?)?;
            let csp = csp(row, c1, c2, row.size(1, "the repeats", 1, 1)?, 2)?;
            half(row, hidden(row, c2, csp.e)?)?;
            Module::C3Spp { csp, k }
        }
        "C3" => Module::C3(csp(row, c1, c2, n, 0)?),
        "BottleneckCSP" => Module::BottleneckCsp(csp(row, c1, c2, n, 0)?),
        "C3x" => Module::C3x(csp(row, c1, c2, n, 0)?),
        "C3TR" => {
            let csp = csp(row, c1, c2, n, 0)?;
            let hidden = hidden(row, c2, csp.e)?;
            if !hidden.is_multiple_of(4) {
                return Err(
                    row.error(format!("{hidden} hidden channels cannot be shared by 4 attention heads"))
                );
            }
            Module::C3Tr(csp)
        }
        _ => {
            // C3Ghost, the last of the channel modules.
            let csp = csp(row, c1, c2, n, 0)?;
            ghost(row, hidden(row, c2, csp.e)?)?;
            Module::C3Ghost(csp)
        }
    })
}

/// `k, s, p, g, d, act` of a convolution; `last` gives the places of dilation and activation.
fn conv(
    row: &Row<'_>,
    c1: usize,
    c2: usize,
    g: usize,
    padding: usize,
    last: [usize; 2],
) -> Result<ConvSpec, PlanError> {
    divides(row, g, c1, c2)?;
    let k = row.pair(0, "the kernel", 1, 1)?;
    let d = row.size(last[0], "the dilation", 1, 1)?;
    Ok(ConvSpec {
        c1,
        c2,
        k,
        s: row.pair(1, "the stride", 1, 1)?,
        p: row.optional_pair(padding, "the padding")?.unwrap_or_else(|| same(k, d)),
        g,
        d,
        act: row.activation(last[1])?,
    })
}

/// `shortcut, g, e` from `at` on.
fn csp(row: &Row<'_>, c1: usize, c2: usize, n: usize, at: usize) -> Result<CspSpec, PlanError> {
    row.at_most(at + 3)?;
    let (g, e) = (row.size(at + 1, "groups", 1, 1)?, row.expansion(at + 2, 0.5)?);
    let inner = hidden(row, c2, e)?;
    divides(row, g, inner, inner)?;
    Ok(CspSpec { c1, c2, n, shortcut: row.flag(at, "shortcut", true)?, g, e, act: row.default_act })
}

fn detect(row: &Row<'_>, sources: &Sources<'_>, scope: &Scope) -> Result<(Module, usize), PlanError> {
    row.at_most(2)?;
    let (Some(nc), Some(anchors)) = (row.args.first(), row.args.get(1)) else {
        return Err(row.error("its arguments are [nc, anchors]"));
    };
    if whole(nc) != Some(scope.nc) {
        return Err(row
            .error(format!("it detects {} classes, but the data has {}", show(nc), scope.nc))
            .with_hint("write `nc` in its arguments instead of a number"));
    }
    let (_, na) = anchors_of(anchors).map_err(|reason| row.error(reason))?;
    let module = Module::Detect { nc: scope.nc, na, channels: sources.channels.to_vec() };
    Ok((module, scope.nc + 5))
}

fn upsample(row: &Row<'_>) -> Result<Module, PlanError> {
    row.at_most(3)?;
    let scale = match (row.args.first(), row.args.get(1)) {
        (Some(Value::Null), Some(scale)) => scale.as_f64().filter(|s| (0.01..=64.0).contains(s)),
        _ => None,
    };
    let Some(scale) = scale else {
        return Err(row.error("its arguments are [None, factor, mode]"));
    };
    let mode = match row.args.get(2) {
        None => "nearest",
        Some(Value::String(mode)) if matches!(mode.as_str(), "nearest" | "bilinear") => mode,
        Some(other) => {
            return Err(row.error(format!("the mode {} is neither nearest nor bilinear", show(other))));
        }
    };
    Ok(Module::Upsample { scale, mode: mode.to_owned() })
}

fn max_pool(row: &Row<'_>) -> Result<Module, PlanError> {
    row.at_most(3)?;
    if row.args.is_empty() {
        return Err(row.error("its kernel is missing"));
    }
    let k = row.size(0, "the kernel", 2, 1)?;
    let s = if matches!(row.args.get(1), Some(Value::Null)) { k } else { row.size(1, "the stride", k, 1)? };
    let p = row.size(2, "the padding", 0, 0)?;
    if p > k / 2 {
        return Err(row.error(format!("a padding of {p} is more than half of the kernel {k}")));
    }
    Ok(Module::MaxPool2d { k, s, p })
}

fn zero_pad(row: &Row<'_>) -> Result<Module, PlanError> {
    row.at_most(1)?;
    let limit = MAX_SIZE as i64;
    let size = |value: &Value| value.as_i64().filter(|pad| (-limit..=limit).contains(pad));
    let pad = match row.args.first() {
        Some(Value::Array(list)) if list.len() == 4 => {
            let pad: Option<Vec<i64>> = list.iter().map(size).collect();
            pad.and_then(|pad| pad.try_into().ok())
        }
        Some(value) => size(value).map(|pad| [pad; 4]),
        None => None,
    };
    pad.map(|pad| Module::ZeroPad2d { pad })
        .ok_or_else(|| row.error("its argument is [left, right, top, bottom]"))
}

/// The padding that keeps the size at stride 1 (spec §2).
fn same(k: [usize; 2], d: usize) -> [usize; 2] {
    k.map(|k| {
        let span = d * (k - 1) + 1; // What the kernel covers once it is dilated.
        span / 2
    })
}

/// `int(c2·e)` of the blocks.
fn hidden(row: &Row<'_>, c2: usize, e: f64) -> Result<usize, PlanError> {
    match (c2 as f64 * e) as usize {
        0 => Err(row.error(format!("an expansion of {e} leaves no hidden channel of {c2}"))),
        channels => Ok(channels),
    }
}

fn divides(row: &Row<'_>, g: usize, c1: usize, c2: usize) -> Result<(), PlanError> {
    if !c1.is_multiple_of(g) || !c2.is_multiple_of(g) {
        return Err(row.error(format!("{g} groups do not divide {c1} channels in and {c2} out")));
    }
    Ok(())
}

fn even(row: &Row<'_>, c2: usize) -> Result<(), PlanError> {
    if !c2.is_multiple_of(2) { Err(row.error(format!("{c2} output channels are not even"))) } else { Ok(()) }
}

/// A ghost bottleneck halves its channels twice.
fn ghost(row: &Row<'_>, c2: usize) -> Result<(), PlanError> {
    if !c2.is_multiple_of(4) {
        Err(row.error(format!("{c2} channels of a ghost block are not a multiple of 4")))
    } else {
        Ok(())
    }
}

fn half(row: &Row<'_>, c1: usize) -> Result<(), PlanError> {
    if c1 < 2 { Err(row.error("one input channel cannot be halved")) } else { Ok(()) }
}

/// Pooling at stride 1 keeps the size of the map only with odd kernels.
fn odd(row: &Row<'_>, kernels: Vec<usize>) -> Result<Vec<usize>, PlanError> {
    match kernels.iter().find(|k| **k % 2 == 0) {
        Some(k) => Err(row.error(format!("the pooling kernel {k} is not odd"))),
        None => Ok(kernels),
    }
}

fn transpose(row: &Row<'_>, s: usize, op: usize) -> Result<(), PlanError> {
    if op >= s {
        return Err(row.error(format!("the output padding {op} must be smaller than the stride {s}")));
    }
    Ok(())
}

/// The greatest common divisor; both are above 0.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether a convolution has an activation of its own kind rather than none.
pub(crate) fn is_active(act: Activation) -> bool {
    act != Activation::Identity
}
