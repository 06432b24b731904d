//! Runs on several machines with real ranks. Machines are folders on this one, which share its loopback
//! interface, or network namespaces, which need root; without it, those tests are skipped and say so.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/namespaces.rs"]
mod namespaces;
#[path = "support/user.rs"]
mod user;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use namespaces::Network;
use user::{Finished, Running, SIGINT, SIGKILL, TRAIN, User, free_port, is_alive, wait_for};

/// A machine: a folder of its own.
fn machine() -> User {
    let user = User::new();
    user.write_data_set();
    user
}

/// The options of machine `number`.
fn place(machines: usize, number: usize, address: &str, port: u16) -> String {
    format!("--nnodes {machines} --node-rank {number} --master-addr {address} --master-port {port}")
}

/// Starts machine `number` on this machine's loopback interface.
fn start(user: &User, machines: usize, number: usize, port: u16, options: &str) -> Running {
    let place = place(machines, number, "127.0.0.1", port);
    user.start_with(&format!("{TRAIN} --noplots {options} {place}"), &[("YOLO_JOIN_SECONDS", "180")])
}

/// Waits until the ranks of all machines train.
fn wait_until_training(master: &User) {
    let last = master.path().join("runs/train/exp/weights/last.pt");
    wait_for("the first checkpoint", || last.exists().then_some(()));
}

fn ranks(running: &Running, count: usize) -> Vec<u32> {
    wait_for("the ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == count))
}

/// Fails unless these processes are gone within `limit`.
#[track_caller]
fn assert_gone(processes: &[u32], limit: Duration) {
    let began = Instant::now();
    wait_for("the ranks to end", || processes.iter().all(|&pid| !is_alive(pid)).then_some(()));
    assert!(began.elapsed() < limit, "the ranks lived for {:?}", began.elapsed());
}

#[test]
fn two_machines_with_unequal_numbers_of_ranks_train_one_model() {
    let (master, member) = (machine(), machine());
    let port = free_port();
    let options = "--epochs 1 --batch 6";
    let other = start(&member, 2, 1, port, options);
    let first = start(&master, 2, 0, port, &format!("{options} --nproc-per-node 2"));
    let (first, other) = (first.wait().succeeded(), other.wait().succeeded());
    assert!(
        first.stderr.contains("machine 1 (") && first.stderr.contains("has joined, with 1 rank"),
        "{}",
        first.stderr
    );
    assert!(first.stdout.contains("last.pt") || first.stdout.contains("best.pt"), "{}", first.stdout);
    assert_eq!(other.stdout, "", "only the master shows the run");
    assert!(
        other.stderr.contains("running as machine 1 of 2; the logs of its ranks are in"),
        "{}",
        other.stderr
    );
    assert!(other.stderr.contains("the run is complete"), "{}", other.stderr);
    let weights = |user: &User| user.path().join("runs/train/exp/weights/last.pt").exists();
    assert!(weights(&master) && !weights(&member), "the master alone saves");
    assert!(member.path().join("runs/train/exp/logs/rank2.log").exists());
}

#[test]
fn a_difference_is_refused_by_all_before_anything_starts() {
    for (option, what) in [
        ("--epochs 2", "--epochs differs: 1 on machine 0 ("),
        ("--seed 3", "--seed differs: not given on machine 0 ("),
        ("--hyp med", "the hyperparameter lrf differs: 0.01 on machine 0 ("),
    ] {
        let (master, member) = (machine(), machine());
        let port = free_port();
        let first = start(&master, 2, 0, port, "--epochs 1");
        let other = start(&member, 2, 1, port, &format!("--epochs 1 {option}"));
        first.wait().failed_with(1, &[what]);
        other.wait().failed_with(1, &[what, "machine 1 ("]);
        assert!(!master.path().join("runs").exists() && !member.path().join("runs").exists());
    }
}

#[test]
fn other_data_are_refused() {
    let (master, member) = (machine(), machine());
    std::fs::remove_file(member.path().join("squares/images/train/03.bmp")).unwrap();
    let port = free_port();
    let first = start(&master, 2, 0, port, "--epochs 1");
    let other = start(&member, 2, 1, port, "--epochs 1");
    let what = "the number of training images differs: 16 on machine 0";
    first.wait().failed_with(1, &[what, "15 on machine 1"]);
    other.wait().failed_with(1, &[what]);
}

#[test]
fn labels_that_differ_in_nothing_but_their_content_are_refused() {
    let (master, member) = (machine(), machine());
    let label = member.path().join("squares/labels/val/02.txt");
    let text = std::fs::read_to_string(&label).unwrap();
    let class = if text.starts_with('0') { "1" } else { "0" };
    std::fs::write(&label, format!("{class}{}", &text[1..])).unwrap();
    let port = free_port();
    let first = start(&master, 2, 0, port, "--epochs 1 --batch 6");
    let other = start(&member, 2, 1, port, "--epochs 1 --batch 6");
    let what = "has another 02.bmp or other labels for it in the val split than rank 0 on";
    first.wait().failed_with(1, &["rank 1 on", what]);
    other.wait().failed_with(1, &["rank 1 on", what]);
    assert!(!master.path().join("runs/train/exp/results.csv").exists(), "no step was done");
}

#[test]
fn a_batch_that_cannot_be_divided_among_all_ranks_is_refused_by_all() {
    let (master, member) = (machine(), machine());
    let port = free_port();
    let first = start(&master, 2, 0, port, "--epochs 1 --batch 7");
    let other = start(&member, 2, 1, port, "--epochs 1 --batch 7");
    let what = "--batch 7 cannot be divided among 2 ranks";
    first.wait().failed_with(2, &[what]);
    other.wait().failed_with(1, &[what]);
}

#[test]
fn strangers_and_machines_with_a_wrong_number_do_not_break_the_run() {
    let (master, member, twin) = (machine(), machine(), machine());
    let port = free_port();
    let first = start(&master, 3, 0, port, "--epochs 1 --batch 6");
    let connect = || TcpStream::connect(("127.0.0.1", port)).ok();
    wait_for("the port", connect).write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    connect().unwrap().write_all(b"{\"yolo\":99,\"program\":\"9.9.9\"}\n").unwrap();
    start(&twin, 2, 1, port, "--epochs 1 --batch 6")
        .wait()
        .failed_with(1, &["--nnodes differs: 3 on machine 0", "hint: give all machines the same --nnodes"]);
    let second = start(&member, 3, 1, port, "--epochs 1 --batch 6");
    // The second of two machines with one number is refused, whichever comes first.
    let refused = start(&twin, 3, 1, port, "--epochs 1 --batch 6");
    let gone = wait_for("one of both to be refused", || {
        [&second, &refused].iter().position(|running| !is_alive(running.pid()))
    });
    let third = machine();
    let third = start(&third, 3, 2, port, "--epochs 1 --batch 6");
    let (stays, refused) = if gone == 0 { (refused, second) } else { (second, refused) };
    refused.wait().failed_with(1, &["--node-rank 1 is taken", "hint: give each machine a number of its own"]);
    let first = first.wait().succeeded();
    assert!(
        first.stderr.contains("ignored a connection from 127.0.0.1, which is not from yolo"),
        "{}",
        first.stderr
    );
    assert!(
        first.stderr.contains("this machine runs yolo 9.9.9, which cannot work together"),
        "{}",
        first.stderr
    );
    stays.wait().succeeded();
    third.wait().succeeded();
}

#[test]
fn rude_strangers_do_not_keep_machines_out() {
    let (master, member) = (machine(), machine());
    let port = free_port();
    let first = start(&master, 2, 0, port, "--epochs 1 --batch 6");
    let connect = || TcpStream::connect(("127.0.0.1", port)).ok();
    let mut silent = vec![wait_for("the port", connect)];
    silent.extend((0..50).map(|_| connect().unwrap()));
    // One sends as much as it can, another a byte now and then, and neither a line. Both would go on.
    let send = |piece: &'static [u8], pause: Duration| {
        let mut stream = connect().unwrap();
        std::thread::spawn(move || {
            while stream.write_all(piece).is_ok() {
                std::thread::sleep(pause);
            }
        })
    };
    let rude = [send(&[b'x'; 4096], Duration::ZERO), send(b"x", Duration::from_millis(100))];
    let other = start(&member, 2, 1, port, "--epochs 1 --batch 6");
    for thread in rude {
        thread.join().unwrap();
    }
    other.wait().succeeded();
    first.wait().succeeded();
    drop(silent);
}

#[test]
fn a_missing_machine_is_named() {
    let master = machine();
    let port = free_port();
    let place = place(3, 0, "127.0.0.1", port);
    let running = master.start_with(&format!("{TRAIN} {place}"), &[("YOLO_JOIN_SECONDS", "2")]);
    let output = running.wait().failed_with(1, &["waited 2 s, and machines 1 and 2 of 3 are missing"]);
    assert!(output.stderr.contains("waiting: machines 1 and 2 of 3 are missing"), "{}", output.stderr);
    let member = machine();
    let place = self::place(2, 1, "127.0.0.1", port);
    let running = member.start_with(&format!("{TRAIN} {place}"), &[("YOLO_JOIN_SECONDS", "2")]);
    running.wait().failed_with(1, &["cannot reach machine 0 at 127.0.0.1:"]);
}

#[test]
fn a_taken_port_is_known_before_anything_else() {
    let master = machine();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let place = place(2, 0, "127.0.0.1", port);
    let owner = format!("(process {})", std::process::id());
    master.run(&format!("{TRAIN} {place}")).failed_with(1, &["the port is taken by ", &owner]);
    master.run("train --nnodes 2 --node-rank 1").failed_with(2, &["needs --master-addr"]);
    // 192.0.2.1 is for documentation, so no machine has it.
    let elsewhere = self::place(2, 0, "192.0.2.1", port);
    master.run(&format!("{TRAIN} {elsewhere}")).failed_with(
        1,
        &[
            "cannot listen on 192.0.2.1:",
            "not an address of this machine",
            "otherwise give it another --node-rank",
        ],
    );
    for option in ["--node-rank 0", "--node-rank 1", "--master-addr lab", "--master-port 29500"] {
        let name = option.split(' ').next().unwrap();
        let said = format!("{name} is given, but the run has one machine");
        master.run(&format!("train {option}")).failed_with(2, &[&said, "hint: add --nnodes"]);
    }
}

/// Two machines that train, with the ranks of each.
fn two_that_train(master: &User, member: &User) -> [(Running, Vec<u32>); 2] {
    let port = free_port();
    let options = "--epochs 500 --noval --batch 6";
    let first = start(master, 2, 0, port, options);
    let other = start(member, 2, 1, port, options);
    wait_until_training(master);
    let of_first = ranks(&first, 1);
    let of_other = ranks(&other, 1);
    [(first, of_first), (other, of_other)]
}

#[test]
fn ctrl_c_on_any_machine_ends_the_run_with_one_save() {
    for on_member in [false, true] {
        let (master, member) = (machine(), machine());
        let [(first, mut all), (other, others)] = two_that_train(&master, &member);
        all.extend(others);
        if on_member { &other } else { &first }.signal(SIGINT);
        let (first, other) = (first.wait(), other.wait());
        assert_eq!((first.code, other.code), (Some(130), Some(130)), "{}\n{}", first.stderr, other.stderr);
        assert!(first.stderr.contains("interrupted; the run's state is saved"), "{}", first.stderr);
        assert!(other.stderr.contains("the run was interrupted"), "{}", other.stderr);
        assert_gone(&all, Duration::from_secs(60));
    }
}

#[test]
fn a_killed_member_ends_the_run_and_is_named() {
    let (master, member) = (machine(), machine());
    let [(first, of_first), (other, of_other)] = two_that_train(&master, &member);
    other.signal(SIGKILL);
    assert_gone(&of_first, Duration::from_secs(60));
    first.wait().failed_with(1, &["rank 1 of 2", "was lost with machine 1, whose connection was closed"]);
    assert_gone(&of_other, Duration::from_secs(120));
}

#[test]
fn a_killed_master_ends_the_ranks_of_the_others() {
    let (master, member) = (machine(), machine());
    let [(first, of_first), (other, of_other)] = two_that_train(&master, &member);
    first.signal(SIGKILL);
    assert_gone(&of_other, Duration::from_secs(60));
    other.wait().failed_with(1, &["the connection to machine 0 was lost: it was closed"]);
    assert_gone(&of_first, Duration::from_secs(120));
}

#[test]
fn a_killed_rank_on_another_machine_is_named_by_all() {
    let (master, member) = (machine(), machine());
    let [(first, _), (other, of_other)] = two_that_train(&master, &member);
    user::send_signal(of_other[0], SIGKILL);
    let said = ["rank 1 of 2", "was killed by signal 9 (SIGKILL)", "`sudo dmesg` on "];
    first.wait().failed_with(1, &said);
    other.wait().failed_with(1, &["rank 1 of 2", "was killed by signal 9 (SIGKILL)"]);
}

#[test]
fn a_failed_run_is_restarted_on_all_machines() {
    let (master, member) = (machine(), machine());
    let port = free_port();
    let options = "--epochs 40 --noval --batch 6 --max-restarts 1";
    let first = start(&master, 2, 0, port, options);
    let other = start(&member, 2, 1, port, options);
    wait_until_training(&master);
    user::send_signal(ranks(&other, 1)[0], SIGKILL);
    let first = first.wait().succeeded();
    assert!(first.stderr.contains("restarting from"), "{}", first.stderr);
    other.wait().succeeded();
}

/// Starts machine `number` of two, to continue the run in the folder of machine 0.
fn resume(user: &User, number: usize, port: u16, options: &str) -> Running {
    let place = place(2, number, "127.0.0.1", port);
    let arguments = format!("train --resume runs/train/exp {options} {place}");
    user.start_with(&arguments, &[("YOLO_JOIN_SECONDS", "180")])
}

/// All numbers in the results of machine 0.
fn results(master: &User) -> Vec<f64> {
    let rows = std::fs::read_to_string(master.path().join("runs/train/exp/results.csv")).unwrap();
    rows.lines().skip(1).flat_map(|row| row.split(',')).map(|cell| cell.trim().parse().unwrap()).collect()
}

#[test]
fn a_run_is_resumed_on_machines_of_which_only_machine_0_has_its_folder() {
    let options = "--epochs 30 --noval --batch 6";
    let both = |master: &User, member: &User| {
        let port = free_port();
        let other = start(member, 2, 1, port, options);
        (start(master, 2, 0, port, options), other)
    };
    let (whole, member) = (machine(), machine());
    let (first, other) = both(&whole, &member);
    first.wait().succeeded();
    other.wait().succeeded();
    for killed in [false, true] {
        let (master, member) = (machine(), machine());
        let (first, other) = both(&master, &member);
        wait_until_training(&master);
        if killed {
            other.signal(SIGKILL)
        } else {
            first.signal(SIGINT)
        }
        let (first, _) = (first.wait(), other.wait());
        assert_eq!(first.code, Some(if killed { 1 } else { 130 }), "{}", first.stderr);

        // A machine that has only the data set, in a folder of another name.
        let fresh = machine();
        std::fs::rename(fresh.path().join("squares"), fresh.path().join("copy")).unwrap();
        let port = free_port();
        let other = resume(&fresh, 1, port, "--data copy/squares.yaml");
        let first = resume(&master, 0, port, "");
        let (first, other) = (first.wait().succeeded(), other.wait().succeeded());
        for output in [&first, &other] {
            assert!(output.stderr.contains("resuming the run of machine 0 from "), "{}", output.stderr);
        }
        assert!(fresh.path().join("runs/train/exp/logs/rank1.log").exists());
        // Ranks sum their gradients in the same order, but a killed run may have lost a part of an epoch.
        let (resumed, whole) = (results(&master), results(&whole));
        assert_eq!(resumed.len(), whole.len());
        let close = |(resumed, whole): (&f64, &f64)| (resumed - whole).abs() <= 1e-3 * whole.abs();
        assert!(resumed.iter().zip(&whole).all(close), "{resumed:?}\n{whole:?}");
    }
}

#[test]
fn machines_that_cannot_continue_a_run_are_refused_by_all() {
    let master = machine();
    master.run(&format!("{TRAIN} --noplots --noval --epochs 2 --save-period 1")).succeeded();
    let weights = master.path().join("runs/train/exp/weights");
    let finished = std::fs::read(weights.join("last.pt")).unwrap();
    std::fs::copy(weights.join("epoch0.pt"), weights.join("last.pt")).unwrap();
    let refused = |member: &User, other: &str, what: &str| {
        let port = free_port();
        let other = member.start_with(
            &format!("{other} {}", place(2, 1, "127.0.0.1", port)),
            &[("YOLO_JOIN_SECONDS", "180")],
        );
        let first = resume(&master, 0, port, "");
        first.wait().failed_with(1, &[what]);
        other.wait().failed_with(1, &[what]);
    };
    let member = machine();
    refused(&member, &format!("{TRAIN} --noplots"), "--resume differs: given on machine 0 (");
    std::fs::remove_file(member.path().join("squares/images/train/03.bmp")).unwrap();
    let join = "train --resume --data squares/squares.yaml";
    refused(&member, join, "the number of training images differs: 16 on machine 0 (");
    refused(&machine(), "train --resume --data nowhere.yaml", "the data set nowhere.yaml was not found");
    // Machine 0 reads the checkpoint when it can tell all.
    std::fs::write(weights.join("last.pt"), finished).unwrap();
    refused(&machine(), join, "is finished, so there is nothing to resume");
    // A run that was planned and has no checkpoint.
    std::fs::remove_dir_all(weights).unwrap();
    refused(&machine(), join, "has no checkpoint yet that could be resumed");
    assert!(!member.path().join("runs").exists());
}

fn start_in(network: &Network, user: &User, machines: usize, number: usize, options: &str) -> Running {
    let place = place(machines, number, &network.address(0), 29_511);
    let yolo = env!("CARGO_BIN_EXE_yolo");
    let mut command: Command = network.command(number, yolo);
    command
        .args(format!("{TRAIN} --noplots {options} {place}").split_whitespace())
        .current_dir(user.path())
        .env("OMP_NUM_THREADS", "1")
        .env("YOLO_OFFLINE", "1")
        .env("YOLO_JOIN_SECONDS", "180")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::of(command.spawn().unwrap())
}

#[test]
fn three_machines_of_a_network_train_together_also_if_one_is_late() {
    let Some(network) = Network::of(3) else { return };
    let users = [machine(), machine(), machine()];
    let options = "--epochs 1 --batch 6";
    let early: Vec<Running> =
        [1, 0].iter().map(|&number| start_in(&network, &users[number], 3, number, options)).collect();
    wait_for("the master", || network.listens(0, 29_511).then_some(()));
    let late = start_in(&network, &users[2], 3, 2, options);
    let outputs: Vec<Finished> =
        early.into_iter().chain([late]).map(|running| running.wait().succeeded()).collect();
    assert!(
        outputs[1].stderr.contains("the ranks of this machine communicate over "),
        "{}",
        outputs[1].stderr
    );
}

#[test]
fn a_machine_that_is_cut_off_is_named_and_ends_its_ranks() {
    let Some(network) = Network::of(2) else { return };
    let users = [machine(), machine()];
    let options = "--epochs 500 --noval --batch 6";
    let first = start_in(&network, &users[0], 2, 0, options);
    let other = start_in(&network, &users[1], 2, 1, options);
    wait_until_training(&users[0]);
    let (of_first, of_other) = (ranks(&first, 1), ranks(&other, 1));
    network.cut(1);
    assert_gone(&[of_first, of_other].concat(), Duration::from_secs(120));
    first.wait().failed_with(1, &["rank 1 of 2", "was lost with machine 1, which has sent nothing for "]);
    other.wait().failed_with(1, &["the connection to machine 0 was lost: it has sent nothing for "]);
}

#[test]
fn a_route_into_nowhere_is_reported() {
    let Some(network) = Network::of(2) else { return };
    network.blackhole(1, 0);
    let user = machine();
    let place = place(2, 1, &network.address(0), 29_511);
    let mut command = network.command(1, env!("CARGO_BIN_EXE_yolo"));
    let output = command
        .args(format!("{TRAIN} {place}").split_whitespace())
        .current_dir(user.path())
        .env("YOLO_OFFLINE", "1")
        .env("YOLO_JOIN_SECONDS", "3")
        .output()
        .unwrap();
    Finished::from(output).failed_with(1, &["cannot reach machine 0 at 10.", "no firewall blocks the port"]);
}

#[test]
fn ctrl_z_on_machine_0_suspends_all_and_fg_continues_them() {
    let (master, member) = (machine(), machine());
    let [(first, of_first), (other, of_other)] = two_that_train(&master, &member);
    let all = [of_first, of_other].concat();
    first.signal(user::SIGTSTP);
    wait_for("all ranks to stop", || all.iter().all(|&rank| user::is_stopped(rank)).then_some(()));
    first.signal(user::SIGCONT);
    wait_for("all ranks to continue", || all.iter().all(|&rank| !user::is_stopped(rank)).then_some(()));
    first.signal(SIGINT);
    let (first, other) = (first.wait(), other.wait());
    assert_eq!((first.code, other.code), (Some(130), Some(130)), "{}\n{}", first.stderr, other.stderr);
}

#[test]
fn ctrl_c_on_all_machines_at_once_is_one_request() {
    let (master, member) = (machine(), machine());
    let [(first, _), (other, _)] = two_that_train(&master, &member);
    other.signal(SIGINT);
    first.signal(SIGINT);
    let (first, other) = (first.wait(), other.wait());
    assert_eq!((first.code, other.code), (Some(130), Some(130)), "{}\n{}", first.stderr, other.stderr);
    assert!(first.stderr.contains("interrupted; the run's state is saved"), "{}", first.stderr);
}
