//! The table of the comparison: one row per fact, with how it is read and shown, and whether and why a
//! difference matters. Facts that differ between any two machines, such as names, addresses, UUIDs,
//! times, free memory and load, have no row.

mod gpus;
mod libraries;
mod network;
mod options;
mod platform;
mod resources;
mod variables;

use super::rule::Rule;

/// All rows, grouped by what they are about.
const TABLE: [&[Rule]; 7] = [
    platform::RULES,
    libraries::RULES,
    gpus::RULES,
    network::RULES,
    options::RULES,
    resources::RULES,
    variables::RULES,
];

/// All rows, in the order in which differences are shown.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    TABLE.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_lower_case() {
        let ids: Vec<&str> = all().map(|rule| rule.id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        let is_letter =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(ids.iter().all(|id| id.chars().all(is_letter)), "{ids:?}");
    }
}
