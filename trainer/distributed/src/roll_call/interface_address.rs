//! The address of a network interface.

use std::net::IpAddr;

/// The first address of the interface, those of IPv4 before those of IPv6.
#[cfg(unix)]
#[expect(unsafe_code, reason = "asks the system for its network interfaces")]
pub(super) fn interface_address(name: &str) -> Option<IpAddr> {
    use std::ffi::CStr;
    use std::net::{Ipv4Addr, Ipv6Addr};

    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is a local pointer, which the call fills.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let (mut found, mut entry) = (None::<IpAddr>, list);
    while !entry.is_null() {
        // SAFETY: entries of the list are valid until freeifaddrs. The name is a NUL-terminated string. An
        // address that is not null has the type that its family tells.
        unsafe {
            let interface = &*entry;
            let address = interface.ifa_addr;
            if CStr::from_ptr(interface.ifa_name).to_bytes() == name.as_bytes() && !address.is_null() {
                match i32::from((*address).sa_family) {
                    libc::AF_INET if !found.is_some_and(|found| found.is_ipv4()) => {
                        let address = &*address.cast::<libc::sockaddr_in>();
                        found = Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into());
                    }
                    libc::AF_INET6 if found.is_none() => {
                        let address = &*address.cast::<libc::sockaddr_in6>();
                        found = Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into());
                    }
                    _ => {}
                }
            }
            entry = interface.ifa_next;
        }
    }
    // SAFETY: getifaddrs returned the list, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Interfaces are looked up on Unix only.
#[cfg(not(unix))]
pub(super) fn interface_address(_name: &str) -> Option<IpAddr> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_the_loopback_address() {
        assert_eq!(interface_address("lo"), Some([127, 0, 0, 1].into()));
        assert_eq!(interface_address("no such interface"), None);
    }
}
