//! The examples in `deploy/`: scripts run with a stand-in for Slurm's `srun`, and with real torchrun where
//! `YOLO_TEST_PYTHON` names a Python with PyTorch; YAML files parse, and `yolo` accepts the commands in them.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use user::{Finished, TRAIN, User, free_port};

/// Starts two tasks on one node with the variables that `srun` sets, and ends with the first failure.
const SRUN: &str = r#"#!/usr/bin/env bash
[[ " $* " == *" --cpus-per-task=1 "* ]] || { echo "srun does not take --cpus-per-task from the job"; exit 2; } >&2
while [[ $1 == --* ]]; do shift; done
export SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST='localhost' SLURM_STEP_ID=0 SLURM_NODEID=0
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
  tasks[task]=$!
done
for task in "${tasks[@]}"; do
  wait -n || { status=$?; kill "${tasks[@]}" || true; wait; exit "$status"; }
done
"#;

/// The number of the image's user and of its group.
const USER: u32 = 1000;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let all = std::fs::read_dir(deploy()).unwrap().map(|entry| entry.unwrap().path());
    let has =
        |path: &PathBuf| path.extension().is_some_and(|found| extensions.iter().any(|one| found == *one));
    all.filter(has).collect()
}

/// The options of a short run, without the name of the command.
fn options() -> String {
    format!("{} --noplots --epochs 1", TRAIN.trim_start_matches("train "))
}

/// A script of the folder with these options; `yolo` and the programs in `bin` are found first.
fn script(user: &User, name: &str, options: &str) -> Command {
    let bin = user.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let yolo = bin.join("yolo");
    if !yolo.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_yolo"), yolo).unwrap();
    }
    let mut folders = vec![bin];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = Command::new("bash");
    command
        .arg(deploy().join(name))
        .args(options.split_whitespace())
        .current_dir(user.path())
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("YOLO_OFFLINE", "1")
        // A rank that fails must not keep the test waiting for 15 minutes.
        .env("YOLO_JOIN_SECONDS", "180")
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(deploy().join(name)).unwrap()).unwrap()
}

#[track_caller]
fn assert_accepted(arguments: &Value) {
    let arguments: Vec<&str> =
        arguments.as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    assert_eq!(arguments[0], "rank");
    yolo::parses(&arguments).unwrap();
}

#[test]
fn all_scripts_are_valid() {
    let scripts = files(&["sh", "sbatch"]);
    assert!(scripts.len() >= 3, "{scripts:?}");
    for script in scripts {
        let checked = Command::new("bash").arg("-n").arg(&script).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        assert!(script.metadata().unwrap().permissions().mode() & 0o100 != 0, "{}", script.display());
    }
}

#[test]
fn the_batch_script_trains_under_srun() {
    let user = User::new();
    user.write_data_set();
    let mut command = script(&user, "slurm.sbatch", &options());
    user.write_program("bin/srun", SRUN);
    // Of a job, but not of a step. The number of the process makes the port that of this test.
    command
        .env("SLURM_JOB_ID", std::process::id().to_string())
        .env("SLURM_JOB_NODELIST", "localhost")
        .env("SLURM_CPUS_PER_TASK", "1")
        .env("SLURM_PROCID", "0");
    let output = Finished::from(command.output().unwrap()).succeeded();
    assert!(output.stderr.contains("srun started 2 ranks, 2 on this machine"), "{}", output.stderr);
    assert!(user.path().join("runs/train/exp/weights/best.pt").is_file());
}

#[test]
fn the_scripts_for_torchrun_train() {
    let torchrun = std::env::var_os("YOLO_TEST_PYTHON")
        .map(|python| Path::new(&python).with_file_name("torchrun"))
        .filter(|program| program.is_file());
    let Some(torchrun) = torchrun else {
        eprintln!("skipped: YOLO_TEST_PYTHON does not name a Python next to torchrun");
        return;
    };
    let user = User::new();
    user.write_data_set();
    let with_torchrun = |name: &str| {
        let command = script(&user, name, &options());
        let link = user.path().join("bin/torchrun");
        if !link.exists() {
            std::os::unix::fs::symlink(&torchrun, link).unwrap();
        }
        command
    };
    Finished::from(with_torchrun("torchrun.sh").output().unwrap()).succeeded();
    let port = free_port();
    let machines = [0, 1].map(|_| {
        let mut command = with_torchrun("torchrun-machines.sh");
        command.env("MACHINES", "2").env("MASTER", format!("localhost:{port}")).spawn().unwrap()
    });
    for machine in machines {
        Finished::from(machine.wait_with_output().unwrap()).succeeded();
    }
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file());
}

#[test]
fn the_job_for_kubernetes_starts_one_rank_per_pod() {
    let job = yaml("pytorchjob.yaml");
    assert_eq!((&job["apiVersion"], &job["kind"]), (&"kubeflow.org/v1".into(), &"PyTorchJob".into()));
    let replicas = &job["spec"]["pytorchReplicaSpecs"];
    assert_eq!(replicas["Master"]["replicas"], 1, "the operator allows one master");
    for kind in ["Master", "Worker"] {
        let pod = &replicas[kind]["template"]["spec"];
        assert_eq!(pod["securityContext"]["fsGroup"], USER, "the user of the image writes into the claims");
        let container = &pod["containers"][0];
        assert_eq!(container["name"], "pytorch", "the operator looks for this name");
        assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], 1);
        assert!(container["command"].is_null(), "the image starts yolo");
        assert_accepted(&container["args"]);
        for mount in container["volumeMounts"].as_array().unwrap() {
            let volumes = pod["volumes"].as_array().unwrap();
            assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
        }
    }
}

#[test]
fn the_compose_file_starts_two_machines() {
    let services = &yaml("compose.yaml")["services"];
    for (rank, name) in ["machine0", "machine1"].iter().enumerate() {
        let service = &services[*name];
        assert_accepted(&service["command"]);
        let environment = &service["environment"];
        assert_eq!(environment["RANK"], rank.to_string());
        assert_eq!(
            (&environment["WORLD_SIZE"], &environment["MASTER_ADDR"]),
            (&"2".into(), &"machine0".into())
        );
        assert_eq!(service["build"]["dockerfile"], "deploy/Dockerfile");
    }
}

#[test]
fn the_image_runs_yolo_as_its_own_user() {
    let text = std::fs::read_to_string(deploy().join("Dockerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let at = |start: &str| {
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}"))
    };
    let setup =
        lines.iter().find_map(|line| line.strip_prefix("RUN yolo ")).unwrap().replace("${VARIANT}", "cpu");
    yolo::parses(&setup.split_whitespace().collect::<Vec<_>>()).unwrap();
    assert!(lines[at("RUN useradd")].contains(&format!("--uid {USER} ")));
    assert!(at("USER trainer") < at("RUN yolo setup"), "the user must be able to write what setup installs");
    assert!(at("ENV YOLO_HOME") < at("RUN yolo setup"));
    assert_eq!(lines[at("ENTRYPOINT")], r#"ENTRYPOINT ["yolo"]"#);
}
