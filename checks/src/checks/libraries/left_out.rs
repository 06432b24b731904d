//! The commands that take one folder or file out of the variables that the loader reads, and keep the others.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::facts::Host;
use crate::shell_quote::quote;

/// The command that takes a folder out of LD_LIBRARY_PATH.
pub(super) fn without(host: &Host, folder: &str) -> String {
    let path = host.env(LD_LIBRARY_PATH).ok().flatten().unwrap_or_default();
    // An empty entry would be the working folder, which nobody means.
    let kept: Vec<&str> =
        path.split(':').filter(|one| !one.is_empty() && one.trim_end_matches('/') != folder).collect();
    match kept.join(":") {
        rest if rest.is_empty() => format!("unset {LD_LIBRARY_PATH}"),
        rest => format!("export {LD_LIBRARY_PATH}={}", quote(&rest)),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_quoted_where_the_shell_needs_it() {
        let command = |path: &str| {
            let host = json!({ "version": 1, "os": "linux", "env": { "LD_LIBRARY_PATH": path } });
            without(&Host::from_value(host).unwrap().0, "/opt/old")
        };
        assert_eq!(command("/opt/old/"), "unset LD_LIBRARY_PATH");
        assert_eq!(command("/opt/old:/usr/local/lib:"), "export LD_LIBRARY_PATH=/usr/local/lib");
        assert_eq!(command("/opt/my tools/lib:/opt/old"), "export LD_LIBRARY_PATH='/opt/my tools/lib'");
    }
}
