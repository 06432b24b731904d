//! The kernel log, and the errors of NVIDIA cards in it. The source is `dmesg` if permitted, else the
//! journal; a recording may contain either with any options, or a log file. The driver writes
//! `NVRM: Xid (PCI:0000:44:00): 79, …`, or three lines without a number for a lost card.

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

use super::log_time::LogTime;

/// Files that contain the kernel log on some distributions. Read only from recordings, because they
/// span several boots.
const FILES: [&str; 4] = ["/var/log/dmesg", "/var/log/kern.log", "/var/log/syslog", "/var/log/messages"];
/// The Xid of a card that has fallen off the bus.
const LOST: u32 = 79;

/// An error that the NVIDIA driver wrote to the kernel log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// NVIDIA's error number, such as 79.
    pub number: u32,
    /// The card's address in the form of `pci_address`, if the line contains it.
    pub address: Option<String>,
    /// The line.
    pub line: String,
}

impl Host {
    /// The kernel log since boot.
    pub fn kernel_log(&self) -> Fact<String> {
        let unreadable = || Unknown::because("this user may not read the kernel log");
        if !self.is_recorded() {
            let journal =
                ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-n", "4000"];
            for command in [&["dmesg"][..], &journal] {
                if let Ok(Some(output)) = self.command(command)
                    && !output.stdout.is_empty()
                {
                    return Ok(output.text());
                }
            }
            return Err(unreadable());
        }
        let outputs = ["dmesg", "journalctl"].iter().flat_map(|program| self.recorded_outputs(program));
        // The log of an earlier boot says nothing about this one.
        let outputs = outputs.filter(|(line, _)| !is_of_boot_before(line));
        let mut logs: Vec<String> = outputs.map(|(_, output)| output.text()).collect();
        // Errors from loading a module by hand.
        logs.extend(self.recorded_outputs("modprobe").iter().map(|(_, output)| output.error_text()));
        logs.extend(FILES.iter().filter_map(|file| self.text(file).ok().flatten()));
        let has_logs = !logs.is_empty();
        logs.retain(|log| !log.trim().is_empty());
        match logs.is_empty() {
            false => Ok(logs.join("\n")),
            true if has_logs => Err(unreadable()),
            true => Err(Unknown::because("the recording does not include the kernel log")),
        }
    }

    /// The lines of the kernel log that contain one of these texts; empty if it cannot be read.
    pub fn kernel_lines(&self, texts: &[&str]) -> Vec<String> {
        let log = self.kernel_log().unwrap_or_default();
        let lines = log.lines().filter(|line| texts.iter().any(|text| line.contains(text)));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    /// The errors of the NVIDIA driver in the kernel log of the previous boot, as far as this user may read it. A live
    /// host searches a journal, which takes a while.
    pub fn xids_of_boot_before(&self) -> Vec<Xid> {
        const SEARCH: [&str; 12] = [
            "journalctl",
            "-k",
            "-b",
            "-1",
            "-q",
            "--no-pager",
            "-o",
            "short-unix",
            "-g",
            "NVRM",
            "-n",
            "200",
        ];
        if !self.is_recorded() {
            let output = self.command(&SEARCH).ok().flatten();
            return output.map(|output| xids(&output.text())).unwrap_or_default();
        }
        let outputs = self.recorded_outputs("journalctl").into_iter();
        let of_boot = outputs.filter(|(line, _)| is_of_boot_before(line));
        of_boot.flat_map(|(_, output)| xids(&output.text())).collect()
    }

    /// How many seconds after this error the previous boot still wrote to its log, if lines tell their times.
    pub fn seconds_to_end_of_boot_before(&self, xid: &Xid) -> Option<f64> {
        const LAST: [&str; 9] = ["journalctl", "-b", "-1", "-q", "--no-pager", "-o", "short-unix", "-n", "1"];
        let at = LogTime::of(&xid.line)?;
        let until = |log: &str| at.until(log.lines().rev().find_map(LogTime::of)?);
        if !self.is_recorded() {
            return until(&self.command(&LAST).ok()??.text());
        }
        let outputs = self.recorded_outputs("journalctl").into_iter();
        let of_boot = outputs.filter(|(line, _)| is_of_boot_before(line));
        of_boot.filter_map(|(_, output)| until(&output.text())).reduce(f64::max)
    }

    /// The errors of the NVIDIA driver in the kernel log. A lost card is number 79, however it is
    /// logged.
    pub fn xids(&self) -> Fact<Vec<Xid>> {
        Ok(xids(&self.kernel_log()?))
    }
}

/// Whether a command reads the journal of an earlier boot: `-b -1`, `-kb-1`, `--boot=-1`.
fn is_of_boot_before(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_earlier = |word: &str| {
        word.strip_prefix('-').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    let is_option = |word: &str| {
        word == "--boot" || word.starts_with('-') && !word.starts_with("--") && word.ends_with('b')
    };
    words.windows(2).any(|pair| is_option(pair[0]) && is_earlier(pair[1]))
        || words.iter().any(|word| {
            let joined = word.strip_prefix("--boot=").or_else(|| {
                let (options, number) = word.strip_prefix('-')?.split_once('b')?;
                options.chars().all(char::is_alphabetic).then_some(number)
            });
            joined.is_some_and(is_earlier)
        })
}

fn xids(log: &str) -> Vec<Xid> {
    let mut found = Vec::new();
    let mut last_card = None;
    for line in log.lines().filter(|line| line.contains("NVRM")) {
        if let Some((_, rest)) = line.split_once("NVIDIA GPU ") {
            last_card = rest.split_whitespace().next().and_then(pci_address);
        }
        let numbered = line.split_once("Xid (").and_then(|(_, rest)| {
            let (card, rest) = rest.split_once("):")?;
            let number = rest.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?;
            Some((number.parse().ok()?, pci_address(card.trim_start_matches("PCI:"))))
        });
        let error = match numbered {
            Some((number, address)) => Some((number, address)),
            None if line.contains("fallen off the bus") => Some((LOST, last_card.clone())),
            None => None,
        };
        found.extend(error.map(|(number, address)| Xid { number, address, line: line.trim().to_owned() }));
    }
    found
}

/// The canonical form of a PCI address: `00000000:01:00.0`, `0000:01:00` and `01:00.0`
/// are `0000:01:00`.
pub(crate) fn pci_address(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches([',', ':', '.', ';']).to_ascii_lowercase();
    let text = text.split('.').next()?;
    let parts: Vec<&str> = text.split(':').collect();
    let is_hex = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_hexdigit());
    if !parts.iter().all(|part| is_hex(part)) {
        return None;
    }
    match parts[..] {
        [bus, device] => Some(format!("0000:{bus}:{device}")),
        [domain, bus, device] => {
            let domain = u32::from_str_radix(domain, 16).ok()?;
            Some(format!("{domain:04x}:{bus}:{device}"))
        }
        _ => None,
    }
}

/// The name of a device in /sys/bus/pci/devices: `0000:41:00.0`. NVML writes eight digits for the domain.
pub(crate) fn pci_device(text: &str) -> Option<String> {
    let function = text.trim().rsplit_once('.')?.1;
    let is_one = function.len() == 1 && function.starts_with(|digit: char| digit.is_ascii_hexdigit());
    is_one.then(|| Some(format!("{}.{function}", pci_address(text)?)))?
}

/// The PCI addresses in a line of a log, in their canonical form. A time, such as `08:10:58`, is none.
pub(crate) fn pci_addresses(line: &str) -> impl Iterator<Item = String> {
    let words = line.split([' ', '\t', '[', ']', '(', ')', '=', ',']);
    words.filter_map(|word| {
        let word = word.strip_prefix("PCI:").unwrap_or(word).trim_end_matches([':', '.', ';']);
        is_pci_address(word).then(|| pci_address(&word.replace("0x", "")))?
    })
}

/// `0000:41:00.0`, also without its function, `41:00.0`, or in newer kernels `0x41:0x00.0`.
fn is_pci_address(word: &str) -> bool {
    let is_hex = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        let part = part.strip_prefix("0x").unwrap_or(part);
        digits.contains(&part.len()) && part.chars().all(|letter| letter.is_ascii_hexdigit())
    };
    let (card, function) = match word.split_once('.') {
        Some((card, function)) => (card, Some(function)),
        None => (word, None),
    };
    let is_function = |function: &str| matches!(function.as_bytes(), [b'0'..=b'7']);
    let is_card = match card.split(':').collect::<Vec<_>>()[..] {
        [bus, device] => function.is_some() && is_hex(bus, 2..=2) && is_hex(device, 2..=2),
        // Intel's controller for NVMe disks has domains of five digits.
        [domain, bus, device] => is_hex(domain, 4..=8) && is_hex(bus, 2..=2) && is_hex(device, 2..=2),
        _ => false,
    };
    is_card && function.is_none_or(is_function)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn host(sections: Value) -> Host {
        let mut recording = json!({ "version": 1, "os": "linux" });
        recording.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
        Host::from_value(recording).unwrap().0
    }

    #[test]
    fn the_log_is_found_under_any_command() {
        for sections in [
            json!({ "commands": { "dmesg -T": "usb 1-1\n" } }),
            json!({ "commands": { "sudo dmesg": ["usb 1-1"] } }),
            json!({ "commands": { "dmesg": { "exit": 1, "stderr": "not permitted" }, "journalctl -k": "usb 1-1" } }),
            json!({ "files": { "/var/log/kern.log": "usb 1-1\n" } }),
        ] {
            assert_eq!(host(sections).kernel_lines(&["usb"]), ["usb 1-1"]);
        }
        assert!(
            host(json!({ "commands": { "dmesg": { "exit": 1, "stderr": "no" } } })).kernel_log().is_err()
        );
    }

    #[test]
    fn the_log_of_an_earlier_boot_is_not_that_of_this_one() {
        for line in
            ["journalctl -k -b -1", "journalctl -kb -1", "journalctl -b-1 -k", "journalctl --boot=-2 -k"]
        {
            let log = host(json!({ "commands": { line: "NVRM: Xid (PCI:0000:01:00): 79, gone\n" } }));
            assert!(log.xids().is_err() && log.xids_of_boot_before().len() == 1, "{line}");
        }
        let log = host(
            json!({ "commands": { "journalctl -k -b -n -1": "NVRM: Xid (PCI:0000:01:00): 79, gone\n" } }),
        );
        assert_eq!((log.xids().unwrap().len(), log.xids_of_boot_before().len()), (1, 0));
    }

    #[test]
    fn a_lost_card_is_logged_in_one_line_or_in_three() {
        let log = "[ 12.3] NVRM: The NVIDIA GPU 0000:b3:00.0\n\
                   NVRM: (PCI ID: 10de:26b5) installed in this system has\n\
                   NVRM: fallen off the bus and is not responding to commands.\n\
                   [99.1] NVRM: Xid (PCI:0000:44:00): 79, pid=77, name=python3, GPU has fallen off the bus.\n\
                   [99.2] NVRM: Xid (PCI:0000:45:00): 63, Row remapping event\n";
        let found: Vec<(u32, Option<String>)> =
            xids(log).into_iter().map(|xid| (xid.number, xid.address)).collect();
        let at = |address: &str| Some(address.to_owned());
        assert_eq!(found, [(79, at("0000:b3:00")), (79, at("0000:44:00")), (63, at("0000:45:00"))]);
    }

    #[test]
    fn pci_addresses_have_one_canonical_form() {
        for text in ["00000000:01:00.0", "0000:01:00", "01:00.0", "0000:01:00.0:", "0000:01:00.0"] {
            assert_eq!(pci_address(text).as_deref(), Some("0000:01:00"), "{text}");
        }
        assert_eq!(pci_address("not an address"), None);
        assert_eq!(pci_device("00000000:E1:00.0").as_deref(), Some("0000:e1:00.0"));
        assert_eq!(pci_device("10000:e1:00.0").as_deref(), Some("10000:e1:00.0"));
        assert_eq!(pci_device("0000:e1:00"), None);
    }

    #[test]
    fn only_what_has_the_form_of_an_address_is_one() {
        for word in
            ["0000:41:00.0", "00000000:41:00.0", "10000:e1:00.0", "41:00.0", "0x41:0x00.0", "PCI:0000:41:00"]
        {
            assert_eq!(pci_addresses(word).count(), 1, "{word}");
        }
        for word in
            ["08:10:58", "2026-11-26T10:08:58.123", "08:58.123", "cafe:10:20.51", "10:20.9", "0x62:0x40:1860"]
        {
            assert_eq!(pci_addresses(word).count(), 0, "{word}");
        }
    }

    #[test]
    fn a_time_in_a_line_is_no_address() {
        for line in [
            "Nov 26 08:10:58 host kernel: NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x62:0x40:1860)",
            "[ 5.0] AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x0 address=0x1 flags=0x0020]",
            "[ 5.0] DMAR: [DMA Write NO_PASID] Request device [0x41:0x00.0] fault addr 0x1 [fault reason 0x05]",
            "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
        ] {
            assert_eq!(pci_addresses(line).collect::<Vec<_>>(), ["0000:41:00"], "{line}");
        }
        for line in [
            "2026-11-26T10:08:58.123 host kernel:",
            "at cafe:10:20.5 or 10:20.5f",
            "0x62:0x40:1860",
            "8:10:58.1",
        ] {
            assert_eq!(pci_addresses(line).find(|found| found != "cafe:10:20"), None, "{line}");
        }
        assert_eq!(pci_addresses("vmd 10000:e1:00.0: up").collect::<Vec<_>>(), ["10000:e1:00"]);
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(NVRM|: |Xid|\\(PCI:|[0-9:.]|\\)|NVIDIA GPU |fallen off the bus|\\PC|\n){0,40}") {
            let _ = (xids(&log), pci_addresses(&log).count(), is_of_boot_before(&log), pci_device(&log));
        }
    }
}
