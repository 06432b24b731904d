//! What all kinds of stores do alike, and what each does on its own.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tch_distributed::{
    ErrorKind, FileStore, GlooOptions, HashStore, PrefixStore, ProcessGroup, Store, TcpStore,
};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

fn tcp() -> TcpStore {
    TcpStore::bind((Ipv4Addr::LOCALHOST, 0).into(), SHORT).unwrap()
}

fn behaves(store: &dyn Store) {
    assert_eq!(store.timeout(), SHORT);
    let before = store.num_keys().unwrap();
    assert!(!store.check(&["key"]).unwrap());
    store.set("key", b"value\0with NUL").unwrap();
    assert_eq!(store.get("key").unwrap(), b"value\0with NUL");
    store.set("key", b"").unwrap();
    assert_eq!(store.get_within("key", SHORT).unwrap(), b"");
    assert_eq!(store.add("count", 2).unwrap(), 2);
    assert_eq!(store.add("count", -5).unwrap(), -3);
    assert_eq!(store.get("count").unwrap(), b"-3");
    assert!(store.check(&["key", "count"]).unwrap());
    assert!(!store.check(&["key", "never"]).unwrap());
    store.wait(&["key", "count"], SHORT).unwrap();
    assert_eq!(store.num_keys().unwrap(), before + 2);

    // A key that is not set counts as empty.
    assert_eq!(store.compare_set("leader", b"", b"rank 3").unwrap(), b"rank 3");
    assert_eq!(store.compare_set("leader", b"", b"rank 4").unwrap(), b"rank 3");
    assert_eq!(store.compare_set("leader", b"rank 3", b"rank 5").unwrap(), b"rank 5");
    assert_eq!(store.get("leader").unwrap(), b"rank 5");
    assert_eq!(store.compare_set("nobody", b"x", b"y").unwrap(), b"x");

    assert!(store.delete("count").unwrap());
    assert!(!store.delete("count").unwrap());
    assert!(!store.check(&["count"]).unwrap());
    assert_eq!(store.add("count", 1).unwrap(), 1);

    let start = Instant::now();
    for error in [
        store.get("never").unwrap_err(),
        store.get_within("never", SHORT).unwrap_err(),
        store.wait(&["key", "never"], SHORT).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.to_string().contains("never"), "{error}");
    }
    assert!((SHORT..LONG).contains(&start.elapsed()), "{:?}", start.elapsed());
    let error = store.set("NUL\0in the key", b"").unwrap_err();
    assert!(error.message().contains("contains a NUL character"), "{error}");
}

/// A new folder, removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tchd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_kinds_behave_alike() {
    let folder = Folder::new("alike");
    behaves(&tcp());
    behaves(&HashStore::new(SHORT).unwrap());
    behaves(&FileStore::open(&folder.0.join("store"), None, SHORT).unwrap());
    behaves(&PrefixStore::new("part", &tcp()).unwrap());
    behaves(&PrefixStore::new("part", &HashStore::new(SHORT).unwrap()).unwrap());
}

#[test]
fn parts_of_a_store_do_not_see_each_other() {
    let whole = HashStore::new(SHORT).unwrap();
    let (a, b) = (PrefixStore::new("a", &whole).unwrap(), PrefixStore::new("b", &whole).unwrap());
    a.set("key", b"of a").unwrap();
    assert!(!b.check(&["key"]).unwrap());
    assert_eq!(whole.get("a/key").unwrap(), b"of a");
    let inner = PrefixStore::new("inner", &a as &dyn Store).unwrap();
    inner.set("key", b"of inner").unwrap();
    drop((a, inner));
    assert_eq!(whole.get("a/inner/key").unwrap(), b"of inner");
}

#[test]
fn a_file_joins_several_stores() {
    let folder = Folder::new("joins");
    let path = folder.0.join("store");
    let open = || FileStore::open(&path, Some(2), LONG).unwrap();
    let (first, second) = (open(), open());
    let waiting = std::thread::spawn(move || {
        let value = second.get("key").unwrap();
        drop(second);
        value
    });
    first.set("key", b"here").unwrap();
    assert_eq!(waiting.join().unwrap(), b"here");
    assert!(path.exists());
    drop(first);
    assert!(!path.exists(), "the last of two users removes the file");
}

#[test]
fn a_file_that_cannot_be_a_store_is_refused_at_once() {
    let folder = Folder::new("refused");
    let open = |path: &std::path::Path| FileStore::open(path, None, LONG).unwrap_err().to_string();
    let missing = open(&folder.0.join("missing").join("store"));
    assert!(missing.ends_with("its folder does not exist"), "{missing}");
    assert!(open(&folder.0).ends_with("it is a folder"));
}

#[test]
fn groups_start_on_every_kind() {
    let folder = Folder::new("groups");
    let options = GlooOptions { timeout: LONG, ..GlooOptions::default() };
    let join = |store: &dyn Store| ProcessGroup::gloo(store, 0, 1, &options).unwrap().barrier(None).unwrap();
    join(&HashStore::new(LONG).unwrap());
    join(&FileStore::open(&folder.0.join("store"), None, LONG).unwrap());
    join(&PrefixStore::new("part", &tcp()).unwrap());
}

/// Serves a store and prints its port, when a test starts this binary for that.
#[test]
#[ignore = "the server of the next test"]
fn serve() {
    let store = TcpStore::bind((Ipv4Addr::LOCALHOST, 0).into(), LONG).unwrap();
    store.set("key", b"value").unwrap();
    println!("\nPORT {}", store.port());
    std::thread::sleep(Duration::from_secs(60));
}

/// c10d's own client waits forever for a server that is stopped.
#[test]
#[cfg(unix)]
fn a_server_that_is_stopped_or_gone_is_an_error() {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["serve", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("PORT ").map(|port| port.parse().unwrap()))
        .unwrap();
    let client = TcpStore::client("127.0.0.1", port, Duration::from_secs(2)).unwrap();
    assert_eq!(client.get("key").unwrap(), b"value");
    let part = PrefixStore::new("part", &client).unwrap();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &server.id().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    // All threads of the server stop soon.
    let start = Instant::now();
    while client.set("a", b"").is_ok() {
        assert!(start.elapsed() < LONG);
    }
    let start = Instant::now();
    for error in [
        client.set("a", b"").unwrap_err(),
        client.get("key").unwrap_err(),
        client.add("n", 1).unwrap_err(),
        client.check(&["key"]).unwrap_err(),
        part.num_keys().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.message().contains("did not respond within 2.0 s"), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    signal("-CONT");
    assert_eq!(client.get("key").unwrap(), b"value");
    signal("-KILL");
    server.wait().unwrap();
    let error = client.get("key").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
}
