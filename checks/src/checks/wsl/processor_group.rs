//! Whether WSL has half of the PC's processors only. Windows puts more than 64 of them, and those of two sockets, into groups,
//! and the virtual machine of WSL gets one group.

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
/// The most processors of a group.
const GROUP: u32 = 64;

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    // On a live PC only a program of Windows could tell, which takes seconds; nothing is lost without the answer.
    let texts = host.recorded_texts(PROCESSORS);
    let Some(of_pc) = texts.iter().map(|text| total(text)).max() else { return Ok(Vec::new()) };
    let has = host.wsl_vm()?.processors;
    let asked = host.wslconfig().ok().and_then(|config| config.value("processors")?.parse::<u32>().ok());
    if of_pc <= GROUP || has >= of_pc || has > GROUP || asked.is_some_and(|asked| asked <= has) {
        return Ok(Vec::new());
    }
    let title = format!("WSL has {has} of this PC's {of_pc} processors: one of Windows' groups");
    Ok(vec![Finding::new("wsl.processors-half", title)])
}

/// The sum of the numbers, of which each socket has one.
fn total(text: &str) -> u32 {
    let numbers =
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse::<u32>().ok());
    numbers.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::total;

    #[test]
    fn the_processors_of_all_sockets_are_summed_up() {
        assert_eq!(total("NumberOfLogicalProcessors  \r\n48\r\n48\r\n"), 96);
        assert_eq!(total(""), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*") {
            let _ = total(&text);
        }
    }
}
