//! Whether a service mesh stands between a pod and the other machines of a run. Its proxy takes all connections of the pod, and
//! breaks those of ranks: they connect and then hang, or end with `Connection closed by peer`.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Do the connections of this pod lead to the other machines directly?",
    reports: &["network.sidecar"],
    preflight: false,
    run,
};

/// Ports on which a proxy takes the connections of a pod, all of them, and those of which one tells it from others: Istio's
/// ambient mode has the first two without a proxy in the pod, and passes connections on.
const ISTIO: ([u16; 2], [u16; 3]) = ([15001, 15006], [15000, 15021, 15090]);
const LINKERD: ([u16; 2], [u16; 1]) = ([4140, 4143], [4191]);

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.place() != Place::Pod {
        return Ok(Vec::new());
    }
    let ports: Vec<u16> = host.listening()?.into_iter().map(|one| one.port).collect();
    let has = |port: &u16| ports.contains(port);
    let named = |all: &[u16], one_of: &[u16]| all.iter().all(has) && one_of.iter().any(has);
    let (mesh, seen, label) = if named(&ISTIO.0, &ISTIO.1) {
        ("Istio", ISTIO.0, "metadata: { labels: { sidecar.istio.io/inject: \"false\" } }")
    } else if named(&LINKERD.0, &LINKERD.1) {
        ("Linkerd", LINKERD.0, "metadata: { annotations: { linkerd.io/inject: disabled } }")
    } else {
        return Ok(Vec::new());
    };
    let title = format!(
        "a service mesh ({mesh}) takes the connections of this pod: ranks on other machines may not reach it"
    );
    let finding = Finding::new("network.sidecar", title)
        .seen(format!("a program listens on the ports {} and {}", seen[0], seen[1]))
        .command(label);
    Ok(vec![finding])
}
