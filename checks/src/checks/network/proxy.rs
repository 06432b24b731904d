//! Whether the proxy that downloads go through can answer. A proxy at 127.0.0.1 is a program on the same system: inside a
//! container or behind WSL's NAT that is not the system on which the user started it, and after a restart or the end of
//! an SSH session it is often gone. Other proxies are not asked, because a quick check contacts nobody.

use yolo_base::env::{ALL_PROXY, HTTP_PROXY, HTTPS_PROXY, all_proxy, http_proxy, https_proxy};

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Is there a program behind a proxy on this system?",
    reports: &["network.proxy"],
    preflight: false,
    run,
};

/// The variables that downloads over HTTPS read, in their order.
pub(super) const VARIABLES: [&str; 4] = [HTTPS_PROXY, https_proxy, ALL_PROXY, all_proxy];

/// Those for addresses without encryption, which some data sets have.
pub(super) const PLAIN: [&str; 2] = [HTTP_PROXY, http_proxy];

/// A variable that names a proxy on this system at which nothing listens.
pub(in crate::checks) struct Deaf {
    pub(in crate::checks) name: &'static str,
    pub(in crate::checks) value: String,
    pub(in crate::checks) port: u16,
}

/// The proxy of this shell, if nothing listens where it should be on this system.
pub(in crate::checks) fn deaf(host: &Host) -> Option<Deaf> {
    let set = |name: &'static str| {
        let value = host.env(name).ok().flatten().filter(|value| !value.trim().is_empty());
        value.map(|value| (name, value))
    };
    let read = [VARIABLES.into_iter().find_map(set), PLAIN.into_iter().find_map(set)];
    read.into_iter().flatten().find_map(|(name, value)| {
        let port = port_here(&value)?;
        let listens = host.listening().ok()?.iter().any(|one| one.port == port);
        (!listens).then_some(Deaf { name, value, port })
    })
}

/// The parts of a proxy's URL, `http://user:password@127.0.0.1:7890/`.
pub(super) struct Proxy<'a> {
    pub(super) scheme: Option<&'a str>,
    pub(super) has_login: bool,
    /// `127.0.0.1:7890`, without what may be a password.
    pub(super) address: &'a str,
}

impl<'a> Proxy<'a> {
    pub(super) fn parse(url: &'a str) -> Self {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
        // A password may contain a slash or an @.
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let address = rest.split_once('/').map_or(rest, |(address, _)| address);
        Self { scheme, has_login: login.is_some(), address }
    }
}

/// The port of a proxy on this system: that of `http://127.0.0.1:7890/`.
pub(in crate::checks) fn port_here(url: &str) -> Option<u16> {
    let (name, port) = Proxy::parse(url).address.rsplit_once(':')?;
    let is_here = name.eq_ignore_ascii_case("localhost") || name.starts_with("127.") || name == "[::1]";
    port.parse().ok().filter(|_| is_here)
}

fn run(host: &Host, _: &Intent) -> Answer {
    // The network check of WSL knows what its address means.
    if host.place() == Place::Wsl {
        return Ok(Vec::new());
    }
    host.env(HTTPS_PROXY)?;
    let Some(Deaf { name, value, port }) = deaf(host) else { return Ok(Vec::new()) };
    let same =
        |other: &&str| host.env(other).ok().flatten().is_some_and(|value| port_here(&value) == Some(port));
    let all: Vec<&str> = VARIABLES.into_iter().chain(PLAIN).filter(same).collect();
    let title = format!("{name} is {value}, but no program listens at port {port} of this system");
    let finding = Finding::new("network.proxy", title);
    if !host.is_container() {
        return Ok(vec![unset(finding, &all)]);
    }
    let finding = finding
        .because("inside a container, 127.0.0.1 is the container itself: a proxy on its host has another address there")
        .remedy(format!(
            "start the proxy, if it belongs inside this container, or unset its variables, if downloads need none; for a proxy \
             of the host, start the container with the host's network, or set {name} to an address of the host, on which the \
             proxy must accept connections from others"
        ));
    let finding = unset(finding, &all);
    let finding = start_with(host, finding, Start::HostNetwork);
    // Docker Desktop gives its host this name.
    Ok(vec![match (host.place(), value.rsplit_once(':')) {
        (Place::DockerInWsl, Some((_, rest))) => {
            let scheme = value.split_once("://").map_or("http", |(scheme, _)| scheme.trim());
            let value = format!("{scheme}://host.docker.internal:{rest}");
            finding.command(format!("export {name}={}", quote(&value)))
        }
        _ => finding,
    }])
}

fn unset(finding: Finding, names: &[&str]) -> Finding {
    names.iter().fold(finding, |finding, name| finding.command(format!("unset {name}")))
}

#[cfg(test)]
mod tests {
    use super::port_here;

    #[test]
    fn the_port_of_a_proxy_on_this_system() {
        for url in [
            "http://127.0.0.1:7890",
            "127.0.0.1:7890",
            "socks5://me:secret@localhost:7890/",
            "http://[::1]:7890",
        ] {
            assert_eq!(port_here(url), Some(7890), "{url}");
        }
        for url in ["http://proxy.example:8080", "http://10.0.0.1:7890", "http://127.0.0.1", ""] {
            assert_eq!(port_here(url), None, "{url}");
        }
    }
}
