//! `yolo rank` as launchers start it: one process for each rank, with the variables of torchrun, Slurm or
//! Kubernetes, and as real torchrun starts it where `YOLO_TEST_PYTHON` names a Python with PyTorch. That torchrun
//! serves the store is tested without it in `trainer/tests/launcher_store.rs`.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use user::{Finished, Running, SIGKILL, SIGTERM, TRAIN, User, free_port, is_alive, send_signal, wait_for};

/// The variables of one process, by name.
type Variables = Vec<(&'static str, String)>;

/// How long ranks wait for each other: if one fails before it has met the others, the test must not take the 15 minutes
/// that they wait by default.
const WAIT: (&str, &str) = ("YOLO_JOIN_SECONDS", "180");

/// What torchrun sets, without its store.
fn torchrun(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("RANK", rank.to_string()),
        ("LOCAL_RANK", rank.to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("LOCAL_WORLD_SIZE", world.to_string()),
        ("MASTER_ADDR", "127.0.0.1".to_owned()),
        ("MASTER_PORT", port.to_string()),
    ]
}

/// What `srun` sets for tasks on one node.
fn srun(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("SLURM_PROCID", rank.to_string()),
        ("SLURM_LOCALID", rank.to_string()),
        ("SLURM_NODEID", "0".to_owned()),
        ("SLURM_STEP_NUM_TASKS", world.to_string()),
        ("SLURM_STEP_TASKS_PER_NODE", world.to_string()),
        ("SLURM_STEP_NODELIST", "localhost,node[01-03]".to_owned()),
        ("SLURM_JOB_ID", "4711".to_owned()),
        ("SLURM_STEP_ID", "0".to_owned()),
        // Tests of several users may run at the same time on one machine.
        ("MASTER_PORT", port.to_string()),
    ]
}

/// What PyTorchJob sets in each pod. Here, all pods are on this machine.
fn pytorchjob(rank: usize, world: usize, port: u16) -> Variables {
    vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("MASTER_ADDR", "localhost".to_owned()),
        ("MASTER_PORT", port.to_string()),
        ("PET_NNODES", world.to_string()),
        ("PET_NPROC_PER_NODE", "auto".to_owned()),
    ]
}

/// The arguments of `yolo rank` for a short run.
fn arguments(options: &str) -> String {
    format!("{} --noplots {options}", TRAIN.replacen("train", "rank", 1))
}

fn start(user: &User, arguments: &str, variables: &Variables) -> Running {
    let given = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let variables: Vec<(&str, &str)> = std::iter::once(WAIT).chain(given).collect();
    user.start_with(arguments, &variables)
}

/// Runs these ranks of a run with equal arguments to their end.
fn run_all(user: &User, arguments: &str, all: Vec<Variables>) -> Vec<Finished> {
    let running: Vec<Running> = all.iter().map(|variables| start(user, arguments, variables)).collect();
    running.into_iter().map(Running::wait).collect()
}

fn launched(
    user: &User,
    options: &str,
    world: usize,
    launcher: impl Fn(usize, usize, u16) -> Variables,
) -> Vec<Finished> {
    let port = free_port();
    run_all(user, &arguments(options), (0..world).map(|rank| launcher(rank, world, port)).collect())
}

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
fn assert_same_results(user: &User, one: &str, other: &str) {
    for file in ["results.csv", "weights/last.pt", "weights/best.pt"] {
        let of = |run: &str| std::fs::read(user.path().join("runs/train").join(run).join(file)).unwrap();
        assert!(of(one) == of(other), "{file} of {one} and {other} differ");
    }
}

fn runs(user: &User) -> Vec<String> {
    let folder = std::fs::read_dir(user.path().join("runs/train")).into_iter().flatten();
    folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn ranks_of_torchrun_train_as_those_of_yolo_train() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --epochs 2 --nproc-per-node 2 --name whole")).succeeded();
    let ended = launched(&user, "--epochs 2 --name parts", 2, torchrun);
    let [first, second] = <[Finished; 2]>::try_from(ended).ok().unwrap().map(Finished::succeeded);
    assert!(first.stderr.contains("torchrun started 2 ranks, 2 on this machine"), "{}", first.stderr);
    assert!(first.stdout.contains("best weights: "), "{}", first.stdout);
    assert_eq!((second.stdout.as_str(), second.stderr.as_str()), ("", ""), "only rank 0 reports");
    assert_same_results(&user, "whole", "parts");
    let mut names = runs(&user);
    names.sort();
    assert_eq!(names, ["parts", "whole"], "only rank 0 has a run folder");
}

#[test]
fn four_ranks_train() {
    let user = User::new();
    user.write_data_set();
    for output in launched(&user, "--epochs 1", 4, torchrun) {
        output.succeeded();
    }
    assert!(user.path().join("runs/train/exp/weights/best.pt").is_file());
}

#[test]
fn tasks_of_slurm_train() {
    let user = User::new();
    user.write_data_set();
    let ended = launched(&user, "--epochs 1", 2, srun);
    assert!(ended[0].stderr.contains("the store of rank 0, localhost:"), "{}", ended[0].stderr);
    for output in ended {
        output.succeeded();
    }
    assert_eq!(runs(&user), ["exp"]);
}

#[test]
fn pods_of_kubernetes_train() {
    let user = User::new();
    user.write_data_set();
    let ended = launched(&user, "--epochs 1", 2, pytorchjob);
    assert!(ended[0].stderr.contains("Kubernetes started 2 ranks, 1 on this machine"), "{}", ended[0].stderr);
    // The ranks could be on other machines, so rank 0 listens for them.
    assert!(ended[0].stderr.contains("the protocol has no password"), "{}", ended[0].stderr);
    for output in ended {
        output.succeeded();
    }
    assert_eq!(runs(&user), ["exp"]);
}

#[test]
fn ranks_that_a_person_starts_are_not_called_pods() {
    let user = User::new();
    user.write_data_set();
    let by_hand = |rank, world, port| -> Variables {
        let of_pods = |variable: &(&str, String)| variable.0.starts_with("PET_");
        pytorchjob(rank, world, port).into_iter().filter(|variable| !of_pods(variable)).collect()
    };
    let ended = launched(&user, "--epochs 1", 2, by_hand);
    let said = "the environment variables RANK and WORLD_SIZE name rank 0 of 2 ranks; they meet at";
    assert!(ended[0].stderr.contains(said), "{}", ended[0].stderr);
    for output in ended {
        assert!(!output.succeeded().stderr.contains("Kubernetes"));
    }
}

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
        let said = "has other labels for 03.bmp in the train split than rank 0 on";
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

#[test]
fn without_a_launcher_it_says_what_to_run() {
    let user = User::new();
    let output = user.run("rank --device cpu");
    output.failed_with(
        2,
        &["no launcher has started this process", "hint: start ranks on this machine with `yolo train"],
    );
    let without = |name: &str| -> Variables {
        torchrun(0, 2, 1).into_iter().filter(|(variable, _)| *variable != name).collect()
    };
    let failed = |variables: &Variables, arguments: &str| start(&user, arguments, variables).wait();
    let help = user.run("rank --help").stdout;
    failed(&without("MASTER_ADDR"), "rank").failed_with(2, &["MASTER_ADDR is not set, which torchrun sets"]);
    let all = without("");
    let beyond: Variables = all.iter().cloned().chain([("RANK", "2".to_owned())]).collect();
    failed(&beyond, "rank").failed_with(
        2,
        &[
            "RANK is 2, but there are 2 ranks in the run",
            "hint: give each process another number in RANK, from 0 to 1",
        ],
    );
    for option in [
        "--nproc-per-node 2",
        "--max-restarts 2",
        "--nnodes 2",
        "--node-rank 0",
        "--master-addr lab",
        "--master-port 1",
    ] {
        let name = option.split(' ').next().unwrap();
        let said = format!("rank 0 of 2: {name} has no effect in `yolo rank`, because torchrun decides this");
        failed(&all, &format!("rank {option}")).failed_with(2, &[&said]);
        assert!(!help.contains(name), "{name} is in the help:\n{help}");
    }
    let several = failed(&all, "rank --master-port 1 --nnodes 2 --nproc-per-node 2");
    several.failed_with(2, &["--nproc-per-node, --nnodes and --master-port have no effect in `yolo rank`"]);
    assert!(!user.path().join("runs").exists());
}

/// The events on stdout, each of which follows the schema.
fn events(output: &Finished) -> Vec<Value> {
    let schema = std::fs::read_to_string("src/printer/run_events.schema.json").unwrap();
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let events: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| validator.is_valid(event)), "{}", output.stdout);
    events
}

#[test]
fn rank_0_tells_programs_what_it_knows() {
    let user = User::new();
    user.write_data_set();
    let ended = launched(&user, "--epochs 2 --json", 2, torchrun);
    let [first, second] = <[Finished; 2]>::try_from(ended).ok().unwrap().map(Finished::succeeded);
    assert_eq!(second.stdout, "", "only rank 0 reports");
    let events = events(&first);
    assert_eq!((&events[0]["event"], &events[0]["world_size"]), (&"planned".into(), &2.into()));
    let steps: Vec<&Value> = events.iter().filter(|event| event["event"] == "step").collect();
    assert!(!steps.is_empty(), "{}", first.stdout);
    for step in steps {
        // It does not hear the other rank.
        assert_eq!(
            (&step["images_per_second_of_ranks"], &step["share_of_time"]),
            (&Value::Null, &Value::Null)
        );
    }
    assert_eq!(events.last().unwrap()["event"], "finished");
}

#[test]
fn programs_are_told_why_a_rank_did_not_start() {
    let user = User::new();
    let why = |output: Finished| {
        let events = events(&output.failed_with(2, &[]));
        assert_eq!((events.len(), &events[0]["event"]), (1, &"failed".into()));
        events[0]["message"].as_str().unwrap().to_owned()
    };
    assert!(why(user.run("rank --json")).starts_with("no launcher has started this process"));
    let refused = start(&user, "rank --json --nnodes 2", &torchrun(0, 2, 1)).wait();
    assert!(why(refused).contains("--nnodes has no effect in `yolo rank`"));
}

/// Two network namespaces that a cable connects, with one rank of the command in `$@` on each. Rank 0 is told that
/// its own name means `$MASTER_HERE`. All of it is in a namespace of its own, and ends with the script.
const TWO_MACHINES: &str = r#"
set -e
unshare --net sleep 120 &
other=$!
trap 'kill $other' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
there() { nsenter --target "$other" --net "$@"; }
ip link add here type veth peer name there netns "$other"
ip address add 10.77.0.1/24 dev here
there ip address add 10.77.0.2/24 dev there
ip link set lo up; ip link set here up
there ip link set lo up; there ip link set there up
export WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_PORT=29500
RANK=0 MASTER_ADDR=$MASTER_HERE "$@" &
first=$!
RANK=1 MASTER_ADDR=10.77.0.1 there "$@"
wait "$first"
"#;

/// Runs two ranks on machines of which the first has this address for itself.
fn on_two_machines(user: &User, own_address: &str) -> Finished {
    let mut command = Command::new("unshare");
    command
        .args(["--net", "--map-root-user", "bash", "-c", TWO_MACHINES, "bash", env!("CARGO_BIN_EXE_yolo")])
        .args(arguments("--epochs 1").split_whitespace())
        .current_dir(user.path())
        .env("MASTER_HERE", own_address)
        .env("OMP_NUM_THREADS", "1")
        .env("YOLO_OFFLINE", "1")
        .env(WAIT.0, WAIT.1)
        .stdin(Stdio::null());
    Finished::from(command.output().unwrap())
}

#[test]
fn two_machines_reach_each_other() {
    let mut probe = Command::new("unshare");
    probe.args(["--net", "--map-root-user", "ip", "link"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: network namespaces need the programs unshare and ip, and the right to use them");
        return;
    }
    let user = User::new();
    user.write_data_set();
    let output = on_two_machines(&user, "10.77.0.1").succeeded();
    assert!(!output.stderr.contains("warning"), "{}", output.stderr);
    // Kubernetes' PyTorchJob gives the master this name of its own address.
    let output = on_two_machines(&user, "localhost").succeeded();
    assert!(output.stderr.contains("the protocol has no password"), "{}", output.stderr);
    assert_eq!(runs(&user).len(), 2);
}

/// The torchrun of the Python in `YOLO_TEST_PYTHON`.
fn real_torchrun() -> Option<std::path::PathBuf> {
    let python = std::env::var_os("YOLO_TEST_PYTHON")?;
    Some(Path::new(&python).with_file_name("torchrun")).filter(|program| program.is_file())
}

fn under_torchrun(user: &User, torchrun: &Path, options: &str) -> Command {
    let mut command = Command::new(torchrun);
    command
        .args(options.split_whitespace())
        .arg("--no-python")
        .arg(env!("CARGO_BIN_EXE_yolo"))
        .args(arguments("--epochs 1").split_whitespace())
        .current_dir(user.path())
        .env("OMP_NUM_THREADS", "1")
        .env("YOLO_OFFLINE", "1")
        .env(WAIT.0, WAIT.1)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn real_torchrun_starts_ranks() {
    let Some(torchrun) = real_torchrun() else {
        eprintln!("skipped: YOLO_TEST_PYTHON does not name a Python next to torchrun");
        return;
    };
    let user = User::new();
    user.write_data_set();
    let one = under_torchrun(&user, &torchrun, "--standalone --nproc-per-node 2").output().unwrap();
    let one = Finished::from(one).succeeded();
    assert!(one.stderr.contains("they meet at its store"), "{}", one.stderr);

    let port = free_port();
    let agents = [0, 1].map(|node| {
        let options = format!(
            "--nnodes 2 --node-rank {node} --nproc-per-node 1 --rdzv-backend c10d --rdzv-id test \
             --rdzv-endpoint localhost:{port}"
        );
        under_torchrun(&user, &torchrun, &options).spawn().unwrap()
    });
    for agent in agents {
        Finished::from(agent.wait_with_output().unwrap()).succeeded();
    }
    assert_eq!(runs(&user).len(), 2);
}
