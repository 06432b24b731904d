//! The grammar of NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: which network interfaces ranks may use.

/// A list of interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketInterfaces<'a> {
    /// Whether the list names the interfaces to leave out, as in `^docker,lo`.
    pub negated: bool,
    /// Whether a name means this very interface, `=eth0`, and not all that begin so.
    pub exact: bool,
    /// The names, without the ports that may follow them.
    pub names: Vec<&'a str>,
}

impl<'a> SocketInterfaces<'a> {
    /// Reads a value of NCCL's variable. gloo takes exact names only, whatever [`Self::exact`] says.
    pub fn parse(value: &'a str) -> Self {
        let value = value.trim();
        let (negated, rest) = value.strip_prefix('^').map_or((false, value), |rest| (true, rest));
        let (exact, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let names = rest.split(',').map(|word| word.split(':').next().unwrap_or(word).trim());
        Self { negated, exact, names: names.filter(|name| !name.is_empty()).collect() }
    }

    /// Whether it names loopback and nothing else. No machine reaches another over it.
    pub fn are_only_loopback(&self) -> bool {
        !self.negated && !self.names.is_empty() && self.names.iter().all(|name| *name == "lo")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_be_negated_exact_and_have_ports() {
        let of = SocketInterfaces::parse;
        let parts = |value| {
            let SocketInterfaces { negated, exact, names } = of(value);
            (negated, exact, names)
        };
        assert_eq!(parts(" eth0:3, ib "), (false, false, vec!["eth0", "ib"]));
        assert_eq!(parts("=eth0"), (false, true, vec!["eth0"]));
        assert_eq!(parts("^=lo"), (true, true, vec!["lo"]));
        assert_eq!(parts(""), (false, false, Vec::new()));
        for loopback in ["lo", "=lo", "lo:0", "lo,lo"] {
            assert!(of(loopback).are_only_loopback(), "{loopback}");
        }
        for other in ["", "l", "^lo", "lo,eth0", "=eth0"] {
            assert!(!of(other).are_only_loopback(), "{other}");
        }
    }
}
