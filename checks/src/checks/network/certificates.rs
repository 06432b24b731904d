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

/// The variables that name certificates, and the programs that read them.
const VARIABLES: [(&str, &str); 5] = [
    (SSL_CERT_FILE, "yolo, curl and Python"),
    ("SSL_CERT_DIR", "yolo, curl and Python"),
    ("CURL_CA_BUNDLE", "curl and pip"),
    ("REQUESTS_CA_BUNDLE", "pip and other Python programs"),
    ("PIP_CERT", "pip"),
];

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let broken: Vec<Finding> =
        VARIABLES.iter().filter_map(|(name, who)| names_nothing(host, name, who)).collect();
    let names_bundle = host.env(SSL_CERT_FILE)?.is_some_and(|file| !file.is_empty());
    // Without libtorch, there is a download to come that needs the system's certificates.
    if !broken.is_empty() || names_bundle || host.places()?.libtorch.is_some() {
        return Ok(broken);
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

/// A variable whose file, or whose every folder, does not exist, as after the removal of a conda installation.
fn names_nothing(host: &Host, name: &str, who: &str) -> Option<Finding> {
    let value = host.env(name).ok().flatten().filter(|value| !value.is_empty())?;
    let mut paths = value.split(if name == "SSL_CERT_DIR" { ':' } else { '\0' });
    // One that names a file which exists has what the folder lacks.
    let has_file =
        || host.env(SSL_CERT_FILE).ok().flatten().is_some_and(|file| host.exists(&file) == Ok(true));
    if name == "SSL_CERT_DIR" && has_file() || !paths.all(|path| host.exists(path) == Ok(false)) {
        return None;
    }
    Some(
        Finding::new("network.certificates", format!("{name} names {value}, which does not exist"))
            .because(format!("downloads by {who} take their certificates from there, and fail without them"))
            .remedy(
                "unset the variable, so that the system's certificates are used, and remove it from the file that sets it; \
                 or name a file that exists",
            )
            .command(format!("unset {name}"))
            .command(format!("grep -n {name} ~/.profile ~/.bashrc ~/.zshrc /etc/environment")),
    )
}
