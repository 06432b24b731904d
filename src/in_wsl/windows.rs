//! The calls of Windows: Ctrl-C, which must reach the program in WSL and not end this one, and the drives. Elsewhere,
//! for tests, they do nothing.

/// Keeps this program alive at Ctrl-C until it is dropped: the terminal sends it to `wsl.exe` as well, which passes it
/// on, and the exit status of the run comes later. The closing of the window ends both.
pub(super) struct CtrlCForOthers {
    _private: (),
}

#[cfg(windows)]
mod calls {
    #![expect(unsafe_code, reason = "Windows is called")]

    use windows_sys::Win32::Storage::FileSystem::GetLogicalDrives;
    use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
    use windows_sys::core::BOOL;

    /// Says that the event is dealt with.
    unsafe extern "system" fn ignore(event: u32) -> BOOL {
        BOOL::from(matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT))
    }

    /// Adds or removes the handler. Programs that are started do not inherit it, unlike the setting that ignores
    /// Ctrl-C.
    pub(super) fn ignore_ctrl_c(add: bool) {
        // SAFETY: the function has the signature that Windows calls, and lives as long as the program.
        unsafe { SetConsoleCtrlHandler(Some(ignore), BOOL::from(add)) };
    }

    pub(super) fn logical_drives() -> u32 {
        // SAFETY: the call has no arguments and no preconditions.
        unsafe { GetLogicalDrives() }
    }
}

impl CtrlCForOthers {
    /// From now on.
    pub(super) fn new() -> Self {
        #[cfg(windows)]
        calls::ignore_ctrl_c(true);
        Self { _private: () }
    }
}

impl Drop for CtrlCForOthers {
    fn drop(&mut self) {
        #[cfg(windows)]
        calls::ignore_ctrl_c(false);
    }
}

/// The letters of the drives of this PC.
pub(super) fn drives() -> Vec<char> {
    #[cfg(windows)]
    let bits = calls::logical_drives();
    #[cfg(not(windows))]
    let bits = 0_u32;
    ('A'..='Z').zip(0..).filter(|(_, bit)| bits & (1 << bit) != 0).map(|(letter, _)| letter).collect()
}
