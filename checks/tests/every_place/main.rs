//! Walks every finding through every kind of host: each recorded Linux machine is moved to another
//! distribution, into a container, a pod, a batch job, a notebook service, another shell or another kind of
//! machine, and the commands of its findings are collected. Recorded machines that are in such a place already, in WSL or on Windows stay where
//! they are. `rules.rs` says which commands may appear where; the snapshot shows each command once, with the
//! places that it is for. Every command that deletes, ends, restarts or upgrades something is
//! reviewed in `reviewed.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collect;
mod places;
mod reviewed;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use collect::{Words, all};
use places::{DISTRIBUTIONS, GUESTS, SHELLS, places};
use reviewed::{HARMFUL, REVIEWED};
use rules::{misfit, misfit_of_commands, misfit_of_remedy, misfit_of_text};

#[test]
fn commands_fit_the_place_that_they_are_for() {
    let mut wrong = Vec::new();
    for ((id, command), places) in &all().commands {
        for place in places {
            if let Some(why) = misfit(command, place) {
                wrong.push(format!("{place}: {id}: {command}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn texts_fit_the_place_that_they_are_for() {
    let mut wrong = Vec::new();
    for ((id, text), places) in &all().texts {
        for place in places {
            if let Some(why) = misfit_of_text(id, text, place) {
                wrong.push(format!("{place}: {id}: {text}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} texts do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_passed_on_has_no_command_of_the_users_own() {
    let mut wrong = Vec::new();
    for ((id, text, commands), places) in &all().whole {
        if let Some(why) = misfit_of_remedy(text, commands) {
            wrong.push(format!("{places:?}: {id}: {text}: {commands:?}: {why}"));
        }
        for place in places {
            if let Some(why) = misfit_of_commands(id, commands, place) {
                wrong.push(format!("{place}: {id}: {text}: {commands:?}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} remedies do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a module is built from is there before the image that it is built with.
#[test]
fn an_image_is_built_after_what_it_needs() {
    let builds = ["rpm-ostree upgrade", "rpm-ostree install akmod-nvidia"];
    let needs = ["tee /etc/rpm/", "kmodgenca"];
    for ((id, _, commands), _) in all().whole.iter().filter(|(_, places)| places.contains("silverblue")) {
        let place = |words: &[&str]| {
            commands.iter().position(|command| words.iter().any(|word| command.contains(word)))
        };
        if let (Some(build), Some(need)) = (place(&builds), place(&needs)) {
            assert!(need < build, "{id}: {commands:?}");
        }
    }
}

#[test]
fn the_documentation_counts_the_places() {
    let design = include_str!("../../../docs/design.md").replace('\n', " ");
    let counted = format!(
        "{} distributions, Silverblue, an image of RHEL, {} such places, {} shells",
        DISTRIBUTIONS.len(),
        GUESTS.len(),
        SHELLS.len()
    );
    assert!(design.contains(&counted), "docs/design.md does not say: {counted}");
}

#[test]
fn each_command_and_its_places() {
    insta_of("every_place", "Each command of each finding, and the places that it is for", &all().commands);
}

/// The texts where somebody else administers the machine: no list of words can judge them, so they are to be read.
#[test]
fn each_text_for_guests_and_its_places() {
    let mut texts = Words::new();
    for (key, places) in &all().texts {
        let guests: BTreeSet<&'static str> =
            places.iter().copied().filter(|place| GUESTS.contains(place)).collect();
        // What is said on the user's own machine too is no different there.
        if !guests.is_empty() && !places.contains("ubuntu") {
            texts.insert(key.clone(), guests);
        }
    }
    insta_of("texts_for_guests", "Each text that only guests of a machine are given, and which", &texts);
}

fn insta_of(name: &str, description: &str, words: &Words) {
    let mut text = String::new();
    let mut last = String::new();
    let every = places().len();
    for ((id, word), places) in words {
        if *id != last {
            writeln!(text, "{id}").unwrap();
            last.clone_from(id);
        }
        // What is typed in every shell in the same way is shown with Ubuntu.
        let is_shown = |place: &&'static str| !(SHELLS.contains(place) && places.contains("ubuntu"));
        let places = match places.len() {
            count if count == every => "everywhere".to_owned(),
            _ => places.iter().copied().filter(is_shown).collect::<Vec<_>>().join(" "),
        };
        writeln!(text, "    {word}\n        {places}").unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_description(description);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Whether a command is the reviewed one, of which a path may be left out: `find … -name …`.
fn is_of(command: &str, reviewed: &str) -> bool {
    match reviewed.split_once('…') {
        Some((start, rest)) => command.strip_prefix(start).is_some_and(|command| command.contains(rest)),
        None => command.starts_with(reviewed),
    }
}

/// `find` runs any other program, so that its name alone says nothing about a command.
#[test]
fn each_command_of_find_is_reviewed_by_itself() {
    for (reviewed, _) in REVIEWED.iter().filter(|(reviewed, _)| reviewed.trim_start().starts_with("find")) {
        assert!(reviewed.contains(" -exec") && reviewed.contains("-name '"), "{reviewed}");
    }
}

#[test]
fn every_command_that_can_do_harm_is_reviewed() {
    let is_harmful = |command: &str| {
        // Words in comments and in names of settings do nothing.
        let command = command.split("  # ").next().unwrap_or_default().to_ascii_lowercase();
        // `find` and `sh` have the program behind a quote.
        HARMFUL.iter().map(|word| word.to_ascii_lowercase()).any(|word| {
            command.starts_with(&word)
                || [" ", "'"].iter().any(|before| command.contains(&format!("{before}{word}")))
        })
    };
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for (id, command) in all().commands.keys().filter(|(_, command)| is_harmful(command)) {
        match REVIEWED.iter().find(|(reviewed, _)| is_of(command, reviewed)) {
            Some((start, _)) => drop(used.insert(*start)),
            None => wrong.push(format!("{id}: {command}")),
        }
    }
    assert!(wrong.is_empty(), "not reviewed:\n{}", wrong.join("\n"));
    let unused: Vec<&str> =
        REVIEWED.iter().map(|(start, _)| *start).filter(|start| !used.contains(start)).collect();
    assert!(unused.is_empty(), "no finding has these commands: {unused:?}");
}
