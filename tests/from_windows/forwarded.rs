//! What `yolo.exe` hands over to WSL and takes back: the distribution, the arguments, exit statuses, the doctor's other
//! half. The answers of `wsl.exe` are recorded.

use serde_json::{Value, json};

use super::pc::{LIST, Pc, list, listing};
use super::user::Finished;
#[cfg(not(windows))]
use super::user::User;

#[test]
fn the_distribution_is_found_in_both_encodings_and_under_any_heading() {
    // No release is known to translate it; one that did would be read as well.
    let translated =
        "  NAME              STATUS          VERSION\n* Ubuntu            Wird ausgeführt 2\n".to_owned();
    for (text, utf16) in [(LIST.to_owned(), true), (LIST.to_owned(), false), (translated, true)] {
        let run = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": 80 });
        let pc = Pc::answering(&[listing(&text, utf16), run]);
        pc.run(&["train", "--data", "shapes"]).succeeded();
        assert_eq!(pc.calls(), ["-l -v", "-d Ubuntu --exec /opt/yolo/yolo train --data shapes"]);
    }
}

#[test]
fn arguments_arrive_as_they_were_typed_and_statuses_come_back() {
    for (answer, status) in [(80, 0), (81, 1), (82, 2), (90, 130)] {
        let run = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "code": answer, "stdout": "said\n" });
        let pc = Pc::answering(&[list(), run]);
        let typed = ["predict", r"C:\my data\数.jpg", "--weights", "a\"b", "--name", "", "-q"];
        let output = pc.run(&typed);
        assert_eq!((output.code, output.stdout.as_str()), (Some(status), "said\n"), "{}", output.stderr);
        let words = typed.join(" ");
        assert_eq!(pc.calls()[1], format!("-d Ubuntu --exec /opt/yolo/yolo {words}"));
    }
}

#[test]
fn a_named_distribution_costs_one_call() {
    let run = json!({ "words": "-d Debian --exec /opt/yolo/yolo", "code": 80 });
    let pc = Pc::answering(&[run]);
    assert_eq!(pc.run(&["train", "--distribution", "Debian"]).code, Some(0));
    assert_eq!(pc.calls().len(), 1);
}

#[test]
fn the_doctor_reports_both_sides() {
    let finding = |id: &str, status: &str, title: &str| {
        json!({
            "id": id, "area": id.split('.').next(), "status": status, "title": title, "cause": "why", "evidence": [],
            "remedy": { "text": "do this", "commands": ["sudo this"], "fixable": false, "changes": [], "undo": null },
            "detects": [], "link": "",
        })
    };
    let report = json!({
        "schema": 1,
        "findings": [finding("gpu.driver-missing", "error", "the driver is missing in Linux"), finding("disk.full", "ok", "room")],
        "checks": [{}, {}],
    });
    let answer = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo doctor --json", "stdout": report.to_string(), "code": 81 });
    let pc = Pc::answering(&[list(), answer.clone()]);
    let output = pc.run(&["doctor", "--", "--device", "cpu"]);
    assert_eq!(output.code, Some(1));
    // WSL has its own libtorch, and is where the run goes.
    for part in ["libtorch is not installed", "planned on Windows"] {
        assert!(!output.stdout.contains(part), "`{part}` is in:\n{}", output.stdout);
    }
    for part in ["Inside WSL (Ubuntu)", "the driver is missing in Linux", "sudo this", "wsl.exe -d Ubuntu"] {
        assert!(output.stdout.contains(part), "`{part}` is not in:\n{}", output.stdout);
    }
    let pc = Pc::answering(&[list(), answer]);
    let output: Value = serde_json::from_str(&pc.run(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(output["wsl"]["distribution"], "Ubuntu");
    assert_eq!(output["wsl"]["report"], report);
    let pc = Pc::answering(&[]);
    let output = pc.run(&["doctor"]);
    assert!(output.stdout.contains("not checked: WSL"), "{}", output.stdout);
}

#[test]
fn the_list_of_changes_has_those_inside_wsl() {
    let undo = "-d Ubuntu --exec /opt/yolo/yolo undo";
    let pc = Pc::answering(&[
        list(),
        json!({ "words": undo, "stdout": "   1  installed libtorch\n", "code": 80 }),
    ]);
    // What this machine has is no part of it.
    let run = |pc: &Pc, words: &[&str]| {
        let home = pc.user.path().join("empty home");
        Finished::from(pc.command(words).env("YOLO_HOME", home).output().unwrap()).succeeded()
    };
    let output = run(&pc, &["undo"]);
    let both =
        "yolo has recorded no changes on this machine\n\nInside WSL (Ubuntu):\n\n   1  installed libtorch\n";
    assert_eq!(output.stdout, both);
    assert_eq!(pc.calls(), ["-l -v", undo]);
    let pc = Pc::answering(&[list(), json!({ "words": undo, "stdout": "{\"changes\": []}", "code": 80 })]);
    let report: Value = serde_json::from_str(&run(&pc, &["undo", "--json"]).stdout).unwrap();
    assert_eq!(report["wsl"], json!({ "distribution": "Ubuntu", "report": { "changes": [] } }));
    // What is changed in Windows is listed without WSL, too.
    let code = "Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED\n";
    let pc = Pc::answering(&[list(), json!({ "words": undo, "stdout": code, "utf16": true, "code": -1 })]);
    let output = run(&pc, &["undo"]);
    assert!(output.stdout.starts_with("yolo has recorded no changes"), "{}", output.stdout);
    assert!(
        output.stdout.contains("\n\nInside WSL (Ubuntu): not listed, because cannot run yolo"),
        "{}",
        output.stdout
    );
    assert_eq!(output.stdout.trim_end().lines().count(), 3, "{}", output.stdout);
}

#[test]
fn files_that_are_there_are_described_without_wsl() {
    let pc =
        Pc::answering(&[json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo weights", "code": 80 }), list()]);
    std::fs::write(pc.work().join("no.pt"), "no weights").unwrap();
    assert_eq!(pc.run(&["weights", "no.pt"]).code, Some(1));
    assert_eq!(pc.calls(), Vec::<String>::new());
    assert_eq!(pc.run(&["weights", "~/best.pt"]).code, Some(0));
    assert_eq!(pc.calls().last().unwrap(), "-d Ubuntu --exec /opt/yolo/yolo weights ~/best.pt");
}

#[cfg(not(windows))]
#[test]
fn linux_has_no_distributions_to_choose() {
    User::new()
        .run("train --distribution Ubuntu")
        .failed_with(2, &["--distribution Ubuntu", "this is Linux"]);
}
