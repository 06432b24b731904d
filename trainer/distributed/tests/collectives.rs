//! Collectives of a gloo group on several processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use common::{FLOAT, on_ranks, on_two_ranks};
use tch::{Kind, Tensor};
use tch_distributed::ErrorKind;

#[test]
fn all_reduce_sums_over_the_ranks() {
    on_two_ranks("all_reduce_sums_over_the_ranks", |group| {
        let tensor = Tensor::from_slice(&[1f32, 10.0]) * (group.rank() as f64 + 1.0);
        group.all_reduce(&tensor).unwrap();
        assert_eq!(Vec::<f32>::try_from(&tensor).unwrap(), [3.0, 30.0]);
    });
}

#[test]
fn all_reduce_sums_over_four_ranks() {
    on_ranks("all_reduce_sums_over_four_ranks", 4, |_, group| {
        assert_eq!(group.world(), 4);
        let tensor = Tensor::from_slice(&[1f32, 10.0]) * 2f64.powi(group.rank() as i32);
        group.all_reduce(&tensor).unwrap();
        assert_eq!(Vec::<f32>::try_from(&tensor).unwrap(), [15.0, 150.0]);
    });
}

#[test]
fn broadcast_copies_tensors_of_several_kinds_from_the_root() {
    on_two_ranks("broadcast_copies_tensors_of_several_kinds_from_the_root", |group| {
        let value = group.rank() as f64 + 5.0;
        let weights = Tensor::full([3, 2], value, FLOAT);
        let steps = Tensor::full([1], value as i64, (Kind::Int64, tch::Device::Cpu));
        group.broadcast(&[&weights, &steps], 1).unwrap();
        assert_eq!(weights.sum(Kind::Double).double_value(&[]), 36.0);
        assert_eq!(steps.int64_value(&[0]), 6);
        assert_eq!(group.broadcast(&[&weights], 2).unwrap_err().kind(), ErrorKind::Other);
    });
}

#[test]
fn all_gather_returns_tensors_in_rank_order() {
    on_two_ranks("all_gather_returns_tensors_in_rank_order", |group| {
        let gathered = group.all_gather(&Tensor::full([2], group.rank() as f64, FLOAT)).unwrap();
        let values: Vec<f64> = gathered.iter().map(|tensor| tensor.double_value(&[1])).collect();
        assert_eq!(values, [0.0, 1.0]);
    });
}

#[test]
fn byte_strings_may_differ_in_length() {
    on_two_ranks("byte_strings_may_differ_in_length", |group| {
        let own: &[u8] = [b"" as &[u8], b"second"][group.rank()];
        assert_eq!(group.all_gather_bytes(own).unwrap(), [b"".to_vec(), b"second".to_vec()]);
        assert_eq!(group.all_gather_bytes(b"").unwrap(), [b"".to_vec(), b"".to_vec()]);
        assert_eq!(group.broadcast_bytes(own, 1).unwrap(), b"second");
        assert_eq!(group.broadcast_bytes(own, 0).unwrap(), b"");
    });
}

#[test]
fn shapes_that_differ_between_ranks_are_refused() {
    on_two_ranks("shapes_that_differ_between_ranks_are_refused", |group| {
        let same = Tensor::zeros([2, 3], FLOAT);
        group.verify_shapes(&[&same]).unwrap();
        let other = Tensor::zeros([2, 3 + group.rank() as i64], FLOAT);
        // Shapes are compared with those of rank 0.
        assert_eq!(group.verify_shapes(&[&other]).is_err(), group.rank() == 1);
    });
}
