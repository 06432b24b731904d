//! Packages of the driver that apt could not bring to one version: Ubuntu and NVIDIA offer packages of the same names, and an
//! update that takes some from each stops halfway.

use super::boot_space;
use super::restart::restart;
use crate::facts::{Family, Host, Packages};
use crate::finding::Finding;

/// The finding that library and module differ, if apt's packages do so too, or are installed in part only.
pub(crate) fn repair(host: &Host, finding: Finding) -> Option<Finding> {
    if host.distribution().ok()?.packages() != Some(Packages::Apt) || !host.is_own_machine() {
        return None;
    }
    let lines = mixed(&listed(host)?)?;
    let finding = lines.into_iter().take(3).fold(finding, Finding::seen);
    let again = match host.family() {
        Some(Family::Ubuntu) => "sudo ubuntu-drivers install",
        Some(Family::OnUbuntu) => "sudo apt install nvidia-driver-580-open",
        _ => "sudo apt install nvidia-driver",
    };
    let finding = boot_space::first(
        host,
        finding
            .because(
                "some of the driver's packages are of another version or are installed in part only: repositories of the distribution \
                 and of NVIDIA have packages of the same names, which replace each other in part",
            )
            .remedy(format!(
                "let apt repair the packages, and restart; if it cannot, remove all of them (`sudo apt purge '^nvidia-.*' \
                 '^libnvidia-.*'`, NVIDIA's Container Toolkit with them), keep only one of the repositories in \
                 /etc/apt/sources.list.d, and install the driver again (`sudo \
                 apt update && {again}`)"
            ))
            .command("sudo dpkg --configure -a")
            .command("sudo apt update")
            .command("sudo apt --fix-broken install")
            .command("sudo apt full-upgrade"),
    );
    Some(restart(host, finding))
}

/// State, name and version of the packages.
fn listed(host: &Host) -> Option<String> {
    const ASKED: [&str; 5] =
        ["dpkg-query", "-W", "-f", r"${db:Status-Abbrev} ${Package} ${Version}\n", "*nvidia*"];
    if host.is_recorded() {
        let outputs = ["dpkg", "dpkg-query"].iter().flat_map(|program| host.recorded_outputs(program));
        return Some(outputs.map(|(_, output)| output.text()).collect::<Vec<_>>().join("\n"));
    }
    Some(host.command(&ASKED).ok()??.text())
}

/// The packages that are in part installed, or else two of one branch that have different versions.
fn mixed(list: &str) -> Option<Vec<String>> {
    let packages: Vec<(&str, &str, &str)> = list
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (state, name, version) = (words.next()?, words.next()?, words.next()?);
            let name = name.split(':').next()?;
            // Ubuntu names the firmware by its version, and keeps the old one for a while.
            let is_own = (name.starts_with("nvidia-") || name.starts_with("libnvidia-"))
                && !name.starts_with("nvidia-firmware-");
            let is_state = matches!(state.len(), 2 | 3) && state.is_ascii();
            (is_own && is_state && version.starts_with(|first: char| first.is_ascii_digit()))
                .then_some((state, name, version))
        })
        .collect();
    let shown = |(state, name, version): &(&str, &str, &str)| format!("{state} {name} {version}");
    let broken: Vec<String> = packages
        .iter()
        .filter(|(state, ..)| matches!(*state, "iU" | "iF" | "iH" | "iHR" | "iUR" | "iFR"))
        .map(shown)
        .collect();
    if !broken.is_empty() {
        return Some(broken);
    }
    let installed: Vec<_> = packages.iter().filter(|(state, ..)| matches!(*state, "ii" | "hi")).collect();
    let branch = |name: &str| {
        name.rsplit('-')
            .find_map(|part| part.parse::<u32>().ok().filter(|number| (300..1000).contains(number)))
    };
    installed.iter().enumerate().find_map(|(place, one)| {
        let of_branch = branch(one.1)?;
        let other = installed[place + 1..]
            .iter()
            .find(|other| branch(other.1) == Some(of_branch) && upstream(other.2) != upstream(one.2))?;
        Some(vec![shown(one), shown(other)])
    })
}

/// `590.44.01` of `590.44.01-0ubuntu0.24.04.1`.
fn upstream(version: &str) -> &str {
    version.split('-').next().unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn firmware_of_an_earlier_version_may_stay() {
        let list = "ii  nvidia-firmware-580-580.65.06 580.65.06-0ubuntu1 amd64\n\
                    ii  nvidia-firmware-580-580.95.05 580.95.05-0ubuntu1 amd64\n\
                    ii  libnvidia-compute-580:amd64 580.95.05-0ubuntu1 amd64\n";
        assert_eq!(mixed(list), None);
    }

    #[test]
    fn packages_of_one_branch_have_one_version() {
        let good = "ii  libnvidia-compute-580:amd64 580.95.05-0ubuntu0.24.04.1 amd64 x\nii  nvidia-dkms-580-open 580.95.05-0ubuntu0.24.04.1 amd64 x\n\
                    rc  nvidia-driver-550 550.163.01-0ubuntu1 amd64 x\nii  nvidia-settings 510.47.03-0ubuntu4 amd64 x\nii  nvidia-prime 0.8.17.2 all x";
        assert_eq!(mixed(good), None);
        let two = "ii  libnvidia-compute-590:amd64 590.48.01-1ubuntu1 amd64 x\nii  nvidia-dkms-590-open 590.44.01-0ubuntu0.24.04.1 amd64 x";
        assert_eq!(mixed(two).map(|lines| lines.len()), Some(2));
        let half = "iU  libnvidia-compute-590 590.48.01-1ubuntu1\nii  nvidia-dkms-590 590.48.01-1ubuntu1";
        assert_eq!(mixed(half), Some(vec!["iU libnvidia-compute-590 590.48.01-1ubuntu1".to_owned()]));
    }

    proptest! {
        #[test]
        fn any_list_is_read(list in "(ii  |iU  |nvidia-|libnvidia-|-580|580.95| |\\PC|\n){0,30}") {
            let _ = mixed(&list);
        }
    }
}
