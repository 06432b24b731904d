//! A command typed at a Windows prompt runs in WSL. `yolo.exe` checks the command line, chooses the distribution
//! ([`distribution`]) and starts the Linux `yolo` there with the same arguments ([`forward`]), and with a marker in the
//! environment that says from where ([`marker`]). The Linux `yolo` then reads Windows paths on its command line
//! ([`prompt`]), and says files as Explorer opens them ([`explorer`]). Everything but the calls of Windows
//! ([`windows`]) compiles and is tested on Linux.

mod distribution;
mod environment;
mod error;
mod explorer;
mod forward;
mod marker;
mod prompt;
mod registry;
mod status;
mod windows;

pub(crate) use error::{InWslError, Said};
pub(crate) use explorer::{SPACE_OF_PATH, for_explorer, for_explorer_to_wrap};
pub(crate) use forward::{Wsl, arguments_of_this_process};
pub(crate) use prompt::Prompt;

/// The exit status of this process for an exit status of [`yolo_base::exit`].
pub(crate) fn exit_status(status: u8) -> u8 {
    if Prompt::of_this_process().is_some() { status::over_wsl(status) } else { status }
}
