//! A fault injector: makes any one fact of a recorded host fail, come too late, lie, or be left out.
//! A recording holds every fact that a check may ask for, so that a fault is a change of one answer.

use serde_json::{Value, json};

/// What happens to a fact.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It cannot be had.
    Fails,
    /// It does not come in time, as on a network drive that is gone.
    TimesOut,
    /// Nobody knows: the recording leaves it out.
    Missing,
    /// It is something else than it should be.
    Lies(Value),
}

/// Lies of each shape.
pub(crate) fn lies() -> Vec<Fault> {
    let lies = [
        json!([]),
        json!({}),
        json!(-1),
        json!("\u{0}ä\r\n99999999999999999999"),
        json!({ "base64": "//4AAAD/gIA=" }),
    ];
    lies.map(Fault::Lies).to_vec()
}

/// Where each fact of a recording stands: a section, or a row of one.
pub(crate) fn facts(recording: &Value) -> Vec<(String, Option<String>)> {
    /// Sections that are one answer although they are objects.
    const WHOLE: [&str; 4] = ["user", "places", "system", "nvml"];
    let mut facts = Vec::new();
    for (section, answer) in recording.as_object().unwrap() {
        match answer.as_object() {
            _ if matches!(section.as_str(), "version" | "comment" | "yolo" | "intent") => {}
            Some(rows) if !WHOLE.contains(&section.as_str()) => {
                facts.extend(rows.keys().map(|row| (section.clone(), Some(row.clone()))));
            }
            _ => facts.push((section.clone(), None)),
        }
    }
    facts
}

/// The recording with a fault in one fact.
pub(crate) fn inject(recording: &Value, (section, row): &(String, Option<String>), fault: &Fault) -> Value {
    let mut broken = recording.clone();
    let sections = broken.as_object_mut().unwrap();
    let (table, name) = match row {
        Some(row) => (sections[section].as_object_mut().unwrap(), row),
        None => (sections, section),
    };
    match fault {
        Fault::Fails => table.insert(name.clone(), json!({ "error": "permission denied" })),
        Fault::TimesOut => table.insert(name.clone(), json!({ "error": "no answer within 1.5 s" })),
        Fault::Missing => table.remove(name),
        Fault::Lies(lie) => table.insert(name.clone(), lie.clone()),
    };
    broken
}
