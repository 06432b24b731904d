//! NVIDIA's driver on Debian and its relatives: the package of the distribution, which stays in one branch for each
//! release, or the newest one from NVIDIA's repository.

use super::generation::Generation;
use super::kernel_headers::line_of_debian;
use super::nvidia_repository::REPOSITORIES;
use super::old_card::LAST_FOR_OLD_CARDS;
use crate::facts::Host;

/// The oldest release for which NVIDIA has a repository with branch 570 and later.
const FIRST_OF_NVIDIA: u32 = 12;
/// Relatives whose sources have all components of Debian from the start.
const COMPLETE: [&str; 4] = ["linuxmint", "kali", "parrot", "sparky"];

/// The commands that install a driver for the card: Debian's own packages are too old for Blackwell.
pub(super) fn install(host: &Host, card: Option<Generation>) -> Vec<String> {
    match card {
        Some(Generation::Blackwell) => of_nvidia(host, card),
        _ => own(host),
    }
}

/// The package of the distribution.
fn own(host: &Host) -> Vec<String> {
    let id = host.distribution().map(|distribution| distribution.id).unwrap_or_default();
    let add = match host.debian_release() {
        _ if COMPLETE.contains(&id.as_str()) => None,
        // Before Debian 12, there was no component for firmware.
        Some(..FIRST_OF_NVIDIA) => {
            Some("sudo sed -i -E '/^deb/s/ main.*/ main contrib non-free/' /etc/apt/sources.list")
        }
        // One of the two files exists, in the old format or the new one.
        _ => Some(
            "sudo sed -i -E '/^(deb|Components)/s/ main.*/ main contrib non-free non-free-firmware/' \
             $(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null)",
        ),
    };
    let commands = add.into_iter().chain(["sudo apt update"]).map(ToOwned::to_owned);
    commands.chain([format!("sudo apt install {} nvidia-driver", headers(host))]).collect()
}

/// The newest driver for the card from NVIDIA's repository; none for a release that has no such repository, or for a
/// relative that does not tell the release.
pub(super) fn of_nvidia(host: &Host, card: Option<Generation>) -> Vec<String> {
    let Some(release) = host.debian_release().filter(|release| *release >= FIRST_OF_NVIDIA) else {
        return Vec::new();
    };
    let headers = headers(host);
    let mut commands = vec![
        format!("wget {REPOSITORIES}/debian{release}/x86_64/cuda-keyring_1.1-1_all.deb"),
        "sudo dpkg -i cuda-keyring_1.1-1_all.deb".to_owned(),
        "sudo apt update".to_owned(),
    ];
    if card == Some(Generation::BeforeTuring) {
        // The newest branch has dropped these cards, and the package keeps apt in this one.
        commands.push(format!("sudo apt install nvidia-driver-pinning-{LAST_FOR_OLD_CARDS}"));
        commands.push(format!("sudo apt install {headers} cuda-drivers"));
    } else {
        commands.push(format!("sudo apt install {headers} nvidia-open"));
    }
    commands
}

/// What to write where NVIDIA's repository is needed, and which one is not known.
pub(super) fn advice(host: &Host) -> &'static str {
    match host.debian_release() {
        Some(..FIRST_OF_NVIDIA) => {
            "upgrade to Debian 12 or later, then install the driver from NVIDIA's repository for it: that of this release is too old"
        }
        _ => {
            "install the driver from NVIDIA's repository for the release of Debian that this distribution is made from, and restart: \
             Debian's own package is too old"
        }
    }
}

fn headers(host: &Host) -> String {
    line_of_debian(&host.kernel_release().unwrap_or_default())
}
