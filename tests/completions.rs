//! Completion scripts and man pages: both are generated from the command line's definition and are part
//! of the release archives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn yolo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_yolo")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completion_scripts_offer_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = yolo(&["completions", shell]);
        for command in yolo::command_names() {
            let mut words = script.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
            assert!(words.any(|word| word == command), "{shell}: {command}");
        }
        assert!(script.contains("--epochs") || script.contains("-l epochs"), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("man");
    yolo(&["man", "--to", to.to_str().unwrap()]);
    let mut pages: Vec<String> = std::fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = yolo::command_names().into_iter().map(|command| format!("yolo-{command}.1"));
    let mut expected: Vec<String> = commands.chain(["yolo.1".to_owned()]).collect();
    expected.sort();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = std::fs::read_to_string(to.join(page)).unwrap();
        for section in ["NAME", "SYNOPSIS", "OPTIONS"] {
            assert!(text.contains(&format!(".SH {section}\n")), "{page}: no {section}");
        }
    }
}
