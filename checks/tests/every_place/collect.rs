//! Collects what the doctor says about every recorded machine in every place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::thread;

use serde_json::Value;
use yolo_checks::{Host, Intent, Status, run_all_checks};

use crate::places::{SHELLS, is_placed, place_of, places};
use crate::support::{Case, cases, is_produced, merge};

/// What a user is told to type, or to do: by finding and command or text, the places.
pub(crate) type Words = BTreeMap<(String, String), BTreeSet<&'static str>>;

/// A text together with the commands below it, and where they are said: by finding, text and commands.
pub(crate) type Whole = BTreeMap<(String, String, Vec<String>), BTreeSet<&'static str>>;

/// The remedies of all findings in all places.
#[derive(Default)]
pub(crate) struct Remedies {
    pub(crate) commands: Words,
    pub(crate) texts: Words,
    pub(crate) whole: Whole,
}

/// The commands of all findings in all places, collected once for all tests.
pub(crate) fn all() -> &'static Remedies {
    static ALL: OnceLock<Remedies> = OnceLock::new();
    ALL.get_or_init(collect)
}

fn collect() -> Remedies {
    let places = places();
    let (placed, machines): (Vec<Case>, Vec<Case>) =
        cases().into_iter().partition(|case| case.recording["os"] != "linux" || is_placed(&case.recording));
    let machines: Vec<(Value, Intent)> =
        machines.into_iter().map(|case| (case.recording, case.intent)).collect();
    let parts = thread::available_parallelism().map_or(1, |count| count.get());
    let size = machines.len().div_ceil(parts);
    thread::scope(|scope| {
        let works: Vec<_> = machines
            .chunks(size)
            .map(|machines| {
                let places = &places;
                scope.spawn(move || {
                    let mut remedies = Remedies::default();
                    for (recording, intent) in machines {
                        let mut has_commands = true;
                        for (place, patch) in places {
                            // What no command says is the same in every shell.
                            if !has_commands && SHELLS.contains(place) {
                                continue;
                            }
                            let mut recording = recording.clone();
                            merge(&mut recording, patch);
                            let said = add(&mut remedies, place, recording, intent);
                            has_commands = if *place == "ubuntu" { said } else { has_commands };
                        }
                    }
                    remedies
                })
            })
            .collect();
        let mut all = Remedies::default();
        for case in placed {
            if let Some(place) = place_of(&case.host()) {
                add(&mut all, place, case.recording, &case.intent);
            }
        }
        for part in works.into_iter().map(|work| work.join().unwrap()) {
            for (key, places) in part.commands {
                all.commands.entry(key).or_default().extend(places);
            }
            for (key, places) in part.texts {
                all.texts.entry(key).or_default().extend(places);
            }
            for (key, places) in part.whole {
                all.whole.entry(key).or_default().extend(places);
            }
        }
        all
    })
}

/// Adds what is said on this host; whether there was a command that is not the same in every shell.
fn add(remedies: &mut Remedies, place: &'static str, recording: Value, intent: &Intent) -> bool {
    const OF_SHELLS: [&str; 8] = ["export ", "unset ", "ulimit ", "$(", "&&", "2>", "; do ", "$USER"];
    let mut differs = false;
    let host = Host::from_value(recording).unwrap().0;
    let shown = run_all_checks(&host, intent).into_iter();
    for finding in shown.filter(|finding| is_produced(finding) && finding.status > Status::Ok) {
        if let Some(remedy) = &finding.remedy {
            let text = (finding.id.to_owned(), remedy.text.clone());
            remedies.texts.entry(text).or_default().insert(place);
            let whole = (finding.id.to_owned(), remedy.text.clone(), remedy.commands.clone());
            remedies.whole.entry(whole).or_default().insert(place);
            for command in &remedy.commands {
                differs |= OF_SHELLS.iter().any(|word| command.contains(word));
                remedies.commands.entry((finding.id.to_owned(), command.clone())).or_default().insert(place);
            }
        }
    }
    differs
}
