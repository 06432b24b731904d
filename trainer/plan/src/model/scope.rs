//! The values of a model yaml that apply to all of its rows: classes, multiples and anchors.

use serde_json::Value;

use super::args::whole;
use crate::yaml::show;

/// The most anchors per level.
const MAX_ANCHORS: usize = 64;

/// The values that every row of a yaml needs.
pub(crate) struct Scope {
    pub(crate) nc: usize,
    pub(crate) depth: f64,
    pub(crate) width: f64,
    pub(crate) divisor: usize,
    pub(crate) anchors: Value,
    /// Anchors per level.
    pub(crate) na: usize,
}

impl Scope {
    /// Outputs per detection level. A row with this number of channels is never scaled.
    fn outputs(&self) -> usize {
        self.na * (self.nc + 5)
    }

    /// Output channels after the width multiple, rounded up to a multiple of the divisor.
    pub(crate) fn scale_channels(&self, channels: usize) -> usize {
        if channels == self.outputs() {
            return channels;
        }
        // The conversion saturates; the caller checks the limit on channels.
        (channels as f64 * self.width / self.divisor as f64).ceil() as usize * self.divisor
    }

    /// Repeats after the depth multiple, rounded half to even as Python does.
    pub(crate) fn scale_repeats(&self, n: usize) -> usize {
        if n > 1 { ((n as f64 * self.depth).round_ties_even() as usize).max(1) } else { n }
    }
}

/// The anchors of each level in pixels, or `None` if the yaml gives only their number.
pub(crate) type Anchors = Option<Vec<Vec<[f64; 2]>>>;

/// Reads `anchors`: the anchors of each level, and the number of anchors per level.
pub(crate) fn anchors_of(value: &Value) -> Result<(Anchors, usize), String> {
    let Value::Array(levels) = value else {
        let na = whole(value).filter(|na| (1..=MAX_ANCHORS).contains(na));
        return na.map(|na| (None, na)).ok_or_else(|| {
            format!(
                "anchors is {}; it must be a list for each level or a number from 1 to {MAX_ANCHORS}",
                show(value)
            )
        });
    };
    let mut result: Vec<Vec<[f64; 2]>> = Vec::new();
    for (level, values) in levels.iter().enumerate() {
        let pairs = pairs(values).ok_or_else(|| {
            format!(
                "the anchors of level {level} are {}; they must be pairs of width and height in pixels",
                show(values)
            )
        })?;
        if let Some(first) = result.first().filter(|first| first.len() != pairs.len()) {
            return Err(format!("level {level} has {} anchors but level 0 has {}", pairs.len(), first.len()));
        }
        result.push(pairs);
    }
    match result.first().map(Vec::len) {
        Some(na) => Ok((Some(result), na)),
        None => Err("anchors is an empty list".to_owned()),
    }
}

/// A flat list of widths and heights as pairs.
fn pairs(values: &Value) -> Option<Vec<[f64; 2]>> {
    let numbers = values
        .as_array()?
        .iter()
        .map(|number| number.as_f64().filter(|number| number.is_finite() && *number >= 0.0));
    let numbers = numbers.collect::<Option<Vec<f64>>>()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let count_fits = (1..=MAX_ANCHORS).contains(&pairs.len());
    (rest.is_empty() && count_fits).then(|| pairs.to_vec())
}
