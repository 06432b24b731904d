//! A key for signing kernel modules, for machines with Secure Boot that have none. Ubuntu and openSUSE sign their
//! packages of the driver; elsewhere the module is built on the machine, and a key of its own has to sign it.

use super::restart::restart;
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// The finding that Secure Boot refuses the module, where no key exists.
pub(crate) fn without(host: &Host, finding: Finding) -> Finding {
    const OFF: &str = "or turn off Secure Boot in the firmware";
    let commands: &[&str] = match host.family() {
        Some(Family::Fedora) => &[
            "sudo kmodgenca -a",
            "sudo mokutil --import /etc/pki/akmods/certs/public_key.der",
            "sudo akmods --force --rebuild",
        ],
        Some(Family::Debian | Family::RedHat | Family::Amazon) => &[
            "sudo dkms generate_mok",
            "sudo mokutil --import /var/lib/dkms/mok.pub",
            "sudo dkms autoinstall --force",
        ],
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
    restart(host, commands.iter().fold(finding, |finding, command| finding.command(*command)))
}
