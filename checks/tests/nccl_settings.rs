//! The settings that keep NCCL from hanging on recorded hosts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{base, cases};
use yolo_checks::nccl_settings;

fn settings(name: &str) -> Vec<String> {
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    let gpus: Vec<usize> = (0..case.host().gpus().unwrap().len()).collect();
    let all = nccl_settings(&case.host(), &gpus, gpus.len());
    assert!(all.iter().all(|setting| !setting.why.is_empty()));
    all.iter().map(|setting| format!("{}={}", setting.name, setting.value)).collect()
}

#[test]
fn cards_that_hang_get_no_direct_path() {
    assert_eq!(settings("two-blackwell-workstation"), ["NCCL_P2P_DISABLE=1"]);
    assert_eq!(settings("iommu-translates"), ["NCCL_P2P_DISABLE=1"]);
}

#[test]
fn several_gpus_in_wsl_get_what_works_there() {
    let all = settings("two-gpus");
    assert_eq!(all, ["NCCL_P2P_DISABLE=1", "NCCL_CUMEM_ENABLE=0", "NCCL_CUMEM_HOST_ENABLE=0"]);
}

#[test]
fn uneven_numa_nodes_get_the_older_way_to_share_memory() {
    assert_eq!(settings("numa-node-without-memory"), ["NCCL_CUMEM_HOST_ENABLE=0"]);
    assert!(settings("numa-nodes-whole").is_empty());
}

#[test]
fn what_the_user_set_is_not_set_again() {
    assert!(settings("two-blackwell-p2p-off").is_empty());
}

#[test]
fn healthy_machines_get_nothing() {
    assert!(nccl_settings(&base("linux-8-gpus"), &[0, 1, 2, 3], 4).is_empty());
    assert!(nccl_settings(&base("linux-gpu"), &[0], 1).is_empty());
    assert!(settings("iommu-passes").is_empty());
}

#[test]
fn one_gpu_of_a_pair_needs_nothing() {
    let case = cases().into_iter().find(|case| case.name == "two-blackwell-workstation").unwrap();
    assert!(nccl_settings(&case.host(), &[1], 1).is_empty());
}

#[test]
fn a_board_whose_multicast_may_fail_does_without_it() {
    assert_eq!(settings("fabric-manager-restarted"), ["NCCL_NVLS_ENABLE=0"]);
    assert!(settings("fabric-manager-started-once").is_empty());
}
