//! A CUDA variant of libtorch is installed and loads, or is absent, however often setup is killed.

use std::collections::HashMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::rude_server::{Manner, RudeServer};
use crate::user::{self, Finished, User};
use crate::wheels;

#[test]
fn a_cuda_variant_is_installed_with_all_its_wheels_and_loads() {
    let Some(files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let machine = Machine::with(files);
    let plan = machine.json("setup --libtorch cu126 --dry-run --json");
    assert!(plan["steps"][0]["transfer"].as_u64().unwrap() > wheels::BALLAST as u64, "{plan}");
    let output = machine.run("setup --libtorch cu126").succeeded();
    for words in ["it loads and computes on the CPU", "CUDA 12.6", "0 GPUs", "mirror"] {
        assert!(output.stderr.contains(words), "{words} is not in:\n{}", output.stderr);
    }
    let root = machine.home().join("data/libtorch/2.11.0-cu126");
    wheels::assert_whole(&root);
    let asked = machine.server.asked().len();
    machine.run("setup").succeeded();
    machine.run("setup --libtorch cu126 --offline").succeeded();
    assert_eq!(machine.server.asked().len(), asked, "a repeated run asked the server");
    let list = machine.run("setup --list").succeeded().stdout;
    assert!(list.contains("cu126") && list.contains("in use"), "{list}");
    // A missing library is noticed and downloaded again.
    fs::remove_file(root.join("lib/libcudart.so.12")).unwrap();
    machine.run("setup").succeeded();
    wheels::assert_whole(&root);
    machine.run("setup --remove cu126").succeeded();
    assert!(!root.exists());
}

#[test]
fn an_installed_variant_is_undone_however_often_that_is_killed() {
    let Some(files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let machine = Machine::with(files);
    let libtorch = machine.home().join("data/libtorch");
    let root = libtorch.join("2.11.0-cu126");
    fs::create_dir_all(&libtorch).unwrap();
    fs::write(libtorch.join("selected"), "cpu").unwrap();
    machine.run("setup --libtorch cu126").succeeded();
    let list = machine.run("undo").succeeded().stdout;
    for words in
        ["installed libtorch 2.11.0 (cu126)", "by `yolo setup`", "`yolo setup` can install again; frees"]
    {
        let words: Vec<&str> = words.split(' ').collect();
        let shown: Vec<&str> = list.split_whitespace().collect();
        assert!(shown.windows(words.len()).any(|shown| shown == words), "{words:?} is not in:\n{list}");
    }
    // It waits for a setup that is working there, and is killed meanwhile.
    let lock = fs::File::create(libtorch.join(".lock")).unwrap();
    lock.lock().unwrap();
    for _ in 0..2 {
        let mut undo = machine.command("undo last --yes").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        undo.kill().unwrap();
        undo.wait().unwrap();
        wheels::assert_whole(&root);
    }
    lock.unlock().unwrap();
    let done = machine.run("undo last --yes").succeeded();
    assert!(done.stderr.contains("freed"), "{}", done.stderr);
    assert!(!root.exists());
    // Runs use the variant again that they used before.
    assert_eq!(fs::read_to_string(libtorch.join("selected")).unwrap(), "cpu");
    machine.run("undo last --yes").failed_with(1, &["no change that can be undone"]);
    // Setup brings it again, and a newer note takes the place of the older one.
    machine.run("setup --libtorch cu126").succeeded();
    wheels::assert_whole(&root);
    machine.run("undo last --yes").succeeded();
    assert!(!root.exists());
}

#[test]
fn a_libtorch_that_does_not_load_is_not_installed() {
    let Some(files) = wheels::cu126_that_does_not_load() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let machine = Machine::with(files);
    let why = ["does not work on this machine", "libtorch_cuda.so", "is_nowhere", "the download is kept"];
    machine.run("setup --libtorch cu126").failed_with(1, &why);
    assert!(!machine.home().join("data/libtorch/2.11.0-cu126").exists());
}

#[test]
fn a_libtorch_with_a_flipped_bit_is_not_installed() {
    let Some(mut files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let torch = files.keys().find(|name| name.contains("torch-2.11.0")).unwrap().clone();
    // In the middle of the incompressible bytes.
    let bytes = files.get_mut(&torch).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    let machine = Machine::with(files);
    machine.run("setup --libtorch cu126").failed_with(1, &["libc10.so", "wrong CRC-32"]);
    assert!(!machine.home().join("data/libtorch/2.11.0-cu126").exists());
}

/// Kills a child once the server has sent this many more bytes, after an additional delay. Returns whether
/// the child was still running.
fn kill_after(mut child: std::process::Child, server: &RudeServer, bytes: usize, later: Duration) -> bool {
    let (before, began) = (server.sent(), Instant::now());
    while server.sent() - before < bytes && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(180), "the child neither fetched nor ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(later);
    let inside = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    inside
}

#[test]
fn killed_at_two_hundred_random_moments_the_next_run_finishes() {
    let Some(files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let paths: Vec<String> = files.keys().filter(|path| path.ends_with(".whl")).cloned().collect();
    let server = RudeServer::start(files);
    let (mut inside, mut resumed, mut state) = (0, 0, 0x9e37_79b9_u64);
    for _ in 0..200 {
        let machine = Machine { user: User::new(), server: RudeServer::start(HashMap::new()) };
        let start = |words: &str| {
            let mut command = machine.command(words);
            command.env("YOLO_MIRROR", server.url("")).stderr(Stdio::piped()).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        // Slow enough that most kills happen during the download.
        paths.iter().for_each(|path| server.behave(path, &[Manner::Limit(16 << 20)]));
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The moment is a number of bytes; one in four is after the last byte.
        let moment = (state >> 33) as usize % (wheels::BALLAST * 4 / 3);
        let later = Duration::from_millis(if moment > wheels::BALLAST { (state >> 40) % 100 } else { 0 });
        let child = start("setup --libtorch cu126");
        inside += usize::from(kill_after(child, &server, moment.min(wheels::BALLAST), later));
        let root = machine.home().join("data/libtorch/2.11.0-cu126");
        if root.exists() {
            wheels::assert_whole(&root);
        }
        let unfinished = machine.home().join("data/libtorch/.incoming-2.11.0-cu126/parts");
        resumed += usize::from(unfinished.is_dir());
        paths.iter().for_each(|path| server.behave(path, &[Manner::Fine]));
        Finished::from(start("setup --libtorch cu126").wait_with_output().unwrap()).succeeded();
        wheels::assert_whole(&root);
        let left: Vec<_> = fs::read_dir(machine.home().join("data/libtorch"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".incoming"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(
        inside > 50 && resumed > 20,
        "{inside} kills inside a run, {resumed} with something to go on with"
    );
}

#[test]
fn bytes_downloaded_before_a_kill_are_not_downloaded_again() {
    let Some(files) = wheels::cu126() else {
        println!("skipped: there is no C compiler for the libraries of this test");
        return;
    };
    let machine = Machine::with(files.clone());
    for path in files.keys().filter(|path| path.contains("torch-2.11.0")) {
        machine.server.behave(path, &[Manner::Limit(1 << 20)]);
    }
    let parts = machine.home().join("data/libtorch/.incoming-2.11.0-cu126/parts");
    let mut child = machine.command("setup --libtorch cu126").stderr(Stdio::null()).spawn().unwrap();
    let size = |extension: &str| -> u64 {
        let entries = fs::read_dir(&parts).into_iter().flatten().flatten();
        let of_kind =
            entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension));
        of_kind.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
    };
    user::wait_for("half of the wheel", || (size("part") > wheels::BALLAST as u64 / 2).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let plan = machine.json("setup --libtorch cu126 --dry-run --json");
    let number = |name: &str| plan["steps"][0][name].as_u64().unwrap();
    assert!(number("transfer") < wheels::BALLAST as u64 * 6 / 10, "{plan}");
    assert!(number("begun") > 0 && number("begun") <= number("size") + number("beside"), "{plan}");
    assert!(plan["disks"][0]["need"].as_u64().unwrap() > 0, "{plan}");
    let (kept, before) = (size("part"), machine.server.sent());
    files.keys().for_each(|path| machine.server.behave(path, &[Manner::Fine]));
    machine.run("setup --libtorch cu126").succeeded();
    let again = (machine.server.sent() - before) as u64;
    // Central directories and METADATA are read again; they have a few kilobytes.
    assert!(again < wheels::BALLAST as u64 - kept + 300_000, "{again} bytes came again, {kept} were kept");
}
