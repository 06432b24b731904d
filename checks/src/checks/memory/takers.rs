//! What takes the memory of a machine that has little left, as far as the kernel says it: pages that are reserved for
//! virtual machines, files in memory, the kernel itself. No list of processes shows these.

use yolo_base::format;

use crate::facts::Host;
use crate::facts::view::meminfo::{bytes_of, number_of};
use crate::finding::Finding;

/// Less than this part of the memory is not worth mentioning.
const NOTABLE: u64 = 5;

/// Adds the largest of them to a finding about little memory.
pub(super) fn name(host: &Host, finding: Finding, total: u64) -> Finding {
    let Some(text) = host.text("/proc/meminfo").ok().flatten() else { return finding };
    let bytes = |name: &str| bytes_of(&text, name).unwrap_or(0);
    let pages = |name: &str| number_of(&text, name).unwrap_or(0);
    let reserved = bytes("Hugetlb").max(pages("HugePages_Total").saturating_mul(bytes("Hugepagesize")));
    let in_files = bytes("Shmem");
    let of_kernel = bytes("SUnreclaim");
    let is_notable = |bytes: u64| bytes > total / NOTABLE;
    if is_notable(reserved) {
        return huge_pages(host, finding, reserved, pages("HugePages_Total"), pages("HugePages_Free"));
    }
    if is_notable(in_files) {
        if let Some(used) = in_tmp(host).filter(|&used| used > in_files / 2) {
            return in_memory(finding, used);
        }
        return finding
            .seen(format!("files in memory (/dev/shm, tmpfs) hold {}", format::memory(in_files)))
            .remedy(
                "delete files that nobody needs from /dev/shm, /tmp and other file systems in memory, which these commands list; \
                 leave those of programs that still run",
            )
            .command("df -h -t tmpfs")
            .command("ls -lS /dev/shm");
    }
    if is_notable(of_kernel) {
        return finding
            .seen(format!("the kernel itself holds {} (SUnreclaim)", format::memory(of_kernel)))
            .remedy(
                "restart the machine if this grows from day to day, since then a driver or file system leaks; the command \
                 names the largest caches",
            )
            .command("sudo slabtop -o -s c");
    }
    finding
}

/// The bytes in /tmp, if that is a file system in memory, as on Debian 13, Fedora and Arch.
fn in_tmp(host: &Host) -> Option<u64> {
    let tmp = host
        .file_system("/tmp")
        .ok()
        .filter(|tmp| tmp.kind.as_deref() == Some("tmpfs") && tmp.mount.as_deref() == Some("/tmp"))?;
    Some(tmp.total?.saturating_sub(tmp.available?))
}

/// Interrupted installations leave folders of some gigabytes there.
fn in_memory(finding: Finding, used: u64) -> Finding {
    finding
        .seen(format!("/tmp is in memory (tmpfs), and its files hold {}", format::memory(used)))
        .remedy(
            "delete what nobody needs from /tmp, such as pip-unpack-…, pip-install-… and build-temp-… of interrupted installations, and \
             leave files of programs that still run; to have /tmp on the disk from the next restart on, run `sudo systemctl mask \
             tmp.mount` (where /etc/fstab names /tmp, remove that line instead; NixOS: `boot.tmp.useTmpfs = false;`)",
        )
        .command("du -xsh /tmp/* | sort -h")
}

/// Reserved pages are no memory for ordinary programs, used or not.
fn huge_pages(host: &Host, finding: Finding, bytes: u64, all: u64, free: u64) -> Finding {
    let line = host.text("/proc/cmdline").ok().flatten().unwrap_or_default();
    let option = line.split_whitespace().find(|word| word.starts_with("hugepages=")).map(ToOwned::to_owned);
    let place = match &option {
        Some(option) => format!("`{option}` in the kernel command line (GRUB)"),
        None => "`vm.nr_hugepages` in /etc/sysctl.conf or /etc/sysctl.d, or `hugepages=` in the kernel command line".to_owned(),
    };
    let finding =
        finding.seen(format!("{all} huge pages hold {}; {free} of them are free", format::memory(bytes)));
    let finding = option
        .into_iter()
        .fold(finding, |finding, option| finding.seen(format!("kernel command line: {option}")));
    let finding = finding.because(
        "huge pages are reserved memory for virtual machines and databases; ordinary programs cannot use it, even \
         while the pages are free, and the system kills a rank that runs out of memory",
    );
    let finding = finding.remedy(format!(
        "if no virtual machine or database needs the huge pages, give the free ones back, and for good remove {place}"
    ));
    finding.command("echo 0 | sudo tee /proc/sys/vm/nr_hugepages")
}
