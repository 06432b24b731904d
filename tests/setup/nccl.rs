//! The NCCL plugin next to a trainer that was not built here, as in a release.

use std::fs;

use crate::machine::Machine;
use crate::wheels;

#[test]
fn a_missing_plugin_is_an_error_only_if_it_was_asked_for() {
    let Some(files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let machine = Machine::with(files);
    let kinds = |plan: &serde_json::Value| {
        let steps = plan["steps"].as_array().unwrap();
        steps.iter().map(|step| step["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plan = machine.json("setup --libtorch cu126 --dry-run --json");
    assert_eq!(kinds(&plan), ["libtorch", "trainer"]);
    let message = ["the NCCL plugin is missing: there is no ", "libtch_nccl.so", "release archive"];
    machine.run("setup --libtorch cu126 --nccl --dry-run").failed_with(1, &message);

    let release = machine.user.path().join("release");
    fs::create_dir(&release).unwrap();
    let trainer = release.join("yolo-trainer");
    fs::copy(std::env::current_exe().unwrap(), &trainer).unwrap();
    fs::write(release.join("libtch_nccl.so"), "").unwrap();
    let mut command = machine.command("setup --libtorch cu126 --dry-run --json");
    let output = command.env("YOLO_TRAINER", &trainer).output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kinds(&plan), ["libtorch", "trainer", "nccl"]);
    assert_eq!(plan["steps"][2]["state"], "there");
}
