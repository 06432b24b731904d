//! Whether an older C++ library comes before the system's: libtorch and the trainer then miss versions of
//! symbols (`GLIBCXX_3.4.30 not found`). Folders of conda environments in LD_LIBRARY_PATH are the usual
//! reason, or an old workaround with LD_PRELOAD. The other libraries of the compiler, without a version in their
//! names, are judged in `old_runtime`.

use yolo_base::env::LD_LIBRARY_PATH;

use super::left_out::{without, without_preloaded};
use crate::checks::{Answer, Check};
use crate::facts::{Host, Library, Version, Via};
use crate::finding::Finding;
use crate::foreign_library;
use crate::intent::Intent;

const NAME: &str = "libstdc++.so.6";

pub(super) static CHECK: Check = Check {
    question: "Does the loader find the system's own C++ and OpenMP libraries?",
    reports: &["libraries.foreign-libstdcxx", "libraries.old-runtime"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let old = super::old_runtime::finding(host);
    let found = match host.library(NAME) {
        Ok(found) => found,
        Err(why) => return old.map(|finding| vec![finding]).ok_or(why),
    };
    if let Some(finding) = preloaded(host, &found).or(old) {
        return Ok(vec![finding]);
    }
    let version = |version: &Option<String>| Version::find(version.as_deref()?);
    let Some(first) = found.first().filter(|first| first.via == Some(Via::LdLibraryPath)) else {
        return Ok(Vec::new());
    };
    let newer = found.iter().skip(1).find(|one| match (version(&one.version), version(&first.version)) {
        (Some(other), Some(own)) => own.is_older_than(&other),
        _ => false,
    });
    let (Some(newer), Some(own)) = (newer, &first.version) else { return Ok(Vec::new()) };
    let folder = first.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let title = format!(
        "{LD_LIBRARY_PATH} puts an older C++ library first: {NAME} {own} in {folder}, while the system has {}",
        newer.version.as_deref().unwrap_or("a newer one")
    );
    Ok(vec![Finding::new("libraries.foreign-libstdcxx", title).command(without(host, folder))])
}

/// One that LD_PRELOAD puts before all others.
fn preloaded(host: &Host, found: &[Library]) -> Option<Finding> {
    let (path, version) = foreign_library::preloaded(host, "libstdc++.so")?;
    let own = version?;
    let newer = found.iter().find_map(|one| {
        let version = Version::find(one.version.as_deref()?)?;
        own.is_older_than(&version).then_some(version)
    })?;
    let title = format!(
        "LD_PRELOAD puts an older C++ library first: {path} is libstdc++ {own}, while the system has {newer}"
    );
    Some(Finding::new("libraries.foreign-libstdcxx", title).command(without_preloaded(host, &path)))
}
