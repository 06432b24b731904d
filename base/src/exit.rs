//! The exit statuses of `yolo`, which scripts rely on, and how the status of another process is
//! written in a message.

use std::process::ExitStatus;

/// The command did what was asked.
pub const SUCCESS: u8 = 0;
/// The command failed; the message says why and what to do next.
pub const FAILURE: u8 = 1;
/// The command line is invalid.
pub const USAGE: u8 = 2;
/// The user interrupted the command; 128 + SIGINT, as shells report it.
pub const INTERRUPTED: u8 = 130;

/// How a process ended: `exit status 3`, or `signal 9 (SIGKILL)`.
pub fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return describe_signal(signal);
    }
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => "an unknown exit status".to_owned(),
    }
}

/// A signal on Linux: `signal 9 (SIGKILL)`.
pub fn describe_signal(signal: i32) -> String {
    match signal_name(signal) {
        Some(name) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}

/// The name of a signal on Linux, for those that end processes in practice.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        _ => return None,
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn names_the_status_or_the_signal() {
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), "exit status 3");
        assert_eq!(describe(ExitStatus::from_raw(9)), "signal 9 (SIGKILL)");
        assert_eq!(describe(ExitStatus::from_raw(40)), "signal 40");
    }
}
