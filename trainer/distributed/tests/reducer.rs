//! The Reducer on two processes, compared with gradients computed in one process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use common::{FLOAT, difference, on_two_ranks};
use tch::{Device, Kind, Tensor, nn, nn::ModuleT};
use tch_distributed::{CommHook, ProcessGroup, Reducer, ReducerOptions};

/// Buckets so small that a small model has several.
const SMALL: ReducerOptions = ReducerOptions {
    bucket_bytes: 16 << 10,
    first_bucket_bytes: 8 << 10,
    find_unused_parameters: false,
    static_graph: false,
    gradient_as_bucket_view: true,
    hook: CommHook::None,
};

struct Net {
    layers: nn::SequentialT,
    parameters: Vec<Tensor>,
}

/// Three convolutions with batch normalization, then a linear layer.
fn net(seed: i64) -> Net {
    tch::manual_seed(seed);
    let store = nn::VarStore::new(Device::Cpu);
    let root = store.root();
    let config = nn::ConvConfig { padding: 1, bias: false, ..Default::default() };
    let mut layers = nn::seq_t();
    let mut channels = 3;
    for i in 0..3 {
        layers = layers
            .add(nn::conv2d(&root / format!("conv{i}"), channels, 32, 3, config))
            .add(nn::batch_norm2d(&root / format!("norm{i}"), 32, Default::default()))
            .add_fn(|x| x.relu());
        channels = 32;
    }
    let layers = layers.add_fn(|x| x.adaptive_avg_pool2d([1, 1]).flatten(1, -1)).add(nn::linear(
        &root / "linear",
        32,
        10,
        Default::default(),
    ));
    Net { layers, parameters: store.trainable_variables() }
}

impl Net {
    /// The loss on the data of one rank in one step.
    fn loss(&self, rank: usize, step: i64) -> Tensor {
        tch::manual_seed(1000 + 77 * rank as i64 + step);
        let images = Tensor::randn([8, 3, 16, 16], FLOAT);
        let classes = Tensor::randint(10, [8], (Kind::Int64, Device::Cpu));
        self.layers.forward_t(&images, true).cross_entropy_for_logits(&classes)
    }

    /// The gradients of one rank's loss, computed in this process.
    fn own_gradients(&self, rank: usize, step: i64) -> Vec<Tensor> {
        Tensor::run_backward(&[self.loss(rank, step)], &self.parameters, false, false)
    }

    fn gradients(&self) -> Vec<Tensor> {
        self.parameters.iter().map(Tensor::grad).collect()
    }

    fn zero_gradients(&self) {
        for mut gradient in self.gradients().into_iter().filter(Tensor::defined) {
            let _ = gradient.zero_();
        }
    }
}

fn largest_difference(a: &[Tensor], b: &[Tensor]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| difference(a, b)).fold(0.0, f64::max)
}

/// The mean of the gradients of both ranks, computed in this process.
fn mean(net: &Net, step: i64) -> Vec<Tensor> {
    let (a, b) = (net.own_gradients(0, step), net.own_gradients(1, step));
    a.iter().zip(&b).map(|(a, b)| (a + b) / 2.0).collect()
}

/// A model that starts with other weights on each rank and then gets those of rank 0.
fn same_net(group: &ProcessGroup) -> Net {
    let net = net(5 + group.rank() as i64);
    group.broadcast(&net.parameters, 0).unwrap();
    net
}

fn gradients_are_the_mean(group: &ProcessGroup, options: ReducerOptions, tolerance: f64) {
    let net = same_net(group);
    let mut want = mean(&net, 0);
    let mut reducer = Reducer::new(group, &net.parameters, options).unwrap();
    for step in 0..3 {
        if step > 0 {
            want = mean(&net, step);
        }
        let own = net.own_gradients(group.rank(), step);
        net.zero_gradients();
        reducer.prepare_forward().unwrap();
        reducer.backward(&net.loss(group.rank(), step)).unwrap();
        let got = net.gradients();
        assert!(largest_difference(&got, &want) <= tolerance, "{}", largest_difference(&got, &want));
        // Control: the gradients of one rank alone differ.
        assert!(largest_difference(&got, &own) > 1e-4);
        tch::no_grad(|| {
            for (parameter, gradient) in net.parameters.iter().zip(&got) {
                let _ = parameter.shallow_clone().g_sub_(&(gradient * 0.1));
            }
        });
    }
    let stats = reducer.stats().unwrap();
    assert!(stats.buckets > 2 && stats.rebuilt, "{stats:?}");
}

#[test]
fn gradients_are_the_mean_over_the_ranks() {
    on_two_ranks("gradients_are_the_mean_over_the_ranks", |group| {
        gradients_are_the_mean(group, SMALL, 1e-6);
        gradients_are_the_mean(group, ReducerOptions { gradient_as_bucket_view: false, ..SMALL }, 1e-6);
    });
}

#[test]
fn float16_compression_only_loses_precision() {
    on_two_ranks("float16_compression_only_loses_precision", |group| {
        gradients_are_the_mean(group, ReducerOptions { hook: CommHook::Fp16Compress, ..SMALL }, 1e-3);
    });
}

#[test]
fn bfloat16_compression_only_loses_precision() {
    on_two_ranks("bfloat16_compression_only_loses_precision", |group| {
        gradients_are_the_mean(group, ReducerOptions { hook: CommHook::Bf16Compress, ..SMALL }, 8e-3);
    });
}

/// One step with a gradient of 1e-6 times `scale` on both ranks.
fn compressed(group: &ProcessGroup, hook: CommHook, scale: f64) -> f64 {
    let parameter = Tensor::zeros([2], FLOAT).set_requires_grad(true);
    let mut reducer = Reducer::new(group, &[&parameter], ReducerOptions { hook, ..SMALL }).unwrap();
    reducer.prepare_forward().unwrap();
    reducer.backward(&(parameter.sum(Kind::Float) * (1e-6 * scale))).unwrap();
    parameter.grad().double_value(&[0])
}

#[test]
fn bfloat16_has_the_range_of_float32_and_float16_has_not() {
    on_two_ranks("bfloat16_has_the_range_of_float32_and_float16_has_not", |group| {
        for scale in [1e-4, 1e12] {
            let got = compressed(group, CommHook::Bf16Compress, scale);
            assert!((got / (1e-6 * scale) - 1.0).abs() < 1e-2, "{got}");
        }
        assert_eq!(compressed(group, CommHook::Fp16Compress, 1e-4), 0.0);
        assert!(compressed(group, CommHook::Fp16Compress, 1e12).is_infinite());
    });
}

#[test]
fn a_static_graph_may_leave_parameters_unused_and_use_others_twice() {
    on_two_ranks("a_static_graph_may_leave_parameters_unused_and_use_others_twice", |group| {
        let parameter = || Tensor::ones([3], FLOAT).set_requires_grad(true);
        let (twice, unused) = (parameter(), parameter());
        let options = ReducerOptions { static_graph: true, find_unused_parameters: true, ..SMALL };
        let mut reducer = Reducer::new(group, &[&twice, &unused], options).unwrap();
        for step in 0..3 {
            if twice.grad().defined() {
                let _ = twice.grad().zero_();
            }
            reducer.prepare_forward().unwrap();
            let factor = group.rank() as f64 + 1.0;
            let loss = twice.sum(Kind::Float) * factor + (&twice * &twice).sum(Kind::Float) * factor;
            if step == 1 {
                reducer.prepare_backward::<Tensor>(&[]).unwrap();
                loss.backward();
                reducer.finish_backward().unwrap();
            } else {
                reducer.backward(&loss).unwrap();
            }
            // 1 + 2 x, times the mean of 1 and 2.
            assert_eq!(Vec::<f32>::try_from(twice.grad()).unwrap(), [4.5; 3]);
            assert!(!unused.grad().defined() || unused.grad().abs().max().double_value(&[]) == 0.0);
        }
        assert!(reducer.stats().unwrap().rebuilt);
    });
}

#[test]
fn a_static_graph_gives_the_mean() {
    on_two_ranks("a_static_graph_gives_the_mean", |group| {
        let options = ReducerOptions { static_graph: true, ..SMALL };
        gradients_are_the_mean(group, options, 1e-6);
        gradients_are_the_mean(group, ReducerOptions { hook: CommHook::Bf16Compress, ..options }, 8e-3);
    });
}

#[test]
fn a_backward_pass_without_prepare_stays_local() {
    on_two_ranks("a_backward_pass_without_prepare_stays_local", |group| {
        let net = same_net(group);
        let (own, others) = (net.own_gradients(group.rank(), 0), mean(&net, 0));
        let _reducer = Reducer::new(group, &net.parameters, SMALL).unwrap();
        net.loss(group.rank(), 0).backward();
        assert!(largest_difference(&net.gradients(), &own) < 1e-6);
        assert!(largest_difference(&net.gradients(), &others) > 1e-4);
    });
}

#[test]
fn accumulated_gradients_are_averaged_with_the_last_batch() {
    on_two_ranks("accumulated_gradients_are_averaged_with_the_last_batch", |group| {
        let net = same_net(group);
        let want: Vec<Tensor> =
            mean(&net, 0).iter().zip(&mean(&net, 1)).map(|(first, second)| first + second).collect();
        let mut reducer = Reducer::new(group, &net.parameters, SMALL).unwrap();
        net.loss(group.rank(), 0).backward();
        reducer.prepare_forward().unwrap();
        reducer.backward(&net.loss(group.rank(), 1)).unwrap();
        assert!(largest_difference(&net.gradients(), &want) < 1e-6);
    });
}

#[test]
fn buckets_are_sent_while_the_backward_pass_runs() {
    on_two_ranks("buckets_are_sent_while_the_backward_pass_runs", |group| {
        let net = same_net(group);
        let mut reducer =
            Reducer::new(group, &net.parameters, ReducerOptions { hook: CommHook::Record, ..SMALL }).unwrap();
        for step in 0..2 {
            let want = mean(&net, step);
            net.zero_gradients();
            reducer.prepare_forward().unwrap();
            reducer.backward(&net.loss(group.rank(), step)).unwrap();
            let launches = reducer.take_launches().unwrap();
            let all = net.parameters.len();
            assert!(launches.len() > 2, "{launches:?}");
            assert!(launches[0].gradients_ready < all, "{launches:?}");
            assert!(launches.is_sorted_by_key(|launch| launch.gradients_ready), "{launches:?}");
            assert_eq!(launches.last().unwrap().gradients_ready, all, "{launches:?}");
            let elements: usize = net.parameters.iter().map(Tensor::numel).sum();
            assert_eq!(launches.iter().map(|launch| launch.elements).sum::<usize>(), elements);
            assert!(largest_difference(&net.gradients(), &want) < 1e-6);
        }
    });
}

#[test]
fn unused_parameters_are_found_in_the_graph_of_the_loss() {
    on_two_ranks("unused_parameters_are_found_in_the_graph_of_the_loss", |group| {
        let parameter = || Tensor::ones([3], FLOAT).set_requires_grad(true);
        let (used, used_on_rank_1, unused) = (parameter(), parameter(), parameter());
        let all = [&used, &used_on_rank_1, &unused];
        let options = ReducerOptions { find_unused_parameters: true, ..SMALL };
        let mut reducer = Reducer::new(group, &all, options).unwrap();
        for _ in 0..3 {
            for parameter in all {
                if parameter.grad().defined() {
                    let _ = parameter.grad().zero_();
                }
            }
            reducer.prepare_forward().unwrap();
            let mut loss = used.sum(Kind::Float) * (group.rank() as f64 + 1.0);
            if group.rank() == 1 {
                loss += used_on_rank_1.sum(Kind::Float) * 8.0;
            }
            reducer.backward(&loss).unwrap();
            assert_eq!(Vec::<f32>::try_from(used.grad()).unwrap(), [1.5; 3]);
            assert_eq!(Vec::<f32>::try_from(used_on_rank_1.grad()).unwrap(), [4.0; 3]);
            assert!(!unused.grad().defined() || unused.grad().abs().max().double_value(&[]) == 0.0);
        }
        let error = reducer.prepare_backward::<Tensor>(&[]).unwrap_err();
        assert!(error.message().contains("needs the outputs of the backward pass"), "{error}");
    });
}

#[test]
fn wrong_use_is_refused() {
    on_two_ranks("wrong_use_is_refused", |group| {
        let frozen = Tensor::zeros([2], FLOAT);
        let error = Reducer::new(group, &[frozen], SMALL).unwrap_err();
        assert!(error.to_string().contains("parameter 0 does not require a gradient"), "{error}");
        assert!(Reducer::new::<Tensor>(group, &[], SMALL).is_err());

        // A parameter without a gradient is reported in the next step.
        let used = Tensor::ones([2], FLOAT).set_requires_grad(true);
        let unused = Tensor::ones([2], FLOAT).set_requires_grad(true);
        let mut reducer = Reducer::new(group, &[&used, &unused], SMALL).unwrap();
        reducer.prepare_forward().unwrap();
        reducer.backward(&used.sum(Kind::Float)).unwrap();
        let error =
            reducer.prepare_forward().and_then(|()| reducer.backward(&used.sum(Kind::Float))).unwrap_err();
        assert!(error.message().contains("Expected to have finished reduction"), "{error}");
    });
}

#[test]
fn a_dropped_reducer_leaves_the_parameters_alone() {
    on_two_ranks("a_dropped_reducer_leaves_the_parameters_alone", |group| {
        let net = same_net(group);
        let own = net.own_gradients(group.rank(), 0);
        drop(
            Reducer::new(group, &net.parameters, ReducerOptions { hook: CommHook::Record, ..SMALL }).unwrap(),
        );
        net.loss(group.rank(), 0).backward();
        assert!(largest_difference(&net.gradients(), &own) < 1e-6);
        for mut gradient in net.gradients() {
            let _ = gradient.g_mul_scalar_(0.5);
        }
        assert!(largest_difference(&net.gradients(), &own) > 1e-5);
    });
}
