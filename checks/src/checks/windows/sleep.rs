//! Whether Windows goes to sleep while nobody uses the PC. A run in WSL does not keep it awake.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does Windows go to sleep during a run?",
    reports: &["windows.sleep"],
    preflight: false,
    run,
};

/// The setting `Sleep after` and its group, as Windows names them in every language.
const IDLE: &str = "29f6c1db-86da-48c5-9fdb-f2b67b1f44da";
const SLEEP: &str = "238c9fa8-0aad-41ed-83f4-97be242c8f20";
const POWER: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\Power";

fn run(host: &Host, intent: &Intent) -> Answer {
    let is_wsl = host.is_wsl2().unwrap_or(false) && !host.is_container();
    if !intent.run || !(host.is_windows()? || is_wsl && host.is_recorded()) || host.is_windows_server() {
        return Ok(Vec::new());
    }
    let Some(seconds) = of_powercfg(host).or_else(|| of_registry(host)).filter(|seconds| *seconds > 0) else {
        return Ok(Vec::new());
    };
    let minutes = format::count(usize::try_from(seconds.div_ceil(60)).unwrap_or(usize::MAX), "minute");
    let title = format!("Windows goes to sleep after {minutes} without input, also during a run");
    Ok(vec![
        Finding::new("windows.sleep", title)
            .command("powercfg.exe /change standby-timeout-ac 0")
            .command("powercfg.exe /change hibernate-timeout-ac 0"),
    ])
}

/// The value of the active plan while plugged in, in seconds; else what that plan has by default.
fn of_registry(host: &Host) -> Option<u64> {
    let value = |path: &str| host.registry(&format!(r"{POWER}\{path}")).ok().flatten();
    let plan = value(r"User\PowerSchemes\ActivePowerScheme")?;
    let own = value(&format!(r"User\PowerSchemes\{plan}\{SLEEP}\{IDLE}\ACSettingIndex"));
    let usual = || {
        let folder = format!(r"PowerSettings\{SLEEP}\{IDLE}\DefaultPowerSchemeValues\{plan}");
        value(&format!(r"{folder}\AcSettingIndex"))
    };
    own.or_else(usual)?.trim().parse().ok()
}

/// From a recorded `powercfg /q`.
fn of_powercfg(host: &Host) -> Option<u64> {
    host.recorded_texts("powercfg").iter().find_map(|text| plugged_in(text))
}

/// The part about the setting ends with its value while plugged in, and the one on battery.
fn plugged_in(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (_, part) = lower.split_once(IDLE)?;
    // The next part begins with another long name, in groups of five.
    let is_next = |line: &&str| line.matches('-').count() >= 4 && line.len() > 36;
    let lines = part.lines().skip(1).take_while(|line| !is_next(line));
    let values: Vec<u64> =
        lines.filter_map(|line| u64::from_str_radix(line.rsplit_once("0x")?.1.trim(), 16).ok()).collect();
    values.iter().rev().nth(1).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::plugged_in;

    const ITALIAN: &str = "  GUID sottogruppo: 238c9fa8-0aad-41ed-83f4-97be242c8f20  (Sospensione)\n    \
        GUID impostazione di risparmio energia: 29f6c1db-86da-48c5-9fdb-f2b67b1f44da  (Sospendi dopo)\n      \
        Valore minimo impostazione possibile: 0x00000000\n      Valore massimo impostazione possibile: 0xffffffff\n      \
        Incremento impostazioni possibili: 0x00000001\n      Unita impostazioni possibili: Secondi\n    \
        Indice impostazione corrente per corrente alternata: 0x00000708\n    \
        Indice impostazione corrente per corrente continua: 0x00000384\n\n    \
        GUID impostazione di risparmio energia: 94ac6d29-73ce-41a6-809f-6363ba21b47e  (Consenti)\n      \
        Indice impostazione corrente per corrente alternata: 0x00000001\n";

    #[test]
    fn the_time_while_plugged_in_is_read_in_any_language() {
        assert_eq!(plugged_in(ITALIAN), Some(1800));
        assert_eq!(plugged_in("GUID: 94ac6d29-73ce-41a6-809f-6363ba21b47e"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "[0-9a-fx\n -]{0,200}") {
            plugged_in(&text);
            plugged_in(&format!("{}{text}", super::IDLE));
        }
    }
}
