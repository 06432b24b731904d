//! Exit statuses on their way from Linux to Windows. `wsl.exe` has failures of its own, which it reports with statuses
//! that `yolo` uses too: 1, for example, if the program cannot be started. So the Linux `yolo` answers `yolo.exe` with
//! other statuses, by which that knows that `yolo` itself has ended, and has said why.

use yolo_base::exit;

/// The exit statuses, and what stands for each of them.
const TABLE: [(u8, u8); 4] =
    [(exit::SUCCESS, 80), (exit::FAILURE, 81), (exit::USAGE, 82), (exit::INTERRUPTED, 90)];

/// What the Linux `yolo` answers to `yolo.exe` for an exit status.
pub(super) fn over_wsl(status: u8) -> u8 {
    TABLE.iter().find(|(own, _)| *own == status).map_or(status, |(_, answer)| *answer)
}

/// The exit status that the Linux `yolo` answered; `None` if it did not.
pub(super) fn answered(code: i32) -> Option<u8> {
    TABLE.iter().find(|(_, answer)| i32::from(*answer) == code).map(|(own, _)| *own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_come_back_and_those_of_others_are_told_apart() {
        for status in [0, 1, 2, 130] {
            assert_eq!(answered(over_wsl(status).into()), Some(status));
            assert_eq!(answered(status.into()), None);
        }
        // Of wsl.exe, a shell, signals, a panic.
        for code in [-1, 255, 126, 127, 128 + 9, 101] {
            assert_eq!(answered(code), None);
        }
    }
}
