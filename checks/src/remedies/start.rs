//! What can be missing in a container, so that it has to be started in another way.

/// What a container has to be started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// GPUs, with the driver's libraries: so many for a pod, all of the machine elsewhere.
    Gpus(usize),
    /// The libraries for computing: without a setting, images may have those for monitoring only.
    Libraries,
    /// No limit on locked memory.
    LockedMemory,
    /// System calls for NUMA.
    Numa,
    /// The network of the machine.
    HostNetwork,
    /// So many GiB of memory.
    Memory(u64),
    /// So many CPU cores.
    Cores(usize),
    /// The sockets of the host's MPS daemon.
    Mps,
    /// The device files of InfiniBand or RoCE adapters, with memory that may be locked.
    Infiniband,
}
