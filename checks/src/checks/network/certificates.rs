//! Whether there are certificates with which downloads verify servers. Images of containers often have none, and a variable
//! may name a file of an environment that was removed.

use yolo_base::env::SSL_CERT_FILE;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are there certificates for downloads?",
    reports: &["network.certificates"],
    preflight: false,
    run,
};

/// Where distributions keep the certificates of authorities: Debian and Arch, Red Hat (old and new), openSUSE, Alpine.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Even a small system has as many names in /etc.
const COMPLETE: usize = 20;

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.places()?.libtorch.is_some() {
        return Ok(Vec::new());
    }
    if let Some(file) = host.env(SSL_CERT_FILE)?.filter(|file| !file.is_empty()) {
        if host.exists(&file) != Ok(false) {
            return Ok(Vec::new());
        }
        let title = format!("{SSL_CERT_FILE} names {file}, which does not exist");
        return Ok(vec![
            Finding::new("network.certificates", title)
                .remedy("unset the variable, so that the system's certificates are used, or name a file that exists")
                .command(format!("unset {SSL_CERT_FILE}")),
        ]);
    }
    // Whoever lists /etc by hand leaves out most of it.
    let is_shortened = host.is_recorded()
        && host.folder("/etc").is_ok_and(|names| names.is_some_and(|names| names.len() < COMPLETE));
    if is_shortened || BUNDLES.iter().any(|bundle| host.exists(bundle) != Ok(false)) {
        return Ok(Vec::new());
    }
    let title = "no certificates of authorities are installed on this system";
    let finding = Finding::new("network.certificates", title).seen(format!("{} does not exist", BUNDLES[0]));
    let package = host.package_command([
        "sudo apt install ca-certificates",
        "sudo dnf install ca-certificates",
        "sudo zypper install ca-certificates-mozilla",
        "sudo pacman -Syu ca-certificates",
    ]);
    Ok(vec![package.into_iter().fold(finding, Finding::command)])
}
