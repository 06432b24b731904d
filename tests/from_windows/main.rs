//! Commands typed at a Windows prompt, with a `wsl.exe` that replays recorded answers or runs the Linux program: see
//! `pc.rs`. It runs on Linux, and under Wine with `.ci/windows`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

#[path = "../support/mistakes.rs"]
mod mistakes;
#[path = "../support/user.rs"]
mod user;

mod forwarded;
#[cfg(windows)]
mod interrupted;
mod languages;
mod not_ready;
mod options;
mod pc;
mod runs;
