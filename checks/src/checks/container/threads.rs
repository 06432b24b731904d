//! Whether programs in this container can start threads. From glibc 2.34 on they start them by a newer system call
//! (clone3), which the filter of Docker before 20.10.10 forbids instead of calling it unknown.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Can programs in this container start threads?",
    reports: &["container.threads-blocked"],
    preflight: true,
    run,
};

/// What the kernel says if a filter forbids a call. A limit on threads has another message.
const FORBIDDEN: &str = "not permitted";
/// What Python says for any reason.
const OF_PYTHON: &str = "can't start new thread";
/// The seccomp mode in which a filter decides.
const FILTERED: &str = "2";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || !host.is_container() {
        return Ok(Vec::new());
    }
    let why = match host.can_start_threads() {
        Ok(answer) => answer.err().filter(|why| why.contains(FORBIDDEN)),
        // A recording that was made before this question, or by hand.
        Err(_) if host.is_recorded() => said(host),
        Err(why) => return Err(why),
    };
    let Some(why) = why else { return Ok(Vec::new()) };
    let title = "this container forbids programs to start threads";
    let finding = Finding::new("container.threads-blocked", title).seen(why);
    if let Some(rental) = host.rental() {
        return Ok(vec![
            finding.remedy(format!("choose another machine of {}, or an older image", rental.name())),
        ]);
    }
    let update = "have Docker, containerd, runc and libseccomp2 updated on the host (Docker 20.10.10 or later); until then";
    Ok(vec![match host.place() {
        Place::Docker | Place::DockerInWsl => finding
            .remedy(format!("{update}, start the container without the filter, or take an image of Ubuntu 20.04 or Debian 11"))
            .command("docker run --security-opt seccomp=unconfined …"),
        Place::Podman => finding
            .remedy("have Podman, its runtime and libseccomp updated on the host; until then, start the container without the filter")
            .command("podman run --security-opt seccomp=unconfined …"),
        Place::Pod => finding
            .remedy(format!("{update}, start the pod without the filter"))
            .command("securityContext: { seccompProfile: { type: Unconfined } }"),
        _ => finding,
    }])
}

/// A recorded message of a program that could not start a thread, although no limit explains it.
fn said(host: &Host) -> Option<String> {
    let texts = host.recorded_texts("");
    let find = |is: &dyn Fn(&str) -> bool| {
        texts.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| is(line)).map(ToOwned::to_owned)
    };
    let forbidden =
        |line: &str| line.contains("pthread_create") && line.to_ascii_lowercase().contains(FORBIDDEN);
    let is_filtered = || host.of_status("Seccomp:").is_some_and(|mode| mode == FILTERED);
    let is_free = || {
        host.soft_limit("Max processes").is_ok_and(|most| most > 100_000)
            && host.cgroup_task_limit().is_none_or(|limit| limit.most.saturating_sub(limit.used) > 1000)
    };
    find(&forbidden).or_else(|| find(&|line| line.contains(OF_PYTHON)).filter(|_| is_filtered() && is_free()))
}
