//! A key for signing kernel modules, for machines with Secure Boot that have none. Ubuntu and openSUSE sign their
//! packages of the driver; elsewhere the module is built on the machine, and a key of its own has to sign it.

use super::failed_build::module_lines;
use super::restart::restart;
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// The finding that Secure Boot refuses the module, where no key exists.
pub(crate) fn without(host: &Host, finding: Finding) -> Finding {
    const OFF: &str = "or turn off Secure Boot in the firmware";
    let commands = match host.family() {
        Some(Family::Fedora) => vec![
            "sudo kmodgenca -a".to_owned(),
            "sudo akmods --force --rebuild".to_owned(),
            "sudo mokutil --import /etc/pki/akmods/certs/public_key.der".to_owned(),
        ],
        Some(Family::Debian | Family::RedHat | Family::Amazon) => {
            let build = built_again(host);
            let make = "sudo dkms generate_mok".to_owned();
            let import = "sudo mokutil --import /var/lib/dkms/mok.pub".to_owned();
            [make].into_iter().chain(build).chain([import]).collect()
        }
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Leap | Family::Tumbleweed) => {
            return finding
                .remedy(format!("install your distribution's own driver package, which is signed; {OFF}"));
        }
        _ => {
            return finding.remedy(format!(
                "sign the module with a key of your own that the firmware or shim knows; {OFF}"
            ));
        }
    };
    let finding = finding.remedy(format!(
        "make a key, enroll it, and build the module again, which signs it; at the next start, select Enroll MOK on the blue \
         screen and enter the password that you chose; {OFF}"
    ));
    restart(host, commands.into_iter().fold(finding, Finding::command))
}

/// The commands that build the module again with dkms, which leaves one alone that is installed already.
fn built_again(host: &Host) -> Vec<String> {
    let installed = module_lines(host).into_iter().find(|line| line.contains("installed"));
    let name = installed.as_deref().and_then(|line| line.split([',', ':']).next()).map(str::trim);
    let (Some(name), Ok(kernel)) = (name.filter(|name| name.contains('/')), host.kernel_release()) else {
        let package = match host.family() {
            Some(Family::Debian) => "sudo apt install --reinstall nvidia-kernel-dkms",
            _ => "sudo dnf reinstall 'kmod-nvidia*dkms'",
        };
        return vec![package.to_owned()];
    };
    ["unbuild", "install"].iter().map(|what| format!("sudo dkms {what} {name} -k {kernel}")).collect()
}
