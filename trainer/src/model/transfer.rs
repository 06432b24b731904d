//! Pretrained weights into a model: tensors with equal names and shapes are copied, all others are
//! reported, so that the user sees what is pretrained and what starts from scratch (spec §10).

use std::fmt::Display;

use torch_checkpoint::WeightsFile;

use super::detector::Model;
use crate::error::TrainError;
use crate::tensor_io::{fill, shape};

/// A summary names at most this many tensors of each kind.
const NAMED: usize = 3;

/// A tensor with different shapes in file and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshaped {
    /// Its name.
    pub name: String,
    /// Its shape in the file.
    pub source: Vec<i64>,
    /// Its shape in the model.
    pub model: Vec<i64>,
}

/// The result of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Tensors copied.
    pub matched: usize,
    /// Tensors of the model.
    pub total: usize,
    /// Tensors of the model that are not in the file or were skipped.
    pub missing: Vec<String>,
    /// Tensors of the file that are not in the model.
    pub extra: Vec<String>,
    /// Tensors with a different shape.
    pub reshaped: Vec<Reshaped>,
}

impl Transfer {
    /// One line: how many tensors were copied, and the first names of those that were not.
    pub fn summary(&self) -> String {
        let mut line = format!("transferred {} of {} tensors", self.matched, self.total);
        let reshaped: Vec<String> = self
            .reshaped
            .iter()
            .map(|Reshaped { name, source, model }| format!("{name} {source:?} instead of {model:?}"))
            .collect();
        let kinds = [
            ("not in the file", &self.missing),
            ("not in the model", &self.extra),
            ("with another shape in the file than in the model", &reshaped),
        ];
        for (what, names) in kinds {
            if !names.is_empty() {
                line.push_str(&format!("; {} {what}: {}", names.len(), first(names)));
            }
        }
        line
    }
}

/// The first names, and dots if there are more.
fn first(names: &[impl Display]) -> String {
    let mut parts: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    if names.len() > NAMED {
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

impl Model {
    /// Copies every tensor of `source` whose name and shape agree with the model's. With
    /// `skip_anchors`, skips those whose name contains `anchor`.
    ///
    /// # Errors
    /// When a tensor of the file has fewer bytes than its shape says.
    pub fn transfer(&self, source: &WeightsFile, skip_anchors: bool) -> Result<Transfer, TrainError> {
        let mut report = Transfer { total: self.state.len(), ..Transfer::default() };
        report.extra.extend(source.tensors.keys().filter(|name| self.state.get(name).is_none()).cloned());
        for entry in &self.state {
            let name = &entry.name;
            let wanted = !(skip_anchors && name.contains("anchor"));
            let Some(data) = source.tensors.get(name).filter(|_| wanted) else {
                report.missing.push(name.clone());
                continue;
            };
            let shape = shape(data);
            if shape == entry.tensor.size() {
                fill(&entry.tensor, data).map_err(|error| error.at(name))?;
                report.matched += 1;
            } else {
                let (name, model) = (name.clone(), entry.tensor.size());
                report.reshaped.push(Reshaped { name, source: shape, model });
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_transfer_is_one_short_line() {
        let transfer = Transfer { matched: 349, total: 349, ..Transfer::default() };
        assert_eq!(transfer.summary(), "transferred 349 of 349 tensors");
    }

    #[test]
    fn tensors_that_were_not_copied_are_counted_and_named() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        let transfer = Transfer {
            matched: 1,
            total: 6,
            missing: names(&["a", "b", "c", "d"]),
            extra: names(&["e"]),
            reshaped: vec![Reshaped { name: "f".to_owned(), source: vec![255, 64], model: vec![21, 64] }],
        };
        assert_eq!(
            transfer.summary(),
            "transferred 1 of 6 tensors; 4 not in the file: a, b, c, …; 1 not in the model: e; \
             1 with another shape in the file than in the model: f [255, 64] instead of [21, 64]"
        );
    }
}
