//! A rule of the comparison: a fact, and what it means when machines differ in it.

use super::machine::Machine;
use super::reading::{Reading, Value};
use crate::status::Status;

/// Amounts that differ by less are equal: firmware and kernels reserve a little memory, and how much
/// differs between machines of the same kind.
const TOLERANCE: f64 = 1.02;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Rule {
    /// Stable name, such as `libtorch-version`.
    pub(super) id: &'static str,
    /// What is compared, as a noun phrase.
    pub(super) what: &'static str,
    /// Reads it from one machine.
    pub(super) read: fn(&Machine<'_>) -> Reading,
    /// What a difference means.
    pub(super) judge: fn(&Seen<'_>) -> Meaning,
}

/// What a difference means for training on all machines together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Meaning {
    /// `Error`: it stops a run. `Warning`: it slows a run down, or may stop it. `Info`: it does not
    /// matter.
    pub(super) status: Status,
    pub(super) why: String,
    pub(super) remedy: Option<String>,
}

impl Meaning {
    /// A run over these machines does not work.
    pub(super) fn stops(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Error, why: why.into(), remedy: Some(remedy.into()) }
    }

    /// A run over these machines is slower than it could be, or may fail.
    pub(super) fn slows(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Warning, why: why.into(), remedy: Some(remedy.into()) }
    }

    /// It does not matter.
    pub(super) fn harmless(why: impl Into<String>) -> Self {
        Self { status: Status::Info, why: why.into(), remedy: None }
    }
}

/// A fact on all machines. Where a machine has no value, the fact is missing or does not apply.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) machines: &'a [Machine<'a>],
    pub(super) values: &'a [Option<Value>],
}

impl<'a> Seen<'a> {
    /// The machines that have a value, with it.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'a Machine<'a>, &'a Value)> {
        self.machines.iter().zip(self.values).filter_map(|(machine, value)| Some((machine, value.as_ref()?)))
    }

    /// Whether the machines that have a value have the same one.
    pub(super) fn is_equal(&self) -> bool {
        let Some((_, first)) = self.known().next() else { return true };
        match (self.least(), self.most()) {
            (Some((_, least)), Some((_, most))) if most <= least * TOLERANCE => true,
            // Amounts that are shown alike would look like an error of the comparison.
            _ => self.known().all(|(_, value)| value.key == first.key),
        }
    }

    /// Whether any machine has this value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.known().any(|(_, value)| value.key == key)
    }

    /// The machine with the smallest amount, by name; `None` if the values are not amounts.
    pub(super) fn least(&self) -> Option<(&'a str, f64)> {
        self.amounts()?.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn most(&self) -> Option<(&'a str, f64)> {
        self.amounts()?.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// How many times the largest amount is the smallest one; 1 if the values are not amounts.
    pub(super) fn ratio(&self) -> f64 {
        match (self.least(), self.most()) {
            (Some((_, least)), Some((_, most))) if least > 0.0 => most / least,
            (Some(_), Some((_, most))) if most > 0.0 => f64::INFINITY,
            _ => 1.0,
        }
    }

    fn amounts(&self) -> Option<Vec<(&'a str, f64)>> {
        self.known().map(|(machine, value)| Some((machine.name, value.amount?))).collect()
    }

    /// The names of the machines with this value.
    pub(super) fn with(&self, key: &str) -> Vec<&'a str> {
        self.known().filter(|(_, value)| value.key == key).map(|(machine, _)| machine.name).collect()
    }

    /// Whether the run uses only CPUs on every machine.
    pub(super) fn is_on_cpus(&self) -> bool {
        self.machines.iter().all(|machine| machine.intent.cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Host;
    use crate::intent::Intent;

    fn seen<T>(values: &[Option<Value>], check: impl FnOnce(&Seen<'_>) -> T) -> T {
        let host = Host::replay(r#"{"version": 1}"#).unwrap().0;
        let intent = Intent::default();
        let names = ["a", "b", "c"];
        let machines: Vec<Machine<'_>> =
            names.iter().map(|name| Machine { name, host: &host, intent: &intent }).collect();
        check(&Seen { machines: &machines[..values.len()], values })
    }

    fn value(reading: Reading) -> Option<Value> {
        match reading {
            Reading::Is(value) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn amounts_within_two_percent_are_equal() {
        let amounts = |second: f64| {
            [value(Reading::amount(100.0, "100")), value(Reading::amount(second, second.to_string()))]
        };
        assert!(seen(&amounts(101.9), |seen| seen.is_equal()));
        assert!(seen(&amounts(98.1), |seen| seen.is_equal()));
        assert!(!seen(&amounts(103.0), |seen| seen.is_equal()));
        assert_eq!(seen(&amounts(50.0), |seen| (seen.least().unwrap().0.to_owned(), seen.ratio())), {
            ("b".to_owned(), 2.0)
        });
        assert_eq!(seen(&amounts(0.0), |seen| seen.ratio()), f64::INFINITY);
    }

    #[test]
    fn machines_without_a_value_are_left_out() {
        let values = [value(Reading::text("x")), None, value(Reading::text("x"))];
        assert!(seen(&values, |seen| seen.is_equal()));
        assert_eq!(seen(&values, |seen| seen.with("x").len()), 2);
        assert_eq!(seen(&values, |seen| seen.ratio()), 1.0);
        let values = [value(Reading::text("x")), value(Reading::text("y"))];
        assert!(!seen(&values, |seen| seen.is_equal()));
    }

    #[test]
    fn the_key_is_compared_and_not_what_is_shown() {
        let values = [value(Reading::keyed("80 classes", "a")), value(Reading::keyed("80 classes", "b"))];
        assert!(!seen(&values, |seen| seen.is_equal()));
    }
}
