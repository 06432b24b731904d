//! `--only` and `--skip`: they name findings by id, or whole areas. Any other name is an error, which
//! suggests the nearest names.

use std::collections::BTreeSet;

use yolo_checks::{Area, Check, entries, entry};

use crate::error::CommandError;

/// The selected ids.
#[derive(Debug)]
pub(super) struct Selection {
    ids: BTreeSet<&'static str>,
}

impl Selection {
    /// The ids in `only`, or all of them if it is empty, except those in `skip`.
    pub(super) fn of(only: &[String], skip: &[String]) -> Result<Self, CommandError> {
        let mut ids = named(only)?;
        if only.is_empty() {
            ids = entries().map(|entry| entry.id).collect();
        }
        for id in named(skip)? {
            ids.remove(id);
        }
        Ok(Self { ids })
    }

    /// Whether a finding is selected. A check that itself failed is always reported.
    pub(super) fn wants(&self, id: &str) -> bool {
        self.ids.contains(id) || id == "system.check-failed"
    }

    /// Whether a check can report a selected finding.
    pub(super) fn wants_check(&self, check: &Check) -> bool {
        check.reports.iter().any(|id| self.ids.contains(id))
    }
}

fn named(names: &[String]) -> Result<BTreeSet<&'static str>, CommandError> {
    let mut ids = BTreeSet::new();
    for name in names {
        if let Some(entry) = entry(name) {
            ids.insert(entry.id);
        } else if let Some(area) = Area::ALL.into_iter().find(|area| area.name() == name) {
            ids.extend(entries().filter(|entry| entry.area == area).map(|entry| entry.id));
        } else {
            return Err(unknown(name));
        }
    }
    Ok(ids)
}

/// The likeness above which a name is suggested.
const SIMILAR: f64 = 0.7;

/// The error for an unknown name, with the nearest names.
pub(super) fn unknown(name: &str) -> CommandError {
    let words = |id: &str| id.split_once('.').map_or(id.to_owned(), |(_, words)| words.to_owned());
    let lower = name.to_lowercase();
    let likeness = |id: &str| {
        let whole = strsim::jaro_winkler(&lower, id);
        // People type `shm-too-small` without its area as often as with it.
        whole.max(strsim::jaro_winkler(&words(&lower), &words(id)) * 0.95)
    };
    let mut near: Vec<(f64, &str)> = entries()
        .map(|entry| entry.id)
        .chain(Area::ALL.into_iter().map(Area::name).filter(|area| *area != name))
        .map(|id| (likeness(id), id))
        .collect();
    near.retain(|(likeness, _)| *likeness > SIMILAR);
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<String> = near.iter().take(3).map(|(_, id)| format!("`{id}`")).collect();
    CommandError::Usage {
        what: format!("there is no finding `{name}`"),
        hint: match near.as_slice() {
            [] => "`yolo doctor --list` shows all findings".to_owned(),
            near => format!("similar names: {}; `yolo doctor --list` shows all", near.join(", ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    fn selection(only: &[&str], skip: &[&str]) -> Result<Selection, CommandError> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        Selection::of(&owned(only), &owned(skip))
    }

    #[test]
    fn areas_and_ids_can_be_mixed() {
        let some = selection(&["gpu", "disk.full"], &["gpu.lost"]).unwrap();
        assert!(some.wants("gpu.none") && some.wants("disk.full"));
        assert!(!some.wants("gpu.lost") && !some.wants("memory.low"));
    }

    #[test]
    fn everything_is_selected_by_default() {
        let all = selection(&[], &[]).unwrap();
        assert!(entries().all(|entry| all.wants(entry.id)));
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_ones() {
        for word in ["gpu.drivers-missing", "driver-missing"] {
            let error = selection(&[word], &[]).unwrap_err();
            assert!(error.hint().unwrap().contains("`gpu.driver-missing`"), "{:?}", error.hint());
        }
    }
}
