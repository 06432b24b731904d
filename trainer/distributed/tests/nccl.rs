//! The NCCL plugin, without a GPU: what cannot be loaded, and what NCCL refuses, is an error. The second
//! part needs the plugin, which `YOLO_TEST_NCCL_PLUGIN` names, and a libtorch with CUDA that
//! `LD_LIBRARY_PATH` names. `YOLO_TEST_NCCL` may name a newer libnccl, which is then used.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{FLOAT, join, outputs, rank};
use tch::{Kind, Tensor};
use tch_distributed::{ErrorKind, NcclPlugin, preload_nccl};
use tch_train::cuda;

const PLUGIN: &str = "YOLO_TEST_NCCL_PLUGIN";

const NEWER: &str = "YOLO_TEST_NCCL";

#[test]
fn a_plugin_that_cannot_be_loaded_is_an_error() {
    let error = NcclPlugin::open(Path::new("/nowhere/libtch_nccl.so")).unwrap_err();
    assert_eq!(error.to_string(), "loading /nowhere/libtch_nccl.so: there is no such file");
    let error = preload_nccl(Path::new("/nowhere/libnccl.so.2")).unwrap_err();
    assert_eq!(error.to_string(), "loading /nowhere/libnccl.so.2: there is no such file");
}

#[test]
fn a_group_over_gloo_has_nothing_of_nccl() {
    common::on_two_ranks("a_group_over_gloo_has_nothing_of_nccl", |group| {
        let message = "CUDA tensors of this group go over gloo, not over nccl";
        assert_eq!(group.nccl_state().unwrap_err().message(), message);
        assert_eq!(group.nccl_abort().unwrap_err().message(), message);
    });
}

/// NCCL refuses to join on a machine without a GPU. The group still exchanges CPU tensors over gloo.
#[test]
fn without_a_gpu_nccl_refuses_and_gloo_goes_on() {
    let test = "without_a_gpu_nccl_refuses_and_gloo_goes_on";
    let Some(plugin) = std::env::var_os(PLUGIN).map(PathBuf::from) else {
        println!("skipped: {PLUGIN} is not set");
        return;
    };
    if rank().is_none() {
        for said in outputs(test, 2) {
            // The reason to skip, if there is one.
            said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
        }
        return;
    }
    let newer = std::env::var_os(NEWER).map(PathBuf::from);
    newer.iter().for_each(|newer| preload_nccl(newer).unwrap());
    match cuda::device("cuda:0") {
        Err(cuda::OpenError::NoSuchDevice { devices: 0, .. }) => {}
        Ok(_) => return println!("\nskipped: this machine has a GPU"),
        Err(error) => panic!("a libtorch with CUDA must be in LD_LIBRARY_PATH: {error}"),
    }
    let plugin = NcclPlugin::open(&plugin).unwrap();
    // The same version twice, unless there is a newer one, which libtorch then uses.
    assert_eq!(plugin.loaded() > plugin.built(), newer.is_some(), "{plugin:?}");
    let (_store, group) = join(Duration::from_secs(60));
    let error = group.use_nccl(&plugin, 0, Duration::from_secs(60)).unwrap_err();
    let refusal = "ProcessGroupNCCL is only supported with GPUs, no GPUs found!";
    assert_eq!(error.message(), refusal);
    assert_eq!(error.kind(), ErrorKind::Other);
    let prefix = format!("connecting rank {} of 2 over NCCL on CUDA device 0: ", group.rank());
    assert_eq!(error.to_string(), prefix + refusal);
    let sum = Tensor::ones([3], FLOAT);
    group.all_reduce(&sum).unwrap();
    assert_eq!(sum.sum(Kind::Float).double_value(&[]), 6.0);
    group.barrier(None).unwrap();
}
