//! Whether the Windows drive that holds WSL's virtual disk has free space. The disk is a file that
//! grows as it fills: Linux may see a terabyte although the drive is full.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::exe_output;

/// Below this, the Windows drive will soon stop WSL's disk from growing.
const COMFORTABLE: u64 = 10_000_000_000;
/// Below this, Windows itself is affected.
const LEAST: u64 = 1_000_000_000;
/// Below this, WSL's own disk is full.
const LEFT: u64 = 5_000_000_000;
/// Below this, a checkpoint may no longer fit.
const FULL: u64 = 500_000_000;

pub(super) static CHECK: Check = Check {
    question: "Does the Windows drive have space for WSL's disk to grow?",
    reports: &["wsl.windows-disk-full", "wsl.disk-limit"],
    preflight: true,
    run,
};

/// Whether the maximum size of WSL's own disk is why this file system is full.
pub(in crate::checks) fn limits_disk(host: &Host, mount: &str) -> bool {
    let findings = run(host, &Intent::default()).unwrap_or_default();
    mount == "/" && findings.iter().any(|finding| finding.id == "wsl.disk-limit")
}

/// From Windows: the disks of distributions are files of the user, on drive C: unless they were moved.
fn on_windows(host: &Host) -> Option<Finding> {
    let places = host.places().ok()?;
    let profile = host.windows_profile().unwrap_or_default();
    let candidates = [Some(profile), places.data, places.cache, places.working];
    let is_on_c = |path: &String| path.get(..2).is_some_and(|drive| drive.eq_ignore_ascii_case("c:"));
    let mut folders = candidates.into_iter().flatten().filter(is_on_c);
    let free = folders.find_map(|folder| host.file_system(&folder).ok()?.available)?;
    if free >= COMFORTABLE {
        return None;
    }
    let all = exe_output::distributions(&host.wsl_list().ok().flatten()?);
    let one = all.iter().filter(|one| one.is_usable() && one.version == 2).max_by_key(|one| one.default)?;
    let title = format!(
        "only {} free on drive C:, where the disk of {} (ext4.vhdx) grows unless it was moved",
        format::bytes(free),
        one.name
    );
    let status = if free < LEAST { Status::Error } else { Status::Warning };
    let finding = Finding::new("wsl.windows-disk-full", title).status(status);
    Some(
        finding
            .remedy(
                "empty the Recycle Bin and delete temporary files (Settings, System, Storage), or move WSL's disk to another \
                 drive while WSL is shut down",
            )
            .command(super::SHUTDOWN)
            .command(format!("wsl.exe --manage {} --move <folder on another drive>", one.name)),
    )
}

/// Why the disk is or may be sparse: WSL says so when it is asked to enlarge it (microsoft/WSL#12821), or new disks are.
fn sparse(host: &Host) -> Option<&'static str> {
    let is_set = host.wslconfig().is_ok_and(|config| {
        config.value("sparseVhd").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    });
    let says_so = |text: &String| {
        let text = text.to_ascii_lowercase();
        text.contains("0xc03a001a") || text.contains("sparse file")
    };
    if host.recorded_texts("--resize").iter().any(says_so) {
        return Some("WSL says that the disk is sparse, and it enlarges none of those");
    }
    is_set.then_some("new disks are sparse by .wslconfig, so this one may be, and WSL enlarges none of those")
}

fn run(host: &Host, _: &Intent) -> Answer {
    if host.is_windows()? {
        return Ok(on_windows(host).into_iter().collect());
    }
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let drive = host.windows_drive();
    let windows = host.file_system(&drive)?.available;
    let places = host.places().unwrap_or_default();
    let folder = places.data.or(places.working);
    let linux =
        ["/"].into_iter().map(ToOwned::to_owned).chain(folder).find_map(|path| host.file_system(&path).ok());
    // A disk that was mounted separately is somewhere else.
    let linux =
        linux.filter(|system| system.kind.as_deref() == Some("ext4") && system.mount.as_deref() == Some("/"));
    let inside = linux.as_ref().and_then(|system| system.available);
    let Some(free) = windows else { return Ok(Vec::new()) };
    if free < COMFORTABLE && inside.is_none_or(|inside| inside > free) {
        let but = inside
            .map_or(String::new(), |inside| format!(", although Linux shows {}", format::bytes(inside)));
        let title =
            format!("only {} free on the Windows drive that holds WSL's disk{but}", format::bytes(free));
        let status = if free < LEAST { Status::Error } else { Status::Warning };
        return Ok(vec![Finding::new("wsl.windows-disk-full", title).status(status).seen(drive)]);
    }
    let Some((inside, total)) = inside.zip(linux.and_then(|system| system.total)) else {
        return Ok(Vec::new());
    };
    if inside < LEFT && free > inside.saturating_mul(2).max(COMFORTABLE) {
        let title = format!(
            "WSL's disk of {} is nearly full ({} left), although Windows has {} free",
            format::bytes(total),
            format::bytes(inside),
            format::bytes(free)
        );
        let name = host.env("WSL_DISTRO_NAME").ok().flatten().unwrap_or_else(|| "<distribution>".to_owned());
        let gigabytes = (total + free / 2) >> 30;
        let status = if inside < FULL { Status::Error } else { Status::Warning };
        let finding = Finding::new("wsl.disk-limit", title).status(status).command(super::SHUTDOWN);
        let finding = if let Some(sparse) = sparse(host) {
            finding
                .seen(sparse)
                .remedy(
                    "in a Windows terminal, shut WSL down, make the disk an ordinary file (its drive needs as much free space as the file \
                     is large), and enlarge it",
                )
                .command(format!("wsl.exe --manage {name} --set-sparse false"))
        } else {
            finding
        };
        return Ok(vec![finding.command(format!("wsl.exe --manage {name} --resize {gigabytes}GB"))]);
    }
    Ok(Vec::new())
}
