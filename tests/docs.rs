//! Checks the documentation: links resolve, commands parse, and every option, finding, variable and
//! message that it names exists.

#![cfg(not(windows))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support {
    pub(crate) mod event_page;
    pub(crate) mod markdown;
}

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::event_page;
use support::markdown::Page;
use yolo_checks::{Area, entry};

/// Options of YOLOv5 that the pages name because `yolo` lacks them, or accepts and ignores them.
const MISSING_OPTIONS: [&str; 10] = [
    "--simplify",
    "--bucket",
    "--s3_upload_dir",
    "--entity",
    "--upload_dataset",
    "--bbox_interval",
    "--artifact_alias",
    "--local_rank",
    "--ndjson-console",
    "--ndjson-file",
];

/// Options of other programs, in spans that begin with the option.
const FOREIGN_OPTIONS: [&str; 5] = ["--from", "--to", "--install", "--ipc", "--release"];

/// Variables of other programs and of benchmarks, which [`yolo_base::env`] does not list.
const FOREIGN_VARIABLES: [&str; 2] = ["YOLO_BENCH_WHEELS", "ATEN_CPU_CAPABILITY"];

/// Messages of clap and of libtorch, and those that are put together from parts.
const FOREIGN_MESSAGES: [&str; 4] = [
    "unexpected argument '…' found",
    "CUDA out of memory",
    "was killed by signal 9",
    "was killed by signal 7",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages that people read, generated ones included.
fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(PathBuf::from).into();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = Path::new("docs").join(entry.unwrap().file_name());
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    assert!(paths.len() > 15, "only {} pages were found", paths.len());
    paths.iter().map(|path| Page::read(root(), path)).collect()
}

/// Pages that name what YOLOv5 or other programs have, and not only `yolo`.
fn is_about_others(page: &Page) -> bool {
    ["docs/yolov5-spec.md", "docs/findings.md", "docs/gpu.md", "docs/recording.md", "docs/design.md"]
        .iter()
        .any(|other| page.path == Path::new(other))
}

/// Fails with all of `found`, so that one run of the test shows everything.
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Compares a generated page with its file. `YOLO_UPDATE_REFERENCE=1 cargo test -p yolo --test docs`
/// writes it instead.
fn is_current(path: &str, page: &str) {
    let file = root().join(path);
    if std::env::var_os("YOLO_UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(page == written, "{path} is out of date: run this test with YOLO_UPDATE_REFERENCE=1");
}

/// All commands; the empty one is `yolo` itself.
fn commands() -> Vec<String> {
    [vec![String::new()], yolo::command_names()].concat()
}

/// What `yolo COMMAND --help` prints, whatever the terminal and the environment of the test.
fn help(command: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_yolo"));
    program
        .args(command.split_whitespace().chain(["--help"]))
        .env_remove("COLUMNS")
        .env_remove("YOLO_OFFLINE")
        .stdin(std::process::Stdio::null());
    String::from_utf8(program.output().unwrap().stdout).unwrap()
}

#[test]
fn the_page_of_options_is_current() {
    let mut page =
        "# Options\n\nGenerated from `--help` by a test; do not edit. [Training](training.md) explains \
                    the options that matter.\n"
            .to_owned();
    for command in commands() {
        let title = format!("yolo {command}");
        page += &format!("\n## {}\n\n```text\n{}\n```\n", title.trim_end(), help(&command).trim_end());
    }
    is_current("docs/options.md", &page);
}

#[test]
fn the_page_of_events_is_current() {
    let schema = std::fs::read_to_string(root().join("src/printer/run_events.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    none("fields and events that the schema does not explain", &event_page::undescribed(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for example in
        schema["oneOf"].as_array().unwrap().iter().flat_map(|event| event["examples"].as_array().unwrap())
    {
        let problems: Vec<String> = validator.iter_errors(example).map(|error| error.to_string()).collect();
        none(&format!("the example {example}"), &problems);
    }
    is_current("docs/events.md", &event_page::page(&schema));
}

#[test]
fn the_page_of_environment_variables_is_current() {
    use yolo_base::env::{ALL, Role};
    let mut page =
        "# Environment variables\n\nGenerated from `base/src/env.rs` by a test; do not edit.\n".to_owned();
    for (role, title) in [
        (Role::User, "Set by you"),
        (Role::Standard, "Set by the system and other tools"),
        (Role::Rank, "Set for the ranks"),
        (Role::Tool, "Set for other programs"),
        (Role::Test, "For tests"),
    ] {
        page += &format!("\n## {title}\n\n| variable | meaning |\n|---|---|\n");
        for variable in ALL.iter().filter(|variable| variable.role == role) {
            page += &format!("| `{}` | {} |\n", variable.name, variable.meaning);
        }
    }
    is_current("docs/environment.md", &page);
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for page in pages() {
        for link in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = page.path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() { page.path.clone() } else { folder.join(file) };
            let full = root().join(&target);
            let has_anchor = || Page::read(root(), &target).anchors().iter().any(|one| one == anchor);
            if !full.exists() || (!anchor.is_empty() && !has_anchor()) {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    none("links lead nowhere", &broken);
}

#[test]
fn issue_templates_link_to_files() {
    let mut broken = Vec::new();
    let folder = root().join(".github/ISSUE_TEMPLATE");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in text.split("/blob/main/").skip(1) {
            let path = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !root().join(path).exists() {
                broken.push(path.to_owned());
            }
        }
    }
    none("links lead nowhere", &broken);
}

#[test]
fn commands_can_be_typed() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let spans = page.spans.iter().filter(|span| !span.contains('…') && span.starts_with("yolo "));
        let spans = spans.map(|span| span.split(' ').map(str::to_owned).collect());
        for mut command in page.commands().into_iter().chain(spans) {
            if command.starts_with(&["cargo", "run", "--release", "--"].map(str::to_owned)) {
                command.drain(..3);
            } else if command[0] != "yolo" {
                continue;
            }
            count += 1;
            let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
            if let Err(why) = yolo::parses(&arguments) {
                let why = why.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: yolo {}: {why}", page.path.display(), arguments.join(" ")));
            }
        }
    }
    assert!(count > 50, "only {count} commands were found");
    none("commands are refused", &wrong);
}

#[test]
fn the_readme_is_short() {
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 120, "{lines} lines: move what only some readers need to docs/");
}

#[test]
fn options_exist() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    // The options of a planned run on several machines follow `--`.
    for command in commands().into_iter().chain(["doctor --".to_owned()]) {
        let text = help(&command);
        let words = text.split([' ', '\n', ',', '[', ']', '`']);
        known.extend(words.filter(|word| word.starts_with("--")).map(String::from));
    }
    known.extend(MISSING_OPTIONS.iter().chain(&FOREIGN_OPTIONS).map(|&option| option.to_owned()));
    let mut unknown = Vec::new();
    for page in pages().iter().filter(|page| !is_about_others(page)) {
        for span in page.spans.iter().filter(|span| span.starts_with("--")) {
            for word in span.split([' ', '=']).filter(|word| word.starts_with("--") && *word != "--") {
                if !known.contains(word) {
                    unknown.push(format!("{}: {word}", page.path.display()));
                }
            }
        }
    }
    none("options do not exist", &unknown);
}

#[test]
fn findings_exist() {
    let mut unknown = Vec::new();
    for page in pages() {
        for span in &page.spans {
            let Some((area, name)) = span.split_once('.') else { continue };
            let is_id = Area::ALL.iter().any(|known| known.name() == area)
                && name.len() > 4
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if is_id && entry(span).is_none() {
                unknown.push(format!("{}: {span}", page.path.display()));
            }
        }
    }
    none("findings do not exist", &unknown);
}

#[test]
fn environment_variables_exist() {
    let known: BTreeSet<&str> =
        yolo_base::env::ALL.iter().map(|variable| variable.name).chain(FOREIGN_VARIABLES).collect();
    let mut unknown = Vec::new();
    for page in pages().iter().filter(|page| !is_about_others(page)) {
        for span in &page.spans {
            let name = span.split('=').next().unwrap_or_default();
            let is_variable = name.contains('_')
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            if is_variable && !known.contains(name) {
                unknown.push(format!("{}: {name}", page.path.display()));
            }
        }
    }
    none("variables that yolo_base::env does not list", &unknown);
}

#[test]
fn messages_of_the_troubleshooting_page_exist() {
    let source = source();
    let page = Page::read(root(), Path::new("docs/troubleshooting.md"));
    let messages = page.headings.iter().filter_map(|heading| heading.strip_prefix('`')?.strip_suffix('`'));
    let mut unknown = Vec::new();
    let mut count = 0;
    for message in messages.filter(|message| !FOREIGN_MESSAGES.contains(message)) {
        count += 1;
        if !message.split('…').all(|part| source.contains(part.trim())) {
            unknown.push(message.to_owned());
        }
    }
    assert!(count > 20, "only {count} messages were found");
    none("no code prints these messages; correct the headings of docs/troubleshooting.md", &unknown);
}

#[test]
fn sections_of_the_specification_exist() {
    let page = Page::read(root(), Path::new("docs/yolov5-spec.md"));
    let sections: BTreeSet<&str> =
        page.headings.iter().filter_map(|heading| Some(heading.split_once(". ")?.0)).collect();
    let source = source();
    let mut count = 0;
    for rest in source.split("spec §").skip(1) {
        count += 1;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        assert!(sections.contains(number.as_str()), "docs/yolov5-spec.md has no section {number}");
    }
    assert!(count > 100, "only {count} references were found");
}

/// All Rust and C++ of the programs, with string literals that span lines joined.
fn source() -> String {
    let mut folders: Vec<PathBuf> =
        ["src", "base", "checks/src", "trainer"].map(|folder| root().join(folder)).into();
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| ["rs", "cpp", "h"].iter().any(|known| extension == *known))
            {
                all.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut lines = all.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start())
}
