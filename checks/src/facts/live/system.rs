//! The operating system, CPUs and memory as sysinfo reports them, and the user who runs `yolo`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind};

use crate::facts::answer::of_error;

pub(super) fn time() -> Value {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => json!(since.as_secs()),
        Err(_) => of_error("the clock is set to a time before 1970"),
    }
}

/// Starts a thread that does nothing.
pub(super) fn threads() -> Value {
    match std::thread::Builder::new().name("probe".to_owned()).spawn(|| ()) {
        Ok(thread) => json!(thread.join().is_ok()),
        Err(why) => of_error(why),
    }
}

pub(super) fn hostname() -> Value {
    json!(sysinfo::System::host_name())
}

#[cfg(unix)]
pub(super) fn user() -> Value {
    let uid = rustix::process::geteuid().as_raw();
    let groups = rustix::process::getgroups().unwrap_or_default();
    json!({
        "uid": uid,
        "name": super::network::user_name(uid).or_else(|| std::env::var(yolo_base::env::USER).ok()),
        "groups": groups.into_iter().map(rustix::process::Gid::as_raw).collect::<Vec<_>>(),
    })
}

#[cfg(not(unix))]
pub(super) fn user() -> Value {
    json!({ "name": std::env::var(yolo_base::env::USERNAME).ok() })
}

pub(super) fn system() -> Value {
    let what = RefreshKind::nothing()
        .with_memory(MemoryRefreshKind::everything())
        .with_cpu(CpuRefreshKind::nothing());
    let system = sysinfo::System::new_with_specifics(what);
    let known = |bytes: u64| (bytes > 0).then_some(bytes);
    json!({
        "name": sysinfo::System::long_os_version(),
        "kernel": sysinfo::System::kernel_version(),
        "cpu": system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).filter(|name| !name.is_empty()),
        "cores": std::thread::available_parallelism().ok().map(|cores| cores.get()),
        "memory_total": known(system.total_memory()),
        "memory_available": known(system.total_memory()).map(|_| system.available_memory()),
        "swap_total": system.total_swap(),
        "swap_free": system.free_swap(),
    })
}
