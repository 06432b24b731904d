//! Lists of CPUs as Linux writes them, `0-3,8,10-11`: which CPUs are next to a device, and which a process
//! may use.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// No machine has a CPU with this number, so a damaged list cannot fill the memory.
const END: usize = 1 << 16;

/// A set of CPUs by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// How many CPUs it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

/// The text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidCpuList(String);

impl fmt::Display for InvalidCpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a list of CPUs such as 0-3,8", self.0)
    }
}

impl std::error::Error for InvalidCpuList {}

impl FromStr for CpuList {
    type Err = InvalidCpuList;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let invalid = || InvalidCpuList(text.to_owned());
        let mut cpus = BTreeSet::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&number| number < END);
            let (first, last) = number(first).zip(number(last)).ok_or_else(invalid)?;
            if last < first {
                return Err(invalid());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_linux_writes_them() {
        let list: CpuList = "0-3,8,10-11\n".parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list.to_string(), "0-3,8,10-11");
        assert!("".parse::<CpuList>().unwrap().is_empty());
        for wrong in ["a", "3-1", "0-", "0,,1", "0-99999999", "-1"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        // A linear congruential generator draws which CPUs a list has.
        let mut state = 7_u64;
        for _ in 0..500 {
            let list: CpuList = (0..70)
                .filter(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    state >> 63 == 1
                })
                .collect();
            assert_eq!(list.to_string().parse::<CpuList>(), Ok(list));
        }
    }
}
