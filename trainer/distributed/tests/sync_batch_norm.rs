//! SyncBatchNorm on two processes, compared with one process that has the whole batch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;

use common::{FLOAT, difference, on_ranks, on_two_ranks};
use tch::{Kind, Tensor};
use tch_distributed::{GlooOptions, ProcessGroup, RunningStats, sync_batch_norm};

#[test]
fn unequal_shares_give_the_result_of_the_whole_batch() {
    on_two_ranks("unequal_shares_give_the_result_of_the_whole_batch", |group| {
        tch::manual_seed(9);
        // The mean is far from 0, where a naive variance loses its digits.
        let input = Tensor::randn([8, 5, 6, 7], FLOAT) * 3 + 100;
        let outer = Tensor::randn([8, 5, 6, 7], FLOAT);
        let weight = Tensor::randn([5], FLOAT).set_requires_grad(true);
        let bias = Tensor::randn([5], FLOAT).set_requires_grad(true);
        let (mean, var) = (Tensor::zeros([5], FLOAT), Tensor::ones([5], FLOAT));
        let (whole_mean, whole_var) = (mean.copy(), var.copy());

        let x = input.detach().set_requires_grad(true);
        let batch_norm = |x: &Tensor, stats: Option<(&Tensor, &Tensor)>| {
            let (mean, var) = stats.unzip();
            x.batch_norm(Some(&weight), Some(&bias), mean, var, true, 0.1, 1e-5, false)
        };
        let whole = batch_norm(&x, Some((&whole_mean, &whole_var)));
        let whole_gradients =
            Tensor::run_backward(&[(&whole * &outer).sum(Kind::Float)], &[&x, &weight, &bias], false, false);

        let (start, length) = [(0, 3), (3, 5)][group.rank()];
        let share = |tensor: &Tensor| tensor.narrow(0, start, length);
        let x = share(&input).detach().set_requires_grad(true);
        let running = RunningStats { mean: &mean, var: &var };
        let y = sync_batch_norm(group, &x, &weight, &bias, Some(running), 0.1, 1e-5).unwrap();
        let loss = (&y * share(&outer)).sum(Kind::Float);
        let gradients = Tensor::run_backward(&[loss], &[&x, &weight, &bias], false, false);
        let (weight_gradient, bias_gradient) = (gradients[1].contiguous(), gradients[2].contiguous());
        group.all_reduce(&weight_gradient).unwrap();
        group.all_reduce(&bias_gradient).unwrap();

        assert!(difference(&y, &share(&whole)) < 1e-5);
        assert!(difference(&gradients[0], &share(&whole_gradients[0])) < 1e-5);
        assert!(difference(&weight_gradient, &whole_gradients[1]) < 1e-3);
        assert!(difference(&bias_gradient, &whole_gradients[2]) < 1e-4);
        assert!(difference(&mean, &whole_mean) < 1e-5);
        assert!(difference(&var, &whole_var) < 1e-5);
        // Control: batch normalization of this rank's share alone differs.
        assert!(difference(&batch_norm(&x, None), &share(&whole)) > 1e-3);
    });
}

#[test]
fn a_rank_without_samples_takes_part() {
    on_two_ranks("a_rank_without_samples_takes_part", |group| {
        tch::manual_seed(2);
        let whole = Tensor::randn([4, 3, 2, 2], FLOAT);
        let (weight, bias) = (Tensor::ones([3], FLOAT), Tensor::zeros([3], FLOAT));
        let x = if group.rank() == 0 { whole.shallow_clone() } else { whole.narrow(0, 0, 0) };
        let y = sync_batch_norm(group, &x, &weight, &bias, None, 0.1, 1e-5).unwrap();
        assert_eq!(y.size(), x.size());
        if group.rank() == 0 {
            let none = None::<&Tensor>;
            let want = whole.batch_norm(Some(&weight), Some(&bias), none, none, true, 0.1, 1e-5, false);
            assert!(difference(&y, &want) < 1e-5);
        }
    });
}

/// The ranks come in any order, and those without samples may be the first.
#[test]
fn four_ranks_of_which_two_are_empty_share_a_batch() {
    on_ranks("four_ranks_of_which_two_are_empty_share_a_batch", 4, |_, group| {
        tch::manual_seed(3);
        let whole = Tensor::randn([8, 3, 4, 2], FLOAT) * 2 + 50;
        let outer = Tensor::randn([8, 3, 4, 2], FLOAT);
        let (weight, bias) = (Tensor::randn([3], FLOAT), Tensor::randn([3], FLOAT));
        let x = whole.copy().set_requires_grad(true);
        let (whole_mean, whole_var) = (Tensor::zeros([3], FLOAT), Tensor::ones([3], FLOAT));
        let stats = (Some(&whole_mean), Some(&whole_var));
        let want = x.batch_norm(Some(&weight), Some(&bias), stats.0, stats.1, true, 0.1, 1e-5, false);
        let want_gradient = Tensor::run_backward(&[(&want * &outer).sum(Kind::Float)], &[&x], false, false);

        let (start, length) = [(0, 0), (0, 3), (3, 0), (3, 5)][group.rank()];
        let share = |tensor: &Tensor| tensor.narrow(0, start, length);
        let x = share(&whole).copy().set_requires_grad(true);
        let (mean, var) = (Tensor::zeros([3], FLOAT), Tensor::ones([3], FLOAT));
        let running = RunningStats { mean: &mean, var: &var };
        let y = sync_batch_norm(group, &x, &weight, &bias, Some(running), 0.1, 1e-5).unwrap();
        let loss = (&y * share(&outer)).sum(Kind::Float);
        let gradient = Tensor::run_backward(&[loss], &[&x], false, false);
        assert!(difference(&mean, &whole_mean) < 1e-5);
        assert!(difference(&var, &whole_var) < 1e-4);
        if length > 0 {
            assert!(difference(&y, &share(&want)) < 1e-4);
            assert!(difference(&gradient[0], &share(&want_gradient[0])) < 1e-4);
        }
    });
}

#[test]
fn the_graph_keeps_the_group_alive() {
    on_ranks("the_graph_keeps_the_group_alive", 2, |store, first| {
        let options = GlooOptions { name: "second".to_owned(), ..GlooOptions::default() };
        let group = ProcessGroup::gloo(store, first.rank(), 2, &options).unwrap();
        let weight = Tensor::ones([1], FLOAT).set_requires_grad(true);
        let bias = Tensor::zeros([1], FLOAT);
        let x = Tensor::from_slice(&[1f32, 5.0]).view([2, 1]) * (group.rank() as f64 + 1.0);
        let y = sync_batch_norm(&group, &x, &weight, &bias, None, 0.1, 1e-5).unwrap();
        drop(group);
        // The backward pass is a collective of the second group.
        (&y * &y * &y).sum(Kind::Float).backward();
        let want = (&y * &y * &y).sum(Kind::Float) * 3;
        assert!(difference(&weight.grad(), &want.view([1])) < 1e-4);
    });
}

#[test]
fn a_single_value_per_channel_is_refused() {
    on_two_ranks("a_single_value_per_channel_is_refused", |group| {
        let (weight, bias) = (Tensor::ones([3], FLOAT), Tensor::zeros([3], FLOAT));
        let (mean, var) = (Tensor::zeros([3], FLOAT), Tensor::ones([3], FLOAT));
        let call = |batch: i64| {
            let running = RunningStats { mean: &mean, var: &var };
            let input = Tensor::ones([batch, 3], FLOAT);
            sync_batch_norm(group, &input, &weight, &bias, Some(running), 0.1, 1e-5)
        };
        // One value in total, then none. Every rank gets the error.
        for batch in [1 - group.rank() as i64, 0] {
            let error = call(batch).unwrap_err();
            assert!(error.to_string().contains("needs more than 1 value per channel"), "{error}");
        }
        assert_eq!(Vec::<f32>::try_from(&var).unwrap(), [1.0; 3]);
        // One value on each rank is enough.
        let output = call(1).unwrap();
        assert!(output.isfinite().all().int64_value(&[]) == 1);
        assert!(var.isfinite().all().int64_value(&[]) == 1);
    });
}

#[test]
fn a_vector_is_refused() {
    on_two_ranks("a_vector_is_refused", |group| {
        let vector = Tensor::zeros([3], FLOAT);
        let error = sync_batch_norm(group, &vector, &vector, &vector, None, 0.1, 1e-5).unwrap_err();
        assert!(error.to_string().contains("at least two dimensions"), "{error}");
    });
}
