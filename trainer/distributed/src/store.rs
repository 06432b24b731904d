//! The key-value store through which ranks find each other: one rank serves
//! it, all connect to it. The serving socket is bound by the caller or here,
//! never by libtorch, which would listen on every interface; c10d has no
//! authentication.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ffi::c_int;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// Pause between two attempts to reach a store that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// c10d's `TCPStore`. Cheap to keep; the server ends when the master's is dropped.
#[derive(Debug)]
pub struct TcpStore {
    raw: NonNull<ffi::Store>,
    port: u16,
}

// SAFETY: `c10d::TCPStore` has no thread affinity, and every operation on it
// takes its own mutex (`activeOpLock_`), so it may be moved and shared. A `get`
// that waits makes other threads' calls on the same store wait too.
unsafe impl Send for TcpStore {}
// SAFETY: as above.
unsafe impl Sync for TcpStore {}

impl TcpStore {
    /// Serves a store on a socket bound before, so that no port is raced, and
    /// connects to it. Peers that connected to the socket earlier are served.
    /// `timeout` limits every later wait for a key.
    ///
    /// # Errors
    /// When the socket's address cannot be asked, or libtorch refuses it.
    pub fn master(listener: TcpListener, timeout: Duration) -> Result<Self> {
        let action = "serving the store";
        let address =
            listener.local_addr().map_err(|error| Error::new(ErrorKind::Other, action, error.to_string()))?;
        let host = ffi::c_string(&reachable(address.ip()).to_string(), action)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the descriptor is open and given away: libtorch's server owns
        // and closes it. `host` and `raw` outlive the call.
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

    /// Binds `address` (port 0: any free one, see [`Self::port`]) and serves a
    /// store there.
    ///
    /// # Errors
    /// When the address cannot be bound, or as [`Self::master`].
    pub fn bind(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| {
            Error::new(ErrorKind::Other, format!("serving the store at {address}"), error.to_string())
        })?;
        Self::master(listener, timeout)
    }

    /// Connects to the store that another process serves, waiting until it
    /// listens, but not longer than `timeout`, which also limits every later
    /// wait for a key.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when nothing answers in time.
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

    /// The port that the store is served at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets a key for all ranks.
    ///
    /// # Errors
    /// When the store cannot be reached any more.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        let name = ffi::c_string(key, "setting a key of the store")?;
        // SAFETY: the store lives as long as `self`; `value` is a valid slice.
        let status =
            unsafe { ffi::tchd_store_set(self.raw.as_ptr(), name.as_ptr(), value.as_ptr(), value.len()) };
        ffi::check(status, || format!("setting key {key:?} of the store"))
    }

    /// The value of a key, waiting until some rank sets it.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when none does within the store's time-out.
    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let name = ffi::c_string(key, "reading a key of the store")?;
        let (mut bytes, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the store lives as long as `self`; the out pointers are local.
        let status =
            unsafe { ffi::tchd_store_get(self.raw.as_ptr(), name.as_ptr(), &raw mut bytes, &raw mut length) };
        ffi::check(status, || format!("waiting for key {key:?} of the store"))?;
        // SAFETY: on success `bytes` is not null and holds `length` bytes, ours to free.
        let value = unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec();
        // SAFETY: allocated by tchd_store_get, freed once, not used again.
        unsafe { ffi::tchd_bytes_free(bytes) };
        Ok(value)
    }

    /// Adds to a counter, atomically over all ranks, and returns the sum. A
    /// counter never set before counts from 0.
    ///
    /// # Errors
    /// When the store cannot be reached any more.
    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let name = ffi::c_string(key, "counting in the store")?;
        let mut sum = 0;
        // SAFETY: the store lives as long as `self`; `sum` is local.
        let status = unsafe { ffi::tchd_store_add(self.raw.as_ptr(), name.as_ptr(), amount, &raw mut sum) };
        ffi::check(status, || format!("counting at key {key:?} of the store"))?;
        Ok(sum)
    }

    /// Waits until all keys are set.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when they are not within `timeout`.
    pub fn wait(&self, keys: &[&str], timeout: Duration) -> Result<()> {
        let names = keys
            .iter()
            .map(|key| ffi::c_string(key, "waiting for keys of the store"))
            .collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: the store lives as long as `self`; `names` outlives `pointers`.
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

    /// The C++ object, for building a group on it.
    pub(crate) fn as_ptr(&self) -> *mut ffi::Store {
        self.raw.as_ptr()
    }

    /// Takes over what a successful call of the shim made.
    fn own(raw: *mut ffi::Store, port: u16) -> Result<Self> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, "opening the store", "libtorch made none"))?;
        Ok(Self { raw, port })
    }
}

impl Drop for TcpStore {
    fn drop(&mut self) {
        // SAFETY: made by the shim, freed once. Groups built on it share the
        // C++ store by reference count.
        unsafe { ffi::tchd_store_free(self.raw.as_ptr()) };
    }
}

/// The address at which a server on `address` is reached from its own machine.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Waits until a store answers at the address, and returns the time left.
/// libtorch's own client waits without a limit for a listener that is silent,
/// and prints backtraces while nothing listens.
fn wait_for_answer(host: &str, port: u16, timeout: Duration) -> std::result::Result<Duration, String> {
    let deadline = Instant::now() + timeout;
    // A time-out of 0 would mean none.
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    loop {
        let problem = match ping(host, port, left) {
            Ok(()) => return Ok(left()),
            Err(error) => error,
        };
        if Instant::now() + RETRY >= deadline {
            return Err(format!("nothing answered within {:.1} s ({problem})", timeout.as_secs_f64()));
        }
        std::thread::sleep(RETRY);
    }
}

/// Opens a connection and greets the store as libtorch 2.11's client does
/// (`TCPStore::validate` and `ping`): the server answers with our number.
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
        last = std::io::Error::other("what listens there is no c10d store");
    }
    Err(last)
}

/// Gives the socket away as the number that C++ knows it by.
#[cfg(unix)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::fd::IntoRawFd::into_raw_fd(listener)
}

/// Gives the socket away as the number that C++ knows it by. Socket handles
/// fit an int: Windows keeps handles within 32 bits.
#[cfg(windows)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::windows::io::IntoRawSocket::into_raw_socket(listener) as c_int
}
