//! What this process may do beyond its user's rights, from /proc/self/status.

use crate::facts::host::Host;

/// CAP_IPC_LOCK of linux/capability.h: the kernel does not count locked memory.
const IPC_LOCK: u64 = 1 << 14;
/// How /proc/self/uid_map begins outside of user namespaces: all users are themselves.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

impl Host {
    /// The value after a name such as `CapEff:` or `Seccomp:` in /proc/self/status.
    pub(crate) fn of_status(&self, name: &str) -> Option<String> {
        let status = self.text("/proc/self/status").ok()??;
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim().to_owned())
    }

    /// The capabilities that are in effect, as bits.
    pub(crate) fn capabilities(&self) -> Option<u64> {
        u64::from_str_radix(&self.of_status("CapEff:")?, 16).ok()
    }

    /// Whether this process is in a user namespace, as that of a container without root is, whose root is another user
    /// outside.
    pub(crate) fn has_mapped_users(&self) -> bool {
        let map = self.text("/proc/self/uid_map").ok().flatten();
        map.is_some_and(|map| !map.split_whitespace().eq(ALL_USERS))
    }

    /// Whether this process may lock as much memory as it likes, whatever its limit is. In a user namespace, as
    /// containers without root are, the capability does not count.
    pub(crate) fn may_lock_any_memory(&self) -> bool {
        !self.has_mapped_users() && self.capabilities().is_some_and(|bits| bits & IPC_LOCK != 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_capability_counts_outside_of_user_namespaces() {
        let may = |files: Value| {
            let recording = json!({ "version": 1, "os": "linux", "files": files });
            Host::from_value(recording).unwrap().0.may_lock_any_memory()
        };
        let root = "Name:\tbash\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n";
        let docker = "CapEff:\t00000000a80425fb\nSeccomp:\t2\n";
        let whole = "         0          0 4294967295\n";
        assert!(may(json!({ "/proc/self/status": root, "/proc/self/uid_map": whole })));
        assert!(!may(json!({ "/proc/self/status": docker, "/proc/self/uid_map": whole })));
        assert!(!may(
            json!({ "/proc/self/status": root, "/proc/self/uid_map": "0 1000 1\n1 100000 65536\n" })
        ));
        assert!(!may(json!({})));
    }
}
