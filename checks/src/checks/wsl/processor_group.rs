//! Whether WSL has half of the PC's processors only. Windows divides more than 64 of them into groups, and
//! the virtual machine of WSL gets one group.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does WSL have all processors of the PC?",
    reports: &["wsl.processors-half"],
    preflight: false,
    run,
};

/// What PowerShell and wmic call the processors of a socket.
const PROCESSORS: &str = "NumberOfLogicalProcessors";
/// More than any PC has: another number.
const MOST: u32 = 2048;
/// The most processors of a group.
const GROUP: u32 = 64;

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    // On a live PC only a program of Windows could tell, which takes seconds; nothing is lost without the answer.
    let texts = host.recorded_texts(PROCESSORS);
    let Some(of_pc) = texts.iter().filter_map(|text| total(text)).max() else { return Ok(Vec::new()) };
    let has = host.wsl_vm()?.processors;
    let asked = host.wslconfig().ok().and_then(|config| config.value("processors")?.parse::<u32>().ok());
    if of_pc <= GROUP || has >= of_pc || has > GROUP || asked.is_some_and(|asked| asked <= has) {
        return Ok(Vec::new());
    }
    let title = format!("WSL has {has} of this PC's {of_pc} processors: one of Windows' groups");
    Ok(vec![Finding::new("wsl.processors-half", title)])
}

/// The sum of the numbers, of which each socket has one: lines `NumberOfLogicalProcessors : 48` or `…=48`, or numbers alone
/// on their lines. In a table with other columns it is not certain which number is which.
fn total(text: &str) -> Option<u32> {
    let mut sum = 0;
    for line in text.lines().map(str::trim) {
        let value = match line.split_once([':', '=']) {
            Some((name, value)) if name.trim() == PROCESSORS => value.trim(),
            Some(_) => continue,
            None if line.is_empty() || line == PROCESSORS || line.chars().all(|letter| letter == '-') => {
                continue;
            }
            None => line,
        };
        sum = value.parse::<u32>().ok().filter(|number| (1..=MOST).contains(number))?.checked_add(sum)?;
    }
    (1..=MOST).contains(&sum).then_some(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::total;

    #[test]
    fn the_processors_of_all_sockets_are_summed_up() {
        assert_eq!(total("NumberOfLogicalProcessors  \r\n48\r\n48\r\n"), Some(96));
        assert_eq!(total("NumberOfLogicalProcessors\r\n-----------\r\n 48\r\n 48\r\n"), Some(96));
        let list = "Name : AMD Ryzen 9 7950X 16-Core Processor\nNumberOfCores : 16\nNumberOfLogicalProcessors : 32\n";
        assert_eq!(total(list), Some(32));
        let table = "Name NumberOfCores NumberOfLogicalProcessors\n---- ---- ----\nAMD Ryzen 9 7950X 16 32\n";
        assert_eq!((total(table), total("")), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*") {
            let _ = total(&text);
        }
    }
}
