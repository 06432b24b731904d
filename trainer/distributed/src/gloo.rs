//! Joins a group of ranks over gloo. It takes CPU tensors, and CUDA tensors unless the group uses NCCL,
//! see `nccl.rs`.

#![expect(unsafe_code, reason = "calls the shim's gloo function")]

use std::ffi::{CString, c_int};
use std::ptr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::store::TcpStore;

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
}

impl Default for GlooOptions {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            bind: Bind::Loopback,
            timeout: Duration::from_secs(30 * 60),
            threads: 2,
        }
    }
}

impl ProcessGroup {
    /// Joins a group of `world` ranks over gloo as number `rank`. Blocks until all ranks have joined.
    /// CUDA tensors are copied through the memory of the host; [`Self::use_nccl`] avoids that.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if a rank does not join in time.
    pub fn gloo(store: &TcpStore, rank: usize, world: usize, options: &GlooOptions) -> Result<Self> {
        let action = || format!("joining group {:?} as rank {rank} of {world}", options.name);
        if rank >= world {
            return Err(Error::new(ErrorKind::Other, action(), "the rank must be less than the world size"));
        }
        let refuse = |_| Error::new(ErrorKind::Other, action(), "a number of ranks or threads is too large");
        let rank_number = c_int::try_from(rank).map_err(refuse)?;
        let world_number = c_int::try_from(world).map_err(refuse)?;
        let threads = c_int::try_from(options.threads.max(1)).map_err(refuse)?;
        let name = ffi::c_string(&options.name, "joining a group")?;
        let (address, interface) = match &options.bind {
            Bind::Loopback => (Some(ffi::c_string("127.0.0.1", "joining a group")?), None),
            Bind::Address(address) => (Some(ffi::c_string(address, "joining a group")?), None),
            Bind::Interface(interface) => (None, Some(ffi::c_string(interface, "joining a group")?)),
        };
        let optional = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut raw = ptr::null_mut();
        // SAFETY: the store is alive, the strings and `raw` outlive the call, and exactly one of
        // address and interface is not null.
        let status = unsafe {
            ffi::tchd_group_gloo(
                store.as_ptr(),
                name.as_ptr(),
                rank_number,
                world_number,
                optional(&address),
                optional(&interface),
                ffi::milliseconds(options.timeout),
                threads,
                &raw mut raw,
            )
        };
        ffi::check(status, action)?;
        Self::own(raw, rank, world, options.timeout)
            .ok_or_else(|| Error::new(ErrorKind::Other, action(), "libtorch returned no group"))
    }
}
