//! Facts about a host: raw answers to raw questions, asked of this machine when a check first needs
//! them, or read from a recording. Views such as [`Host::memory`] parse the answers, so a parser that
//! is fixed later also applies to old recordings. A fact that is not available is [`Unknown`], with
//! the reason, and the check that needs it is skipped for that reason.

mod answer;
mod commands;
mod host;
mod live;
mod question;
mod recording;
mod redact;
pub(crate) mod view;

pub use answer::{
    Binary, Fact, FileSystem, Interface, KnownPaths, Library, Listener, Output, PathKind, Process, Stat,
    System, Unknown, User, Via, decode,
};
pub use host::Host;
pub use live::command::line as command_line;
pub(crate) use live::nvml::open as nvml_library;
pub use question::Section;
pub use recording::{RecordingError, VERSION};
pub use redact::YOLO_COMMANDS;
pub use view::cgroup::{MemoryLimit, TaskLimit};
pub use view::container::Container;
pub use view::distribution::{Distribution, Family, Packages};
pub use view::docker::{Daemon, RUNTIME_CONFIG, RuntimeConfig};
pub(crate) use view::gpu::error_text as nvml_error_text;
pub use view::gpu::{Gpu, GpuMemory, GpuProcess, MigDevice, NvmlState};
pub(crate) use view::infiniband::{ADAPTERS as INFINIBAND_ADAPTERS, InfinibandPort};
pub use view::kernel_log::Xid;
pub(crate) use view::kernel_log::{pci_address, pci_addresses, pci_device};
pub use view::library_version;
pub use view::libtorch::{Libtorch, Variant};
pub(crate) use view::log_time::LogTime;
pub use view::meminfo::Memory;
pub use view::place::{Job, Place};
pub use view::rental::Rental;
pub use view::version::Version;
pub use view::virtual_machine::Guest;
pub use view::windows_pc::{WINDOWS_REPORT, WindowsReport};
pub use view::workshop::Workshop;
pub use view::wsl::Wsl;
pub use view::wsl_exe::WslInstallation;
pub use view::wsl_files::WslConfig;
