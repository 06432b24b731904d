//! Which signals of a terminal this program obeys. Whoever starts it can have it ignore some: `nohup` ignores SIGHUP, so
//! that a run outlives its terminal, and a shell without job control ignores SIGINT for what it starts with `&`, so that
//! Ctrl-C ends only what runs in front. A handler would undo that.
#![cfg(unix)]

use std::ffi::c_int;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTSTP};

/// Of these signals, those to handle: not those of a terminal that this program ignores since its start. SIGTERM is
/// always handled. It is meant for this process.
pub(crate) fn obeyed(signals: &[c_int]) -> Vec<c_int> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let is_obeyed = |signal: &c_int| match *signal {
        SIGINT | SIGHUP | SIGTSTP => ignored & (1 << (signal - 1)) == 0,
        _ => true,
    };
    signals.iter().copied().filter(is_obeyed).collect()
}

/// The signals that a process ignores, as bits of the kernel's `SigIgn`. 0 where it does not say.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_ignored() {
        // As under nohup, in the Rust runtime, which ignores SIGPIPE.
        assert_eq!(ignored("Name:\tyolo\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000440\n"), 0x1001);
        assert_eq!((ignored(""), ignored("SigIgn:\tx\n")), (0, 0));
    }
}
