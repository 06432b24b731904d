//! What a launcher hands to a rank in environment variables: numbers, texts and open descriptors.

use std::fs::File;

use crate::error::TrainError;

/// The variable as a number; `None` if it is unset or not a number.
pub(super) fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// The variable as text.
///
/// # Errors
/// When it is not set.
pub(super) fn text(name: &str) -> Result<String, TrainError> {
    std::env::var(name).map_err(|_| {
        TrainError::new(format!("{name} is not set, so the ranks cannot meet"))
            .with_hint("start the ranks through `yolo train`")
    })
}

/// The descriptor whose number is in the variable `name`, as a file of our own: a duplicate, so
/// that nobody else can close it. Both are closed in child processes.
#[cfg(unix)]
#[expect(unsafe_code, reason = "duplicates a descriptor that is known by its number only")]
pub(super) fn descriptor(name: &str) -> Option<File> {
    use std::os::fd::{FromRawFd as _, OwnedFd};

    let number: i32 = std::env::var(name).ok()?.parse().ok()?;
    if number < 3 {
        return None;
    }
    // SAFETY: both calls take integers and touch no memory; they fail if `number` is not open.
    let duplicate = unsafe {
        libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3)
    };
    if duplicate < 0 {
        return None;
    }
    // SAFETY: the call above has just created `duplicate`, and nothing else knows its number.
    Some(File::from(unsafe { OwnedFd::from_raw_fd(duplicate) }))
}

/// Windows hands over no descriptors by number.
#[cfg(not(unix))]
pub(super) fn descriptor(_name: &str) -> Option<File> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "sets a variable that no other test reads")]
    fn a_descriptor_can_be_taken_twice() {
        let name = "YOLO_TEST_DESCRIPTOR";
        let (mut reader, writer) = std::io::pipe().unwrap();
        // SAFETY: no other thread of this program reads or writes this variable.
        unsafe { std::env::set_var(name, writer.as_raw_fd().to_string()) };
        let (first, second) = (descriptor(name).unwrap(), descriptor(name).unwrap());
        assert_ne!(first.as_raw_fd(), second.as_raw_fd());
        drop((first, writer));
        (&second).write_all(b"still open").unwrap();
        drop(second);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "still open");
        assert!(descriptor(name).is_none(), "the number is not open any more");
    }
}
