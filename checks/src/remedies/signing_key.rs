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
        Some(Family::Fedora) if host.is_image() => return of_image(finding),
        Some(Family::NixOs) => {
            return finding.remedy(
                "turn off Secure Boot in the firmware: NixOS signs no modules, and has no key that could be enrolled; or keep it on \
                 with lanzaboote (and keys of sbctl), and without `lockdown=` and `module.sig_enforce=1` in boot.kernelParams",
            );
        }
        // A key in the definition of an image would be in each copy of the image.
        Some(Family::RedHat) if host.is_image() => {
            return finding.remedy(format!(
                "in the definition of the image, use a precompiled module that is signed (of Red Hat's or NVIDIA's packages, those \
                 without -dkms) instead of one that dkms builds; {OFF}"
            ));
        }
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
        "make a key, build the module again, which signs it, and enroll the key; at the next start, select Enroll MOK on the blue \
         screen and enter the password that you chose; {OFF}"
    ));
    restart(host, commands.into_iter().fold(finding, Finding::command))
}

/// An image is built where the keys in /etc cannot be seen, so that a package has to bring them (silverblue#272).
fn of_image(finding: Finding) -> Finding {
    finding
        .because(
            "with Secure Boot on, the kernel loads only signed modules; rpm-ostree builds this one together with the image, where \
             it does not see the key in /etc, and leaves it unsigned",
        )
        .remedy(
            "turn off Secure Boot in the firmware; or make a key, enroll it, and layer a package with the key (akmods-keys, made by \
             https://github.com/CheariX/silverblue-akmods-keys): the module is then rebuilt and signed; at the next start, select Enroll MOK on the blue screen and enter the password that you chose",
        )
        .command("sudo kmodgenca -a")
        .command("sudo mokutil --import /etc/pki/akmods/certs/public_key.der")
}

/// The commands that build the module again with dkms, which leaves one alone that is built already.
fn built_again(host: &Host) -> Vec<String> {
    let kernel = host.kernel_release().unwrap_or_default();
    let lines = module_lines(host);
    let Some(name) = lines.iter().find_map(|line| built_for(line, &kernel)) else {
        // The two packages conflict, and new cards run on the open module only.
        let is_open = lines.iter().any(|line| line.starts_with("nvidia") && line.contains("-open"));
        let package = match host.family() {
            Some(Family::Debian) if is_open => "sudo apt install --reinstall nvidia-open-kernel-dkms",
            Some(Family::Debian) => "sudo apt install --reinstall nvidia-kernel-dkms",
            _ => "sudo dnf reinstall 'kmod-nvidia*dkms'",
        };
        return vec![package.to_owned()];
    };
    // `unbuild` does not exist before dkms 3.
    ["remove", "install"].iter().map(|what| format!("sudo dkms {what} {name} -k {kernel}")).collect()
}

/// The name and version of the driver's module in a line of `dkms status`, if it is built for this kernel:
/// `nvidia-current/535.183.01, 6.1.0-26-amd64, x86_64: installed`, and before dkms 3 `nvidia-current, 535.183.01, …`.
fn built_for(line: &str, kernel: &str) -> Option<String> {
    // Debian adds `-open` to them, and NVIDIA's repository the branch.
    const STARTS: [&str; 4] = ["nvidia-current", "nvidia-open", "nvidia-tesla", "nvidia-legacy"];
    let (module, state) = line.split_once(": ")?;
    let mut parts = module.split([',', '/']).map(str::trim);
    let (name, version) = (parts.next()?, parts.next()?);
    let is_of_driver = name == "nvidia" || STARTS.iter().any(|start| name.starts_with(start));
    let is_built = state.starts_with("installed") || state.starts_with("built");
    (is_of_driver && is_built && parts.next() == Some(kernel) && !kernel.is_empty())
        .then(|| format!("{name}/{version}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_module_that_is_built_for_the_running_kernel_is_named() {
        let of = |line: &str| built_for(line, "6.1.0-26-amd64");
        let name = Some("nvidia-current/535.183.01".to_owned());
        assert_eq!(of("nvidia-current/535.183.01, 6.1.0-26-amd64, x86_64: installed"), name);
        assert_eq!(of("nvidia-current, 535.183.01, 6.1.0-26-amd64, x86_64: installed"), name);
        assert_eq!(
            of("nvidia-current/535.183.01, 6.1.0-26-amd64, x86_64: installed (original_module exists)"),
            name
        );
        assert_eq!(
            of("nvidia-current-open/550.163.01, 6.1.0-26-amd64, x86_64: installed").as_deref(),
            Some("nvidia-current-open/550.163.01")
        );
        assert_eq!(
            of("nvidia-legacy-390xx/390.157, 6.1.0-26-amd64, x86_64: installed").as_deref(),
            Some("nvidia-legacy-390xx/390.157")
        );
        for other in [
            "nvidia-current/535.183.01, 6.1.0-25-amd64, x86_64: installed",
            "nvidia-current/535.183.01: added",
            "nvidia-fs/2.20, 6.1.0-26-amd64, x86_64: installed",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(nvidia|nvidia-open|/|, |: installed|5.4|\\PC){0,12}") {
            let _ = built_for(&line, "5.4");
        }
    }
}
