//! `yolo setup --wsl`: brings a Windows PC to where `yolo train` starts inside WSL. On Windows it
//! installs what is missing, writes `.wslconfig`, puts the Linux program into a distribution and
//! runs `yolo setup` there; inside WSL it looks after the same file and what the virtual machine
//! needs besides. What is to be done is computed from facts alone, again after every step: so a
//! restart, Ctrl-C or a second run simply goes on from what is there.

mod command;
mod config;
mod error;
mod exe;
mod facts;
mod host;
mod inside;
mod pc;
mod plan;
mod program;
mod windows;

pub(crate) use command::{WslWords, setup_wsl};
pub use error::WslError;
