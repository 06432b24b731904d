//! Which network addresses the internet can reach.

use std::net::IpAddr;

/// Whether programs of other people may reach this address: it is not limited to this machine, a private
/// network or that of a carrier. To listen on all addresses counts as public.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let carrier = v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]);
            !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || carrier)
        }
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        for private in ["10.0.0.5", "192.168.1.2", "172.16.0.1", "127.0.0.1", "100.64.0.1", "fd00::1", "::1"]
        {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:4860::1", "0.0.0.0", "::"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
