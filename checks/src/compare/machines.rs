//! Compares machines, rule by rule and finding by finding.

use super::comparison::{Comparison, Difference, Equal, Summary, Unread};
use super::findings;
use super::machine::Machine;
use super::reading::{Reading, Value};
use super::rule::{Rule, Seen};
use super::rules;
use crate::facts::Host;
use crate::intent::Intent;

/// Compares machines: their facts, and the findings of all checks.
pub fn compare(machines: &[Machine<'_>]) -> Comparison {
    let (different, shared_findings) = findings::compare(machines);
    let mut comparison = Comparison {
        machines: machines
            .iter()
            .map(|machine| Summary { name: machine.name.to_owned(), about: machine.summary() })
            .collect(),
        differences: Vec::new(),
        findings: different,
        shared_findings,
        equal: Vec::new(),
        unknown: Vec::new(),
    };
    rules::all().for_each(|rule| apply(rule, machines, &mut comparison));
    // The sort is stable: equally serious ones stay in the order of the table.
    comparison.differences.sort_by_key(|difference| std::cmp::Reverse(difference.status));
    comparison
}

/// The facts that are compared: the id of each, and what it is as a noun phrase.
pub fn compared() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::all().map(|rule| (rule.id, rule.what))
}

/// Reads every fact that a comparison needs, so that a recording of this host contains it.
pub fn read_facts(host: &Host, intent: &Intent) {
    let machine = Machine { name: "", host, intent };
    for rule in rules::all() {
        let _ = (rule.read)(&machine);
    }
}

fn apply(rule: &Rule, machines: &[Machine<'_>], comparison: &mut Comparison) {
    let readings: Vec<Reading> = machines.iter().map(|machine| (rule.read)(machine)).collect();
    let reasons: Vec<Option<String>> = readings.iter().map(reason).collect();
    let values: Vec<Option<Value>> = readings.into_iter().map(value).collect();
    let known = values.iter().flatten().count();
    if known > 0 && reasons.iter().any(Option::is_some) {
        comparison.unknown.push(Unread { id: rule.id, what: rule.what, reasons });
    }
    if known < 2 {
        return;
    }
    let seen = Seen { machines, values: &values };
    if !seen.is_equal() {
        let meaning = (rule.judge)(&seen);
        comparison.differences.push(Difference {
            id: rule.id,
            what: rule.what,
            status: meaning.status,
            why: meaning.why,
            remedy: meaning.remedy,
            values: values.iter().map(|value| value.as_ref().map(|value| value.shown.clone())).collect(),
        });
    } else if let (Some(first), true) = (values.iter().flatten().next(), known == machines.len())
        && !first.is_absence
    {
        comparison.equal.push(Equal { id: rule.id, what: rule.what, value: first.shown.clone() });
    }
}

fn reason(reading: &Reading) -> Option<String> {
    match reading {
        Reading::Unknown(why) => Some(why.clone()),
        _ => None,
    }
}

fn value(reading: Reading) -> Option<Value> {
    match reading {
        Reading::Is(value) => Some(value),
        _ => None,
    }
}
