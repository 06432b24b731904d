//! What goes wrong between the ranks of a launcher: ranks that differ, never come or die, something else at the address,
//! and signals. Each rank names the reason, and the run can be resumed.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/launchers.rs"]
mod launchers;
#[path = "support/user.rs"]
mod user;

use std::path::Path;

use launchers::{Variables, arguments, run_all, runs, start, torchrun};
use user::{Finished, Running, SIGKILL, SIGTERM, TRAIN, User, free_port, is_alive, send_signal, wait_for};

/// Two ranks of torchrun, and the processes of their trainers once the first checkpoint exists.
fn two_that_train(user: &User, options: &str) -> (Vec<Running>, Vec<u32>) {
    let port = free_port();
    let arguments = arguments(&format!("--epochs 500 {options}"));
    let running: Vec<Running> =
        (0..2).map(|rank| start(user, &arguments, &torchrun(rank, 2, port))).collect();
    let trainer = |running: &Running| wait_for("a trainer", || running.ranks().first().copied());
    let trainers = running.iter().map(trainer).collect();
    let last = user.path().join("runs/train/exp/weights/last.pt");
    wait_for("the first checkpoint", || last.exists().then_some(()));
    (running, trainers)
}

#[track_caller]
#[test]
fn another_option_on_one_rank_is_named_by_all() {
    let user = User::new();
    user.write_data_set();
    let port = free_port();
    let temporary = user.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let with_own_tmp = |rank: usize| -> Variables {
        let own = ("TMPDIR", temporary.display().to_string());
        torchrun(rank, 2, port).into_iter().chain([own]).collect()
    };
    let first = start(&user, &arguments("--epochs 1"), &with_own_tmp(0));
    let second = start(&user, &arguments("--epochs 1 --imgsz 96"), &with_own_tmp(1));
    for (rank, running) in [first, second].into_iter().enumerate() {
        let said =
            ["rank 1 on", "has --imgsz 96, and rank 0 on", "has 64", "hint: give all ranks the same options"];
        running.wait().failed_with(1, &[&format!("rank {rank} of 2"), said[0], said[1], said[2], said[3]]);
    }
    assert!(runs(&user).is_empty(), "no step was done, so the folder is of no use");
    let left: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(left.is_empty(), "the messages say everything, so no log is of use: {left:?}");
}

#[test]
fn a_rank_that_cannot_listen_leaves_no_run_folder() {
    let user = User::new();
    user.write_data_set();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    for options in ["", "--name kept --exist-ok"] {
        let arguments = arguments(&format!("--epochs 1 {options}"));
        // What was there before the run stays.
        std::fs::create_dir_all(user.path().join("runs/train/kept")).unwrap();
        let output = start(&user, &arguments, &torchrun(0, 2, port)).wait();
        let said = format!("rank 0 cannot listen on port {port} of 127.0.0.1");
        let output = output.failed_with(1, &[&said, "set MASTER_PORT to a free port for all ranks"]);
        let removed = output.stderr.contains("removed the run folder, because the run had not begun");
        assert_eq!(removed, options.is_empty(), "{}", output.stderr);
    }
    assert_eq!(runs(&user), ["kept"]);
}

#[test]
fn another_number_of_ranks_is_named_by_all() {
    let user = User::new();
    user.write_data_set();
    let port = free_port();
    let three = [("WORLD_SIZE", "4".to_owned()), ("LOCAL_WORLD_SIZE", "4".to_owned())];
    let second: Variables = torchrun(1, 2, port).into_iter().chain(three).collect();
    let running = [torchrun(0, 2, port), second].map(|one| start(&user, &arguments("--epochs 1"), &one));
    for running in running {
        running.wait().failed_with(1, &["has WORLD_SIZE 4, and rank 0", "has 2"]);
    }
}

#[test]
fn another_data_set_on_one_rank_is_named_by_all() {
    let (user, other) = (User::new(), User::new());
    user.write_data_set();
    other.write_data_set();
    std::fs::remove_file(other.path().join("squares/images/train/03.bmp")).unwrap();
    let port = free_port();
    let first = start(&user, &arguments("--epochs 1"), &torchrun(0, 2, port));
    let second = start(&other, &arguments("--epochs 1"), &torchrun(1, 2, port));
    for running in [first, second] {
        let said = "has 15 images with 15 objects in the train split, and rank 0 on";
        running.wait().failed_with(1, &["rank 1 on", said, "has 16 images with 16 objects"]);
    }
}

#[test]
fn other_labels_on_one_rank_are_named_by_all() {
    let (user, other) = (User::new(), User::new());
    user.write_data_set();
    other.write_data_set();
    // As long as before, with another class.
    let label = other.path().join("squares/labels/train/03.txt");
    let text = std::fs::read_to_string(&label).unwrap();
    let class = if text.starts_with('0') { "1" } else { "0" };
    std::fs::write(&label, format!("{class}{}", &text[1..])).unwrap();
    let port = free_port();
    let first = start(&user, &arguments("--epochs 1"), &torchrun(0, 2, port));
    let second = start(&other, &arguments("--epochs 1"), &torchrun(1, 2, port));
    for running in [first, second] {
        let said = "has another 03.bmp or other labels for it in the train split than rank 0 on";
        running.wait().failed_with(1, &["rank 1 on", said, "the data set must be the same on all machines"]);
    }
    assert!(runs(&user).is_empty() && runs(&other).is_empty());
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let user = User::new();
    user.write_data_set();
    let port = free_port();
    let with_limit = |rank: usize| -> Variables {
        torchrun(rank, 3, port).into_iter().chain([("YOLO_JOIN_SECONDS", "5".to_owned())]).collect()
    };
    let ended = run_all(&user, &arguments("--epochs 1 --batch 9"), vec![with_limit(0), with_limit(1)]);
    let [first, second] = <[Finished; 2]>::try_from(ended).ok().unwrap();
    // On a machine under load, rank 1 may come too late as well, and then finds no rank 0.
    first.failed_with(1, &["2 of 3 did not come within 5 s", "YOLO_JOIN_SECONDS"]);
    let second = second.failed_with(1, &["rank 1 of 3", "did not come within 5 s"]);
    let named = ["2 of 3 did not come", "rank 0 did not come"].iter().any(|one| second.stderr.contains(one));
    assert!(named, "{}", second.stderr);
    // Without rank 0 there is nowhere to meet.
    let alone = run_all(&user, &arguments("--epochs 1 --batch 9"), vec![with_limit(2)]);
    for output in alone {
        output
            .failed_with(1, &["rank 2 of 3", "rank 0 did not come within 5 s", &format!("127.0.0.1:{port}")]);
    }
}

#[test]
fn something_else_at_the_address_is_named() {
    let user = User::new();
    user.write_data_set();
    // It accepts connections and says nothing.
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let limit = ("YOLO_JOIN_SECONDS", "3".to_owned());
    let variables: Variables = torchrun(1, 2, port).into_iter().chain([limit]).collect();
    let ended = run_all(&user, &arguments("--epochs 1"), vec![variables]);
    for output in ended {
        let named = format!("what listens at 127.0.0.1:{port} is not the store of these ranks");
        output.failed_with(1, &["rank 1 of 2", &named, "set MASTER_PORT to a port that nothing else uses"]);
    }
}

#[test]
fn a_killed_rank_ends_the_others() {
    let user = User::new();
    user.write_data_set();
    let (running, trainers) = two_that_train(&user, "");
    send_signal(trainers[1], SIGKILL);
    let [first, second] = <[Running; 2]>::try_from(running).ok().unwrap().map(Running::wait);
    let second = second.failed_with(1, &["rank 1 of 2", "signal 9 (SIGKILL)", "its log is in"]);
    let logs = second.stderr.lines().find_map(|line| line.split("its log is in ").nth(1)).unwrap();
    let log = std::fs::read_to_string(Path::new(logs).join("rank1.log")).unwrap();
    for told in
        ["started rank 1 of 2", "training epoch 1 of 500", "the process was ended by signal 9 (SIGKILL)"]
    {
        assert!(log.contains(told), "`{told}` is not in:\n{log}");
    }
    std::fs::remove_dir_all(Path::new(logs).parent().unwrap()).unwrap();
    let first = first.failed_with(1, &["rank 0 of 2", "rank 1", "yolo rank --resume"]);
    assert!(!first.stderr.contains("yolo train --resume"), "{}", first.stderr);
    assert!(trainers.into_iter().all(|pid| !is_alive(pid)));
}

/// Ends both with a signal to these, resumes under the launcher, and on one machine without it.
fn assert_saves_and_resumes(signalled: &[usize]) {
    let user = User::new();
    user.write_data_set();
    let (running, trainers) = two_that_train(&user, "");
    signalled.iter().for_each(|&rank| running[rank].signal(SIGTERM));
    for (rank, running) in running.into_iter().enumerate() {
        let output = running.wait();
        assert_eq!(output.code, Some(130), "rank {rank}: {}", output.stderr);
        assert!(!output.stderr.contains("error"), "{}", output.stderr);
        let said = "interrupted; the run's state is saved\nto resume from the last checkpoint, run\n  yolo rank --resume";
        assert_eq!(output.stderr.contains(said), rank == 0, "rank {rank}: {}", output.stderr);
    }
    assert!(trainers.into_iter().all(|pid| !is_alive(pid)));

    // It resumes where it was: with a limit of epochs it would have to be a new run.
    let port = free_port();
    let resume = "rank --resume runs/train/exp";
    let resumed: Vec<Running> = (0..2).map(|rank| start(&user, resume, &torchrun(rank, 2, port))).collect();
    let log = user.path().join("runs/train/exp/results.csv");
    let rows = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let before = rows();
    wait_for("another epoch", || (rows() > before).then_some(()));
    resumed.iter().for_each(|running| running.signal(SIGTERM));
    for running in resumed {
        assert_eq!(running.wait().code, Some(130));
    }
}

/// A run of two ranks in the folder of `user` as it was before its last epoch, and its results after it.
fn one_epoch_before_its_end(user: &User) -> String {
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --epochs 2 --save-period 1 --nproc-per-node 2")).succeeded();
    let run = user.path().join("runs/train/exp");
    std::fs::copy(run.join("weights/epoch0.pt"), run.join("weights/last.pt")).unwrap();
    std::fs::read_to_string(run.join("results.csv")).unwrap()
}

#[test]
fn only_rank_0_needs_the_folder_of_a_resumed_run() {
    let user = User::new();
    let whole = one_epoch_before_its_end(&user);
    // A machine that has only the data set, in a folder of another name.
    let fresh = User::new();
    fresh.write_data_set();
    std::fs::rename(fresh.path().join("squares"), fresh.path().join("copy")).unwrap();
    let port = free_port();
    let first = start(&user, "rank --resume runs/train/exp", &torchrun(0, 2, port));
    let joining = "rank --resume runs/train/exp --data copy/squares.yaml";
    let second = start(&fresh, joining, &torchrun(1, 2, port));
    first.wait().succeeded();
    second.wait().succeeded();
    let results = std::fs::read_to_string(user.path().join("runs/train/exp/results.csv")).unwrap();
    assert_eq!(results, whole);
    assert!(runs(&fresh).is_empty());
}

#[test]
fn a_rank_without_the_run_folder_cannot_join_what_rank_0_does_not_resume() {
    let user = User::new();
    one_epoch_before_its_end(&user);
    std::fs::remove_dir_all(user.path().join("runs/train/exp/weights")).unwrap();
    let fresh = User::new();
    let port = free_port();
    let first = start(&user, "rank --resume runs/train/exp", &torchrun(0, 2, port));
    let second = start(&fresh, "rank --resume runs/train/exp", &torchrun(1, 2, port));
    let said =
        "the run that --resume names is not on this machine, and rank 0 has no checkpoint of it to send";
    first.wait().failed_with(1, &["rank 0 of 2", "rank 1 on", "cannot join the run", said]);
    second.wait().failed_with(1, &["rank 1 of 2", said, "give all ranks --resume"]);
}

#[test]
fn a_signal_to_all_ranks_saves_the_run() {
    assert_saves_and_resumes(&[0, 1]);
}

#[test]
fn a_signal_to_one_rank_saves_the_run_of_all() {
    assert_saves_and_resumes(&[1]);
}
