//! Whether the allocator is told to use expandable segments in WSL. Several Windows drivers fail with them
//! when memory is mapped (microsoft/WSL and pytorch threads of 2026): "CUDA driver error", or a rank that
//! hangs.

use crate::checks::shell::allocator::{VARIABLES, command_without_segments};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is CUDA's allocator set to an option that can fail in WSL?",
    reports: &["wsl.expandable-segments"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let findings = VARIABLES.iter().filter_map(|name| {
        let command = command_without_segments(host, name)?;
        let title = format!("{name} asks for expandable_segments, which fail in WSL with some drivers");
        Some(Finding::new("wsl.expandable-segments", title).command(command))
    });
    Ok(findings.collect())
}
