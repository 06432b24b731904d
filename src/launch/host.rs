//! The name of this machine, as messages and logs say it.

/// The name of this machine.
pub(super) fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = "this machine".to_owned();
    name
}
