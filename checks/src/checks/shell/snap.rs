//! Whether the shell belongs to a snap, such as that of VS Code: its terminal hands on an LD_LIBRARY_PATH
//! with the libraries of an older Ubuntu, which programs outside the snap then load.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Do programs get the libraries of a snap?",
    reports: &["shell.snap"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let path = host.env(LD_LIBRARY_PATH)?.unwrap_or_default();
    let Some(folder) = path.split(':').find(|folder| folder.starts_with("/snap/")) else {
        return Ok(Vec::new());
    };
    let snap = host.env("SNAP_NAME").ok().flatten();
    let whose = snap.map_or("a snap".to_owned(), |name| format!("the snap {name}"));
    let title =
        format!("this terminal belongs to {whose}: {LD_LIBRARY_PATH} puts the libraries in {folder} first");
    Ok(vec![Finding::new("shell.snap", title).command(format!("unset {LD_LIBRARY_PATH}"))])
}
