//! Checks the layout that `docs/design.md` describes: no circular imports between files, no forbidden
//! imports between folders, no forbidden dependencies between crates. Two files that import each other
//! are one file in two parts, or need a third for what they share.

#![cfg(not(windows))]

mod support {
    pub(crate) mod imports;
}

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use support::imports::{Import, circles, of_crate};

/// The crates, and the crates of this workspace that each may depend on.
const CRATES: [(&str, &str, &[&str]); 13] = [
    ("base", "yolo-base", &[]),
    ("checks", "yolo-checks", &["yolo-base"]),
    ("tests/gpu", "gpu-kit", &["yolo-base", "yolo-checks"]),
    ("trainer/plan", "yolo-plan", &["yolo-base"]),
    ("trainer/protocol", "yolo-protocol", &["yolo-base", "yolo-plan"]),
    ("report", "yolo-report", &["yolo-base", "yolo-plan"]),
    ("trainer/weights", "torch-checkpoint", &[]),
    ("trainer/data", "yolo-data", &["yolo-base", "yolo-plan"]),
    ("trainer/libtorch", "libtorch-installed", &[]),
    ("trainer/torch", "tch-train", &["libtorch-installed"]),
    ("trainer/distributed", "tch-distributed", &["libtorch-installed"]),
    (
        "trainer",
        "yolo-trainer",
        &[
            "libtorch-installed",
            "tch-distributed",
            "tch-train",
            "torch-checkpoint",
            "yolo-base",
            "yolo-data",
            "yolo-plan",
            "yolo-protocol",
        ],
    ),
    (
        ".",
        "yolo",
        &[
            "torch-checkpoint",
            "yolo-base",
            "yolo-checks",
            "yolo-data",
            "yolo-plan",
            "yolo-protocol",
            "yolo-report",
            "libtorch-installed",
        ],
    ),
];

/// Imports that must not exist: from, to, and why. A name is a file or a folder.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("src/fetch", "src/setup", "fetching does not know what it fetches"),
    ("src/fetch", "src/printer", "libraries return data; the commands print"),
    ("src/fetch", "src/commands", "commands call; they are not called"),
    ("src/bench", "src/printer", "libraries return data; the commands print"),
    ("src/bench", "src/commands", "commands call; they are not called"),
    ("src/evolve", "src/printer", "libraries return data; the commands print"),
    ("src/evolve", "src/commands", "commands call; they are not called"),
    ("src/setup", "src/printer", "libraries return data; the commands print"),
    ("src/setup", "src/commands", "commands call; they are not called"),
    ("src/setup", "src/launch", "setup starts no ranks"),
    ("src/setup", "src/doctor", "setup decides from facts, not from findings"),
    ("src/undo", "src/setup", "undo does not know what is changed"),
    ("src/undo", "src/doctor", "undo does not know what is changed"),
    ("src/undo", "src/printer", "libraries return data; the commands print"),
    ("src/undo", "src/commands", "commands call; they are not called"),
    ("src/in_wsl", "src/commands", "commands call; they are not called"),
    ("src/in_wsl", "src/printer", "libraries return data; the commands print"),
    ("src/launch", "src/setup", "what is started is passed in"),
    ("src/launch", "src/commands", "commands call; they are not called"),
    ("src/launch", "src/printer", "libraries return data; the commands print"),
    ("src/doctor", "src/commands", "commands call; they are not called"),
    ("src/printer", "src/commands", "the printer shows what it is given"),
    ("checks/src/facts", "checks/src/checks", "facts do not depend on what they mean"),
    ("checks/src/facts", "checks/src/catalogue", "facts do not depend on what they mean"),
    ("trainer/src/model", "trainer/src/tasks/train", "a batch flows forward only"),
    ("trainer/src/model", "trainer/src/loss", "a batch flows forward only"),
    ("trainer/src/loss", "trainer/src/learner", "a batch flows forward only"),
    ("trainer/src/training", "trainer/src/tasks/train", "a run and its benchmark share it"),
    ("trainer/src/training", "trainer/src/tasks/bench", "a run and its benchmark share it"),
    ("trainer/src/detection", "trainer/src/tasks/val", "boxes and NMS serve prediction too"),
    ("trainer/src/checkpoint", "trainer/src/tasks/train", "a checkpoint is data"),
    ("trainer/src/report", "trainer/src/tasks/val", "reports get numbers, not the code that made them"),
];

/// What the commands share. No other file of `src/commands/` may be imported by a command.
const SHARED_BY_COMMANDS: [&str; 11] = [
    "mod.rs",
    "data_to_linux.rs",
    "interrupt.rs",
    "auto_batch.rs",
    "before_training.rs",
    "loader_threads.rs",
    "log_folder.rs",
    "machines.rs",
    "missing.rs",
    "resumed_checkpoint.rs",
    "run.rs",
];

/// Files that call each other by nature, and why.
const ALLOWED_CIRCLES: &[(&str, &str)] = &[];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The imports of all crates, with files relative to the repository.
fn imports() -> Vec<Import> {
    let folders: BTreeSet<&str> = CRATES.iter().map(|(folder, ..)| *folder).collect();
    folders.iter().flat_map(|folder| of_crate(root(), &root().join(folder).join("src"))).collect()
}

#[test]
fn no_two_files_import_each_other() {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for import in imports() {
        graph.entry(import.from).or_default().insert(import.to);
    }
    assert!(graph.len() > 100, "only {} files were read", graph.len());
    let found: Vec<String> = circles(&graph)
        .into_iter()
        .filter(|circle| {
            !ALLOWED_CIRCLES.iter().any(|(a, b)| circle.iter().all(|file| file == a || file == b))
        })
        .map(|circle| circle.join("\n    "))
        .collect();
    assert!(found.is_empty(), "files import each other in a circle:\n    {}", found.join("\n\n    "));
}

/// Whether one file of `src/commands/` imports another that is a command.
fn command_calls_command(import: &Import) -> bool {
    let in_commands = |file: &str| file.strip_prefix("src/commands/").map(str::to_owned);
    match (in_commands(&import.from), in_commands(&import.to)) {
        (Some(from), Some(to)) => {
            from != to && from != "mod.rs" && !SHARED_BY_COMMANDS.contains(&to.as_str())
        }
        _ => false,
    }
}

#[test]
fn no_folder_imports_what_it_must_not() {
    let is_in = |file: &str, folder: &str| {
        file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    };
    let mut found = Vec::new();
    for import in imports() {
        if command_calls_command(&import) {
            found.push(format!(
                "{} imports {} ({}): no command calls another",
                import.from, import.to, import.path
            ));
        }
        for (from, to, why) in FORBIDDEN {
            if is_in(&import.from, from) && is_in(&import.to, to) {
                found.push(format!("{} imports {} ({}): {why}", import.from, import.to, import.path));
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_crate_depends_on_what_it_must_not() {
    let names: BTreeSet<&str> = CRATES.iter().map(|(_, name, _)| *name).collect();
    for (folder, name, allowed) in CRATES {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).expect(folder);
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            if !section.contains("dependencies") || section.contains("workspace") || section.contains("dev-")
            {
                continue;
            }
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(
                !names.contains(dependency) || allowed.contains(&dependency),
                "{name} must not depend on {dependency}"
            );
        }
    }
}
