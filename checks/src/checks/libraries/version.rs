//! Whether LIBTORCH points to the right folder of a libtorch with the version that the trainer was
//! built for.

use super::LIBTORCH;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Libtorch};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Is this the libtorch version that the trainer needs?",
    reports: &["libraries.libtorch-version", "libraries.libtorch-named"],
    preflight: true,
    run,
};

/// Before this version PyTorch had builds with two C++ ABIs, and Python packages used the old one.
const ONE_INTERFACE: [u32; 2] = [2, 7];

fn run(host: &Host, intent: &Intent) -> Answer {
    let named = host.named_libtorch().ok().flatten();
    if let Some(root) = &named
        && let Some(finding) = misplaced(host, root)
    {
        return Ok(vec![finding]);
    }
    let libtorch = match host.libtorch()? {
        Some(libtorch) => libtorch,
        // A run never uses a wrong version by itself, so only the variable leads to one.
        None => match named {
            Some(root) => host.libtorch_at(&with_package(host, root))?,
            None => return Ok(Vec::new()),
        },
    };
    // The first failure already suggests the same remedy.
    if crate::checks::windows::broken_gloo(host, intent).is_some() {
        return Ok(Vec::new());
    }
    Ok(other_version(host, &libtorch).into_iter().collect())
}

/// LIBTORCH may name the folder that contains Python's `torch`.
fn with_package(host: &Host, root: String) -> String {
    let package = format!("{root}/torch");
    if has_libraries(host, &root) != Some(true) && has_libraries(host, &package) == Some(true) {
        package
    } else {
        root
    }
}

/// Whether a folder has libtorch's libraries in `lib`; `None` if unknown.
fn has_libraries(host: &Host, root: &str) -> Option<bool> {
    let names = host.folder(&format!("{root}/lib")).ok()?;
    let is_libtorch = |name: &String| name.starts_with("libtorch") || name.starts_with("torch");
    Some(names.is_some_and(|names| names.iter().any(is_libtorch)))
}

/// LIBTORCH names a folder next to, above or below the right one, or one without libtorch.
fn misplaced(host: &Host, root: &str) -> Option<Finding> {
    if has_libraries(host, root)? || has_libraries(host, &format!("{root}/torch")) == Some(true) {
        return None;
    }
    let title = format!("LIBTORCH is {root}, which has no lib/libtorch_cpu.so");
    let finding = Finding::new("libraries.libtorch-named", title);
    let above = root.strip_suffix("/lib").map(ToOwned::to_owned);
    let near = [Some(format!("{root}/libtorch")), above];
    let near = near.into_iter().flatten().find(|folder| has_libraries(host, folder) == Some(true));
    Some(match near {
        Some(folder) => finding
            .remedy(format!("set LIBTORCH to {folder}, which contains libtorch"))
            .command(format!("export LIBTORCH={}", quote(&folder))),
        None => finding.command("unset LIBTORCH").command("yolo setup"),
    })
}

fn other_version(host: &Host, libtorch: &Libtorch) -> Option<Finding> {
    let version = libtorch.version.as_ref()?;
    let needed = LIBTORCH.map(|number| number.to_string()).join(".");
    // PyTorch never writes 2.11.0 as 2.11; all three numbers count.
    if !version.is_below(&LIBTORCH) && !is_above(version) {
        return None;
    }
    let title = format!("libtorch in {} is {version}, but the trainer needs {needed}", libtorch.root);
    let mut finding = Finding::new("libraries.libtorch-version", title);
    if version.is_below(&ONE_INTERFACE) {
        finding = finding.seen(format!("{version} may also have the old C++ ABI (pre-cxx11)"));
    }
    let is_package = libtorch.root.contains("site-packages") || libtorch.root.contains("dist-packages");
    if is_package {
        finding = finding
            .remedy(format!(
                "let yolo download its own libtorch, or install torch {needed} in that \
                             environment"
            ))
            .command("unset LIBTORCH")
            .command(format!("pip install torch=={needed}"));
        return Some(finding);
    }
    let is_ours = host.named_libtorch().ok().flatten().is_none();
    Some(if is_ours {
        finding.remedy("let yolo download it again").command("yolo setup")
    } else {
        finding.command("unset LIBTORCH").command("yolo setup")
    })
}

fn is_above(version: &crate::facts::Version) -> bool {
    let [major, minor, patch] = LIBTORCH;
    !version.is_below(&[major, minor, patch + 1])
}
