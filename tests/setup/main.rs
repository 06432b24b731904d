//! `yolo setup` as a user runs it, against a local server: plans, listing and removal, mirrors and proxies,
//! and error messages. Data sets, weights, libtorch and the NCCL plugin are in separate files.

// In Windows it runs in WSL, see from_windows/; `yolo setup --wsl` is in setup_wsl.rs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::process::Stdio;

mod data;
#[cfg(target_os = "linux")]
mod libtorch;
mod machine;
#[cfg(target_os = "linux")]
mod nccl;
#[cfg(target_os = "linux")]
mod real_index;
#[allow(dead_code, reason = "each test program uses its own part of the server")]
#[path = "../support/rude_server.rs"]
mod rude_server;
mod socks;
#[path = "../support/user.rs"]
mod user;
mod weights;
#[cfg(target_os = "linux")]
#[path = "../support/wheels.rs"]
mod wheels;

use machine::{Machine, coco8, squares, zip};
use rude_server::Manner;
use user::Finished;

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let machine = coco8();
    let plan = machine.run("setup --data coco8 --dry-run").succeeded();
    for words in ["download   data set coco8", "to download", "on disk", "the disk of", "free", "coco8.zip"] {
        assert!(plan.stdout.contains(words), "{words} is not in:\n{}", plan.stdout);
    }
    assert_eq!(machine.installed(), Vec::<String>::new());
    let plan = machine.json("setup --data coco8 --dry-run --json");
    let archive = zip(&squares("coco8/")).len();
    assert_eq!(plan["steps"][0]["state"], "fetch");
    assert_eq!(plan["steps"][0]["transfer"], archive);
    assert!(plan["steps"][0]["size"].as_u64().unwrap() > 6 * 64 * 64 * 3);
    assert!(plan["disks"][0]["free"].as_u64().unwrap() > 0 && plan.get("done").is_none());
}

/// An empty Debian has no certificates.
#[cfg(target_os = "linux")]
#[test]
fn without_certificates_http_mirrors_work_and_https_fails_with_a_hint() {
    let machine = coco8();
    let run = |arguments: &str| {
        let mut command = machine.command(arguments);
        command.env("SSL_CERT_FILE", "/nothing").env("SSL_CERT_DIR", "/nothing");
        Finished::from(command.output().unwrap())
    };
    run("setup --data coco8").succeeded();
    run("setup --weights https://host.invalid/a.pt").failed_with(1, &["certificates", "ca-certificates"]);
}

#[test]
fn results_are_reported_as_json() {
    let machine = coco8();
    let report = machine.json("setup --data coco8 shapes --json");
    assert_eq!(report["done"][0]["data"]["summary"]["splits"][0]["images"], 4);
    assert_eq!(report["done"][1]["data"]["name"], "shapes");
    // After a failure, the report has what was done before it and the reason.
    let mut command = machine.command("setup --weights yolov5s --data coco8 --json");
    let output = Finished::from(command.output().unwrap());
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["steps"].as_array().unwrap().len(), 2);
    assert!(report["error"].as_str().unwrap().contains("yolov5s.pt cannot be downloaded"), "{report}");
}

#[test]
fn url_schemes_are_case_insensitive() {
    let machine = coco8();
    let large = machine.server.url("").replace("http", "HTTP");
    let mut command = machine.command("setup --data coco8");
    Finished::from(command.env("YOLO_MIRROR", format!(" {large} ")).output().unwrap()).succeeded();
    let word = format!("setup --weights {large}/best.pt");
    machine.run(&word).failed_with(1, &["/best.pt", "404", "pass its path"]);
}

#[test]
fn a_file_in_the_way_of_a_folder_is_named() {
    let machine = coco8();
    let data_sets = machine.data_sets();
    fs::create_dir_all(data_sets.parent().unwrap()).unwrap();
    fs::write(&data_sets, "a file").unwrap();
    let why = ["datasets is a file, where a folder is needed", "move it away"];
    machine.run("setup --data coco8").failed_with(1, &why);
}

#[test]
fn installed_items_are_listed_and_removed() {
    let machine = coco8();
    machine.run("setup --data coco8").succeeded();
    let list = machine.run("setup --list").succeeded().stdout;
    assert!(list.contains("data") && list.contains("coco8") && list.contains("in total"), "{list}");
    assert_eq!(machine.json("setup --list --json")[0]["name"], "coco8");
    machine.run("setup --remove nothing").failed_with(1, &["not installed: nothing", "coco8", "--list"]);
    machine.run("setup --remove coco8 nothing none").failed_with(1, &["not installed: nothing, none"]);
    let gone = machine.json("setup --remove coco8 --json");
    assert_eq!((&gone[0]["kind"], &gone[0]["name"]), (&"data".into(), &"coco8".into()));
    machine
        .run("setup --remove coco8")
        .failed_with(1, &["not installed: coco8; yolo has not installed anything"]);
    // Removing `unfinished` succeeds even if there is nothing to remove.
    let nothing = machine.run("setup --remove unfinished").succeeded();
    assert!(nothing.stderr.contains("nothing to remove"), "{}", nothing.stderr);
    assert_eq!(machine.installed(), Vec::<String>::new());
}

#[test]
fn the_built_in_data_set_is_listed_and_removed() {
    let machine = Machine::with(HashMap::new());
    machine.run("setup --data shapes").succeeded();
    let list = machine.json("setup --list --json");
    assert_eq!((&list[0]["kind"], &list[0]["name"]), (&"data".into(), &"shapes".into()));
    assert!(list[0]["size"].as_u64().unwrap() > 1_000_000, "{list}");
    machine.run("setup --remove shapes").succeeded();
    assert_eq!(machine.installed(), Vec::<String>::new());
    // A folder of that name that yolo did not generate belongs to the user.
    fs::create_dir_all(machine.data_sets().join("shapes/images")).unwrap();
    machine.run("setup --remove shapes").failed_with(1, &["not installed: shapes"]);
}

#[test]
fn an_invalid_mirror_or_home_is_named() {
    let machine = coco8();
    for mirror in ["/no/such/folder", "ftp://host/x", "somewhere", "https://host/x?key="] {
        let mut command = machine.command("setup --data coco8");
        let output = Finished::from(command.env("YOLO_MIRROR", mirror).output().unwrap());
        output.failed_with(1, &["YOLO_MIRROR is", mirror.trim_end_matches("?key=")]);
    }
    let file = machine.user.path().join("a file");
    fs::write(&file, "").unwrap();
    for words in ["setup --list", "setup --data coco8"] {
        let mut command = machine.command(words);
        let output = Finished::from(command.env("YOLO_HOME", &file).output().unwrap());
        output.failed_with(1, &["YOLO_HOME is", "a file", "not a folder"]);
    }
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let latin = machine.user.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        let mut command = machine.command("setup --list");
        let output = Finished::from(command.env("YOLO_HOME", &latin).output().unwrap());
        output.failed_with(1, &["not valid UTF-8", "YOLO_HOME"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn failing_to_write_the_result_is_an_error() {
    let machine = coco8();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = machine.command("setup --data coco8 --dry-run --json");
    let output = Finished::from(command.stdout(full).output().unwrap());
    output.failed_with(1, &["cannot write to stdout"]);
}

#[test]
fn an_offline_run_says_what_is_missing() {
    let machine = coco8();
    machine.run("train --offline --data coco8").failed_with(1, &["coco8.zip", "offline"]);
    machine.run("setup --data coco8").succeeded();
    machine.run("train --offline --data coco8").failed_with(1, &["yolov5s.pt", "offline"]);
    #[cfg(target_os = "linux")]
    machine.run("setup --offline --libtorch cu126").failed_with(1, &["libtorch 2.11.0 (cu126)", "offline"]);
}

#[test]
fn a_proxy_is_used_for_every_address() {
    let files = HashMap::from([("http://nowhere.example/coco8.zip".to_owned(), zip(&squares("coco8/")))]);
    let machine = Machine::with(files);
    let mut command = machine.command("setup --data coco8");
    command.env("YOLO_MIRROR", "http://nowhere.example").env("http_proxy", machine.server.url(""));
    Finished::from(command.output().unwrap()).succeeded();
    assert!(machine.server.asked().len() > 1);
}

#[test]
fn a_socks_proxy_is_used_and_resolves_the_names() {
    let files = HashMap::from([("/coco8.zip".to_owned(), zip(&squares("coco8/")))]);
    let machine = Machine::with(files);
    let proxy = socks::start_proxy(machine.server.url("").replace("http://", ""));
    let mut command = machine.command("setup --data coco8");
    command.env("YOLO_MIRROR", "http://nowhere.example").env("all_proxy", format!("socks5h://{proxy}"));
    Finished::from(command.output().unwrap()).succeeded();
    assert!(machine.server.asked().len() > 1);
}

#[test]
fn two_setups_at_once_install_once() {
    let machine = coco8();
    machine.server.behave("/coco8.zip", &[Manner::Fine, Manner::Limit(100_000)]);
    let piped = || machine.command("setup --data coco8").stderr(Stdio::piped()).spawn().unwrap();
    let (one, other) = (piped(), piped());
    for child in [one, other] {
        Finished::from(child.wait_with_output().unwrap()).succeeded();
    }
    assert!(machine.home().join("data/datasets/coco8/images/train/0.bmp").is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_setup_says_that_the_download_is_kept() {
    let machine = coco8();
    machine.server.behave("/coco8.zip", &[Manner::Fine, Manner::Fine, Manner::Fine, Manner::Stall(10)]);
    let child = machine.command("setup --data coco8").stderr(Stdio::piped()).spawn().unwrap();
    user::wait_for("the download", || {
        machine.home().join("data/datasets/.incoming-coco8/parts").is_dir().then_some(())
    });
    user::send_signal(child.id(), user::SIGINT);
    let output = Finished::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(
        output.stderr.contains("run the same command again to continue the download"),
        "{}",
        output.stderr
    );
}
