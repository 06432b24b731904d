//! Whether a container in WSL has the library through which Windows drivers from 555 on are called. Toolkits
//! before 1.14.4, and Docker Desktop before 4.31, do not mount it (nvidia-container-toolkit#520).

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does this container have all libraries of the Windows driver?",
    reports: &["container.dxgdmal-missing"],
    preflight: true,
    run,
};

const LIBRARY: &str = "libnvdxgdmal.so.1";
/// The first driver branch that needs it.
const FIRST: u32 = 555;

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || host.os()? != "linux" || !host.is_container() || !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let driver = host.driver_version()?;
    let has_cuda = host.library("libcuda.so.1").is_ok_and(|found| !found.is_empty());
    if driver.major() < FIRST || !has_cuda || !host.library(LIBRARY)?.is_empty() {
        return Ok(Vec::new());
    }
    let title = format!("this container lacks {LIBRARY}, which the Windows driver {driver} needs");
    Ok(vec![Finding::new("container.dxgdmal-missing", title)])
}
