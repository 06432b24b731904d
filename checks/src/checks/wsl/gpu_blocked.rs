//! Why Windows denies WSL the GPU (NVML error 17), by the driver models of the cards, which nvidia-smi.exe knows.

use super::SHUTDOWN;
use crate::facts::Host;
use crate::finding::Finding;

/// The build of Windows Server 2022; no other Windows has it.
pub(super) const SERVER_2022: u32 = 20348;

/// Cards without display outputs: many of them refuse the driver model of display cards without a license for it.
const DATA_CENTER: [&str; 26] = [
    "A2", "A10", "A10G", "A16", "A30", "A40", "A100", "A800", "B100", "B200", "B300", "GH200", "H100",
    "H200", "H20", "H800", "L2", "L4", "L20", "L40", "L40S", "P4", "P40", "P100", "T4", "V100",
];
const QUERY: [&str; 3] =
    ["nvidia-smi.exe", "--query-gpu=index,name,driver_model.current", "--format=csv,noheader"];

/// How such a card is switched, with the command for MCDM. Recent drivers refuse WDDM without a license
/// (microsoft/WSL#14339), and older ones have no MCDM.
pub(in crate::checks) const SWITCH: &str = "in a Windows terminal as administrator, switch the card from TCC to MCDM, the mode \
    for computing, and restart Windows; this needs the newest Data Center driver for Windows; if the driver refuses MCDM, try \
    WDDM (`-dm 0` instead of `-dm 2`): WDDM needs a license for vGPU or RTX Virtual Workstation on many data center cards; if \
    both are refused, train on Linux";

/// The number of the mode for a card, as `nvidia-smi -dm` takes it.
pub(in crate::checks) fn mode(card: &str) -> u32 {
    if is_of_data_center(card) { 2 } else { 0 }
}

/// A card as nvidia-smi.exe shows it.
#[derive(Debug, PartialEq, Eq)]
struct Card {
    index: u32,
    name: String,
    model: String,
}

/// The finding, for the cards of this PC.
pub(super) fn finding(host: &Host) -> Finding {
    let finding = Finding::new("wsl.gpu-blocked", "Windows denies WSL access to the GPU (NVML error 17)");
    if host.windows_build() == Ok(SERVER_2022) {
        return finding
            .because(
                "this is Windows Server 2022 (build 20348), which does not support GPUs in WSL; \
                 WSL cannot use cards in TCC mode, such as data center cards, either",
            )
            .remedy(
                "use Windows Server 2025, Windows 11 or Linux; or try the card in WDDM mode: run \
                 this in a Windows terminal as administrator, then restart Windows",
            )
            .command("nvidia-smi.exe -g 0 -dm 0");
    }
    let cards = cards(host);
    let finding = cards.iter().fold(finding, |finding, card| {
        finding.seen(format!("GPU {}, {}, is in {} mode", card.index, card.name, card.model))
    });
    let kernel = host.wslconfig().ok().and_then(|config| Some(config.value("kernel")?.to_owned()));
    let is_tcc = |card: &&Card| card.model == "TCC";
    if let Some(kernel) = kernel.filter(|_| !cards.iter().any(|card| is_tcc(&card)) && !host.is_container()) {
        return finding
            .seen(format!(".wslconfig: kernel={kernel}"))
            .because("WSL runs a custom kernel, whose GPU module (dxgkrnl) may not fit this Windows")
            .remedy("remove `kernel=` from .wslconfig, so that WSL starts its own kernel, update WSL, then shut it down")
            .command("wsl.exe --update")
            .command(SHUTDOWN);
    }
    let blocked: Vec<&Card> = cards.iter().filter(is_tcc).collect();
    if !cards.is_empty() && blocked.is_empty() {
        return finding
            .because("no card is in TCC mode, so Windows' driver or WSL itself is too old or faulty, or a setting blocks it")
            .remedy(
                "install the newest NVIDIA driver for Windows (for data center cards, the Data Center driver), update WSL and shut \
                 it down, then restart Windows",
            )
            .command("wsl.exe --update")
            .command(SHUTDOWN);
    }
    let is_of_data_center = blocked.iter().any(|card| is_of_data_center(&card.name));
    let finding = if is_of_data_center { finding.remedy(SWITCH) } else { finding };
    let commands =
        blocked.iter().map(|card| format!("nvidia-smi.exe -g {} -dm {}", card.index, mode(&card.name)));
    let finding = commands.fold(finding, Finding::command);
    if blocked.is_empty() { finding.command("nvidia-smi.exe -g 0 -dm 0") } else { finding }
}

fn is_of_data_center(name: &str) -> bool {
    let is_workstation = name.contains("RTX") || name.contains("Quadro") || name.contains("GeForce");
    name.contains("Tesla")
        || name.contains("Server Edition")
        || !is_workstation && name.split([' ', '-']).any(|word| DATA_CENTER.contains(&word))
}

fn cards(host: &Host) -> Vec<Card> {
    let recorded = host.recorded_texts("nvidia-smi.exe");
    if recorded.is_empty() {
        let answer = host.windows_command(&QUERY).ok().flatten().map(|output| output.text());
        return answer.as_deref().map(of_text).unwrap_or_default();
    }
    recorded.iter().map(|text| of_text(text)).find(|cards| !cards.is_empty()).unwrap_or_default()
}

/// From the table, or from the answer to a query: `0, NVIDIA L40S, TCC`.
fn of_text(text: &str) -> Vec<Card> {
    let of_line = |line: &str| {
        let line = line.trim();
        let of_table = line.strip_prefix('|').and_then(|rest| rest.split('|').next()).and_then(|cell| {
            let (index, rest) = cell.trim().split_once(char::is_whitespace)?;
            let (name, model) = rest.trim().rsplit_once(char::is_whitespace)?;
            Some((index.to_owned(), name.trim().to_owned(), model.to_owned()))
        });
        let of_query = || {
            let mut parts = line.split(',').map(str::trim);
            Some((parts.next()?.to_owned(), parts.next()?.to_owned(), parts.next()?.to_owned()))
        };
        let (index, name, model) = of_table.or_else(of_query)?;
        let is_model = matches!(model.as_str(), "TCC" | "WDDM" | "MCDM");
        is_model.then(|| Some(Card { index: index.parse().ok()?, name, model }))?
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TABLE: &str = "|   0  NVIDIA T400 4GB              WDDM  |   00000000:01:00.0  On |                  N/A |\n\
                         |   1  NVIDIA L40S                   TCC  |   00000000:61:00.0 Off |                    0 |\n";

    fn wsl(commands: serde_json::Value, config: &str) -> Host {
        let recording = json!({ "version": 1, "os": "linux", "env": { "USERPROFILE": "C:\\Users\\ada" },
            "files": { "/proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2", "/mnt/c/Users/ada/.wslconfig": config },
            "commands": commands });
        Host::from_value(recording).unwrap().0
    }

    fn words(finding: &Finding) -> (String, Vec<String>) {
        let remedy = finding.remedy.as_ref().unwrap();
        (remedy.text.clone(), remedy.commands.clone())
    }

    #[test]
    fn the_card_in_tcc_mode_is_switched_and_no_other() {
        let found = of_text(TABLE);
        assert_eq!((found.len(), found[1].index, found[1].model.as_str()), (2, 1, "TCC"));
        let (text, commands) = words(&finding(&wsl(json!({ "nvidia-smi.exe": TABLE }), "")));
        assert!(text.contains("MCDM"), "{text}");
        assert_eq!(commands[0], "nvidia-smi.exe -g 1 -dm 2");
        assert!(!commands.iter().any(|command| command.contains("-dm 0")), "{commands:?}");
        let query = "0, NVIDIA RTX A5000, TCC\n";
        let (_, commands) = words(&finding(&wsl(json!({ "nvidia-smi.exe --query-gpu=index": query }), "")));
        assert_eq!(commands[0], "nvidia-smi.exe -g 0 -dm 0");
    }

    #[test]
    fn cards_in_wddm_mode_need_no_other_mode() {
        let query = json!({ "nvidia-smi.exe -q": "0, NVIDIA GeForce RTX 3060, WDDM" });
        let (text, commands) = words(&finding(&wsl(query.clone(), "")));
        assert!(text.contains("newest NVIDIA driver"), "{text}");
        assert!(!commands.iter().any(|command| command.contains("-dm")), "{commands:?}");
        let (text, _) = words(&finding(&wsl(query, "[wsl2]\nkernel=C:\\\\bzImage\n")));
        assert!(text.contains("remove `kernel=`"), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "[|,0-9A-Z a-z\n]{0,120}") {
            let _ = of_text(&text);
        }
    }
}
