//! Whether containers of Docker, Incus or LXD send larger packets than the network of this machine takes, as in clouds of
//! OpenStack and behind a VPN. Names and small answers arrive there, and downloads hang.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::service;

pub(super) static CHECK: Check = Check {
    question: "Do packets of containers fit into the network of this machine?",
    reports: &["container.mtu"],
    preflight: false,
    run,
};

/// The largest packet of a bridge, if nobody sets another.
const USUAL: u32 = 1500;
const BRIDGES: [&str; 3] = ["docker0", "incusbr0", "lxdbr0"];
const SETTINGS: &str = "/etc/docker/daemon.json";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.place() != Place::Machine || host.job().is_some() {
        return Ok(Vec::new());
    }
    let Ok(Some(routes)) = host.text("/proc/net/route") else { return Ok(Vec::new()) };
    let Some(outside) = routes.lines().find_map(default_route) else { return Ok(Vec::new()) };
    let Some(room) = mtu(host, outside).filter(|room| *room < USUAL) else { return Ok(Vec::new()) };
    let larger = BRIDGES.iter().find_map(|name| Some((name, mtu(host, name).filter(|size| *size > room)?)));
    let Some((bridge, size)) = larger else { return Ok(Vec::new()) };
    let is_docker = *bridge == "docker0";
    let settings = host.text(SETTINGS).ok().flatten().unwrap_or_default();
    // It counts for new containers, and the bridge shows it once one runs.
    if is_docker && settings.contains("\"mtu\"") {
        return Ok(Vec::new());
    }
    let title =
        format!("containers send larger packets ({bridge}: {size} bytes) than {outside} takes ({room})");
    let finding = Finding::new("container.mtu", title);
    Ok(vec![if is_docker {
        finding
            .remedy(format!(
                "nothing, while downloads in containers work; if they hang, set the size in {SETTINGS}, beside what is there, and restart Docker; networks of compose files need it as well, and have to \
                 be recreated (`driver_opts: {{ com.docker.network.driver.mtu: \"{room}\" }}`)"
            ))
            .command(format!("\"mtu\": {room}"))
            .command(service::restart(host, "docker"))
    } else {
        let program = if *bridge == "lxdbr0" { "lxc" } else { "incus" };
        finding
            .remedy("set the size of the bridge, and restart the containers")
            .command(format!("{program} network set {bridge} bridge.mtu {room}"))
    }])
}

fn mtu(host: &Host, interface: &str) -> Option<u32> {
    host.text(&format!("/sys/class/net/{interface}/mtu")).ok()??.trim().parse().ok()
}

/// The interface of a line of /proc/net/route that leads to all other networks.
fn default_route(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    (words.next()? == "00000000").then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_route_has_no_destination() {
        assert_eq!(default_route("ens3\t00000000\t0100000A\t0003"), Some("ens3"));
        assert_eq!(default_route("docker0\t000011AC\t00000000\t0001"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(00000000|\t| |\\PC){0,8}") {
            let _ = default_route(&line);
        }
    }
}
