//! A store that cannot be served closes the socket that it was given. This is the only test of its
//! process, because it limits and counts the open files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tch_distributed::TcpStore;

const TIMEOUT: Duration = Duration::from_secs(5);

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_store_that_cannot_be_served_closes_its_socket() {
    // The first store opens files that stay open.
    drop(TcpStore::bind((Ipv4Addr::LOCALHOST, 0).into(), TIMEOUT).unwrap());
    let before = open_files();

    // libtorch fails before it takes the socket: its server cannot open any file.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let unlimited = getrlimit(Resource::Nofile);
    let limit = u64::try_from(listener.as_raw_fd()).unwrap() + 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..unlimited }).unwrap();
    let refused = TcpStore::master(listener, TIMEOUT);
    setrlimit(Resource::Nofile, unlimited).unwrap();
    println!("{}", refused.unwrap_err());
    assert_eq!(open_files(), before);

    // libtorch fails after it took the socket: one for datagrams cannot listen.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let refused = TcpStore::master(TcpListener::from(OwnedFd::from(socket)), TIMEOUT);
    println!("{}", refused.unwrap_err());
    assert_eq!(open_files(), before);
}
