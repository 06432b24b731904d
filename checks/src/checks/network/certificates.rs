//! Whether there are certificates with which downloads verify servers. Images of containers often have none, and a variable
//! may name a file of an environment that was removed.

use yolo_base::env::SSL_CERT_FILE;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

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
    let broken = if broken.is_empty() { inspected(host).into_iter().collect() } else { broken };
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

/// What OpenSSL says of a server whose certificate comes from an authority that this system does not know.
const UNKNOWN_AUTHORITY: [&str; 4] = [
    "self-signed certificate in certificate chain",
    "self signed certificate in certificate chain",
    "unable to get local issuer certificate",
    "invalid peer certificate: UnknownIssuer",
];

/// A recorded download that failed because a company reads the traffic and signs it with an authority of its own.
fn inspected(host: &Host) -> Option<Finding> {
    let is_it = |line: &str| UNKNOWN_AUTHORITY.iter().any(|words| line.contains(words));
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let line = outputs
        .into_iter()
        .find_map(|text| Some(text.lines().find(|line| is_it(line))?.trim().to_owned()))?;
    let is_wsl = host.is_wsl2() == Ok(true);
    let title = "downloads fail, because this system does not know the authority that signed the server's certificate";
    let finding = Finding::new("network.certificates", title).status(Status::Warning).seen(line).because(
        "a proxy or a program of a company (Zscaler, Netskope, GlobalProtect, Umbrella, FortiClient, a virus scanner) reads the traffic and \
         signs it with a certificate of its own, which Windows or the browser knows and Linux does not",
    );
    let (how, file) = if is_wsl {
        (
            "add the certificates of Windows, which the commands export, to those of this system",
            "root-of-windows.crt",
        )
    } else {
        (
            "get the root certificate (PEM) from whoever administers the network, and add it to those of this system",
            "root-of-company.crt",
        )
    };
    let finding = finding.remedy(format!(
        "{how}; programs with certificates of their own, such as pip, need `export REQUESTS_CA_BUNDLE={}` as well",
        BUNDLES.iter().find(|bundle| host.exists(bundle) == Ok(true)).unwrap_or(&BUNDLES[0])
    ));
    let finding = if is_wsl { finding.command(EXPORT) } else { finding };
    let add = |folder: &str, update: &str| format!("sudo cp {file} {folder}/ && sudo {update}");
    let commands = [
        add("/usr/local/share/ca-certificates", "update-ca-certificates"),
        add("/etc/pki/ca-trust/source/anchors", "update-ca-trust"),
        add("/etc/pki/trust/anchors", "update-ca-certificates"),
        add("/etc/ca-certificates/trust-source/anchors", "update-ca-trust"),
    ];
    let command =
        host.package_command([&commands[0], &commands[1], &commands[2], &commands[3]].map(String::as_str));
    Some(command.into_iter().fold(finding, Finding::command))
}

/// Writes all authorities that Windows knows into one file, from WSL.
const EXPORT: &str = "powershell.exe -NoProfile -Command 'Get-ChildItem Cert:\\LocalMachine\\Root | ForEach-Object { \
                      \"-----BEGIN CERTIFICATE-----\"; [Convert]::ToBase64String($_.RawData, \"InsertLineBreaks\"); \
                      \"-----END CERTIFICATE-----\" }' | tr -d '\\r' > root-of-windows.crt";

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
