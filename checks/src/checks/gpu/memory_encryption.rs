//! Whether the memory of the machine is encrypted by an AMD CPU in a way that GPUs do not know: with SME the kernel sets a
//! bit in addresses that most cards cannot use, and in a confidential virtual machine a card without that mode reads
//! memory only through a small buffer.

use super::of_run;
use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::kernel_option::{options, place, remove};
use crate::remedies::restart::restart;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Can the GPUs read the memory of a machine that encrypts it?",
    reports: &["gpu.memory-encrypted"],
    preflight: true,
    run,
};

/// What encrypts the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    /// All memory of the machine.
    Sme,
    /// That of this virtual machine.
    Sev,
}

fn run(host: &Host, intent: &Intent) -> Answer {
    let is_ready =
        || host.nvml_state() == Ok(NvmlState::Ready) && host.gpus().is_ok_and(|gpus| !gpus.is_empty());
    if intent.cpu || !super::is_native_linux(host) || !is_ready() {
        return Ok(Vec::new());
    }
    let lines = host.kernel_lines(&["Memory Encryption Features active"]);
    let asked = options(host, |word| word == "mem_encrypt=on");
    let said = lines.iter().find_map(|line| Some((encryption(line)?, line.clone())));
    let (kind, line) = match said {
        Some(said) => said,
        // Not every user may read the log.
        None if !asked.is_empty() && lines.is_empty() && !host.is_virtual_machine() => {
            (Encryption::Sme, "kernel command line: mem_encrypt=on".to_owned())
        }
        None => return Ok(Vec::new()),
    };
    let gpus = of_run(host, intent)?;
    // Hopper and later have a mode for confidential virtual machines, which another check asks about.
    let is_for_it = gpus.iter().all(|gpu| {
        let is_new = gpu.capability().is_ok_and(|capability| capability.0 >= 9);
        is_new && !gpu.name().unwrap_or_default().contains("GeForce")
    });
    if kind == Encryption::Sev && is_for_it {
        return Ok(Vec::new());
    }
    let failed = host.kernel_lines(&["): 31, ", "swiotlb buffer is full"]);
    let mut failed =
        failed.into_iter().filter(|line| line.contains("FAULT") || line.contains("nvidia")).peekable();
    // A program that reads outside its memory causes Xid 31 as well.
    let is_proven = !host.kernel_lines(&["swiotlb buffer is full"]).is_empty() && failed.peek().is_some();
    let name = if kind == Encryption::Sme { "SME" } else { "SEV" };
    let title = match is_proven {
        true => format!("the memory of this machine is encrypted (AMD {name}), and GPUs fail to read it"),
        false => {
            format!("the memory of this machine is encrypted (AMD {name}), which CUDA may not work with")
        }
    };
    let finding = Finding::new("gpu.memory-encrypted", title).seen(line);
    let finding = failed.take(2).fold(finding, Finding::seen);
    let finding = finding.status(if is_proven { Status::Error } else { Status::Info });
    Ok(vec![match kind {
        Encryption::Sev => finding.remedy(
            "train in an ordinary virtual machine, or give this one a card with a mode for confidential computing (H100 and later), in \
             that mode",
        ),
        Encryption::Sme if asked.is_empty() => restart(
            host,
            finding.remedy(
                "boot Linux with `mem_encrypt=off` on the kernel command line, or turn SMEE off in the firmware settings (TSME, \
                 which needs no support from Linux, may stay on)",
            ),
        ),
        Encryption::Sme => {
            let finding = finding.remedy(format!(
                "remove `mem_encrypt=on` from the kernel command line{}, or turn SMEE off in the firmware settings (TSME, which \
                 needs no support from Linux, may stay on), and restart",
                place(host)
            ));
            remove(host, finding, &asked)
        }
    }])
}

/// `AMD Memory Encryption Features active: SME`, in newer kernels `Memory Encryption Features active: AMD SEV SEV-ES SEV-SNP`.
fn encryption(line: &str) -> Option<Encryption> {
    let (before, active) = line.split_once("Memory Encryption Features active:")?;
    let words: Vec<&str> = active.split_whitespace().collect();
    if !before.contains("AMD") && words.first() != Some(&"AMD") {
        return None;
    }
    if words.iter().any(|word| word.starts_with("SEV")) {
        return Some(Encryption::Sev);
    }
    words.contains(&"SME").then_some(Encryption::Sme)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_encrypts_is_known_in_old_and_new_kernels() {
        assert_eq!(encryption("[0.1] AMD Memory Encryption Features active: SME"), Some(Encryption::Sme));
        assert_eq!(encryption("[0.1] Memory Encryption Features active: AMD SME"), Some(Encryption::Sme));
        assert_eq!(
            encryption("Memory Encryption Features active: AMD SEV SEV-ES SEV-SNP"),
            Some(Encryption::Sev)
        );
        assert_eq!(encryption("Memory Encryption Features active: Intel TDX"), None);
        assert_eq!(encryption("[0.1] Memory encryption: none"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(AMD |Memory Encryption Features active:| SME| SEV|\\PC){0,10}") {
            let _ = encryption(&line);
        }
    }
}
