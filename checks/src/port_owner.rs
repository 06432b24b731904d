//! Who listens on a port, in words.

use crate::facts::{Host, Listener};

/// The process that listens on a port of this machine: `nginx (process 812) of user www`. `None` if none is
/// visible.
pub fn port_owner(host: &Host, port: u16) -> Option<String> {
    let listeners = host.listening().ok()?;
    listeners.iter().find(|listener| listener.port == port).map(|owner| name_of(host, owner))
}

/// A process behind a socket, with its user if that is another.
pub(crate) fn name_of(host: &Host, owner: &Listener) -> String {
    match (&owner.process, owner.pid, &owner.user) {
        (Some(name), Some(pid), Some(user)) if !is_ours(host, owner) => {
            format!("{name} (process {pid}) of user {user}")
        }
        (Some(name), Some(pid), _) => format!("{name} (process {pid})"),
        (_, Some(pid), _) => format!("process {pid}"),
        (_, None, Some(user)) => format!("a process of user {user}"),
        _ => "another user's process".to_owned(),
    }
}

/// Whether this user may stop the process behind a socket; an unknown owner is assumed to be this user.
pub(crate) fn is_ours(host: &Host, owner: &Listener) -> bool {
    let user = host.user().ok().and_then(|user| user.uid);
    user == Some(0) || owner.uid.is_none() || owner.uid == user
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::facts::KnownPaths;

    #[test]
    fn this_process_is_named_as_the_owner_of_its_port() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let owner = port_owner(&Host::of_this_machine(&KnownPaths::default()), port).unwrap();
        assert!(owner.contains(&format!("(process {})", std::process::id())), "{owner}");
    }
}
