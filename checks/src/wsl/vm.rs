//! Whether the running virtual machine of WSL has the values of `.wslconfig`. WSL reads the file
//! when the machine starts, so a change takes effect only after `wsl --shutdown`, and a value that
//! WSL cannot read never does. Memory, CPUs and swap of the machine are compared.

use yolo_base::format;

use crate::wsl::config::{Document, size};
use crate::wsl::sizing::Pc;

/// The kernel keeps some memory for itself, so Linux sees a little less: at most this fraction and
/// this many bytes together, in machines of 4 to 64 GB.
const KERNEL_PART: f64 = 0.06;
const KERNEL_BYTES: u64 = 160 << 20;

/// The virtual machine as it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vm {
    /// Bytes of memory that Linux sees.
    pub memory: u64,
    /// Bytes of swap.
    pub swap: u64,
    /// CPUs.
    pub processors: u32,
}

/// A value of the file that the running machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of `[wsl2]`.
    pub key: &'static str,
    /// The value of the file, as text.
    pub asked: String,
    /// The value of the machine, as text.
    pub has: String,
}

/// The values of the machine that differ from the file. Only what the file sets is compared, as WSL
/// clamps it; what WSL ignores is left out.
pub fn differences(file: &Document, pc: Option<&Pc>, vm: &Vm) -> Vec<Difference> {
    let mut found = Vec::new();
    let bytes = |key| file.value("wsl2", key).and_then(size::parse);
    let most = pc.map_or(u64::MAX, |pc| pc.memory);
    if let Some(asked) = bytes("memory").filter(|&asked| asked > 0) {
        let asked = asked.max(size::LEAST_MEMORY).min(most);
        let least = asked - (asked as f64 * KERNEL_PART) as u64;
        let least = least.saturating_sub(KERNEL_BYTES);
        // If the PC's size is not known, a value may exceed it, or may not have taken effect.
        if !(least..=asked).contains(&vm.memory) && (pc.is_some() || vm.memory > asked) {
            found.push(Difference {
                key: "memory",
                asked: format::memory(asked),
                has: format::memory(vm.memory),
            });
        }
    }
    if let Some(asked) = bytes("swap") {
        // A swap file loses a page to its header; WSL rounds up to whole megabytes.
        if asked.abs_diff(vm.swap) > (2 << 20) + asked / 100 {
            found.push(Difference {
                key: "swap",
                asked: format::memory(asked),
                has: format::memory(vm.swap),
            });
        }
    }
    let processors = file.value("wsl2", "processors").and_then(|value| value.parse::<u32>().ok());
    if let Some(asked) = processors.filter(|&asked| asked > 0) {
        let asked = asked.min(pc.map_or(u32::MAX, |pc| pc.processors));
        if asked != vm.processors && (pc.is_some() || vm.processors > asked) {
            found.push(Difference {
                key: "processors",
                asked: asked.to_string(),
                has: vm.processors.to_string(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wsl::config::ConfigFile;

    const GIB: u64 = 1 << 30;

    fn differing_keys(text: &str, memory_kb: u64, swap_kb: u64, processors: u32) -> Vec<&'static str> {
        let vm = Vm { memory: memory_kb * 1024, swap: swap_kb * 1024, processors };
        let pc = Pc { memory: 32 * GIB, processors: 16, windows_build: None, swap_disk_free: None };
        let file = Document::parse(ConfigFile::WslConfig, text.as_bytes());
        differences(&file, Some(&pc), &vm).iter().map(|one| one.key).collect()
    }

    #[test]
    fn a_machine_with_the_values_of_the_file_has_no_difference() {
        let text = "[wsl2]\nmemory=8GB\nswap=2GB\nprocessors=8\n";
        assert_eq!(differing_keys(text, 8_123_456, 2_097_148, 8), [""; 0]);
        // WSL clamps these.
        assert_eq!(differing_keys("[wsl2]\nmemory=64GB\nprocessors=99\n", 32_700_000, 0, 16), [""; 0]);
        assert_eq!(differing_keys("[wsl2]\nmemory=8\n", 210_000, 0, 16), [""; 0]);
    }

    #[test]
    fn a_machine_started_before_the_change_differs() {
        let text = "[wsl2]\nmemory=12GB\nswap=0\nprocessors=8\n";
        assert_eq!(differing_keys(text, 16_300_000, 4_194_304, 16), ["memory", "swap", "processors"]);
        assert_eq!(differing_keys(text, 8_100_000, 0, 8), ["memory"]);
    }

    #[test]
    fn what_the_file_does_not_set_is_not_compared() {
        assert_eq!(differing_keys("# memory=4GB\n[wsl2]\nswap=eight\n", 16_300_000, 4_194_304, 16), [""; 0]);
    }
}
