//! A recording gives the same findings as the machine that it came from, and no recording, however
//! damaged, makes a check fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use yolo_checks::{Host, Intent, Places, entry, judge};

#[test]
fn a_replay_finds_what_the_machine_showed() {
    let working = std::env::current_dir().unwrap().display().to_string();
    let places = Places { data: Some(working.clone()), working: Some(working), ..Places::default() };
    let host = Host::of_this_machine(&places);
    let intent = Intent { run: true, devices: vec![0], ..Intent::default() };
    let findings = serde_json::to_value(judge(&host, &intent)).unwrap();
    let (recording, mut redacted) = host.record_and(&intent, "test", &[findings]);
    let (replayed, recorded_intent) = Host::replay(&recording.to_string()).unwrap();
    let recorded_intent = recorded_intent.unwrap();
    assert_eq!(recorded_intent, intent);
    let again = serde_json::to_value(judge(&replayed, &recorded_intent)).unwrap();
    assert_eq!(again, redacted.pop().unwrap());
}

#[test]
fn a_recording_of_a_recording_is_the_same() {
    for name in support::base_names() {
        let host = support::base(&name);
        let intent = Intent::default();
        let before = judge(&host, &intent).len();
        let (recording, _) = host.record_and(&intent, "test", &[]);
        let (again, _) = Host::from_value(recording).unwrap();
        assert_eq!(judge(&again, &intent).len(), before, "{name}");
    }
}

/// What an answer may be instead of itself.
fn lie() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({ "error": "no answer within 1.5 s" })),
        Just(json!({ "error": 999 })),
        Just(json!({ "base64": "//4AAAD/gIA=" })),
        Just(json!([])),
        Just(json!({})),
        Just(json!(-1)),
        Just(json!(u64::MAX)),
        "\\PC{0,20}".prop_map(Value::from),
    ]
}

/// Replaces the answer that a number leads to.
fn damage(value: &mut Value, seed: usize, lie: &Value) {
    let children = match value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    // One time in four the damage stops here, else it goes deeper.
    if children == 0 || seed.is_multiple_of(4) {
        *value = lie.clone();
        return;
    }
    let (place, seed) = (seed / 4 % children, seed / 4 / children);
    match value {
        Value::Object(map) => damage(map.values_mut().nth(place).unwrap(), seed, lie),
        Value::Array(items) => damage(&mut items[place], seed, lie),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_damage_makes_a_check_fail(
        base in prop::sample::select(support::base_names()),
        damages in prop::collection::vec((any::<u64>(), lie()), 1..6),
        several in any::<bool>(),
    ) {
        let mut recording = support::base_recording(&base);
        for (seed, lie) in &damages {
            let sections = recording.as_object_mut().unwrap();
            let names: Vec<String> = sections.keys().filter(|key| *key != "version").cloned().collect();
            let seed = usize::try_from(*seed >> 8).unwrap();
            let name = &names[seed % names.len()];
            damage(&mut sections[name], seed / names.len(), lie);
        }
        // A table that is no table is refused with a reason, and that is right.
        if let Ok((host, _)) = Host::from_value(recording) {
            let intent = Intent {
                run: true,
                devices: vec![0, 1],
                nnodes: several.then_some(2),
                ..Intent::default()
            };
            for finding in judge(&host, &intent) {
                prop_assert!(finding.id != "system.check-failed", "{finding:#?}");
                prop_assert!(entry(finding.id).is_some());
            }
        }
    }
}
