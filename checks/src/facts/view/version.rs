//! Versions as drivers, kernels and libraries write them: numbers with dots, all of which count
//! (570.124.06 is not 570.124.04).

use std::cmp::Ordering;
use std::fmt;

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// A version. Missing numbers count as zero in comparisons.
#[derive(Debug, Clone)]
pub struct Version {
    text: String,
    numbers: Vec<u32>,
}

impl Version {
    /// The first version in a text: `5.15.167.4-microsoft-standard-WSL2` is 5.15.167.4.
    pub fn find(text: &str) -> Option<Self> {
        let start = text.find(|letter: char| letter.is_ascii_digit())?;
        let rest = &text[start..];
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let text = rest[..end].trim_end_matches('.');
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        Some(Self { text: text.to_owned(), numbers: numbers? })
    }

    /// The number at an index; zero if it has fewer.
    pub fn part(&self, place: usize) -> u32 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    /// The first number: the branch of a driver, the major version of a library.
    pub fn major(&self) -> u32 {
        self.part(0)
    }

    /// The second number.
    pub fn minor(&self) -> u32 {
        self.part(1)
    }

    /// Whether it is older than these numbers.
    pub fn is_below(&self, numbers: &[u32]) -> bool {
        let places = self.numbers.len().max(numbers.len());
        let other = |place: usize| numbers.get(place).copied().unwrap_or(0);
        (0..places)
            .map(|place| self.part(place).cmp(&other(place)))
            .find(|order| order.is_ne())
            .is_some_and(Ordering::is_lt)
    }

    /// Whether it is older than another version.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.is_below(&other.numbers)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        !self.is_below(&other.numbers) && !other.is_below(&self.numbers)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Host {
    /// The version of the NVIDIA driver as NVML reports it (in WSL, the Windows driver's), or that of
    /// the kernel module if NVML does not respond.
    pub fn driver_version(&self) -> Fact<Version> {
        let reported = self.nvml_text("driver_version");
        if let Ok(text) = &reported
            && let Some(version) = Version::find(text)
        {
            return Ok(version);
        }
        if let Ok(Some(version)) = self.driver_module_version() {
            return Ok(version);
        }
        Err(reported.err().unwrap_or_else(|| Unknown::because("the driver reports an invalid version")))
    }

    /// The version of the loaded kernel module; `None` if none is loaded, as always in WSL.
    pub fn driver_module_version(&self) -> Fact<Option<Version>> {
        Ok(self.text("/proc/driver/nvidia/version")?.and_then(|text| {
            // NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 …
            // or, for the open modules: NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release …
            let rest = text.split("Kernel Module").nth(1)?;
            rest.split_whitespace()
                .filter(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))
                .find_map(Version::find)
        }))
    }

    /// The CUDA version that the driver supports.
    pub fn driver_cuda(&self) -> Fact<Version> {
        let number = self.nvml_number("cuda_version")?;
        let text = format!("{}.{}", number / 1000, number % 1000 / 10);
        Version::find(&text).ok_or_else(|| Unknown::because("the driver reports an invalid CUDA version"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        Version::find(text).unwrap()
    }

    #[test]
    fn all_numbers_are_compared() {
        assert!(version("570.124.04").is_below(&[570, 124, 6]));
        assert!(!version("580.65.06").is_below(&[580]));
        assert!(version("6.6.87.2-microsoft-standard-WSL2").is_below(&[6, 6, 88]));
        assert_eq!(version("550.54"), version("550.54.0"));
        assert_eq!(version("550.54.14").to_string(), "550.54.14");
    }

    #[test]
    fn the_version_of_the_module_is_read() {
        let text = r#"{"version": 1, "nvml": {"error": 18}, "files": {"/proc/driver/nvidia/version":
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"}}"#;
        let (host, _) = Host::replay(text).unwrap();
        assert_eq!(host.driver_version().unwrap().to_string(), "535.183.01");
        let text = text.replace("x86_64 Kernel Module", "Open Kernel Module for x86_64");
        let (host, _) = Host::replay(&text).unwrap();
        assert_eq!(host.driver_version().unwrap().to_string(), "535.183.01");
    }

    proptest! {
        #[test]
        fn any_text_has_a_version_or_none(text in "\\PC*") {
            let _ = Version::find(&text);
        }

        #[test]
        fn order_is_that_of_the_numbers(a in proptest::array::uniform3(0u32..1000), b in proptest::array::uniform3(0u32..1000)) {
            let text = format!("{}.{}.{}", a[0], a[1], a[2]);
            prop_assert_eq!(version(&text).is_below(&b), a < b);
        }
    }
}
