//! `yolo undo` as a manual: what is listed, how a change is undone, what happens to files that were
//! edited since, to interrupted changes and undos, and to damaged records. Changes come from
//! `yolo doctor --fix` and `yolo setup` as users run them; `tests/setup/` undoes downloads.

// For the shells of Windows, `--fix` writes no file; what `setup --wsl` changes there is in undo_wsl.rs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use user::{Finished, User};

/// A user whose shell has two variables that slow training down.
struct Home {
    user: User,
}

impl Home {
    fn new() -> Self {
        Self { user: User::new() }
    }

    fn path(&self) -> PathBuf {
        self.user.path().join("yolo home")
    }

    fn env_file(&self) -> PathBuf {
        self.path().join("config/env.sh")
    }

    fn command(&self, arguments: &str) -> std::process::Command {
        let mut command = self.user.command(arguments);
        command.env("YOLO_HOME", self.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &str) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// Unsets a variable that is set, by `yolo doctor --fix`.
    fn fix(&self, variable: &str) {
        let mut command = self.command("doctor --only shell --fix --yes");
        Finished::from(command.env(variable, "1").output().unwrap()).succeeded();
        let text = self.text();
        assert!(text.contains(&format!("unset {variable}\n")), "{text}");
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.env_file()).unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        let output = self.run(&format!("undo --json {arguments}"));
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let schema = std::fs::read_to_string("src/undo/report.schema.json").unwrap();
        let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
        let problems: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{arguments}: {problems:?}\n{report:#}");
        report
    }

    /// Whether each change can be undone, the last one first.
    fn states(&self) -> Vec<(u64, String)> {
        let report = self.json("");
        let changes = report["changes"].as_array().unwrap().iter();
        changes
            .map(|one| (one["number"].as_u64().unwrap(), one["undo"].as_str().unwrap().to_owned()))
            .collect()
    }

    fn record(&self, number: u64) -> PathBuf {
        self.path().join(format!("config/backups/{number}/record.json"))
    }

    /// Everything in the home but the journal: each file with its bytes, and each folder.
    fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        walk(&self.path(), &mut found);
        found
    }
}

fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("config/backups") || path.file_name().is_some_and(|name| name == ".lock") {
            continue;
        }
        if path.is_dir() {
            walk(&path, found);
            found.insert(path, None);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
}

#[test]
fn a_host_without_changes_has_an_empty_list() {
    let home = Home::new();
    let output = home.run("undo").succeeded();
    assert_eq!(output.stdout, "yolo has recorded no changes on this machine\n");
    home.run("undo last --yes").failed_with(1, &["no change that can be undone", "`yolo undo` lists"]);
    home.run("undo 3 --yes").failed_with(1, &["there is no change 3", "recorded no changes yet"]);
    home.run("undo first").failed_with(2, &["neither `last` nor the number of a change"]);
    home.run("undo --yes").failed_with(2, &["NUMBER"]);
    assert!(!home.path().exists(), "a list writes nothing");
}

#[test]
fn a_fix_is_listed_and_undone_byte_for_byte() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    std::fs::write(home.env_file(), "# mine, without a final line end").unwrap();
    let before = home.tree();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let list = home.run("undo").succeeded().stdout;
    for words in ["unset CUDA_LAUNCH_BLOCKING", "by `yolo doctor --fix`", "undo: restore", "`yolo undo last`"]
    {
        assert!(list.contains(words), "{words} is not in:\n{list}");
    }
    // Nothing happens without an answer, nor in a dry run.
    let changed = home.tree();
    home.run("undo last").failed_with(1, &["no terminal to ask on", "--yes"]);
    let plan = home.run("undo last --dry-run").succeeded().stdout;
    assert!(plan.contains("This will be undone:") && plan.contains("restore"), "{plan}");
    assert_eq!(home.tree(), changed);
    let done = home.run("undo last --yes").succeeded();
    assert!(done.stderr.contains("change 1 is undone"), "{}", done.stderr);
    assert_eq!(home.tree(), before);
    home.run("undo last --yes").failed_with(1, &["no change that can be undone"]);
    home.run("undo 1 --yes").failed_with(1, &["change 1 was not undone: it has already been undone"]);
}

#[test]
fn an_undo_can_be_undone() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let fixed = home.tree();
    let report = home.json("1 --yes");
    assert_eq!(report["undone"][0]["redo"], 2);
    assert!(!home.env_file().exists());
    home.run("undo 2 --yes").succeeded();
    assert_eq!(home.tree(), fixed);
    // The change counts again, and can be undone again.
    assert_eq!(home.states()[1..], [(2, "undone".to_owned()), (1, "possible".to_owned())]);
    home.run("undo last --yes").succeeded();
    assert!(!home.env_file().exists());
}

#[test]
fn changes_of_different_variables_are_undone_in_any_order() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let first = home.tree();
    home.fix("CUDA_CACHE_DISABLE");
    home.run("undo 2 --yes").succeeded();
    assert_eq!(home.tree(), first);
    home.fix("CUDA_CACHE_DISABLE");
    // The earlier one alone, although the later one has its lines above its own.
    home.run("undo 1 --yes").succeeded();
    assert_eq!(home.text(), "unset CUDA_CACHE_DISABLE\n");
    let profile = home.user.path().join(".bashrc");
    std::fs::write(&profile, format!(". '{}'\n", home.env_file().display())).unwrap();
    let mut last = home.command("undo last --yes");
    let done = Finished::from(last.env("HOME", home.user.path()).output().unwrap()).succeeded();
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(".bashrc still names it"), "{said}");
    assert!(!home.env_file().exists());
    // Only undos are left, which `last` does not undo.
    let list = home.run("undo").succeeded().stdout;
    assert!(!list.contains("`yolo undo last`") && list.contains("`yolo undo NUMBER`"), "{list}");
    home.run("undo last --yes").failed_with(1, &["no change that can be undone"]);
}

#[test]
fn lines_that_the_user_added_stay() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    let mine = "# mine\nalias ll='ls -l'\nexport EDITOR=vi\n";
    std::fs::write(home.env_file(), mine).unwrap();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let edited = home.text().replace("# mine\n", "# mine\nexport PAGER=less\n");
    std::fs::write(home.env_file(), edited).unwrap();
    let list = home.run("undo").succeeded().stdout;
    assert!(list.contains("was edited since"), "{list}");
    home.run("undo last --yes").succeeded();
    assert_eq!(home.text(), mine.replace("# mine\n", "# mine\nexport PAGER=less\n"));
}

#[test]
fn a_file_that_was_edited_in_the_same_lines_needs_force_and_is_kept() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let edited =
        home.text().replace("unset CUDA_LAUNCH_BLOCKING", "export CUDA_LAUNCH_BLOCKING=1 # I need it");
    std::fs::write(home.env_file(), &edited).unwrap();
    let refused = home.run("undo last --yes");
    refused.failed_with(1, &["env.sh was edited since, in the same lines", "--force", "keeps a copy"]);
    assert_eq!(home.text(), edited);
    home.run("undo 1 --yes --force").succeeded();
    assert!(!home.env_file().exists());
    // The copy comes back by undoing the undo.
    home.run("undo 2 --yes").succeeded();
    assert_eq!(home.text(), edited);
}

#[test]
fn lines_that_were_added_at_the_end_stay() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    std::fs::write(home.env_file(), home.text() + "export MINE=1\n").unwrap();
    home.run("undo last --yes").succeeded();
    assert_eq!(home.text(), "export MINE=1\n");
}

#[test]
fn a_file_that_the_user_removed_is_nothing_to_undo() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    std::fs::remove_file(home.env_file()).unwrap();
    assert_eq!(home.states(), [(1, "gone".to_owned())]);
    home.run("undo 1 --yes").failed_with(1, &["nothing of it is left"]);
}

#[test]
fn a_change_that_was_interrupted_is_judged_by_the_disk() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let begun = std::fs::read_to_string(home.record(1)).unwrap().replace("\"made\"", "\"begun\"");
    std::fs::write(home.record(1), begun).unwrap();
    // Killed after the file was written.
    assert_eq!(home.states(), [(1, "possible".to_owned())]);
    // Killed before.
    let written = std::fs::read(home.env_file()).unwrap();
    std::fs::remove_file(home.env_file()).unwrap();
    assert_eq!(home.states(), [(1, "not-made".to_owned())]);
    std::fs::write(home.env_file(), written).unwrap();
    home.run("undo 1 --yes").succeeded();
    assert!(!home.env_file().exists());
}

#[test]
fn an_undo_that_is_killed_at_any_moment_is_finished_by_the_next_one() {
    for delay in 0..24_u64 {
        let home = Home::new();
        std::fs::create_dir_all(home.path().join("config")).unwrap();
        std::fs::write(home.env_file(), "# mine\n").unwrap();
        let before = home.tree();
        home.fix("CUDA_LAUNCH_BLOCKING");
        let mut killed = home.command("undo 1 --yes").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(delay * 500));
        killed.kill().unwrap();
        killed.wait().unwrap();
        let is_done = home.states().contains(&(1, "undone".to_owned()));
        if !is_done {
            home.run("undo last --yes").succeeded();
        }
        assert_eq!(home.tree(), before, "killed after {delay} × 0.5 ms");
        let states = home.states();
        assert_eq!(states.last().unwrap().1, "undone", "{states:?}");
        // One undo was noted, however often it was begun.
        assert!(states.len() <= 2, "{states:?}");
        home.run("undo last --yes").failed_with(1, &["no change that can be undone"]);
    }
}

#[test]
fn two_undos_at_once_undo_it_once() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let start = || home.command("undo 1 --yes").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let both = [start(), start()].map(|child| Finished::from(child.wait_with_output().unwrap()));
    let done = both.iter().filter(|one| one.code == Some(0)).count();
    assert_eq!(done, 1, "{}\n{}", both[0].stderr, both[1].stderr);
    assert!(both.iter().any(|one| one.stderr.contains("it has already been undone")));
    assert_eq!(home.states(), [(2, "possible".to_owned()), (1, "undone".to_owned())]);
}

#[test]
fn damaged_records_are_named_and_skipped() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let sound = std::fs::read_to_string(home.record(1)).unwrap();
    for (number, text) in [
        (2, "{ half".to_owned()),
        (3, sound.replace("\"version\": 1", "\"version\": 9")),
        (4, "{}".to_owned()),
        (5, sound.clone()),
        (6, sound.replace("\"number\": 1", "\"number\": 6").replace("after-0-env.sh", "../1/after-0-env.sh")),
    ] {
        std::fs::create_dir_all(home.record(number).parent().unwrap()).unwrap();
        std::fs::write(home.record(number), text).unwrap();
    }
    // A process that was killed before it wrote its record.
    std::fs::create_dir_all(home.record(7).parent().unwrap()).unwrap();
    let list = home.run("undo").succeeded().stdout;
    let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["it is not JSON", "a newer yolo wrote it (version 9)", "it has no version"] {
        assert!(list.contains(words), "{words} is not in:\n{list}");
    }
    assert!(list.contains("it is the record of change 1") && list.contains("copies outside its folder"));
    assert_eq!(home.json("")["damaged"].as_array().unwrap().len(), 5);
    let output = home.run("undo last --yes").succeeded();
    assert!(output.stderr.contains("is skipped: it is not JSON"), "{}", output.stderr);
    assert!(!home.env_file().exists());
}

/// A record that someone changed by hand must not make `yolo` delete what it did not install.
#[test]
fn a_changed_record_removes_nothing_else() {
    let home = Home::new();
    home.fix("CUDA_LAUNCH_BLOCKING");
    let thesis = home.user.path().join("thesis");
    let set = home.path().join("data/datasets/birds");
    for folder in [&thesis, &set] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("a"), "mine").unwrap();
    }
    let mut record: Value = serde_json::from_slice(&std::fs::read(home.record(1)).unwrap()).unwrap();
    for path in [&thesis, &set, &home.path().join("data/libtorch/../datasets/birds"), &thesis.join("a")] {
        record["steps"] = serde_json::json!([{ "kind": "download", "path": path }]);
        std::fs::write(home.record(1), record.to_string()).unwrap();
        let refused = home.run("undo 1 --yes --force");
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(thesis.join("a").exists() && set.join("a").exists());
    }
}

// In Windows, setup runs in WSL.
#[test]
fn what_is_never_undone_says_why() {
    let home = Home::new();
    home.run("setup --data shapes").succeeded();
    let set = home.path().join("data/datasets/shapes");
    assert_eq!(home.states(), [(1, "stays".to_owned())]);
    let list = home.run("undo").succeeded().stdout;
    assert!(list.contains("created the data set shapes in") && list.contains("undo never deletes"), "{list}");
    assert!(list.contains("by hand: yolo setup --remove shapes"), "{list}");
    home.run("undo 1 --yes --force").failed_with(1, &["data sets are data", "yolo setup --remove shapes"]);
    assert!(set.is_dir());
}

// In Windows, setup runs in WSL.
#[test]
fn what_older_versions_left_is_found() {
    let home = Home::new();
    home.run("setup --data shapes").succeeded();
    let backups = home.path().join("config/backups");
    std::fs::remove_dir_all(&backups).unwrap();
    let old = backups.join("1714521600-77");
    std::fs::create_dir_all(&old).unwrap();
    let script = old.join(if cfg!(windows) { "undo.cmd" } else { "undo.sh" });
    std::fs::write(&script, "").unwrap();
    let report = home.json("");
    let found: Vec<&str> =
        report["found"].as_array().unwrap().iter().map(|one| one["remove"].as_str().unwrap()).collect();
    assert_eq!(found[0], "yolo setup --remove shapes");
    assert!(found[1].contains(script.to_str().unwrap()), "{found:?}");
    let list = home.run("undo").succeeded().stdout;
    assert!(list.contains("Found without a record") && list.contains("data shapes"), "{list}");
}

#[test]
fn permissions_are_undone_after_the_files_in_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let data = home.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let mode = || std::fs::metadata(&data).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o500)).unwrap();
    let mut command = home.command("doctor --only disk --fix --yes");
    let output = Finished::from(command.output().unwrap());
    if mode() == 0o500 {
        // Root may write everywhere, so that nothing is found.
        assert!(output.stderr.contains("nothing to change"), "{}", output.stderr);
        return;
    }
    home.run("undo last --yes").succeeded();
    assert_eq!(mode(), 0o500);
}
