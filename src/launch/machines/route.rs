//! The interface over which this machine reaches the others.

use std::net::IpAddr;

use yolo_base::env::NCCL_SOCKET_IFNAME;

/// The name of the interface that has this address.
fn interface(address: IpAddr) -> Option<String> {
    let networks = sysinfo::Networks::new_with_refreshed_list();
    let has = |data: &sysinfo::NetworkData| data.ip_networks().iter().any(|network| network.addr == address);
    networks.iter().find(|(_, data)| has(data)).map(|(name, _)| name.clone())
}

/// What is printed once about the interface.
pub(crate) fn interface_note(address: IpAddr) -> String {
    match interface(address) {
        Some(name) => format!("the ranks of this machine communicate over {name} ({address})"),
        None => format!("the ranks of this machine communicate over {address}"),
    }
}

/// The variable that makes NCCL use the interface with this address.
pub(crate) fn interface_variable(address: IpAddr) -> Option<(String, String)> {
    // `=` means this very name, not every name that begins so.
    interface(address).map(|name| (NCCL_SOCKET_IFNAME.to_owned(), format!("={name}")))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn loopback_has_an_interface() {
        let variable = interface_variable(Ipv4Addr::LOCALHOST.into());
        assert_eq!(variable, Some(("NCCL_SOCKET_IFNAME".to_owned(), "=lo".to_owned())));
    }
}
