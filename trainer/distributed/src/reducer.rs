//! The Reducer: averages gradients over the ranks, bucket by bucket, while
//! backward still computes the others. It is the engine of PyTorch's
//! `DistributedDataParallel`, not a copy of it.

#![expect(unsafe_code, reason = "calls the shim's Reducer functions")]

use std::borrow::Borrow;
use std::ptr::{self, NonNull};
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;

/// Room for launches of one call; more buckets in one step do not occur: 25 MiB
/// each would be 100 GB of gradients.
const MAX_LAUNCHES: usize = 4096;

/// What happens to a bucket on its way to the other ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommHook {
    /// It is sent as it was computed.
    #[default]
    None,
    /// It is sent as float16: half the bytes, less precision.
    Fp16Compress,
    /// It is sent as it was computed, and [`Reducer::take_launches`] tells when.
    Record,
}

/// How gradients are gathered into buckets.
#[derive(Clone, Copy, Debug)]
pub struct ReducerOptions {
    /// Size of a bucket, in bytes; 25 MiB, as in DistributedDataParallel.
    pub bucket_bytes: usize,
    /// Size of the first bucket to be sent, in bytes; 1 MiB, as in
    /// DistributedDataParallel, so that communication starts early.
    pub first_bucket_bytes: usize,
    /// Search the graph of the outputs given to [`Reducer::prepare_backward`]
    /// for parameters without a gradient. Without it each parameter must get
    /// one in every step.
    pub find_unused_parameters: bool,
    /// Let the gradients be views of the buckets, which saves a copy. Then set
    /// them to zero in place ([`crate::foreach_zero`]), and ask for them anew
    /// after each backward, since the buckets are rebuilt after the first step.
    pub gradient_as_bucket_view: bool,
    /// What happens to a bucket on its way.
    pub hook: CommHook,
}

impl Default for ReducerOptions {
    fn default() -> Self {
        Self {
            bucket_bytes: 25 << 20,
            first_bucket_bytes: 1 << 20,
            find_unused_parameters: false,
            gradient_as_bucket_view: true,
            hook: CommHook::None,
        }
    }
}

/// Averages over the steps that the Reducer sampled: the first ten, then one in
/// a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducerStats {
    /// How many buckets there are.
    pub buckets: usize,
    /// Whether they were already ordered as gradients arrive.
    pub rebuilt: bool,
    /// From [`Reducer::prepare_forward`] to [`Reducer::prepare_backward`].
    pub forward: Duration,
    /// Computing gradients.
    pub backward: Duration,
    /// From the first bucket sent to the last one received.
    pub communication: Duration,
    /// How much of the communication lay within backward.
    pub overlap: Duration,
}

/// One bucket whose all-reduce was started; see [`CommHook::Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLaunch {
    /// Number of the bucket, from 0 in the order of sending.
    pub bucket: usize,
    /// How many numbers it holds.
    pub elements: usize,
    /// How many parameters had their gradient in this backward when it started.
    pub gradients_ready: usize,
}

/// Averages the gradients of a fixed list of parameters over the ranks of a group.
///
/// A step is [`Self::prepare_forward`], the forward pass, [`Self::backward`].
///
/// **No sync**: a plain `loss.f_backward()` without the two prepare calls
/// accumulates this rank's own gradients and sends nothing. To accumulate over
/// several batches do so for all but the last; the last one's [`Self::backward`]
/// then averages the sums.
#[derive(Debug)]
pub struct Reducer {
    raw: NonNull<ffi::Reducer>,
    rank: usize,
    world: usize,
}

impl Reducer {
    /// Watches `parameters`, given in the order in which the model registers
    /// them, the same on all ranks. Their values must be the same too: see
    /// [`ProcessGroup::broadcast`]. Fails if the shapes differ between ranks.
    ///
    /// # Errors
    /// When a peer is lost or late, shapes differ, or a parameter is no leaf
    /// that requires a gradient.
    pub fn new<T: Borrow<Tensor>>(
        group: &ProcessGroup,
        parameters: &[T],
        options: ReducerOptions,
    ) -> Result<Self> {
        let action = "making the Reducer";
        if parameters.is_empty() {
            return Err(Error::new(ErrorKind::Other, action, "there is no parameter"));
        }
        if let Some(index) = parameters.iter().position(|parameter| !parameter.borrow().requires_grad()) {
            let message = format!("parameter {index} requires no gradient; give only those that are trained");
            return Err(Error::new(ErrorKind::Other, action, message));
        }
        group.verify_shapes(parameters)?;
        let bytes = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let raw_options = ffi::ReducerOptions {
            bucket_bytes: bytes(options.bucket_bytes),
            first_bucket_bytes: bytes(options.first_bucket_bytes),
            find_unused_parameters: options.find_unused_parameters.into(),
            gradient_as_bucket_view: options.gradient_as_bucket_view.into(),
            hook: match options.hook {
                CommHook::None => 0,
                CommHook::Fp16Compress => 1,
                CommHook::Record => 2,
            },
        };
        let pointers = ffi::pointers(parameters);
        let mut raw = ptr::null_mut();
        // SAFETY: group, parameters and options are alive during the call; the
        // C++ Reducer keeps its own references to group and parameters.
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
            .ok_or_else(|| Error::new(ErrorKind::Other, action, "libtorch made no Reducer"))?;
        Ok(Self { raw, rank: group.rank(), world: group.world() })
    }

    /// Must come before the forward pass of a step whose gradients are
    /// averaged. Before the second such step it orders the buckets anew, which
    /// talks to the other ranks.
    ///
    /// # Errors
    /// When a peer is lost or late, or the last backward was not completed.
    pub fn prepare_forward(&mut self) -> Result<()> {
        // SAFETY: the Reducer is alive and borrowed mutably.
        let status = unsafe { ffi::tchd_reducer_prepare_forward(self.raw.as_ptr()) };
        ffi::check(status, || self.action("preparing the forward pass"))
    }

    /// Must come right before the backward of a step whose gradients are
    /// averaged. `outputs` may be empty unless unused parameters are searched.
    ///
    /// # Errors
    /// When the last backward was not completed.
    pub fn prepare_backward<T: Borrow<Tensor>>(&mut self, outputs: &[T]) -> Result<()> {
        let pointers = ffi::pointers(outputs);
        // SAFETY: the Reducer is alive and borrowed mutably, the outputs too.
        let status = unsafe {
            ffi::tchd_reducer_prepare_backward(self.raw.as_ptr(), pointers.as_ptr(), pointers.len())
        };
        ffi::check(status, || self.action("preparing backward"))
    }

    /// Computes the gradients of `loss` and averages them over the ranks:
    /// [`Self::prepare_backward`] without outputs, then backward.
    ///
    /// # Errors
    /// [`ErrorKind::PeerLost`] within a moment when a rank's process ended,
    /// [`ErrorKind::Timeout`] after the group's time-out when one hangs.
    pub fn backward(&mut self, loss: &Tensor) -> Result<()> {
        self.prepare_backward::<Tensor>(&[])?;
        loss.f_backward().map_err(|error| Error::from_tch(self.action("backward"), &error))
    }

    /// How long the parts of a step took, on average.
    ///
    /// # Errors
    /// When libtorch cannot tell.
    pub fn stats(&mut self) -> Result<ReducerStats> {
        let mut stats = ffi::ReducerStats::default();
        // SAFETY: the Reducer is alive and borrowed mutably; `stats` is local.
        let status = unsafe { ffi::tchd_reducer_stats(self.raw.as_ptr(), &raw mut stats) };
        ffi::check(status, || self.action("asking for statistics"))?;
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

    /// The buckets sent since the last call, in order; empty unless the hook is
    /// [`CommHook::Record`].
    ///
    /// # Errors
    /// When libtorch cannot tell.
    pub fn take_launches(&mut self) -> Result<Vec<BucketLaunch>> {
        let mut launches = vec![ffi::BucketLaunch::default(); MAX_LAUNCHES];
        let mut length = 0;
        // SAFETY: the Reducer is alive and borrowed mutably; the buffer holds
        // as many launches as it is said to.
        let status = unsafe {
            ffi::tchd_reducer_take_launches(
                self.raw.as_ptr(),
                launches.as_mut_ptr(),
                launches.len(),
                &raw mut length,
            )
        };
        ffi::check(status, || self.action("asking for launches"))?;
        let launch = |raw: &ffi::BucketLaunch| BucketLaunch {
            bucket: count(raw.bucket),
            elements: count(raw.elements),
            gradients_ready: count(raw.gradients_ready),
        };
        Ok(launches[..length].iter().map(launch).collect())
    }

    /// What an error says was being done.
    fn action(&self, what: &str) -> String {
        format!("{what} on rank {} of {}", self.rank, self.world)
    }
}

impl Drop for Reducer {
    fn drop(&mut self) {
        // SAFETY: made by the shim, freed once; it takes its hooks off the
        // parameters, which live on.
        unsafe { ffi::tchd_reducer_free(self.raw.as_ptr()) };
    }
}

/// A count that C++ gives as a signed number.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}
