//! The key-value store through which ranks find each other. One rank serves it, and all connect to it.
//! The server's socket is bound here or by the caller: libtorch would listen on all interfaces, and
//! c10d has no authentication.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ffi::c_int;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// Pause between attempts to reach a store that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// c10d's `TCPStore`. The server stops when the master is dropped.
#[derive(Debug)]
pub struct TcpStore {
    raw: NonNull<ffi::Store>,
    port: u16,
}

// SAFETY: `c10d::TCPStore` has no thread affinity.
unsafe impl Send for TcpStore {}
// SAFETY: every operation of `c10d::TCPStore` that is used here (set, get, add, wait) locks its mutex
// `activeOpLock_`. While one thread waits in `get`, calls of other threads on the same store wait too.
unsafe impl Sync for TcpStore {}

impl TcpStore {
    /// Serves a store on a socket that is already bound, and connects to it. Because the port is taken
    /// before it is announced, no other program can take it. Peers may have connected already.
    /// `timeout` limits each later wait for a key.
    ///
    /// # Errors
    /// If the address of the socket cannot be read, or libtorch cannot serve on it. The socket is
    /// closed then.
    pub fn master(listener: TcpListener, timeout: Duration) -> Result<Self> {
        let action = "serving the store";
        let address =
            listener.local_addr().map_err(|error| Error::new(ErrorKind::Other, action, error.to_string()))?;
        let host = ffi::c_string(&reachable(address.ip()).to_string(), action)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the descriptor is open and nothing here owns it any more. The shim takes ownership,
        // also if it fails. `host` and `raw` outlive the call.
        let status = unsafe {
            ffi::tchd_store_serve(
                into_descriptor(listener),
                host.as_ptr(),
                address.port(),
                ffi::milliseconds(timeout),
                &raw mut raw,
            )
        };
        ffi::check(status, || format!("{action} at {address}"))?;
        Self::own(raw, address.port())
    }

    /// Binds `address` and serves a store there. Port 0 selects a free port; see [`Self::port`].
    ///
    /// # Errors
    /// If the address cannot be bound, or libtorch cannot serve on it.
    pub fn bind(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| {
            Error::new(ErrorKind::Other, format!("serving the store at {address}"), error.to_string())
        })?;
        Self::master(listener, timeout)
    }

    /// Connects to the store that another process serves. Waits for at most `timeout` until it
    /// responds; the same limit applies to each later wait for a key.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if no store responds in time.
    pub fn client(host: &str, port: u16, timeout: Duration) -> Result<Self> {
        let action = || format!("connecting to the store at {host}:{port}");
        let left = wait_for_answer(host, port, timeout)
            .map_err(|message| Error::new(ErrorKind::Timeout, action(), message))?;
        let host_text = ffi::c_string(host, "connecting to the store")?;
        let mut raw = ptr::null_mut();
        // SAFETY: `host_text` and `raw` outlive the call.
        let status = unsafe {
            ffi::tchd_store_connect(host_text.as_ptr(), port, ffi::milliseconds(left), &raw mut raw)
        };
        ffi::check(status, action)?;
        Self::own(raw, port)
    }

    /// The port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets a key for all ranks.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        let name = ffi::c_string(key, "setting a key of the store")?;
        // SAFETY: the store lives as long as `self`. `name` and `value` outlive the call.
        let status =
            unsafe { ffi::tchd_store_set(self.raw.as_ptr(), name.as_ptr(), value.as_ptr(), value.len()) };
        ffi::check(status, || format!("setting key {key:?} of the store"))
    }

    /// Returns the value of a key. Waits until a rank sets it.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if no rank sets it within the store's timeout.
    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let name = ffi::c_string(key, "reading a key of the store")?;
        let (mut bytes, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the store lives as long as `self`. `name` outlives the call, and the out pointers are
        // local.
        let status =
            unsafe { ffi::tchd_store_get(self.raw.as_ptr(), name.as_ptr(), &raw mut bytes, &raw mut length) };
        ffi::check(status, || format!("waiting for key {key:?} of the store"))?;
        // SAFETY: on success `bytes` is not null and points to `length` bytes that we own.
        let value = unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec();
        // SAFETY: tchd_store_get allocated it, and it is not used after this.
        unsafe { ffi::tchd_bytes_free(bytes) };
        Ok(value)
    }

    /// Adds to a counter atomically and returns the sum. A new counter starts at 0.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let name = ffi::c_string(key, "adding to a key of the store")?;
        let mut sum = 0;
        // SAFETY: the store lives as long as `self`. `name` outlives the call, and `sum` is local.
        let status = unsafe { ffi::tchd_store_add(self.raw.as_ptr(), name.as_ptr(), amount, &raw mut sum) };
        ffi::check(status, || format!("adding to key {key:?} of the store"))?;
        Ok(sum)
    }

    /// Waits until all keys are set.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if one of them is not set within `timeout`.
    pub fn wait(&self, keys: &[&str], timeout: Duration) -> Result<()> {
        let names = keys
            .iter()
            .map(|key| ffi::c_string(key, "waiting for keys of the store"))
            .collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: the store lives as long as `self`. `names`, to which `pointers` point, outlives the call.
        let status = unsafe {
            ffi::tchd_store_wait(
                self.raw.as_ptr(),
                pointers.as_ptr(),
                pointers.len(),
                ffi::milliseconds(timeout),
            )
        };
        ffi::check(status, || format!("waiting for keys {keys:?} of the store"))
    }

    /// The C++ store, for a group that uses it.
    pub(crate) fn as_ptr(&self) -> *mut ffi::Store {
        self.raw.as_ptr()
    }

    /// Takes ownership of a store that the shim allocated.
    fn own(raw: *mut ffi::Store, port: u16) -> Result<Self> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, "opening the store", "libtorch returned no store"))?;
        Ok(Self { raw, port })
    }
}

impl Drop for TcpStore {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. Groups that use the
        // C++ store hold references of their own.
        unsafe { ffi::tchd_store_free(self.raw.as_ptr()) };
    }
}

/// The address at which this machine reaches a server that is bound to `address`.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Waits until a store responds at the address, and returns the time left. libtorch's own client
/// waits forever for a listener that is silent, and prints backtraces while nothing listens.
fn wait_for_answer(host: &str, port: u16, timeout: Duration) -> std::result::Result<Duration, String> {
    let deadline = Instant::now() + timeout;
    // A timeout of 0 would mean no limit.
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    loop {
        let problem = match ping(host, port, left) {
            Ok(()) => return Ok(left()),
            Err(error) => error,
        };
        if Instant::now() + RETRY >= deadline {
            return Err(format!("no store responded within {:.1} s ({problem})", timeout.as_secs_f64()));
        }
        std::thread::sleep(RETRY);
    }
}

/// Connects and sends what the client of libtorch 2.11 sends first (`TCPStore::validate` and `ping`).
/// A store responds with the number that it was sent.
fn ping(host: &str, port: u16, left: impl Fn() -> Duration) -> std::io::Result<()> {
    const VALIDATE: u8 = 0;
    const VALIDATION_MAGIC: u32 = 0x3C85_F7CE;
    const PING: u8 = 13;
    let mut last = std::io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, left()) {
            Ok(stream) => stream,
            Err(error) => {
                last = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(left()))?;
        let number = std::process::id();
        let mut greeting = vec![VALIDATE];
        greeting.extend(VALIDATION_MAGIC.to_ne_bytes());
        greeting.push(PING);
        greeting.extend(number.to_ne_bytes());
        stream.write_all(&greeting)?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer)?;
        if answer == number.to_ne_bytes() {
            return Ok(());
        }
        last = std::io::Error::other("the listener is not a c10d store");
    }
    Err(last)
}

/// Releases the socket as a descriptor for C++.
#[cfg(unix)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::fd::IntoRawFd::into_raw_fd(listener)
}

/// Releases the socket as a handle for C++. It fits in an int: Windows handles have 32 significant bits.
#[cfg(windows)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::windows::io::IntoRawSocket::into_raw_socket(listener) as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_interfaces_is_reached_on_loopback() {
        for (bound, reached) in
            [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.7", "10.0.0.7"), ("fd00::7", "fd00::7")]
        {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn another_server_is_not_taken_for_a_store() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request").unwrap();
            // Wait for the client to close, so that it reads the response before a reset.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = ping("127.0.0.1", port, || Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.to_string(), "the listener is not a c10d store");
        server.join().unwrap();
    }
}
