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
    let finding = said.into_iter().fold(finding, Finding::seen).seen(format!("{disk} exists")).because(
        "the disk of a distribution that was installed earlier is still there, but this Windows user's list has no distribution; \
         Windows does not overwrite such a disk (0x80070050, the file exists)",
    );
    let text = format!(
        "to use the old distribution with all its files again, register its disk where it lies (--import-in-place); for a new one of \
         the same name, first rename {disk}, and delete it only when nothing in it is needed"
    );
    let mut finding = finding.remedy(text);
    if let Some(remedy) = finding.remedy.as_mut() {
        remedy.commands.clear();
    }
    let finding = finding.command(format!("wsl.exe --import-in-place Ubuntu-old \"{disk}\""));
    if is_refused { finding } else { finding.command("wsl.exe --install -d Ubuntu") }
}
