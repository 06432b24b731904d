//! Whether the shell belongs to a snap, such as that of VS Code: its terminal hands on an LD_LIBRARY_PATH
//! with the libraries of an older Ubuntu, which programs outside the snap then load, or an XDG_DATA_HOME where
//! `yolo` does not find its files.

use yolo_base::env::{HOME, LD_LIBRARY_PATH, XDG_DATA_HOME};

use crate::checks::{Answer, Check};
use crate::facts::{Host, Unknown};
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
    let snap = host.env("SNAP_NAME").ok().flatten();
    let whose = snap.map_or("a snap".to_owned(), |name| format!("the snap {name}"));
    let Some(folder) = path.split(':').find(|folder| folder.starts_with("/snap/")) else {
        return Ok(moved_data(host, &whose)?.into_iter().collect());
    };
    let title =
        format!("this terminal belongs to {whose}: {LD_LIBRARY_PATH} puts the libraries in {folder} first");
    Ok(vec![Finding::new("shell.snap", title).command(format!("unset {LD_LIBRARY_PATH}"))])
}

/// The snap's own folder for data, in which `yolo` finds nothing that it has installed before.
fn moved_data(host: &Host, whose: &str) -> Result<Option<Finding>, Unknown> {
    let folder = host.env(XDG_DATA_HOME)?.filter(|folder| folder.contains("/snap/"));
    let (Some(folder), Ok(Some(home))) = (folder, host.env(HOME)) else { return Ok(None) };
    let usual = format!("{home}/.local/share/yolo");
    if host.places()?.libtorch.is_some() || !host.exists(&usual).unwrap_or(false) {
        return Ok(None);
    }
    let title =
        format!("this terminal belongs to {whose}: {XDG_DATA_HOME} hides what is installed in {usual}");
    Ok(Some(
        Finding::new("shell.snap", title)
            .because(format!(
                "a snap's terminal has a folder of its own for data, {folder}; `yolo` would download libtorch again"
            ))
            .command(format!("unset {XDG_DATA_HOME}")),
    ))
}
