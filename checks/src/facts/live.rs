//! Collecting the facts of this host. Nothing is changed; a fact that cannot be had is unknown,
//! with the reason.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use sysinfo::{Disks, MemoryRefreshKind, RefreshKind};

use super::{DiskFacts, Fact, Facts, Known, Memory, System, gpu};

impl Facts {
    /// Asks this host, taking from the caller what only it knows.
    pub fn of_this_host(known: Known) -> Self {
        let disks = Disks::new_with_refreshed_list();
        Self {
            system: system(),
            gpus: gpu::ask(),
            libtorch: known.libtorch,
            memory: memory(),
            disks: known.folders.into_iter().map(|(purpose, folder)| disk(&disks, purpose, folder)).collect(),
            loopback: loopback(),
        }
    }
}

fn system() -> System {
    let kernel = sysinfo::System::kernel_version().unwrap_or_else(|| "unknown".to_owned());
    System {
        name: sysinfo::System::long_os_version().unwrap_or_else(|| "unknown".to_owned()),
        wsl: wsl(&kernel),
        kernel,
        family: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The version of WSL from the kernel's release: Microsoft names its kernels, WSL 1 in capitals.
pub(super) fn wsl(kernel: &str) -> Option<u8> {
    if kernel.contains("WSL2") || kernel.contains("microsoft-standard") {
        Some(2)
    } else if kernel.contains("Microsoft") {
        Some(1)
    } else {
        None
    }
}

fn memory() -> Fact<Memory> {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::everything());
    let system = sysinfo::System::new_with_specifics(what);
    if system.total_memory() == 0 {
        return Fact::Unknown("the system does not tell its memory".to_owned());
    }
    let limit = system
        .cgroup_limits()
        .map(|limits| limits.total_memory)
        .filter(|&limit| limit < system.total_memory());
    Fact::Known(Memory {
        total: system.total_memory(),
        available: system.available_memory(),
        limit,
        swap: system.total_swap(),
    })
}

/// The space under a folder that may not exist yet: the disk whose mount point is its longest prefix.
fn disk(disks: &Disks, purpose: String, folder: PathBuf) -> DiskFacts {
    let real = existing(&folder);
    let available = disks
        .iter()
        .filter(|disk| real.starts_with(disk.mount_point()))
        .max_by_key(|disk| disk.mount_point().components().count())
        .map_or_else(
            || Fact::Unknown(format!("no disk of this system holds {}", folder.display())),
            |disk| Fact::Known(disk.available_space()),
        );
    DiskFacts { purpose, folder, available }
}

/// The nearest folder above that exists, without links.
fn existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find_map(|parent| parent.canonicalize().ok()).unwrap_or(absolute)
}

fn loopback() -> Fact<u16> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr()) {
        Ok(address) => Fact::Known(address.port()),
        Err(error) => Fact::Unknown(format!("127.0.0.1 cannot be listened on: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::wsl;

    #[test]
    fn kernels_tell_wsl_apart() {
        assert_eq!(wsl("5.15.153.1-microsoft-standard-WSL2"), Some(2));
        assert_eq!(wsl("4.4.0-19041-Microsoft"), Some(1));
        assert_eq!(wsl("6.8.0-45-generic"), None);
    }
}
