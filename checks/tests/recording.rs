//! A recording gives the same findings as the machine that it came from, and no damaged recording
//! makes a check fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use yolo_checks::{Host, Intent, KnownPaths, entry, run_all_checks};

#[test]
fn a_replay_gives_the_findings_of_the_machine() {
    let working = std::env::current_dir().unwrap().display().to_string();
    let places = KnownPaths { data: Some(working.clone()), working: Some(working), ..KnownPaths::default() };
    let host = Host::of_this_machine(&places);
    let intent = Intent { run: true, devices: vec![0], ..Intent::default() };
    let findings = serde_json::to_value(run_all_checks(&host, &intent)).unwrap();
    let (recording, mut redacted) = host.record_and(&intent, "test", &[findings]);
    let (replayed, recorded_intent) = Host::replay(&recording.to_string()).unwrap();
    let recorded_intent = recorded_intent.unwrap();
    assert_eq!(recorded_intent, intent);
    let again = serde_json::to_value(run_all_checks(&replayed, &recorded_intent)).unwrap();
    assert_eq!(again, redacted.pop().unwrap());
}

#[test]
fn recording_a_replayed_host_gives_the_same_findings() {
    for name in support::base_names() {
        let host = support::base(&name);
        let intent = Intent::default();
        let before = run_all_checks(&host, &intent).len();
        let (recording, _) = host.record_and(&intent, "test", &[]);
        let (again, _) = Host::from_value(recording).unwrap();
        assert_eq!(run_all_checks(&again, &intent).len(), before, "{name}");
    }
}

/// Collects every field name in a recording.
fn fields(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, item)| {
            names.insert(name.clone());
            fields(item, names);
        }),
        Value::Array(items) => items.iter().for_each(|item| fields(item, names)),
        // Words such as `file`, `ext4` and `default` are possible names of users too.
        Value::String(word) => {
            names.insert(word.clone());
        }
        _ => {}
    }
}

fn names_of_fields() -> Vec<String> {
    let mut names = BTreeSet::new();
    for base in support::base_names() {
        fields(&support::base_recording(&base), &mut names);
    }
    for case in support::cases() {
        fields(&case.recording, &mut names);
    }
    fields(&serde_json::to_value(Intent::default()).unwrap(), &mut names);
    let is_user = |name: &String| {
        (2..=20).contains(&name.len()) && name.chars().all(|one| one.is_ascii_lowercase() || one == '_')
    };
    names.into_iter().filter(is_user).collect()
}

/// A recording in which the user mara has another name.
fn renamed(value: &Value, name: &str) -> Value {
    let text = value.to_string().replace("mara", name);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_replay_gives_the_same_findings_for_every_user_name() {
    let intent = Intent { run: true, devices: vec![0], ..Intent::default() };
    let ids_and_statuses = |host: &Host, intent: &Intent| -> Vec<_> {
        run_all_checks(host, intent).into_iter().map(|finding| (finding.id, finding.status)).collect()
    };
    let names = names_of_fields();
    assert!(names.len() > 100 && names.iter().any(|name| name == "model"), "{names:?}");
    let mut wrong = Vec::new();
    for base in ["linux-gpu", "wsl2", "windows"] {
        for name in &names {
            let (host, _) = Host::from_value(renamed(&support::base_recording(base), name)).unwrap();
            let recording = host.record(&intent, "test");
            let Ok((again, Some(intended))) = Host::from_value(recording.clone()) else {
                wrong.push(format!("{base} of {name} cannot be read"));
                continue;
            };
            if intended != intent || ids_and_statuses(&host, &intent) != ids_and_statuses(&again, &intended) {
                wrong.push(format!("{base} of {name} has other findings"));
            }
            if again.record(&intended, "test") != recording {
                wrong.push(format!("{base} of {name} is recorded differently"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn public_addresses_give_the_same_findings_and_are_redacted() {
    let mut recording = support::base_recording("linux-8-gpus");
    support::merge(
        &mut recording,
        &json!({
            "interfaces": [
                { "name": "eth0", "up": true, "addresses": ["93.184.216.9/24"] },
                { "name": "eth1", "up": true, "addresses": ["52.95.110.3/20"] },
            ],
            "env": { "NCCL_SOCKET_IFNAME": "nothing", "NCCL_COMM_ID": "52.95.110.7:4444", "MASTER_ADDR": "8.8.4.4" },
            "names": { "8.8.4.4": ["8.8.4.4"] },
        }),
    );
    let (host, _) = Host::from_value(recording).unwrap();
    for address in ["8.8.4.4", "52.95.111.7", "93.184.216.34", "2a00:1450:4001::7"] {
        let intent = Intent {
            run: true,
            nnodes: Some(2),
            devices: vec![0, 1],
            master_addr: Some(address.to_owned()),
            ..Intent::default()
        };
        let findings = serde_json::to_value(run_all_checks(&host, &intent)).unwrap();
        let (recorded, mut redacted) = host.record_and(&intent, "test", &[findings]);
        for secret in [address, "52.95.110", "93.184.216", "8.8.4.4"] {
            assert!(!recorded.to_string().contains(secret), "{secret}: {recorded:#}");
        }
        let (again, intended) = Host::from_value(recorded).unwrap();
        let again = serde_json::to_value(run_all_checks(&again, &intended.unwrap())).unwrap();
        assert_eq!(again, redacted.pop().unwrap(), "{address}");
    }
}

/// A wrong answer.
fn wrong_answer() -> impl Strategy<Value = Value> {
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

/// Replaces the answer that the seed selects.
fn damage(value: &mut Value, seed: usize, wrong: &Value) {
    let children = match value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    // In one of four cases the damage stops here, otherwise it goes deeper.
    if children == 0 || seed.is_multiple_of(4) {
        *value = wrong.clone();
        return;
    }
    let (place, seed) = (seed / 4 % children, seed / 4 / children);
    match value {
        Value::Object(map) => damage(map.values_mut().nth(place).unwrap(), seed, wrong),
        Value::Array(items) => damage(&mut items[place], seed, wrong),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_damage_makes_a_check_fail(
        base in prop::sample::select(support::base_names()),
        damages in prop::collection::vec((any::<u64>(), wrong_answer()), 1..6),
        several in any::<bool>(),
    ) {
        let mut recording = support::base_recording(&base);
        for (seed, wrong) in &damages {
            let sections = recording.as_object_mut().unwrap();
            let names: Vec<String> = sections.keys().filter(|key| *key != "version").cloned().collect();
            let seed = usize::try_from(*seed >> 8).unwrap();
            let name = &names[seed % names.len()];
            damage(&mut sections[name], seed / names.len(), wrong);
        }
        // A table that is not an object is rejected with a reason, as it should be.
        if let Ok((host, _)) = Host::from_value(recording) {
            let intent = Intent {
                run: true,
                devices: vec![0, 1],
                nnodes: several.then_some(2),
                ..Intent::default()
            };
            for finding in run_all_checks(&host, &intent) {
                prop_assert!(finding.id != "system.check-failed", "{finding:#?}");
                prop_assert!(entry(finding.id).is_some());
            }
        }
    }
}
