//! Listening sockets with their owners, interfaces, host names, and whether a port is free.

use std::net::{TcpListener, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sysinfo::Networks;

use crate::facts::answer::of_error;

/// Interfaces with their addresses. Only Linux reports whether each is up.
pub(super) fn interfaces() -> Value {
    let networks = Networks::new_with_refreshed_list();
    let mut interfaces: Vec<(&String, Value)> = networks
        .iter()
        .map(|(name, network)| {
            let addresses: Vec<String> = network.ip_networks().iter().map(ToString::to_string).collect();
            (name, json!({ "name": name, "up": is_up(name), "addresses": addresses }))
        })
        .collect();
    interfaces.sort_by_key(|(name, _)| *name);
    interfaces.into_iter().map(|(_, value)| value).collect()
}

/// Bit 0 of the interface's flags, IFF_UP.
fn is_up(name: &str) -> Option<bool> {
    let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags")).ok()?;
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok()?;
    Some(flags & 1 == 1)
}

/// How long the resolver may take, as long as a command: its own limit is up to half a minute if no name
/// server answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// The addresses that the system's resolver gives for a name.
pub(super) fn addresses(name: &str) -> Value {
    let (sender, answer) = mpsc::channel();
    let wanted = name.to_owned();
    // The resolver cannot be interrupted, so a thread waits for it, and is left behind.
    let asked = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = sender.send(resolved(&wanted));
    });
    if asked.is_err() {
        return resolved(name);
    }
    // A name that takes longer counts as one that does not resolve.
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| json!([]))
}

fn resolved(name: &str) -> Value {
    match (name, 0).to_socket_addrs() {
        Ok(found) => {
            let mut addresses: Vec<String> = Vec::new();
            for address in found.map(|address| address.ip().to_string()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            json!(addresses)
        }
        // An unknown name has no addresses. The resolver's messages differ between systems.
        Err(_) => json!([]),
    }
}

/// Binds an address such as `0.0.0.0:29500` and releases it.
pub(super) fn can_listen(address: &str) -> Value {
    match TcpListener::bind(address) {
        Ok(_) => Value::from("free"),
        Err(error) => of_error(error),
    }
}

/// The name of a user from /etc/passwd.
#[cfg(unix)]
pub(super) fn user_name(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn listening() -> Value {
    of_error("listening sockets are listed on Linux only")
}

/// Listening TCP sockets from /proc/net/tcp and tcp6, each with the process that has it open.
#[cfg(target_os = "linux")]
pub(super) fn listening() -> Value {
    let tables: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .collect();
    if tables.is_empty() {
        return of_error("/proc/net/tcp cannot be read");
    }
    let sockets: Vec<linux::Socket> =
        tables.iter().flat_map(|table| table.lines().filter_map(linux::listening)).collect();
    let owners = linux::owners(&sockets);
    let describe = |socket: &linux::Socket| {
        let pid = owners.get(&socket.inode).copied();
        json!({
            "address": socket.address.to_string(),
            "port": socket.port,
            "uid": socket.uid,
            "user": user_name(socket.uid),
            "pid": pid,
            "process": pid.and_then(super::processes::name_of),
        })
    };
    sockets.iter().map(describe).collect()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// State 0A of the kernel's table: listening.
    const LISTEN: &str = "0A";

    #[derive(Debug, PartialEq)]
    pub(super) struct Socket {
        pub(super) address: IpAddr,
        pub(super) port: u16,
        pub(super) uid: u32,
        pub(super) inode: u64,
    }

    /// A line of the table, if that socket listens.
    pub(super) fn listening(line: &str) -> Option<Socket> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        if *fields.get(3)? != LISTEN {
            return None;
        }
        Some(Socket {
            address: parse_address(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            uid: fields.get(7)?.parse().ok()?,
            inode: fields.get(9)?.parse().ok()?,
        })
    }

    /// Groups of 32 bits in the machine's byte order, as the kernel prints them.
    fn parse_address(hexadecimal: &str) -> Option<IpAddr> {
        let mut bytes = Vec::new();
        for group in hexadecimal.as_bytes().chunks(8) {
            let number = u32::from_str_radix(std::str::from_utf8(group).ok()?, 16).ok()?;
            bytes.extend(number.to_ne_bytes());
        }
        match bytes.len() {
            4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
            16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
            _ => None,
        }
    }

    /// The process of each socket, where this user may see it.
    pub(super) fn owners(sockets: &[Socket]) -> BTreeMap<u64, u32> {
        let wanted: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
        let mut owners = BTreeMap::new();
        let Ok(folders) = std::fs::read_dir("/proc") else { return owners };
        let pids = folders.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids {
            let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for link in open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()) {
                let inode = link
                    .to_str()
                    .and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok());
                if let Some(inode) = inode.filter(|inode| wanted.contains(inode)) {
                    owners.entry(inode).or_insert(pid);
                }
            }
            if owners.len() == wanted.len() {
                break;
            }
        }
        owners
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_socket_table_of_the_kernel_is_parsed() {
            let line = "   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0";
            let expected =
                Socket { address: Ipv4Addr::LOCALHOST.into(), port: 29500, uid: 1000, inode: 4242 };
            if cfg!(target_endian = "little") {
                assert_eq!(listening(line), Some(expected));
            }
            assert_eq!(listening("  sl  local_address rem_address   st"), None);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_this_process_is_found_with_its_process() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = listening();
        let ours = found.as_array().unwrap().iter().find(|one| one["port"] == port).unwrap();
        assert_eq!(ours["pid"], std::process::id());
        assert!(can_listen(&format!("127.0.0.1:{port}"))["error"].is_string());
    }
}
