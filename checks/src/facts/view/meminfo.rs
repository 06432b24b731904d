//! The machine's memory: /proc/meminfo where it is known, else what the operating system reports.

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// Memory in bytes, of the machine or of the WSL virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The total.
    pub total: u64,
    /// What programs can still allocate.
    pub available: u64,
    /// Swap.
    pub swap_total: u64,
    /// Free swap.
    pub swap_free: u64,
}

impl Host {
    /// The machine's memory, regardless of control groups.
    pub fn memory(&self) -> Fact<Memory> {
        if let Ok(Some(text)) = self.text("/proc/meminfo")
            && let Some(mut memory) = Memory::from_meminfo(&text)
        {
            // The kernel does not count ZFS's cache as available, although it shrinks like any other.
            if let Ok(Some(stats)) = self.text("/proc/spl/kstat/zfs/arcstats") {
                memory.available = (memory.available + reclaimable(&stats)).min(memory.total);
            }
            return Ok(memory);
        }
        let system = self.system()?;
        let total = system
            .memory_total
            .ok_or_else(|| Unknown::because("the operating system does not report its memory"))?;
        Ok(Memory {
            total,
            available: system.memory_available.unwrap_or(total),
            swap_total: system.swap_total.unwrap_or(0),
            swap_free: system.swap_free.unwrap_or(0),
        })
    }
}

/// What ZFS's cache gives back when programs need memory: all above its least size (`c_min`).
fn reclaimable(arcstats: &str) -> u64 {
    let value = |name: &str| {
        let mut words = arcstats.lines().map(str::split_whitespace);
        let mut words = words.find(|words| words.clone().next() == Some(name))?;
        words.next_back()?.parse::<u64>().ok()
    };
    value("size").unwrap_or(0).saturating_sub(value("c_min").unwrap_or(0))
}

/// A number of /proc/meminfo, most of which count units of 1024 bytes.
pub(crate) fn number_of(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// An amount of memory in /proc/meminfo, in bytes.
pub(crate) fn bytes_of(text: &str, name: &str) -> Option<u64> {
    number_of(text, name)?.checked_mul(1024)
}

impl Memory {
    /// From the text of /proc/meminfo, in which kB means 1024 bytes.
    pub(crate) fn from_meminfo(text: &str) -> Option<Self> {
        let field = |name: &str| bytes_of(text, name);
        let total = field("MemTotal")?;
        Some(Self {
            total,
            // Kernels before 3.14 do not estimate what is available; WSL 1 does not either.
            available: field("MemAvailable").or_else(|| field("MemFree")).unwrap_or(total),
            swap_total: field("SwapTotal").unwrap_or(0),
            swap_free: field("SwapFree").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:        8044136 kB\nMemFree:          234 kB\nMemAvailable:    6000000 kB\nSwapTotal: 0 kB\n";
        let memory = Memory::from_meminfo(text).unwrap();
        assert_eq!(memory.total, 8_044_136 * 1024);
        assert_eq!(memory.available, 6_000_000 * 1024);
        assert_eq!(memory.swap_total, 0);
    }

    #[test]
    fn the_cache_of_zfs_is_available() {
        let stats = "13 1 0x01 147 39984 8016 9\nname type data\nc_min 4 2000\nc_max 4 90000\nsize 4 52000\n";
        assert_eq!(reclaimable(stats), 50_000);
        let files = serde_json::json!({ "/proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 10 kB\n",
            "/proc/spl/kstat/zfs/arcstats": stats });
        let recording = serde_json::json!({ "version": 1, "os": "linux", "files": files });
        assert_eq!(Host::from_value(recording).unwrap().0.memory().unwrap().available, 60_240);
    }

    proptest! {
        #[test]
        fn any_text_is_memory_or_not(text in "(MemTotal: |MemFree:|[0-9]{1,24}| kB|\n|\\PC){0,20}") {
            let _ = (Memory::from_meminfo(&text), reclaimable(&text));
        }
    }
}
