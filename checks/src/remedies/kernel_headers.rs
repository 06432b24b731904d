//! The package with the headers of a kernel, which the driver's module is built against. Distributions with
//! several lines of kernels name it after the line.

use crate::facts::{Family, Host};

/// The package for this kernel on Fedora, RHEL and their relatives. `release` may be `$(uname -r)`.
pub(crate) fn devel_package(host: &Host, kernel: &str, release: &str) -> String {
    let line = match host.family() {
        // Oracle's own line of kernels.
        _ if kernel.contains("uek") => "kernel-uek-devel".to_owned(),
        // Amazon Linux 2023 started with 6.1, and names the packages of later lines after them.
        Some(Family::Amazon) if !kernel.starts_with("6.1.") && kernel.contains("amzn2023") => {
            let line: Vec<&str> = kernel.splitn(3, '.').take(2).collect();
            format!("kernel{}-devel", line.join("."))
        }
        _ => "kernel-devel".to_owned(),
    };
    format!("{line}-{release}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_line_of_kernels_has_its_package() {
        let package = |id: &str, kernel: &str| {
            let files = json!({ "/etc/os-release": format!("ID={id}\nID_LIKE=fedora\n") });
            let host = Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0;
            devel_package(&host, kernel, kernel)
        };
        let (uek, old, new) =
            ("6.12.0-106.el9uek.x86_64", "6.1.161-1.amzn2023.x86_64", "6.12.66-8.amzn2023.x86_64");
        assert_eq!(package("ol", uek), format!("kernel-uek-devel-{uek}"));
        assert_eq!(package("amzn", old), format!("kernel-devel-{old}"));
        assert_eq!(package("amzn", new), format!("kernel6.12-devel-{new}"));
        assert_eq!(package("fedora", "6.18.9-200.fc43.x86_64"), "kernel-devel-6.18.9-200.fc43.x86_64");
    }
}
