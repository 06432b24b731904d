//! Joins a group of ranks over gloo. It takes CPU tensors, and CUDA tensors unless the group uses NCCL,
//! see `nccl.rs`.

#![expect(unsafe_code, reason = "calls the shim's gloo function")]

use std::ffi::{CString, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::gloo_sockets::{GlooSockets, new_listener};
use crate::process_group::{Membership, ProcessGroup};
use crate::roll_call::{Listen, RollCall};
use crate::store::{PrefixStore, Store};

/// The address on which gloo listens, and which it announces to its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// 127.0.0.1, for ranks that are all on this machine. Nothing is reachable from outside.
    Loopback,
    /// An address or host name of this machine that its peers can reach.
    Address(String),
    /// A network interface by name, such as `eth0`.
    Interface(String),
}

/// Options of a gloo group.
#[derive(Clone, Debug)]
pub struct GlooOptions {
    /// Name of the group in the store. Groups on the same store need different names.
    pub name: String,
    /// Where to listen. The default is the loopback address.
    pub bind: Bind,
    /// How long a collective may wait for a peer. The default is 30 minutes, as in PyTorch.
    pub timeout: Duration,
    /// Number of threads that run collectives. The default is 2, as in PyTorch.
    pub threads: usize,
    /// Compare each call over all ranks before it is made, so that a difference in call, shape or kind is an
    /// error that says what each rank called. The default is `true`. Without it gloo ends the process of a
    /// rank that receives another size than it expects. The check takes one small message to each rank.
    /// The Reducer compares shapes once and does not need it. It must be the same on all ranks.
    pub check_calls: bool,
}

impl Default for GlooOptions {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            bind: Bind::Loopback,
            timeout: Duration::from_secs(30 * 60),
            threads: 2,
            check_calls: true,
        }
    }
}

impl ProcessGroup {
    /// Joins a group of `world` ranks over gloo as number `rank`. Blocks until all ranks have joined.
    /// CUDA tensors are copied through the memory of the host, by gloo in collectives and by this crate in
    /// messages; [`Self::use_nccl`] avoids that.
    ///
    /// Every rank listens on two ports of the chosen address: one of gloo, and one on which it answers other
    /// ranks that ask what it is doing, see [`Self::roll_call`].
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if a rank does not join within the timeout of the store or of the group, whichever
    /// is shorter. [`Error::ranks`] are those that did not come.
    pub fn gloo(
        store: &(impl Store + ?Sized),
        rank: usize,
        world: usize,
        options: &GlooOptions,
    ) -> Result<Self> {
        let action = || format!("joining group {:?} as rank {rank} of {world}", options.name);
        if rank >= world {
            return Err(Error::new(ErrorKind::Other, action(), "the rank must be less than the world size"));
        }
        let refuse = |_| Error::new(ErrorKind::Other, action(), "a number of ranks or threads is too large");
        let rank_number = c_int::try_from(rank).map_err(refuse)?;
        let world_number = c_int::try_from(world).map_err(refuse)?;
        let threads = c_int::try_from(options.threads.max(1)).map_err(refuse)?;
        let name = ffi::c_string(&options.name, "joining a group")?;
        let start = Instant::now();
        let within = |error: Error| error.within(&action());
        let (device, port) = Device::open(&options.bind).map_err(within)?;
        let part = PrefixStore::new(&options.name, store)?;
        let listen = match &options.bind {
            Bind::Loopback => Listen::Loopback,
            Bind::Address(address) => Listen::Address(address),
            Bind::Interface(interface) => Listen::Interface(interface),
        };
        let mut roll = RollCall::announce(&part, rank, world, listen, port).map_err(within)?;
        let limit = options.timeout.min(store.timeout());
        roll.wait(&part, rank, world, limit).map_err(within)?;
        let sockets = Arc::new(GlooSockets::new(port, roll.peer_sockets()));
        let left = limit.saturating_sub(start.elapsed());
        let mut raw = ptr::null_mut();
        // SAFETY: the store and the device are alive, and `name` and `raw` outlive the call.
        let status = unsafe {
            ffi::tchd_group_gloo(
                store.handle().as_ptr(),
                name.as_ptr(),
                rank_number,
                world_number,
                device.raw.as_ptr(),
                ffi::milliseconds(left),
                threads,
                &raw mut raw,
            )
        };
        ffi::check(status, action).map_err(|error| roll.explain(error))?;
        let timeout = options.timeout;
        let membership = Membership {
            rank,
            world,
            timeout,
            check_calls: options.check_calls,
            roll: Arc::new(roll),
            sockets,
        };
        let group = Self::own(raw, membership)
            .ok_or_else(|| Error::new(ErrorKind::Other, action(), "libtorch returned no group"))?;
        // Joining had only what was left of it.
        group.set_timeout(timeout)?;
        Ok(group)
    }
}

/// The socket on which gloo listens.
struct Device {
    raw: NonNull<ffi::GlooDevice>,
}

impl Device {
    /// Opens the socket, and returns its port if that can be found out.
    fn open(bind: &Bind) -> Result<(Self, Option<u16>)> {
        let what = "listening for gloo";
        let (address, interface) = match bind {
            Bind::Loopback => (Some(ffi::c_string("127.0.0.1", what)?), None),
            Bind::Address(address) => (Some(ffi::c_string(address, what)?), None),
            Bind::Interface(interface) => (None, Some(ffi::c_string(interface, what)?)),
        };
        let optional = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut raw = ptr::null_mut();
        let (status, port) = new_listener(|| {
            // SAFETY: the strings and `raw` outlive the call, and exactly one of address and interface is
            // not null.
            unsafe { ffi::tchd_gloo_device(optional(&address), optional(&interface), &raw mut raw) }
        });
        ffi::check(status, || what.to_owned())?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, what, "libtorch returned no socket"))?;
        Ok((Self { raw }, port))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. The group holds a
        // reference of its own.
        unsafe { ffi::tchd_gloo_device_free(self.raw.as_ptr()) };
    }
}
