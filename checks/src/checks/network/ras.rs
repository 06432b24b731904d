//! Whether another run has the port on which NCCL answers questions about its ranks (RAS). `yolo` gives each
//! of its runs a port of its own, so this matters for other programs only.

use yolo_base::env::NCCL_RAS_ADDR;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::port_owner::name_of;

/// Where NCCL 2.24 and later answers unless told otherwise.
const PORT: u16 = 28028;

pub(super) static CHECK: Check =
    Check { question: "Is NCCL's RAS port free?", reports: &["network.ras-port"], preflight: false, run };

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || intent.cpu {
        return Ok(Vec::new());
    }
    // Looking for the owners of ports takes time, which only a machine with several ranks needs.
    let ranks = if intent.run { intent.ranks_on_gpus() } else { host.gpus().map_or(0, |gpus| gpus.len()) };
    if ranks < 2 {
        return Ok(Vec::new());
    }
    let listeners = host.listening()?;
    let Some(owner) = listeners.iter().find(|listener| listener.port == PORT) else { return Ok(Vec::new()) };
    let is_free = |port: &u16| listeners.iter().all(|listener| listener.port != *port);
    let other = (PORT + 1..u16::MAX).find(is_free).unwrap_or(PORT);
    let title = format!("NCCL's RAS port, {PORT}, is in use by {}", name_of(host, owner));
    Ok(vec![
        Finding::new("network.ras-port", title).command(format!("export {NCCL_RAS_ADDR}=localhost:{other}")),
    ])
}
