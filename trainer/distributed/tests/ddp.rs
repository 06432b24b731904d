//! `DistributedDataParallel` on two and four processes, compared with the joint batch in one process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use common::{FLOAT, difference, on_ranks, on_two_ranks};
use tch::{Device, Kind, Tensor, nn, nn::Module as _};
use tch_distributed::{DdpOptions, DistributedDataParallel, ProcessGroup};

struct Net {
    variables: nn::VarStore,
    linear: nn::Linear,
    /// A buffer that counts forward passes on each rank.
    count: Tensor,
}

fn net(seed: i64) -> Net {
    tch::manual_seed(seed);
    let variables = nn::VarStore::new(Device::Cpu);
    let linear = nn::linear(variables.root(), 6, 2, Default::default());
    let count = variables.root().zeros_no_train("count", &[1]);
    Net { variables, linear, count }
}

impl Net {
    fn loss(&self, x: &Tensor) -> Tensor {
        tch::no_grad(|| {
            let _ = self.count.shallow_clone().g_add_scalar_(1.0);
        });
        self.linear.forward(x).square().mean(Kind::Float)
    }

    fn gradient(&self) -> Tensor {
        self.linear.ws.grad()
    }

    fn zero(&self) {
        for tensor in self.variables.trainable_variables() {
            if tensor.grad().defined() {
                let _ = tensor.grad().zero_();
            }
        }
    }
}

/// Batch number `step`; `share` is a rank's part of it.
fn batch(step: i64, world: usize) -> Tensor {
    tch::manual_seed(100 + step);
    Tensor::randn([4 * world as i64, 6], FLOAT)
}

fn share(group: &ProcessGroup, batch: &Tensor) -> Tensor {
    batch.narrow(0, 4 * group.rank() as i64, 4)
}

/// The gradient of the joint batches in one process, with the weights of `net`.
fn joint(net: &Net, batches: &[i64], world: usize) -> Tensor {
    let weight = net.linear.ws.detach().set_requires_grad(true);
    let bias = net.linear.bs.as_ref().unwrap().detach();
    for step in batches {
        batch(*step, world).linear(&weight, Some(&bias)).square().mean(Kind::Float).backward();
    }
    weight.grad()
}

fn trains_as_the_joint_batch(group: &ProcessGroup) {
    let net = net(group.rank() as i64);
    let _ = net.count.shallow_clone().fill_(group.rank() as f64 * 10.0);
    let mut ddp =
        DistributedDataParallel::from_var_store(group, &net.variables, DdpOptions::default()).unwrap();
    // All have the weights and buffers of rank 0.
    let weights = group.all_gather(&net.linear.ws).unwrap();
    assert!(weights.iter().all(|weight| difference(weight, &weights[0]) == 0.0));
    for step in 0..3 {
        net.zero();
        let x = share(group, &batch(step, group.world()));
        let loss = ddp.forward(|| net.loss(&x)).unwrap();
        assert_eq!(net.count.double_value(&[0]), step as f64 + 1.0);
        ddp.backward(&loss).unwrap();
        assert!(difference(&net.gradient(), &joint(&net, &[step], group.world())) < 1e-6);
    }
    assert!(ddp.reducer().stats().unwrap().rebuilt);
}

#[test]
fn two_ranks_train_as_the_joint_batch() {
    on_two_ranks("two_ranks_train_as_the_joint_batch", trains_as_the_joint_batch);
}

#[test]
fn four_ranks_train_as_the_joint_batch() {
    on_ranks("four_ranks_train_as_the_joint_batch", 4, |_, group| trains_as_the_joint_batch(group));
}

#[test]
fn no_sync_adds_up_gradients_of_this_rank() {
    on_two_ranks("no_sync_adds_up_gradients_of_this_rank", |group| {
        let net = net(0);
        let mut ddp =
            DistributedDataParallel::from_var_store(group, &net.variables, DdpOptions::default()).unwrap();
        for _ in 0..2 {
            net.zero();
            let own = ddp.no_sync(|ddp| {
                let x = share(group, &batch(0, 2));
                let loss = ddp.forward(|| net.loss(&x)).unwrap();
                ddp.backward(&loss).unwrap();
                net.gradient().copy()
            });
            // Ranks differ, because nothing was sent.
            let all = group.all_gather(&own).unwrap();
            assert!(difference(&all[0], &all[1]) > 1e-3);
            let x = share(group, &batch(1, 2));
            let loss = ddp.forward(|| net.loss(&x)).unwrap();
            ddp.backward(&loss).unwrap();
            assert!(difference(&net.gradient(), &joint(&net, &[0, 1], 2)) < 1e-6);
        }
    });
}

/// A static graph counts gradients in its first step only, which ends with its backward pass.
#[test]
fn no_sync_after_the_first_step_of_a_static_graph_changes_nothing() {
    on_two_ranks("no_sync_after_the_first_step_of_a_static_graph_changes_nothing", |group| {
        let net = net(0);
        let mut options = DdpOptions::default();
        options.reducer.static_graph = true;
        let mut ddp = DistributedDataParallel::from_var_store(group, &net.variables, options).unwrap();
        // Numbers of batches, of which the last is synchronized.
        for batches in [&[0][..], &[1, 2], &[3, 4, 5], &[6]] {
            net.zero();
            let pass = |ddp: &mut DistributedDataParallel<&ProcessGroup>, number: i64| {
                let x = share(group, &batch(number, 2));
                let loss = ddp.forward(|| net.loss(&x)).unwrap();
                ddp.backward(&loss).unwrap();
            };
            let (last, others) = batches.split_last().unwrap();
            ddp.no_sync(|ddp| others.iter().for_each(|number| pass(ddp, *number)));
            pass(&mut ddp, *last);
            let off = difference(&net.gradient(), &joint(&net, batches, 2));
            assert!(off < 1e-6, "batches {batches:?}: {off}");
        }
        assert!(ddp.reducer().stats().unwrap().rebuilt);
    });
}

#[test]
fn buffers_stay_apart_if_asked() {
    on_two_ranks("buffers_stay_apart_if_asked", |group| {
        let net = net(0);
        let options = DdpOptions { broadcast_buffers: false, ..Default::default() };
        let mut ddp = DistributedDataParallel::from_var_store(group, &net.variables, options).unwrap();
        let _ = net.count.shallow_clone().fill_(group.rank() as f64 * 10.0);
        let x = share(group, &batch(0, 2));
        let loss = ddp.forward(|| net.loss(&x)).unwrap();
        ddp.backward(&loss).unwrap();
        assert_eq!(net.count.double_value(&[0]), group.rank() as f64 * 10.0 + 1.0);
    });
}

#[test]
fn models_that_differ_are_refused_on_all_ranks() {
    on_two_ranks("models_that_differ_are_refused_on_all_ranks", |group| {
        let parameter = Tensor::zeros([3 + group.rank() as i64], FLOAT).set_requires_grad(true);
        let refused =
            DistributedDataParallel::new(group, &[&parameter], &[] as &[Tensor], DdpOptions::default());
        let error = refused.unwrap_err();
        assert_eq!(error.ranks(), [1]);
        assert!(error.message().contains("rank 1 calls broadcast from rank 0 of Float [4]"), "{error}");
    });
}
