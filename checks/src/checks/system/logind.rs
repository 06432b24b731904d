//! The settings of systemd-logind, which decides what ends with a session. Files in three folders override the main
//! one, in the order of their names; /etc overrides /run, and that /usr.

use crate::facts::Host;

/// Where the main file is, of which the first that exists counts, and the folder of files that override it. A file hides
/// another of its name in a later folder.
const FOLDERS: [&str; 3] = ["/etc/systemd", "/run/systemd", "/usr/lib/systemd"];

/// The value of a setting, if a file sets it.
pub(super) fn value(host: &Host, key: &str) -> Option<String> {
    of_files(host, "logind.conf", key)
}

/// The value of a setting of systemd-sleep, which has files of the same kind.
pub(super) fn sleep_value(host: &Host, key: &str) -> Option<String> {
    of_files(host, "sleep.conf", key)
}

fn of_files(host: &Host, file: &str, key: &str) -> Option<String> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for folder in FOLDERS.map(|folder| format!("{folder}/{file}.d")) {
        for name in host.folder(&folder).ok().flatten().unwrap_or_default() {
            if name.ends_with(".conf") && parts.iter().all(|(known, _)| *known != name) {
                parts.push((name.clone(), format!("{folder}/{name}")));
            }
        }
    }
    parts.sort();
    let main = FOLDERS
        .iter()
        .map(|folder| format!("{folder}/{file}"))
        .find(|file| host.text(file).is_ok_and(|text| text.is_some()));
    let files = main.into_iter().chain(parts.into_iter().map(|(_, path)| path));
    let texts: Vec<String> = files.filter_map(|file| host.text(&file).ok().flatten()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='))
        .next_back()
        .map(|value| value.trim().to_owned())
}

/// Whether a value means no.
pub(super) fn is_no(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "no" | "false" | "0" | "off" | "n" | "f")
}
