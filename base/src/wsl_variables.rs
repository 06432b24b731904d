//! Which environment variables of Windows a run gets, which is in WSL: those that `yolo.exe` passes, and those that the user
//! lets WSL pass by naming them in `WSLENV`.

use crate::env::{self, CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, SSL_CERT_FILE, YOLO_FROM_WINDOWS, YOLO_WSL};

/// Variables that mean the same in Linux.
const SAME: [&str; 18] = [
    env::HTTPS_PROXY,
    env::HTTP_PROXY,
    env::ALL_PROXY,
    env::NO_PROXY,
    SSL_CERT_FILE,
    env::NETRC,
    env::PIP_INDEX_URL,
    env::PIP_EXTRA_INDEX_URL,
    env::UV_DEFAULT_INDEX,
    env::UV_INDEX,
    env::UV_INDEX_URL,
    env::UV_EXTRA_INDEX_URL,
    OMP_NUM_THREADS,
    CUDA_VISIBLE_DEVICES,
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "RUST_BACKTRACE",
];
/// Beginnings of such names.
const PREFIXES: [&str; 2] = ["YOLO_", "NCCL_"];

/// Whether `yolo.exe` passes this variable.
pub fn is_passed_by_yolo(name: &str) -> bool {
    let is = |other: &&str| name.eq_ignore_ascii_case(other);
    let starts =
        |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let is_of_windows = [YOLO_WSL, YOLO_FROM_WINDOWS].iter().any(is);
    !is_of_windows && (PREFIXES.iter().any(starts) || SAME.iter().any(is))
}

/// The entries of a value of `WSLENV`: names with their flags.
pub fn entries(wslenv: &str) -> impl Iterator<Item = (&str, &str)> {
    let entries = wslenv.split(':').map(|entry| entry.split_once('/').unwrap_or((entry, "")));
    entries.filter(|(name, _)| !name.is_empty())
}

/// Whether a run in WSL gets this variable of Windows.
pub fn reaches_wsl(name: &str, wslenv: &str) -> bool {
    // The flag `w` alone is for programs of Windows that are started from WSL.
    let to_linux = |flags: &str| !flags.contains('w') || flags.contains('u');
    let mut listed = entries(wslenv).filter(|(listed, _)| listed.eq_ignore_ascii_case(name));
    listed.next().map_or_else(|| is_passed_by_yolo(name), |(_, flags)| to_linux(flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_what_yolo_passes_and_what_the_user_names() {
        for (name, wslenv, reaches) in [
            ("NCCL_DEBUG", "", true),
            ("nccl_debug", "", true),
            ("CUDA_VISIBLE_DEVICES", "", true),
            ("YOLO_WSL", "", false),
            ("LIBTORCH", "", false),
            ("LIBTORCH", "FOO:LIBTORCH/p", true),
            ("LIBTORCH", "LIBTORCH/w", false),
            ("LIBTORCH", "LIBTORCH/up", true),
            ("LIBTORCH", "LIBTORCHS:", false),
            ("PYTORCH_CUDA_ALLOC_CONF", "::", false),
        ] {
            assert_eq!(reaches_wsl(name, wslenv), reaches, "{name} {wslenv}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_value_is_accepted(name in "[A-Za-z_é]{0,12}", wslenv in ".{0,40}") {
            let _ = reaches_wsl(&name, &wslenv);
        }
    }
}
