//! What all stores have in common.

use std::fmt::Debug;
use std::time::Duration;

use super::handle::Backing;
use crate::error::Result;

/// A key-value store that all ranks see. Values are bytes. Keys and values stay until they are deleted.
///
/// Only the stores of this crate implement it. It can be used as `&dyn Store`.
///
/// **Time-outs.** [`Self::get`] waits for at most [`Self::timeout`]; [`Self::get_within`] and
/// [`Self::wait`] take a limit of their own. All other calls return as soon as the store has answered. The
/// calls on a [`TcpStore`](crate::TcpStore) first make sure that its server responds, so a server that is
/// stopped or unreachable is an error after [`Self::timeout`].
///
/// # Errors
///
/// Every call fails with [`ErrorKind::Other`](crate::ErrorKind::Other) if a key contains a NUL character or
/// the store cannot be read or written, and with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if a
/// server does not respond.
pub trait Store: Backing + Debug + Send + Sync {
    /// Sets a key, also if it is set already.
    ///
    /// # Errors
    /// See [`Store`].
    fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        self.handle().set(key, value)
    }

    /// Returns the value of a key. Waits until a rank sets it.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if no rank sets it within [`Self::timeout`]. See
    /// also [`Store`].
    fn get(&self, key: &str) -> Result<Vec<u8>> {
        self.handle().get(key)
    }

    /// Returns the value of a key. Waits for at most `timeout` until a rank sets it.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if no rank sets it in time. See also [`Store`].
    fn get_within(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.wait(&[key], timeout)?;
        self.get(key)
    }

    /// Adds to a counter atomically and returns the sum. A new counter starts at 0. Its value, as
    /// [`Self::get`] returns it, is the number in decimal digits.
    ///
    /// # Errors
    /// If the value is not a number. See also [`Store`].
    fn add(&self, key: &str, amount: i64) -> Result<i64> {
        self.handle().add(key, amount)
    }

    /// Waits until all keys are set.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if one of them is not set within `timeout`. See
    /// also [`Store`].
    fn wait(&self, keys: &[&str], timeout: Duration) -> Result<()> {
        self.handle().wait(keys, timeout)
    }

    /// Whether all keys are set.
    ///
    /// # Errors
    /// See [`Store`].
    fn check(&self, keys: &[&str]) -> Result<bool> {
        self.handle().check(keys)
    }

    /// Removes a key, and returns whether it was set.
    ///
    /// # Errors
    /// See [`Store`].
    fn delete(&self, key: &str) -> Result<bool> {
        self.handle().delete(key)
    }

    /// Sets a key to `desired` if its value is `expected`, in one step, and returns the value afterwards. A
    /// key that is not set counts as empty: it is set if `expected` is empty, and otherwise `expected` is
    /// returned.
    ///
    /// # Errors
    /// See [`Store`].
    fn compare_set(&self, key: &str, expected: &[u8], desired: &[u8]) -> Result<Vec<u8>> {
        self.handle().compare_set(key, expected, desired)
    }

    /// The number of keys, those of groups included. The count of a [`TcpStore`](crate::TcpStore) may
    /// include a key of its own, and that of a [`PrefixStore`](crate::PrefixStore) is the count of the
    /// whole store.
    ///
    /// # Errors
    /// See [`Store`].
    fn num_keys(&self) -> Result<usize> {
        self.handle().num_keys()
    }

    /// How long [`Self::get`] waits for a key.
    fn timeout(&self) -> Duration {
        self.handle().timeout()
    }
}

impl<S: Backing + Debug + Send + Sync> Store for S {}
