//! The store alone: keys, sockets that are passed in, and servers that do not respond.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tch_distributed::{ErrorKind, GlooOptions, ProcessGroup, Store as _, TcpStore};

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SHORT: Duration = Duration::from_secs(2);

#[test]
fn all_clients_see_a_key() {
    let master = TcpStore::bind((LOOPBACK, 0).into(), SHORT).unwrap();
    let client = TcpStore::client("127.0.0.1", master.port(), SHORT).unwrap();
    client.set("key", b"value\0with NUL").unwrap();
    assert_eq!(master.get("key").unwrap(), b"value\0with NUL");
    client.set("empty", b"").unwrap();
    assert_eq!(master.get("empty").unwrap(), b"");
    assert_eq!(master.add("count", 2).unwrap(), 2);
    assert_eq!(client.add("count", -5).unwrap(), -3);
    client.wait(&["key", "count"], SHORT).unwrap();
}

#[test]
fn a_key_that_no_rank_sets_is_a_timeout() {
    let store = TcpStore::bind((LOOPBACK, 0).into(), Duration::from_secs(60)).unwrap();
    let start = Instant::now();
    let error = store.wait(&["never"], Duration::from_millis(300)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(store.set("NUL\0in the key", b"").is_err());
}

#[test]
fn a_socket_that_is_already_bound_is_served() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // This client connects before the store exists.
    let client = std::thread::spawn(move || {
        let store = TcpStore::client("127.0.0.1", port, Duration::from_secs(20)).unwrap();
        store.get("key").unwrap()
    });
    std::thread::sleep(Duration::from_millis(300));
    let store = TcpStore::master(listener, Duration::from_secs(20)).unwrap();
    assert_eq!(store.port(), port);
    store.set("key", b"here").unwrap();
    assert_eq!(client.join().unwrap(), b"here");
    drop(store);
    // The server closes its socket.
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        TcpStream::connect((LOOPBACK, port)).is_err()
    });
    assert!(gone);
}

#[test]
fn a_port_without_listener_is_a_timeout() {
    let port = TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap().port();
    let start = Instant::now();
    let error = TcpStore::client("127.0.0.1", port, SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains("no store responded within 2.0 s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn a_listener_that_never_responds_is_a_timeout() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let start = Instant::now();
    let error = TcpStore::client("127.0.0.1", listener.local_addr().unwrap().port(), SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// c10d has no authentication, so nothing may listen on other interfaces.
#[test]
#[cfg(target_os = "linux")]
fn store_and_gloo_listen_on_loopback_only() {
    let store = TcpStore::bind((LOOPBACK, 0).into(), SHORT).unwrap();
    let group = ProcessGroup::gloo(&store, 0, 1, &GlooOptions::default()).unwrap();
    let sockets = own_listening_addresses();
    assert!(sockets.len() >= 2, "store and gloo listen: {sockets:?}");
    assert!(sockets.iter().all(|address| address == "0100007F"), "{sockets:?}");
    drop(group);
}

/// The addresses (as in /proc/net/tcp) on which this process listens.
#[cfg(target_os = "linux")]
fn own_listening_addresses() -> Vec<String> {
    let inodes: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|target| {
            let target = target.to_str()?;
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| table.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let listening = fields.get(3) == Some(&"0A") && inodes.iter().any(|inode| inode == fields[9]);
            listening.then(|| fields[1].split(':').next().unwrap().to_owned())
        })
        .collect()
}
