//! The virtual disk of a distribution that Windows or WSL cannot open. Nothing here removes a distribution, which would
//! delete its disk.

use super::said::Said;
use crate::checks::wsl::{SHUTDOWN, edit};
use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::exe_output;
use crate::wsl::start_failure::{Failure, Fault};

/// Shows where the disks of all distributions are.
const FIND: &str = "powershell.exe -Command \"Get-ItemProperty \
                    HKCU:\\Software\\Microsoft\\Windows\\CurrentVersion\\Lxss\\* | Format-List DistributionName, BasePath\"";

/// The flag of a distribution that runs in the virtual machine, which is WSL 2. One of WSL 1 has a folder and no disk.
const VIRTUAL_MACHINE: u64 = 0x8;

/// What Windows remembers of the user's distributions.
const LXSS: &str = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Lxss";

/// The disk of a distribution.
pub(super) struct Disk {
    /// Its file, if that is known.
    pub path: Option<String>,
    /// The distribution, if that is known.
    pub name: Option<String>,
}

impl Disk {
    /// The disk that an error is about.
    pub(super) fn of(host: &Host, said: &Said, failure: &Failure<'_>) -> Self {
        let default = || {
            let status = host.wsl_status().ok().flatten()?;
            exe_output::status(&status).default_distribution
        };
        let named = said.distribution().map(ToOwned::to_owned);
        let of_default = match named {
            None => of_default(host),
            Some(_) => None,
        };
        let path = failure.file.map(ToOwned::to_owned);
        Self {
            path: path.or_else(|| of_default.as_ref()?.path.clone()),
            name: named.or_else(|| of_default?.name).or_else(default),
        }
    }

    /// The distribution, which is the only one that does not start.
    fn owner(&self) -> &str {
        self.name.as_deref().unwrap_or("a distribution of WSL")
    }

    /// `its disk (D:\wsl\ext4.vhdx)`
    fn called(&self) -> String {
        format!("its disk ({})", self.path.as_deref().unwrap_or("ext4.vhdx"))
    }

    /// Whether it belongs to another program, such as Docker, and no run needs it.
    pub(super) fn is_of_helper(&self) -> bool {
        self.name.as_deref().is_some_and(exe_output::is_helper)
    }

    fn file(&self) -> &str {
        self.path.as_deref().unwrap_or("<path of ext4.vhdx>")
    }

    fn drive(&self) -> &str {
        let letter = self.path.as_deref().and_then(|path| path.get(..2));
        letter.filter(|drive| drive.ends_with(':')).unwrap_or("C:")
    }

    /// The command that copies it to another drive.
    fn rescue(&self) -> String {
        let (folder, file) = self.file().rsplit_once('\\').unwrap_or(("<folder of ext4.vhdx>", "ext4.vhdx"));
        format!("robocopy.exe \"{folder}\" \"<another drive>:\\rescue\" \"{file}\" /R:1 /W:1")
    }

    /// The finding, with the command that finds the file if it is not known.
    fn found(&self, finding: Finding) -> Finding {
        if self.path.is_some() { finding } else { finding.command(FIND) }
    }
}

/// The number of Windows for a file system that does not take the file of a disk (STATUS_INVALID_PARAMETER).
pub(super) const NO_FILE: &str = "0xd000000d";

/// The disk of a new distribution could not be made in this folder.
pub(super) fn not_made(host: &Host, folder: &str) -> Finding {
    let kind = host.file_system(folder).ok().and_then(|disk| disk.kind);
    let drive = folder.get(..2).unwrap_or(folder);
    let title = match kind.filter(|kind| !kind.eq_ignore_ascii_case("NTFS")) {
        Some(kind) => format!(
            "WSL cannot create a distribution in {folder}: drive {drive} is formatted with {kind}, not NTFS"
        ),
        None => format!(
            "WSL cannot create a distribution in {folder}: Windows creates no virtual disk on drive {drive}"
        ),
    };
    Finding::new("wsl.disk-unusable", title)
        .because("Windows keeps virtual disks on local NTFS or ReFS drives only, not on network shares, exFAT or FAT32")
        .remedy(
            "choose a folder on a local NTFS drive, such as C:, and run the command again; the file that you import is not at fault; \
             or format the other drive with NTFS after you have copied its files elsewhere",
        )
}

/// What is wrong with the disk.
pub(super) fn finding(fault: Fault, disk: &Disk) -> Finding {
    let called = disk.called();
    let new = |id: &'static str, what: &str| {
        disk.found(Finding::new(id, format!("{} cannot start: {called} {what}", disk.owner())))
    };
    match fault {
        Fault::DiskMissing => new("wsl.disk-missing", "does not exist"),
        Fault::DiskMisplaced => misplaced(new("wsl.disk-missing", "has no full path"), disk),
        Fault::DiskDamaged => check_linux(new("wsl.disk-broken", "has a damaged Linux file system"), disk),
        Fault::DiskUnreadable => unreadable(new("wsl.disk-broken", "cannot be read by Windows"), disk),
        Fault::DiskReadOnly => new("wsl.disk-unusable", "is on a write-protected drive")
            .because("an SSD becomes read-only when it fails; otherwise somebody set the protection")
            .remedy(
                "copy ext4.vhdx to another drive, and look at the health of the drive (the command below as \
                 administrator, or its maker's program); if it is healthy, remove the protection with diskpart \
                 (`attributes disk clear readonly`)",
            )
            .command("powershell.exe -Command \"Get-PhysicalDisk | Get-StorageReliabilityCounter\""),
        Fault::DiskCompressed => new("wsl.disk-unusable", "is compressed, encrypted or sparse")
            .because("Windows opens a virtual disk only if NTFS neither compresses nor encrypts its file, nor keeps it sparse")
            .remedy(
                "in the Properties of its folder, Advanced, clear `Compress contents` and `Encrypt contents`, for all files \
                 in it; if that does not help, run these commands in a Windows terminal as administrator: they decompress \
                 the file and clear its sparse flag",
            )
            .command(SHUTDOWN)
            .command(format!("compact.exe /u \"{}\"", disk.file()))
            .command(format!("fsutil.exe sparse setflag \"{}\" 0", disk.file())),
        Fault::DiskEncrypted => new("wsl.disk-unusable", "is encrypted by Windows (EFS)")
            .because("an app that was moved to another drive, or its folder, is encrypted for one user; WSL cannot read that")
            .remedy(
                "as the user who owns it, decrypt the file and its folder (Properties, Advanced, clear `Encrypt \
                 contents`); then set Settings, System, Storage, `Where new content is saved` back to C: before \
                 installing another distribution",
            )
            .command(SHUTDOWN)
            .command(format!("cipher.exe /d \"{}\"", disk.file())),
        Fault::DiskOfMovedApp => new("wsl.disk-unusable", "is in the folder of an app on another drive")
            .because("Windows protects apps on drives other than its own, so WSL cannot use the files of this one")
            .remedy(
                "move the app back to C: (Settings, Apps, Installed apps, its menu, Move), and set Settings, System, Storage, \
                 `Where new content is saved` back to C:; do not uninstall the app, which deletes its disk",
            )
            .command(SHUTDOWN),
        Fault::DiskInUse => new("wsl.disk-unusable", "is in use by another program")
            .because("Hyper-V, Docker Desktop, diskpart, a backup or a virus scanner has it open")
            .remedy("close that program, shut WSL down and start it again; if that does not help, restart Windows")
            .command(SHUTDOWN),
        _ => new("wsl.disk-unusable", "is on a drive that cannot hold a virtual disk")
            .because("Windows opens virtual disks on local NTFS or ReFS drives, not on network shares, exFAT or FAT32")
            .remedy(
                "copy ext4.vhdx to a local drive with NTFS, and register it there under a new name; keep the old one \
                 until the new one starts",
            )
            .command(SHUTDOWN)
            .command(r"wsl.exe --import-in-place <new name> C:\wsl\ext4.vhdx"),
    }
}

/// `wsl --manage NAME --move E:` remembers a drive without its root folder, `E:ext4.vhdx` (microsoft/WSL#449).
fn misplaced(finding: Finding, disk: &Disk) -> Finding {
    let drive = disk.drive();
    finding
        .because("the distribution was moved to a drive without a folder, as with `wsl.exe --manage NAME --move E:`")
        .remedy(format!(
            "set the distribution's BasePath in the registry to the root folder of the drive, which the command does, and start it again; next time move it to a folder, such as {drive}\\wsl"
        ))
        .command(format!(
            "powershell.exe -Command \"Get-ItemProperty HKCU:\\Software\\Microsoft\\Windows\\CurrentVersion\\Lxss\\* | Where-Object \
             BasePath -in '{drive}','\\\\?\\{drive}' | Set-ItemProperty -Name BasePath -Value '{drive}\\'\""
        ))
        .command(SHUTDOWN)
}

/// A file system that only Linux can check, from another distribution.
fn check_linux(finding: Finding, disk: &Disk) -> Finding {
    let another = "wsl.exe -d <another distribution> -u root --exec";
    finding
        .command(SHUTDOWN)
        .command(format!("wsl.exe --mount --vhd \"{}\" --bare", disk.file()))
        .command(format!("{another} lsblk"))
        .command(format!("{another} e2fsck -f -y /dev/<disk>"))
        .command(format!("wsl.exe --unmount \"{}\"", disk.file()))
}

/// A file that Windows itself cannot read.
fn unreadable(finding: Finding, disk: &Disk) -> Finding {
    finding
        .because("the file system of the Windows drive (NTFS) or the drive itself is damaged; Linux is not at fault")
        .remedy(
            "shut WSL down, copy ext4.vhdx to another drive, and only then repair the Windows drive in a terminal as \
             administrator, because chkdsk may cut off or delete the file; if it cannot be copied, restore a backup of it; look at \
             the health of the drive; if WSL then says that the Linux file system is \
             damaged, check it with e2fsck from another distribution",
        )
        .command(SHUTDOWN)
        .command(disk.rescue())
        .command(format!("chkdsk {} /f", disk.drive()))
}

/// Windows does not let WSL open the disk, or a file that `.wslconfig` names.
pub(super) fn access_denied(host: &Host, disk: &Disk, failure: &Failure<'_>) -> Finding {
    let config = host.wslconfig().ok();
    let is_of_user = |value: &str| value.to_ascii_lowercase().replace('/', r"\").contains(r"\users\");
    let own = ["kernelModules", "systemDistro"].into_iter().find_map(|key| {
        let value = config.as_ref()?.value(key).filter(|value| is_of_user(value))?;
        Some((key, value.to_owned()))
    });
    let is_disk = failure.code.contains("Mount") || failure.file.is_some();
    if let Some((key, value)) = own.filter(|_| !is_disk || failure.code.contains("CreateVm")) {
        let title = format!("WSL cannot start: it may not open the file of `{key}=` in the folder of a user");
        let finding = Finding::new("wsl.access-denied", title)
            .because("some releases of WSL (2.7.1 to 2.7.3) open this file without permission to enter the folder of a user")
            .seen(format!(".wslconfig: {key}={value}"))
            .remedy(format!(
                "update WSL and shut it down; if it says the same again, move the file to the root of a drive, such as C:\\, \
                 change `{key}=` in .wslconfig, and shut WSL down"
            ))
            .command("wsl.exe --update");
        let finding = config.as_ref().map_or(finding.clone(), |config| finding.command(edit(host, config)));
        return finding.command(SHUTDOWN);
    }
    if !is_disk {
        return Finding::new("wsl.access-denied", "WSL cannot start: Windows denies its service access to a file")
            .because("two installations of WSL are mixed, or a virus scanner or a policy blocks the virtual machine")
            .remedy(
                "restart Windows; if that does not help, run the installer (.msi) from \
                 https://github.com/microsoft/WSL/releases as administrator, which repairs WSL and keeps distributions; then \
                 exclude the folder of WSL in the virus scanner",
            )
            .command("shutdown /r /t 0");
    }
    let title = format!("{} cannot start: Windows denies access to {}", disk.owner(), disk.called());
    disk.found(Finding::new("wsl.access-denied", title))
        .command(SHUTDOWN)
        .command(format!("icacls.exe \"{}\" /grant \"${{env:USERNAME}}:F\"", disk.file()))
}

/// The disk of the default distribution, if that is one of WSL 2 on a drive with a letter.
pub(super) fn of_default(host: &Host) -> Option<Disk> {
    let value = |path: &str| host.registry(&format!(r"{LXSS}\{path}")).ok().flatten();
    let id = value("DefaultDistribution")?;
    let folder = value(&format!(r"{id}\BasePath"))?;
    // `Version` there is that of the file system, and 2 for WSL 1 as well.
    let flags = value(&format!(r"{id}\Flags"))?.trim().parse::<u64>().ok()?;
    if flags & VIRTUAL_MACHINE == 0 {
        return None;
    }
    let folder = folder.strip_prefix(r"\\?\").unwrap_or(&folder).trim_end_matches('\\').to_owned();
    let file = value(&format!(r"{id}\VhdFileName")).unwrap_or_else(|| "ext4.vhdx".to_owned());
    let has_letter = folder.get(1..3) == Some(r":\");
    let name = value(&format!(r"{id}\DistributionName"));
    has_letter.then(|| Disk { path: Some(format!(r"{folder}\{file}")), name })
}
