//! A PC without a distribution on which the disk of an earlier one still lies: Windows does not overwrite it, so the same
//! distribution cannot be installed again, and the user's files may be in it.

use crate::facts::Host;
use crate::finding::Finding;

/// ERROR_FILE_EXISTS, as the launchers of distributions say it.
const EXISTS: &str = "0x80070050";

/// `wsl.no-distribution` with such a disk, if there is one.
pub(super) fn explained(host: &Host, finding: Finding) -> Finding {
    if finding.id != "wsl.no-distribution" {
        return finding;
    }
    let disks = host.disks_of_wsl();
    let Some(disk) = disks.first() else { return finding };
    let refused = host.recorded_texts("").into_iter().flat_map(|text| {
        text.lines()
            .filter(|line| line.contains(EXISTS))
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    });
    let said = refused.into_iter().next();
    let is_refused = said.is_some();
    let refusal = if is_refused {
        "; Windows does not overwrite such a disk (0x80070050, the file exists)"
    } else {
        ""
    };
    let finding = said.into_iter().fold(finding, Finding::seen).seen(format!("{disk} exists")).because(format!(
        "the disk of a distribution that was installed earlier is still there, but this Windows user's list has no distribution\
         {refusal}"
    ));
    let new = if is_refused {
        format!("for a new one of the same name, first rename {disk}, and delete it")
    } else {
        format!("a new one gets a disk of its own; delete {disk}")
    };
    let text = format!(
        "to use the old distribution with all its files again, copy its disk to a folder of your own, because removing its app in \
         Windows' Settings would delete it, and register the copy (--import-in-place); it then starts as root until /etc/wsl.conf \
         has `default=USER` under [user]; {new} only when nothing in it is needed"
    );
    let mut finding = finding.remedy(text);
    if let Some(remedy) = finding.remedy.as_mut() {
        remedy.commands.clear();
    }
    let quoted = disk.replace('\'', "''");
    let finding = finding
        .command(format!(
            r#"powershell.exe -Command "mkdir -Force C:\wsl\old; copy '{quoted}' C:\wsl\old\ext4.vhdx""#
        ))
        .command(r"wsl.exe --import-in-place Ubuntu-old C:\wsl\old\ext4.vhdx");
    if is_refused { finding } else { finding.command("wsl.exe --install -d Ubuntu") }
}
