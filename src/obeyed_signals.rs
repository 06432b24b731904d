//! Which signals this program obeys. `nohup` starts a program that ignores SIGHUP, so that it outlives its terminal; a
//! handler would undo that. SIGINT is obeyed even where a script has started the program with `&`, for which shells
//! ignore it: the script may well stop the run with `kill -INT`, and nobody sends it by accident.
#![cfg(unix)]

use std::ffi::c_int;

use signal_hook::consts::SIGHUP;

/// Of these signals, those to handle: all but SIGHUP if this program ignores it since its start.
pub(crate) fn obeyed(signals: &[c_int]) -> Vec<c_int> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup_is_ignored = ignored(&status) & (1 << (SIGHUP - 1)) != 0;
    signals.iter().copied().filter(|&signal| signal != SIGHUP || !hangup_is_ignored).collect()
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
