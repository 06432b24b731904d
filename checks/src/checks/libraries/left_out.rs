//! The commands that take one folder or file out of the variables that the loader reads, and keep the others.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::facts::Host;
use crate::shell_quote::quote;

/// The command that takes a folder out of LD_LIBRARY_PATH.
pub(super) fn without(host: &Host, folder: &str) -> String {
    let path = host.env(LD_LIBRARY_PATH).ok().flatten().unwrap_or_default();
    let kept: Vec<&str> = path.split(':').filter(|one| one.trim_end_matches('/') != folder).collect();
    match kept.join(":") {
        rest if rest.is_empty() => format!("unset {LD_LIBRARY_PATH}"),
        rest => format!("export {LD_LIBRARY_PATH}={rest}"),
    }
}

/// The command that takes a file out of LD_PRELOAD, and keeps the others, such as an allocator.
pub(super) fn without_preloaded(host: &Host, file: &str) -> String {
    let list = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    let kept: Vec<&str> = list.split([':', ' ']).filter(|one| !one.is_empty() && *one != file).collect();
    match kept.join(":") {
        rest if rest.is_empty() => "unset LD_PRELOAD".to_owned(),
        rest => format!("export LD_PRELOAD={}", quote(&rest)),
    }
}
