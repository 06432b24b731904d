//! The key-value stores through which ranks find each other: [`TcpStore`] between machines, [`FileStore`]
//! over a shared file, [`HashStore`] within a process, and [`PrefixStore`], a part of another store.

mod file;
mod handle;
mod hash;
mod interface;
mod prefix;
mod server;
mod tcp;

pub use file::FileStore;
pub use hash::HashStore;
pub use interface::Store;
pub use prefix::PrefixStore;
pub use tcp::TcpStore;
