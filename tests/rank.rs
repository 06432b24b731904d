//! `yolo rank` as launchers start it: one process for each rank, with the variables of torchrun, Slurm or
//! Kubernetes, and as real torchrun starts it where `YOLO_TEST_PYTHON` names a Python with PyTorch. That torchrun
//! serves the store is tested without it in `trainer/tests/launcher_store.rs`.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/launchers.rs"]
mod launchers;
#[path = "support/user.rs"]
mod user;

use std::path::Path;
use std::process::{Command, Stdio};

use launchers::{Variables, WAIT, arguments, launched, pytorchjob, runs, srun, start, torchrun};
use serde_json::Value;
use user::{Finished, TRAIN, User, free_port};

fn assert_same_results(user: &User, one: &str, other: &str) {
    for file in ["results.csv", "weights/last.pt", "weights/best.pt"] {
        let of = |run: &str| std::fs::read(user.path().join("runs/train").join(run).join(file)).unwrap();
        assert!(of(one) == of(other), "{file} of {one} and {other} differ");
    }
}

#[test]
fn ranks_of_torchrun_train_as_those_of_yolo_train() {
    let user = User::new();
    user.write_data_set();
    let whole =
        user.run(&format!("{TRAIN} --noplots --epochs 2 --nproc-per-node 2 --name whole")).succeeded();
    assert!(whole.stderr.contains("2 ranks shared 16 of 16 decoded images"), "{}", whole.stderr);
    let ended = launched(&user, "--epochs 2 --name parts", 2, torchrun);
    let [first, second] = <[Finished; 2]>::try_from(ended).ok().unwrap().map(Finished::succeeded);
    assert!(first.stderr.contains("torchrun started 2 ranks, 2 on this machine"), "{}", first.stderr);
    assert!(!first.stderr.contains("shared"), "nobody could give them memory to share: {}", first.stderr);
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
