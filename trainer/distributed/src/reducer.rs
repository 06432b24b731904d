//! The Reducer averages gradients over the ranks, bucket by bucket, while the backward pass is still
//! running. It is the engine of PyTorch's `DistributedDataParallel`, not a reimplementation.

#![expect(unsafe_code, reason = "calls the shim's Reducer functions")]

use std::borrow::Borrow;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::roll_call::RollCall;

/// The most launches that one call returns. With buckets of 25 MiB they are 100 GB of gradients.
const MAX_LAUNCHES: usize = 4096;

/// How a bucket is sent to the other ranks: PyTorch's communication hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommHook {
    /// As it was computed.
    #[default]
    None,
    /// As float16, with half the bytes and less precision.
    Fp16Compress,
    /// As it was computed, and [`Reducer::take_launches`] returns when.
    Record,
    /// As bfloat16, with half the bytes and less precision than float16, but the range of float32: gradients
    /// neither overflow nor vanish.
    Bf16Compress,
}

/// How gradients are grouped into buckets.
#[derive(Clone, Copy, Debug)]
pub struct ReducerOptions {
    /// Size of a bucket in bytes. The default is 25 MiB, as in DistributedDataParallel.
    pub bucket_bytes: usize,
    /// Size in bytes of the first bucket that is sent. The default is 1 MiB, as in
    /// DistributedDataParallel, so that communication starts early.
    pub first_bucket_bytes: usize,
    /// Search the graph of the loss for parameters that get no gradient in a step. Without this
    /// option every parameter must get one in every step, unless the graph is static.
    pub find_unused_parameters: bool,
    /// The same parameters get a gradient in every step, equally often, on all ranks. Then parameters may be
    /// unused or used several times at no cost, also with checkpointing of activations. The first step
    /// exchanges its gradients after the backward pass, and the later ones during it. Takes precedence over
    /// `find_unused_parameters`.
    pub static_graph: bool,
    /// Make the gradients views of the buckets, which saves a copy. Then zero them in place, and do
    /// not keep them between steps, because the buckets are rebuilt after the first step. The `zero_grad` of
    /// tch's optimizers panics on views.
    pub gradient_as_bucket_view: bool,
    /// How buckets are sent.
    pub hook: CommHook,
}

impl Default for ReducerOptions {
    fn default() -> Self {
        Self {
            bucket_bytes: 25 << 20,
            first_bucket_bytes: 1 << 20,
            find_unused_parameters: false,
            static_graph: false,
            gradient_as_bucket_view: true,
            hook: CommHook::None,
        }
    }
}

/// Averages over the steps that the Reducer samples: the first ten, then one in a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducerStats {
    /// Number of buckets.
    pub buckets: usize,
    /// Whether the buckets have been rebuilt in the order in which gradients are computed.
    pub rebuilt: bool,
    /// Time from [`Reducer::prepare_forward`] to [`Reducer::prepare_backward`].
    pub forward: Duration,
    /// Time to compute the gradients.
    pub backward: Duration,
    /// Time from the first bucket sent to the last one received.
    pub communication: Duration,
    /// Part of the communication that overlapped with the backward pass.
    pub overlap: Duration,
}

/// The start of the all-reduce of one bucket; see [`CommHook::Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLaunch {
    /// Index of the bucket, in the order of sending.
    pub bucket: usize,
    /// Number of elements in the bucket.
    pub elements: usize,
    /// Number of parameters whose gradient this backward pass had computed by then.
    pub gradients_ready: usize,
}

/// Averages the gradients of a fixed list of parameters over the ranks of a group.
///
/// A step is [`Self::prepare_forward`], the forward pass, [`Self::backward`].
///
/// **Gradient accumulation** (`no_sync` in PyTorch): a plain `loss.f_backward()` without the two
/// prepare calls accumulates this rank's gradients and sends nothing. Do so for all batches except
/// the last one, whose [`Self::backward`] then averages the sums.
#[derive(Debug)]
pub struct Reducer {
    raw: NonNull<ffi::Reducer>,
    /// Whether each backward pass searches its graph for unused parameters.
    searches: bool,
    rank: usize,
    world: usize,
    roll: Arc<RollCall>,
}

impl Reducer {
    /// Takes the parameters in the order in which the model registers them. The order, the shapes
    /// and the values must be the same on all ranks; [`ProcessGroup::broadcast`] makes the values so.
    ///
    /// # Errors
    /// If a peer is lost or too slow, the shapes differ between ranks, or a parameter is not a leaf
    /// that requires a gradient.
    pub fn new<T: Borrow<Tensor>>(
        group: &ProcessGroup,
        parameters: &[T],
        options: ReducerOptions,
    ) -> Result<Self> {
        let action = "building the Reducer";
        if parameters.is_empty() {
            return Err(Error::new(ErrorKind::Other, action, "there are no parameters"));
        }
        if let Some(index) = parameters.iter().position(|parameter| !parameter.borrow().requires_grad()) {
            let message = format!(
                "parameter {index} does not require a gradient; pass only parameters that are trained"
            );
            return Err(Error::new(ErrorKind::Other, action, message));
        }
        group.verify_shapes(parameters)?;
        let bytes = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let raw_options = ffi::ReducerOptions {
            bucket_bytes: bytes(options.bucket_bytes),
            first_bucket_bytes: bytes(options.first_bucket_bytes),
            // c10d refuses both.
            find_unused_parameters: (options.find_unused_parameters && !options.static_graph).into(),
            gradient_as_bucket_view: options.gradient_as_bucket_view.into(),
            hook: match options.hook {
                CommHook::None => 0,
                CommHook::Fp16Compress => 1,
                CommHook::Record => 2,
                CommHook::Bf16Compress => 3,
            },
            static_graph: options.static_graph.into(),
        };
        let pointers = ffi::pointers(parameters);
        let mut raw = ptr::null_mut();
        // SAFETY: group, parameters and options are alive during the call. The C++ Reducer keeps
        // references of its own to group and parameters.
        let status = unsafe {
            ffi::tchd_reducer_new(
                group.as_ptr(),
                pointers.as_ptr(),
                pointers.len(),
                &raw const raw_options,
                &raw mut raw,
            )
        };
        ffi::check(status, || format!("{action} on rank {} of {}", group.rank(), group.world()))?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, action, "libtorch returned no Reducer"))?;
        Ok(Self {
            raw,
            searches: options.find_unused_parameters && !options.static_graph,
            rank: group.rank(),
            world: group.world(),
            roll: Arc::clone(group.roll()),
        })
    }

    /// Starts a step whose gradients are averaged. Call it before the forward pass. In the second
    /// such step it rebuilds the buckets, which communicates with the other ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or the last backward pass is incomplete.
    pub fn prepare_forward(&mut self) -> Result<()> {
        self.roll.begin("preparing the forward pass".to_owned());
        // SAFETY: the Reducer is alive and mutably borrowed.
        let status = unsafe { ffi::tchd_reducer_prepare_forward(self.raw.as_ptr()) };
        let result = ffi::check(status, || self.action("preparing the forward pass"));
        self.roll.end();
        result.map_err(|error| self.roll.explain(error))
    }

    /// Prepares a backward pass that averages the gradients. Call it right before the backward pass, and
    /// [`Self::finish_backward`] right after it; [`Self::backward`] does all three.
    ///
    /// With `find_unused_parameters`, `outputs` are the tensors that the backward pass starts from:
    /// a parameter outside their graph counts as unused. Without the option `outputs` may be empty.
    ///
    /// # Errors
    /// If the last backward pass is incomplete.
    pub fn prepare_backward<T: Borrow<Tensor>>(&mut self, outputs: &[T]) -> Result<()> {
        // Invariant: c10d never searches a graph without outputs, where all parameters are unused.
        if self.searches && outputs.is_empty() {
            let message = "find_unused_parameters is set, so it needs the outputs of the backward pass";
            return Err(Error::new(ErrorKind::Other, self.action("preparing the backward pass"), message));
        }
        let pointers = ffi::pointers(outputs);
        // SAFETY: the Reducer is alive and mutably borrowed, and the outputs are alive.
        let status = unsafe {
            ffi::tchd_reducer_prepare_backward(self.raw.as_ptr(), pointers.as_ptr(), pointers.len())
        };
        ffi::check(status, || self.action("preparing the backward pass"))
    }

    /// Computes the gradients of `loss` and averages them over the ranks.
    ///
    /// # Errors
    /// [`ErrorKind::PeerLost`] at once if the process of a rank has ended, and
    /// [`ErrorKind::Timeout`] after the group's timeout if a rank hangs.
    pub fn backward(&mut self, loss: &Tensor) -> Result<()> {
        // Without the option c10d does not look at outputs.
        let outputs = if self.searches { &[loss][..] } else { &[] };
        self.prepare_backward(outputs)?;
        self.roll.begin("backward pass".to_owned());
        let result = loss.f_backward().map_err(|error| Error::from_tch(self.action("backward pass"), &error));
        let result = result.and_then(|()| self.finish());
        self.roll.end();
        result.map_err(|error| self.roll.explain(error))
    }

    /// Ends a backward pass after [`Self::prepare_backward`]. With a static graph, the first one exchanges its
    /// gradients here.
    ///
    /// # Errors
    /// As [`Self::backward`].
    pub fn finish_backward(&mut self) -> Result<()> {
        self.finish().map_err(|error| self.roll.explain(error))
    }

    fn finish(&mut self) -> Result<()> {
        // SAFETY: the Reducer is alive and mutably borrowed.
        let status = unsafe { ffi::tchd_reducer_finish_backward(self.raw.as_ptr()) };
        ffi::check(status, || self.action("ending the backward pass"))
    }

    /// The average duration of each part of a step.
    ///
    /// # Errors
    /// If libtorch fails to compute the statistics.
    pub fn stats(&mut self) -> Result<ReducerStats> {
        let mut stats = ffi::ReducerStats::default();
        // SAFETY: the Reducer is alive and mutably borrowed, and `stats` is local.
        let status = unsafe { ffi::tchd_reducer_stats(self.raw.as_ptr(), &raw mut stats) };
        ffi::check(status, || self.action("reading statistics"))?;
        let time = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        Ok(ReducerStats {
            buckets: count(stats.buckets),
            rebuilt: stats.rebuilt != 0,
            forward: time(stats.forward_ns),
            backward: time(stats.backward_ns),
            communication: time(stats.communication_ns),
            overlap: time(stats.overlap_ns),
        })
    }

    /// The buckets sent since the last call, in order. Empty unless the hook is
    /// [`CommHook::Record`].
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn take_launches(&mut self) -> Result<Vec<BucketLaunch>> {
        let mut launches = vec![ffi::BucketLaunch::default(); MAX_LAUNCHES];
        let mut length = 0;
        // SAFETY: the Reducer is alive and mutably borrowed. The buffer has room for the number of
        // launches that is passed, and `length` is local.
        let status = unsafe {
            ffi::tchd_reducer_take_launches(
                self.raw.as_ptr(),
                launches.as_mut_ptr(),
                launches.len(),
                &raw mut length,
            )
        };
        ffi::check(status, || self.action("reading launches"))?;
        let launch = |raw: &ffi::BucketLaunch| BucketLaunch {
            bucket: count(raw.bucket),
            elements: count(raw.elements),
            gradients_ready: count(raw.gradients_ready),
        };
        Ok(launches[..length].iter().map(launch).collect())
    }

    /// The action that an error names.
    fn action(&self, what: &str) -> String {
        format!("{what} on rank {} of {}", self.rank, self.world)
    }
}

impl Drop for Reducer {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. Its destructor
        // removes its hooks from the parameters, of which it holds references.
        unsafe { ffi::tchd_reducer_free(self.raw.as_ptr()) };
    }
}

/// A count, which C++ returns as a signed number.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}
