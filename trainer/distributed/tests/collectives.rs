//! Collectives of a gloo group on several processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use common::{FLOAT, on_ranks, on_two_ranks};
use tch::{Device, Kind, Tensor};
use tch_distributed::{ErrorKind, ProcessGroup, ReduceOp};

fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.flatten(0, -1)).unwrap()
}

fn integers(tensor: &Tensor) -> Vec<i64> {
    Vec::try_from(tensor.flatten(0, -1)).unwrap()
}

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

fn every_operation(group: &ProcessGroup) {
    let (rank, world) = (group.rank() as i64, group.world() as i64);
    // Rank r has r + 1 and 6 - r.
    let own = [rank + 1, 6 - rank];
    let fold = |f: &dyn Fn(i64, i64) -> i64| {
        let of = |value: &dyn Fn(i64) -> i64| (0..world).map(value).reduce(f).unwrap();
        [of(&|rank| rank + 1), of(&|rank| 6 - rank)]
    };
    let sum = fold(&|a, b| a + b);
    for (operation, want) in [
        (ReduceOp::Sum, sum),
        (ReduceOp::Product, fold(&|a, b| a * b)),
        (ReduceOp::Min, fold(&i64::min)),
        (ReduceOp::Max, fold(&i64::max)),
        (ReduceOp::BitAnd, fold(&|a, b| a & b)),
        (ReduceOp::BitOr, fold(&|a, b| a | b)),
        (ReduceOp::BitXor, fold(&|a, b| a ^ b)),
    ] {
        let tensor = Tensor::from_slice(&own);
        group.all_reduce_with(&tensor, operation).unwrap();
        assert_eq!(integers(&tensor), want, "{operation:?}");
        let tensor = Tensor::from_slice(&own);
        group.reduce(&tensor, 1, operation).unwrap();
        assert!(rank != 1 || integers(&tensor) == want, "{operation:?}");
    }
    let mean = sum.map(|sum| sum as f32 / world as f32);
    for kind in [Kind::Float, Kind::Half, Kind::BFloat16, Kind::Double] {
        let tensor = Tensor::from_slice(&own).to_kind(kind);
        group.all_reduce_with(&tensor, ReduceOp::Avg).unwrap();
        assert_eq!(floats(&tensor.to_kind(Kind::Float)), mean, "{kind:?}");
    }
    let refusal = |operation, kind| {
        let tensor = Tensor::from_slice(&own).to_kind(kind);
        group.all_reduce_with(&tensor, operation).unwrap_err()
    };
    assert_eq!(refusal(ReduceOp::Avg, Kind::Int64).message(), "Avg needs floating-point numbers, not Int64");
    assert!(refusal(ReduceOp::BitOr, Kind::Float).message().starts_with("BitOr needs integers"));
    let premul = refusal(ReduceOp::PremulSum(0.5), Kind::Float);
    assert_eq!(premul.message(), "PremulSum needs NCCL, which works on tensors on a GPU only");
    assert_eq!((premul.kind(), premul.ranks()), (ErrorKind::Other, &[][..]));
}

#[test]
fn every_operation_reduces_two_ranks() {
    on_two_ranks("every_operation_reduces_two_ranks", every_operation);
}

#[test]
fn every_operation_reduces_four_ranks() {
    on_ranks("every_operation_reduces_four_ranks", 4, |_, group| every_operation(group));
}

#[test]
fn reduce_scatter_gives_each_rank_its_part() {
    on_ranks("reduce_scatter_gives_each_rank_its_part", 4, |_, group| {
        let rank = group.rank() as i64;
        // Not contiguous.
        let whole = (Tensor::arange(24, FLOAT).view([3, 8]) + rank).transpose(0, 1);
        let part = group.reduce_scatter(&whole, ReduceOp::Sum).unwrap();
        let want = (Tensor::arange(24, FLOAT).view([3, 8]) * 4 + 6).transpose(0, 1).narrow(0, 2 * rank, 2);
        assert_eq!(part.size(), [2, 3]);
        assert_eq!(floats(&part), floats(&want.contiguous()));
        let part = group.reduce_scatter(&whole, ReduceOp::Max).unwrap();
        assert_eq!(floats(&part)[0], (2 * rank) as f32 + 3.0);
        let error = group.reduce_scatter(&Tensor::zeros([6], FLOAT), ReduceOp::Sum).unwrap_err();
        assert_eq!(error.message(), "the first dimension of [6] is not a multiple of 4 ranks");
    });
}

#[test]
fn gather_and_scatter_have_one_end_at_the_root() {
    on_ranks("gather_and_scatter_have_one_end_at_the_root", 4, |_, group| {
        let rank = group.rank();
        let gathered = group.gather(&Tensor::full([2], rank as f64, FLOAT), 2).unwrap();
        assert_eq!(gathered.is_some(), rank == 2);
        for (from, tensor) in gathered.iter().flatten().enumerate() {
            assert_eq!(floats(tensor), [from as f32; 2]);
        }
        let parts: Vec<Tensor> = (0..4).map(|to| Tensor::full([3], to as f64 * 10.0, FLOAT)).collect();
        let output = Tensor::zeros([3], FLOAT);
        group.scatter(if rank == 1 { &parts[..] } else { &[] }, &output, 1).unwrap();
        assert_eq!(floats(&output), [rank as f32 * 10.0; 3]);
        let error = group.gather(&output, 4).unwrap_err();
        assert!(error.message().contains("must be less than the world size"), "{error}");
    });
}

#[test]
fn all_to_all_takes_parts_of_any_size() {
    on_ranks("all_to_all_takes_parts_of_any_size", 4, |_, group| {
        let rank = group.rank() as i64;
        // Rank r sends r rows of 10 r + t to rank t, and rank 0 sends none.
        let parts: Vec<Tensor> =
            (0..4).map(|to| Tensor::full([rank, 2], (10 * rank + to) as f64, FLOAT)).collect();
        let received = group.all_to_all(&parts).unwrap();
        for (from, tensor) in (0..4).zip(&received) {
            assert_eq!(tensor.size(), [from, 2]);
            assert_eq!(floats(tensor), vec![(10 * from + rank) as f32; 2 * from as usize]);
        }
        let error = group.all_to_all(&parts[..3]).unwrap_err();
        assert_eq!(error.message(), "there are 3 tensors for 4 ranks");
        let error =
            group.all_to_all(&[&parts[0], &parts[1], &parts[2], &Tensor::zeros([1, 5], FLOAT)]).unwrap_err();
        assert!(error.message().ends_with("do not fit"), "{error}");
    });
}

#[test]
fn messages_arrive_with_their_tags_and_in_order() {
    on_ranks("messages_arrive_with_their_tags_and_in_order", 4, |_, group| {
        let rank = group.rank();
        let value = |number: f64| Tensor::full([2, 2], number, FLOAT);
        if rank == 0 {
            let (first, second) = (value(0.0), value(0.0));
            group.recv(&first, 1, 6).unwrap();
            group.recv(&second, 1, 7).unwrap();
            assert_eq!((floats(&first)[0], floats(&second)[0]), (6.0, 7.0));
            let mut senders: Vec<usize> = (0..2)
                .map(|_| {
                    let tensor = value(0.0);
                    let from = group.recv_any(&tensor, 8).unwrap();
                    assert_eq!(floats(&tensor), [from as f32; 4]);
                    from
                })
                .collect();
            senders.sort_unstable();
            assert_eq!(senders, [2, 3]);
        } else if rank == 1 {
            group.send(&value(6.0), 0, 6).unwrap();
            group.send(&value(7.0), 0, 7).unwrap();
        } else {
            group.send(&value(rank as f64), 0, 8).unwrap();
        }
        assert_eq!(group.send(&value(0.0), rank, 0).unwrap_err().message(), "that is this rank");
        assert!(group.recv(&value(0.0), 4, 0).is_err());
    });
}

#[test]
fn large_tensors_cross() {
    on_two_ranks("large_tensors_cross", |group| {
        let other = 1 - group.rank();
        // More than a socket buffers.
        let outgoing = Tensor::full([16 << 20], group.rank() as f64, FLOAT);
        let incoming = Tensor::full([16 << 20], 9.0, FLOAT);
        group.send_recv(&outgoing, other, &incoming, other, 0).unwrap();
        assert_eq!(incoming.min().double_value(&[]), other as f64);
        assert_eq!(incoming.max().double_value(&[]), other as f64);
    });
}

#[test]
fn a_message_of_another_shape_is_an_error_and_the_next_arrives() {
    on_two_ranks("a_message_of_another_shape_is_an_error_and_the_next_arrives", |group| {
        let tensor = Tensor::full([1000], 3.0, FLOAT);
        if group.rank() == 0 {
            group.send(&tensor, 1, 0).unwrap();
            group.send(&tensor, 1, 0).unwrap();
        } else {
            let error = group.recv(&Tensor::zeros([10], FLOAT), 0, 0).unwrap_err();
            assert_eq!(error.message(), "rank 0 sent a tensor of Float [1000], not of Float [10]");
            assert_eq!(error.ranks(), [0]);
            let received = Tensor::zeros([1000], FLOAT);
            group.recv(&received, 0, 0).unwrap();
            assert_eq!(received.sum(Kind::Float).double_value(&[]), 3000.0);
        }
    });
}

#[test]
fn a_tensor_that_cannot_be_received_leaves_the_message() {
    on_two_ranks("a_tensor_that_cannot_be_received_leaves_the_message", |group| {
        let other = 1 - group.rank();
        let strided = Tensor::zeros([3, 2], FLOAT).transpose(0, 1);
        let outgoing = Tensor::full([2, 3], group.rank() as f64, FLOAT);
        let refusal = "a tensor of Float [2, 3] that is not contiguous cannot be received into";
        // Nothing is sent.
        let error = group.send_recv(&outgoing, other, &strided, other, 0).unwrap_err();
        assert_eq!(error.message(), refusal);
        if group.rank() == 0 {
            group.send(&outgoing, other, 0).unwrap();
        } else {
            assert_eq!(group.recv(&strided, 0, 0).unwrap_err().message(), refusal);
            let received = Tensor::ones([2, 3], FLOAT);
            group.recv(&received, 0, 0).unwrap();
            assert_eq!(floats(&received), [0.0; 6]);
        }
    });
}

#[test]
fn collectives_run_while_the_program_goes_on() {
    on_two_ranks("collectives_run_while_the_program_goes_on", |group| {
        let (a, b) = (Tensor::ones([1000], FLOAT), Tensor::full([10], 5i64, (Kind::Int64, Device::Cpu)));
        let first = group.all_reduce_async(&a, ReduceOp::Sum).unwrap();
        let second = group.all_reduce_async(&b, ReduceOp::Max).unwrap();
        let start = std::time::Instant::now();
        while !(first.is_completed().unwrap() && second.is_completed().unwrap()) {
            assert!(start.elapsed().as_secs() < 180);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        second.wait().unwrap();
        first.wait().unwrap();
        assert_eq!(a.sum(Kind::Float).double_value(&[]), 2000.0);
        assert_eq!(integers(&b), [5; 10]);
    });
}

/// gloo alone would end a process.
#[test]
fn calls_that_differ_are_errors_and_the_group_goes_on() {
    on_ranks("calls_that_differ_are_errors_and_the_group_goes_on", 4, |_, group| {
        let odd = group.rank() == 2;
        let message = |result: tch_distributed::Result<()>| {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.ranks()), (ErrorKind::Other, &[2][..]), "{error}");
            error.message().to_owned()
        };
        let tensor = Tensor::zeros([if odd { 1000 } else { 4 }], FLOAT);
        assert_eq!(
            message(group.all_reduce(&tensor)),
            "the ranks make different calls: rank 0 calls all-reduce (Sum) of Float [4]; \
             rank 2 calls all-reduce (Sum) of Float [1000]"
        );
        let tensor = Tensor::zeros([4], if odd { (Kind::Int64, Device::Cpu) } else { FLOAT });
        assert!(
            message(group.all_gather(&tensor).map(|_| ())).contains("rank 2 calls all-gather of Int64 [4]")
        );
        let result = if odd { group.barrier(None) } else { group.broadcast(&[&tensor], 0) };
        assert!(message(result).ends_with("rank 2 calls barrier"));
        let tensor = Tensor::ones([4], FLOAT);
        group.all_reduce(&tensor).unwrap();
        assert_eq!(floats(&tensor), [4.0; 4]);
    });
}

#[test]
fn peers_say_what_they_do() {
    on_two_ranks("peers_say_what_they_do", |group| {
        use tch_distributed::PeerState;
        group.monitored_barrier(std::time::Duration::from_secs(20)).unwrap();
        let other = 1 - group.rank();
        let [peer] = &group.roll_call()[..] else { panic!("there is one other rank") };
        assert_eq!(peer.rank, other);
        assert!(
            matches!(&peer.state, PeerState::Elsewhere { last, .. } | PeerState::Calling { call: last, .. }
                if last == "monitored barrier" || last == "barrier"),
            "{peer}"
        );
        assert_eq!(group.failure(), None);
        group.set_timeout(std::time::Duration::from_secs(33)).unwrap();
        assert_eq!(group.timeout().as_secs(), 33);
    });
}
