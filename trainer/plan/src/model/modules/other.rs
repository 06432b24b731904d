//! Modules without an argument for output channels: Detect, and modules that join, reshape, pool
//! or pad feature maps.

use serde_json::Value;

use super::super::Module;
use super::super::args::{MAX_SIZE, Row, whole};
use super::super::scope::{Scope, anchors_of};
use crate::error::PlanError;
use crate::yaml::show;

pub(super) fn concat(row: &Row<'_>, sources: &[usize]) -> Result<(Module, usize), PlanError> {
    row.at_most(1)?;
    match row.args.first().map_or(Some(1), Value::as_i64) {
        // -3 is the same dimension, counted from the last.
        Some(1 | -3) => Ok((Module::Concat { dim: 1 }, sources.iter().sum())),
        _ => Err(row.error("only dimension 1, the channels, can be concatenated")),
    }
}

pub(super) fn detect(row: &Row<'_>, sources: &[usize], scope: &Scope) -> Result<(Module, usize), PlanError> {
    row.at_most(2)?;
    let (Some(nc), Some(anchors)) = (row.args.first(), row.args.get(1)) else {
        return Err(row.error("its arguments must be [nc, anchors]"));
    };
    if whole(nc) != Some(scope.nc) {
        return Err(row
            .error(format!("it detects {} classes, but the data set has {}", show(nc), scope.nc))
            .with_hint("write `nc` as its argument instead of a number"));
    }
    let (_, na) = anchors_of(anchors).map_err(|reason| row.error(reason))?;
    Ok((Module::Detect { nc: scope.nc, na, channels: sources.to_vec() }, scope.nc + 5))
}

pub(super) fn contract(row: &Row<'_>, c1: usize) -> Result<(Module, usize), PlanError> {
    row.at_most(1)?;
    let gain = row.size(0, "the gain", 2, 1)?;
    Ok((Module::Contract { gain }, c1 * gain * gain))
}

pub(super) fn expand(row: &Row<'_>, c1: usize) -> Result<(Module, usize), PlanError> {
    row.at_most(1)?;
    let gain = row.size(0, "the gain", 2, 1)?;
    if !c1.is_multiple_of(gain * gain) {
        return Err(row.error(format!("{c1} channels cannot be divided by {gain}²")));
    }
    Ok((Module::Expand { gain }, c1 / (gain * gain)))
}

pub(super) fn upsample(row: &Row<'_>) -> Result<Module, PlanError> {
    row.at_most(3)?;
    let scale = match (row.args.first(), row.args.get(1)) {
        (Some(Value::Null), Some(scale)) => scale.as_f64().filter(|s| (0.01..=64.0).contains(s)),
        _ => None,
    };
    let scale = scale.ok_or_else(|| row.error("its arguments must be [None, factor, mode]"))?;
    let mode = match row.args.get(2) {
        None => "nearest",
        Some(Value::String(mode)) if matches!(mode.as_str(), "nearest" | "bilinear") => mode,
        Some(other) => {
            return Err(row.error(format!("the mode is {}; it must be nearest or bilinear", show(other))));
        }
    };
    Ok(Module::Upsample { scale, mode: mode.to_owned() })
}

pub(super) fn max_pool(row: &Row<'_>) -> Result<Module, PlanError> {
    row.at_most(3)?;
    if row.args.is_empty() {
        return Err(row.error("the kernel is missing"));
    }
    let k = row.size(0, "the kernel", 2, 1)?;
    let s = if matches!(row.args.get(1), Some(Value::Null)) { k } else { row.size(1, "the stride", k, 1)? };
    let p = row.size(2, "the padding", 0, 0)?;
    if p > k / 2 {
        return Err(row.error(format!("the padding {p} is more than half of the kernel {k}")));
    }
    Ok(Module::MaxPool2d { k, s, p })
}

pub(super) fn zero_pad(row: &Row<'_>) -> Result<Module, PlanError> {
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
        .ok_or_else(|| row.error("its argument must be [left, right, top, bottom]"))
}
