//! Collectives, SyncBatchNorm and the Reducer on two ranks with tensors on a device, compared with the
//! joint batch in one process on the CPU, in double precision. `YOLO_TEST_DEVICE` names the device:
//! `cpu`, the default, or `cuda:0`, which both ranks share. If it cannot be used, or a group does not take
//! tensors on it, the tests fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use std::sync::OnceLock;

use common::FLOAT;
use tch::{Device, Kind, Tensor};
use tch_distributed::{CommHook, ProcessGroup, Reducer, ReducerOptions, RunningStats, sync_batch_norm};

/// The variable that names the device under test.
const DEVICE: &str = "YOLO_TEST_DEVICE";

/// Rounding of float32 over a few layers.
const BOUND: f64 = 2e-5;

/// The device under test. Every test calls this before anything else of libtorch, because the first
/// question about CUDA decides whether there is CUDA. TF32 is off.
fn device() -> Device {
    static FOUND: OnceLock<Device> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = std::env::var_os(DEVICE).map_or("cpu".into(), |name| name.to_string_lossy().into_owned());
        let device = tch_train::cuda::device(&name)
            .unwrap_or_else(|error| panic!("{DEVICE}={name} cannot be used: {error}"));
        tch_train::set_allow_tf32(false).unwrap();
        device
    })
}

/// Runs `body` on two ranks with the device under test.
fn on_two_ranks(test: &str, body: impl FnOnce(&ProcessGroup, Device)) {
    let device = device();
    common::on_two_ranks(test, |group| body(group, device));
}

/// Fails unless a tensor differs from the one in double precision by at most `bound` times the largest
/// of its values.
fn agree(what: &str, got: &Tensor, want: &Tensor, bound: f64) {
    assert_eq!(want.kind(), Kind::Double, "{what}: the reference has another precision");
    assert_eq!(got.size(), want.size(), "{what} has another shape");
    let got = got.detach().to_device(Device::Cpu).to_kind(Kind::Double);
    let off = (got - want.detach()).abs().max().double_value(&[]);
    let bound = bound * want.abs().max().double_value(&[]);
    assert!(off <= bound, "{what}: the largest difference is {off:e}, the bound {bound:e}");
}

#[test]
fn a_device_that_cannot_be_used_fails_a_test() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let child = child.args(["collectives_move_every_kind_of_number", "--exact"]).env(DEVICE, "cuda:4096");
    let output = child.output().unwrap();
    let said = common::text(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(&format!("{DEVICE}=cuda:4096 cannot be used: ")), "{said}");
}

#[test]
fn collectives_move_every_kind_of_number() {
    on_two_ranks("collectives_move_every_kind_of_number", |group, device| {
        let own = group.rank() as f64 + 1.0;
        // Sums of small whole numbers are exact in every kind.
        let counted = |kind| Tensor::arange(1027, (Kind::Int64, device)).remainder(100).to_kind(kind);
        for kind in [Kind::Float, Kind::Double, Kind::Int64, Kind::Half] {
            let tensor = counted(kind) * own as i64;
            let exact = |tensor: &Tensor, factor: f64, what: &str| {
                assert_eq!((tensor.device(), tensor.kind()), (device, kind), "{what}");
                let want = counted(Kind::Double).to_device(Device::Cpu) * factor;
                agree(&format!("{what} of {kind:?}"), tensor, &want, 0.0);
            };
            for (rank, gathered) in group.all_gather(&tensor).unwrap().iter().enumerate() {
                exact(gathered, rank as f64 + 1.0, "all-gather");
            }
            let sum = tensor.copy();
            group.all_reduce(&sum).unwrap();
            exact(&sum, 3.0, "all-reduce");
            let other = counted(Kind::Float) * own;
            group.broadcast(&[&tensor, &other], 1).unwrap();
            exact(&tensor, 2.0, "broadcast");
            let want = counted(Kind::Double).to_device(Device::Cpu) * 2.0;
            agree("second tensor of a broadcast", &other, &want, 0.0);
        }
    });
}

#[test]
fn messages_cross_from_device_to_device() {
    on_two_ranks("messages_cross_from_device_to_device", |group, device| {
        let (rank, other) = (group.rank(), 1 - group.rank());
        for kind in [Kind::Float, Kind::Int64, Kind::Half, Kind::BFloat16] {
            // Whole numbers up to 256 are exact in every kind.
            let values = |rank: usize| {
                let count = Tensor::arange(1027, (Kind::Int64, Device::Cpu)).remainder(100);
                (count * (rank as i64 + 1)).view([13, 79])
            };
            // Sent from memory that is not contiguous.
            let own = values(rank).to_kind(kind).to_device(device).transpose(0, 1);
            let empty = || Tensor::zeros([79, 13], (kind, device));
            let arrived = |tensor: &Tensor, from: usize, what: &str| {
                assert_eq!((tensor.device(), tensor.kind()), (device, kind), "{what}");
                let want = values(from).transpose(0, 1).to_kind(Kind::Double);
                agree(&format!("{what} of {kind:?}"), tensor, &want, 0.0);
            };
            let both = empty();
            group.send_recv(&own, other, &both, other, 0).unwrap();
            arrived(&both, other, "both at once");
            if rank == 0 {
                group.send(&own, 1, 1).unwrap();
                group.send(&own, 1, 2).unwrap();
                group.send(&own, 1, 3).unwrap();
                group.send(&own, 1, 3).unwrap();
            } else {
                let (from_rank, from_any, wrong) = (empty(), empty(), Tensor::zeros([5], (kind, device)));
                group.recv(&from_rank, 0, 1).unwrap();
                arrived(&from_rank, 0, "message");
                assert_eq!(group.recv_any(&from_any, 2).unwrap(), 0);
                arrived(&from_any, 0, "message from any");
                assert!(group.recv(&wrong, 0, 3).unwrap_err().message().starts_with("rank 0 sent a tensor"));
                // Into a leaf that requires a gradient.
                let leaf = if kind == Kind::Int64 { empty() } else { empty().set_requires_grad(true) };
                group.recv(&leaf, 0, 3).unwrap();
                arrived(&leaf, 0, "message after another shape");
            }
        }
    });
}

/// SyncBatchNorm of shares of 3 and 6 images, against batch normalization of all 9.
fn compare_batch_norm(group: &ProcessGroup, device: Device, kind: Kind, channels_last: bool, bound: f64) {
    tch::manual_seed(9);
    // The mean is far from 0, where a naive variance loses its digits.
    let input = (Tensor::randn([9, 5, 7, 3], FLOAT) * 3 + 100).to_kind(kind);
    let outer = Tensor::randn([9, 5, 7, 3], FLOAT).to_kind(kind);
    let weight = Tensor::randn([5], FLOAT);
    let bias = Tensor::randn([5], FLOAT);

    let double = |tensor: &Tensor| tensor.to_kind(Kind::Double);
    let (x, w, b) = (
        double(&input).set_requires_grad(true),
        double(&weight).set_requires_grad(true),
        double(&bias).set_requires_grad(true),
    );
    let (want_mean, want_var) = (double(&weight), double(&bias).abs());
    let want = x.batch_norm(Some(&w), Some(&b), Some(&want_mean), Some(&want_var), true, 0.1, 1e-5, false);
    let sum = (&want * double(&outer)).sum(Kind::Double);
    let want_gradients = Tensor::run_backward(&[sum], &[&x, &w, &b], false, false);

    let (start, length) = [(0, 3), (3, 6)][group.rank()];
    // The layout of the input survives, that of the gradient differs on purpose.
    let own = |tensor: &Tensor| {
        let own = tensor.to_device(device).copy();
        if channels_last && own.dim() == 4 {
            own.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
        } else {
            own
        }
    };
    let share = |tensor: &Tensor| tensor.narrow(0, start, length);
    let x = own(&share(&input)).set_requires_grad(true);
    let (w, b) = (own(&weight).set_requires_grad(true), own(&bias).set_requires_grad(true));
    let (mean, var) = (own(&weight), own(&bias).abs());
    let running = RunningStats { mean: &mean, var: &var };
    let got = sync_batch_norm(group, &x, &w, &b, Some(running), 0.1, 1e-5).unwrap();
    assert_eq!((got.kind(), got.device()), (kind, device));
    let sum = (&got * share(&outer).to_device(device)).sum(Kind::Float);
    let gradients = Tensor::run_backward(&[sum], &[&x, &w, &b], false, false);
    let (of_weight, of_bias) = (gradients[1].contiguous(), gradients[2].contiguous());
    group.all_reduce(&of_weight).unwrap();
    group.all_reduce(&of_bias).unwrap();

    let what = |what: &str| format!("{what} in {kind:?}");
    agree(&what("output"), &got, &share(&want), bound);
    agree(&what("gradient of the input"), &gradients[0], &share(&want_gradients[0]), bound);
    agree(&what("gradient of the weight"), &of_weight, &want_gradients[1], bound);
    agree(&what("gradient of the bias"), &of_bias, &want_gradients[2], bound);
    // The running statistics are float32 for every kind of input.
    agree(&what("running mean"), &mean, &want_mean, BOUND);
    agree(&what("running variance"), &var, &want_var, BOUND);
}

#[test]
fn sync_batch_norm_normalizes_the_joint_batch() {
    on_two_ranks("sync_batch_norm_normalizes_the_joint_batch", |group, device| {
        for channels_last in [false, true] {
            compare_batch_norm(group, device, Kind::Float, channels_last, BOUND);
            // Half precision rounds to 1/2048 and bfloat16 to 1/512, and the gradient of the output is
            // rounded too.
            compare_batch_norm(group, device, Kind::Half, channels_last, 5e-3);
            compare_batch_norm(group, device, Kind::BFloat16, channels_last, 2e-2);
        }
    });
}

#[test]
fn sync_batch_norm_takes_ranks_without_samples() {
    on_two_ranks("sync_batch_norm_takes_ranks_without_samples", |group, device| {
        tch::manual_seed(4);
        let whole = Tensor::randn([6, 5, 3, 2], FLOAT) + 10;
        let outer = Tensor::randn([6, 5, 3, 2], FLOAT);
        let none = None::<&Tensor>;
        let joint = whole.to_kind(Kind::Double).set_requires_grad(true);
        let want = joint.batch_norm(none, none, none, none, true, 0.1, 1e-5, false);
        (&want * outer.to_kind(Kind::Double)).sum(Kind::Double).backward();
        let (weight, bias) =
            (Tensor::ones([5], (Kind::Float, device)), Tensor::zeros([5], (Kind::Float, device)));
        for empty in 0..2 {
            let length = if group.rank() == empty { 0 } else { 6 };
            let x = whole.narrow(0, 0, length).to_device(device).copy().set_requires_grad(true);
            let y = sync_batch_norm(group, &x, &weight, &bias, None, 0.1, 1e-5).unwrap();
            (&y * outer.narrow(0, 0, length).to_device(device)).sum(Kind::Float).backward();
            assert_eq!(x.grad().size(), x.size());
            if length > 0 {
                agree("output", &y, &want, BOUND);
                agree("gradient", &x.grad(), &joint.grad(), BOUND);
            }
        }
    });
}

/// The parameters of a small net, by name, with shapes that fill no block.
const PARAMETERS: [(&str, &[i64]); 7] = [
    ("first.weight", &[7, 3, 3, 3]),
    ("first.bias", &[7]),
    ("second.weight", &[11, 7, 3, 3]),
    ("norm.weight", &[11]),
    ("norm.bias", &[11]),
    ("linear.weight", &[10, 11]),
    ("linear.bias", &[10]),
];

/// Batch normalization of an input with a weight and a bias.
type Norm<'a> = &'a dyn Fn(&Tensor, &Tensor, &Tensor) -> Tensor;

/// The mean loss of the net on some images. All operations are smooth, so that rounding stays rounding.
fn loss(parameters: &[Tensor], images: &Tensor, classes: &Tensor, norm: Norm<'_>) -> Tensor {
    let [first, first_bias, second, weight, bias, linear, linear_bias] = parameters else {
        panic!("7 parameters")
    };
    let x = images.conv2d(first, Some(first_bias), [1, 1], [1, 1], [1, 1], 1).silu();
    let x = norm(&x.conv2d(second, None::<Tensor>, [2, 2], [1, 1], [1, 1], 1), weight, bias).silu();
    let logits = x.mean_dim(&[2i64, 3][..], false, x.kind()).linear(linear, Some(linear_bias));
    logits.log_softmax(-1, logits.kind()).nll_loss(classes)
}

/// Trains the net for three steps, on two ranks that share each batch, and on the joint batch in double
/// precision. Gradients and weights must agree after every step.
fn compare_training(group: &ProcessGroup, device: Device, options: ReducerOptions, bound: f64) {
    tch::manual_seed(11);
    let start: Vec<Tensor> = PARAMETERS.iter().map(|(_, shape)| Tensor::randn(*shape, FLOAT) * 0.4).collect();
    let leaf = |tensor: Tensor| tensor.detach().set_requires_grad(true);
    // Rank 1 starts from other weights, and gets those of rank 0.
    let wrong = group.rank() as f64;
    let own: Vec<Tensor> = start.iter().map(|tensor| leaf((tensor + wrong).to_device(device))).collect();
    group.broadcast(&own, 0).unwrap();
    let joint: Vec<Tensor> = start.iter().map(|tensor| leaf(tensor.to_kind(Kind::Double))).collect();
    let mut reducer = Reducer::new(group, &own, options).unwrap();

    let none = None::<&Tensor>;
    let joint_norm = |x: &Tensor, w: &Tensor, b: &Tensor| {
        x.batch_norm(Some(w), Some(b), none, none, true, 0.1, 1e-5, false)
    };
    let own_norm =
        |x: &Tensor, w: &Tensor, b: &Tensor| sync_batch_norm(group, x, w, b, None, 0.1, 1e-5).unwrap();
    for step in 0..3 {
        tch::manual_seed(100 + step);
        let images = Tensor::randn([10, 3, 13, 11], FLOAT);
        let classes = Tensor::randint(10, [10], (Kind::Int64, Device::Cpu));
        loss(&joint, &images.to_kind(Kind::Double), &classes, &joint_norm).backward();
        let share = |tensor: &Tensor| tensor.narrow(0, 5 * group.rank() as i64, 5).to_device(device);
        reducer.prepare_forward().unwrap();
        reducer.backward(&loss(&own, &share(&images), &share(&classes), &own_norm)).unwrap();
        for ((name, _), (own, joint)) in PARAMETERS.iter().zip(own.iter().zip(&joint)) {
            agree(&format!("gradient of {name} in step {step}"), &own.grad(), &joint.grad(), bound);
            tch::no_grad(|| {
                for tensor in [own, joint] {
                    let _ = tensor.shallow_clone().g_sub_(&(tensor.grad() * 0.2));
                    // In place: the gradient may be a view into a bucket.
                    let _ = tensor.grad().zero_();
                }
            });
            agree(&format!("{name} after step {step}"), own, joint, bound);
        }
    }
}

#[test]
fn the_reducer_gives_the_gradients_of_the_joint_batch() {
    on_two_ranks("the_reducer_gives_the_gradients_of_the_joint_batch", |group, device| {
        // Several buckets.
        let small = ReducerOptions { bucket_bytes: 1 << 10, first_bucket_bytes: 256, ..Default::default() };
        for options in [
            ReducerOptions::default(),
            small,
            ReducerOptions { gradient_as_bucket_view: false, ..small },
            ReducerOptions { find_unused_parameters: true, ..small },
            ReducerOptions { hook: CommHook::Record, ..small },
        ] {
            compare_training(group, device, options, BOUND);
        }
        compare_training(group, device, ReducerOptions { static_graph: true, ..small }, BOUND);
        let compressed = ReducerOptions { hook: CommHook::Fp16Compress, ..small };
        compare_training(group, device, compressed, 5e-3);
        let compressed = ReducerOptions { hook: CommHook::Bf16Compress, ..small };
        compare_training(group, device, compressed, 3e-2);
    });
}
