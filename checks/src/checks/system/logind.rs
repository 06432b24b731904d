//! The settings of systemd-logind, which decide what remains of a user's session after logout.

use crate::facts::Host;

/// Where settings are, the earlier ones first: a later one replaces them.
const FOLDERS: [&str; 3] =
    ["/usr/lib/systemd/logind.conf.d", "/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"];

/// The value of a setting, if a file has it.
pub(super) fn setting(host: &Host, name: &str) -> Option<String> {
    let parts = FOLDERS.iter().flat_map(|folder| {
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        names.into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let files = std::iter::once("/etc/systemd/logind.conf".to_owned()).chain(parts);
    let texts: Vec<String> = files.filter_map(|file| host.text(&file).ok().flatten()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    let mut values = lines.filter_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix('='));
    values.next_back().map(|value| value.trim().to_owned())
}

/// Whether this is a session of an ordinary user over the network, on a machine with logind, whose processes systemd does
/// not keep by itself.
pub(super) fn ends_with_the_session(host: &Host) -> bool {
    /// Users below this are system users, which systemd exempts.
    const FIRST_ORDINARY: u32 = 1000;
    let is_set = |name: &&str| host.env(name).is_ok_and(|value| value.is_some());
    let is_remote = ["SSH_CONNECTION", "SSH_CLIENT"].iter().any(is_set);
    let Ok(user) = host.user() else { return false };
    let has_logind = host.exists("/run/systemd/system").unwrap_or(false);
    let is_ordinary = user.uid.is_some_and(|uid| uid >= FIRST_ORDINARY);
    let name = user.name.unwrap_or_default();
    let lingers = host.exists(&format!("/var/lib/systemd/linger/{name}")).unwrap_or(false);
    is_remote && has_logind && is_ordinary && !lingers
}
