//! The program, the operating system, and what separates it from the hardware.

use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule, Seen};
use crate::facts::{Container, Wsl};

/// Where a system runs without a container or WSL.
const NONE: &str = "no";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "yolo",
        what: "yolo",
        read: |machine| match machine.host.recorded_by() {
            Some(version) => Reading::text(version),
            None => Reading::Unknown("the recording does not name the yolo that made it".to_owned()),
        },
        judge: |_| {
            Meaning::stops(
                "the ranks of a run exchange a plan and events that other versions do not understand",
                "install the same version of yolo on all machines",
            )
        },
    },
    Rule {
        id: "os",
        what: "operating system",
        read: |machine| Reading::of(machine.host.os(), Reading::text),
        judge: |_| {
            Meaning::stops(
                "training runs on Linux only",
                "on a Windows PC, train in WSL, which `yolo setup --wsl` prepares, and record it from there",
            )
        },
    },
    Rule {
        id: "arch",
        what: "CPU architecture",
        read: |machine| Reading::of(machine.host.arch(), Reading::text),
        judge: |_| {
            Meaning::stops(
                "libtorch and yolo-trainer are built for x86-64 only",
                "use machines with x86-64 CPUs",
            )
        },
    },
    Rule { id: "wsl", what: "WSL", read: wsl, judge: judge_wsl },
    Rule { id: "container", what: "container", read: container, judge: judge_container },
    Rule {
        id: "system",
        what: "system",
        read: |machine| match machine.host.system() {
            Ok(system) => Reading::if_any(system.name),
            Err(why) => Reading::Unknown(why.0),
        },
        judge: |_| Meaning::harmless("libtorch brings the libraries that it needs, except glibc"),
    },
    Rule {
        id: "kernel",
        what: "kernel",
        read: |machine| Reading::of(machine.host.kernel_release(), Reading::text),
        judge: |_| Meaning::harmless("ranks do not depend on the release of the kernel"),
    },
];

fn wsl(machine: &Machine<'_>) -> Reading {
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    Reading::of(machine.host.wsl(), |wsl| match wsl {
        None => Reading::absent(NONE),
        Some(Wsl::One) => Reading::text("WSL 1"),
        Some(Wsl::Two) => Reading::text("WSL 2"),
    })
}

fn judge_wsl(seen: &Seen<'_>) -> Meaning {
    if seen.has("WSL 1") {
        return Meaning::stops(
            "WSL 1 has neither GPUs nor a Linux kernel",
            "convert the distribution to WSL 2: `wsl.exe --set-version NAME 2`",
        );
    }
    Meaning::slows(
        "by default, other machines cannot open connections to WSL: it is behind NAT or a firewall",
        "switch WSL to mirrored networking and open its firewall: `yolo doctor -- --nnodes 2` in WSL shows \
         how",
    )
}

fn container(machine: &Machine<'_>) -> Reading {
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    Reading::of(machine.host.container(), |container| match container {
        None => Reading::absent(NONE),
        Some(container) => Reading::text(container.name()),
    })
}

fn judge_container(seen: &Seen<'_>) -> Meaning {
    let has_own_network =
        [Container::Docker, Container::Podman].iter().any(|container| seen.has(container.name()));
    if !has_own_network {
        return Meaning::harmless("these containers have an address that other machines can reach");
    }
    Meaning::slows(
        "Docker and Podman give a container a network of its own, which other machines cannot reach",
        "start the container with `--network host`",
    )
}
