//! Whether synchronized batch normalization has several ranks.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does --sync-bn have an effect?",
    reports: &["run.sync-bn-alone"],
    preflight: true,
    run,
};

fn run(_: &Host, intent: &Intent) -> Answer {
    if !intent.sync_bn || intent.ranks_in_all() > 1 {
        return Ok(Vec::new());
    }
    Ok(vec![Finding::new("run.sync-bn-alone", "--sync-bn has no effect with a single rank")])
}
