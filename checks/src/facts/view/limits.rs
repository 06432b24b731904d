//! The limits of this process, from /proc/self/limits.

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

/// How the kernel writes a missing limit.
const UNLIMITED: u64 = u64::MAX;

impl Host {
    /// The soft limit of a resource by the kernel's name for it, such as `Max open files` or
    /// `Max locked memory`; `u64::MAX` means unlimited.
    pub fn soft_limit(&self, resource: &str) -> Fact<u64> {
        self.limit(resource, 0)
    }

    /// The hard limit of a resource, up to which a process may raise its own soft one.
    pub fn hard_limit(&self, resource: &str) -> Fact<u64> {
        self.limit(resource, 1)
    }

    fn limit(&self, resource: &str, column: usize) -> Fact<u64> {
        let path = "/proc/self/limits";
        let text = self.text(path)?.ok_or_else(|| Unknown(format!("{path} does not exist")))?;
        text.lines()
            .find_map(|line| parse(line.strip_prefix(resource)?.split_whitespace().nth(column)?))
            .ok_or_else(|| Unknown(format!("{path} does not contain \"{resource}\"")))
    }
}

fn parse(word: &str) -> Option<u64> {
    if word == "unlimited" { Some(UNLIMITED) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn soft_limits_are_read_by_name() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max stack size            8388608              unlimited            bytes     \n\
                    Max core file size        unlimited            unlimited            bytes     \n\
                    Max open files            1024                 1048576              files     \n";
        let recording = json!({ "version": 1, "files": { "/proc/self/limits": text } });
        let (host, _) = Host::from_value(recording).unwrap();
        assert_eq!(host.soft_limit("Max open files"), Ok(1024));
        assert_eq!(host.soft_limit("Max core file size"), Ok(u64::MAX));
        assert_eq!(host.hard_limit("Max open files"), Ok(1_048_576));
        assert!(host.soft_limit("Max locked memory").is_err());
    }
}
