//! Whether the names of the download servers resolve, if libtorch must still be downloaded. WSL has its own
//! check, which knows why its name servers fail.

use yolo_base::env::{ALL_PROXY, HTTPS_PROXY, all_proxy, https_proxy};

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

/// Where libtorch is downloaded from.
const SERVER: &str = "download.pytorch.org";

pub(super) static CHECK: Check = Check {
    question: "Can libtorch be downloaded?",
    reports: &["network.no-internet"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let is_there = host.places()?.libtorch.is_some();
    // A proxy resolves names by itself.
    let has_proxy = [HTTPS_PROXY, https_proxy, ALL_PROXY, all_proxy]
        .into_iter()
        .any(|name| host.env(name).is_ok_and(|value| value.is_some()));
    if is_there || has_proxy || host.os()? != "linux" || !matches!(host.wsl(), Ok(None)) {
        return Ok(Vec::new());
    }
    if !host.addresses(SERVER)?.is_empty() {
        return Ok(Vec::new());
    }
    let title = format!("{SERVER} does not resolve, so libtorch cannot be downloaded");
    let finding = Finding::new("network.no-internet", title);
    Ok(vec![match host.place() {
        Place::Kaggle => {
            finding.remedy("turn on Internet in the notebook's settings, or add libtorch as a data set")
        }
        _ => finding,
    }])
}
