//! Whether WSL has enough memory for the run. By default it gets half of the PC's, and a rank that
//! needs more is killed without an error message.

use yolo_base::format;

use crate::change::Edit;
use crate::checks::{Answer, Check};
use crate::facts::{Host, WslConfig};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::config::{Problem, size};
use crate::wsl::sizing::{Proposals, Training, propose};

/// Linux sees slightly less than the virtual machine has: its kernel reserves up to this part.
const KERNEL_PART: f64 = 0.06;

pub(super) static CHECK: Check = Check {
    question: "Does WSL have enough memory?",
    reports: &["wsl.memory", "wsl.memory-low"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let memory = host.memory()?;
    let training = Training::of(intent);
    let need = training.memory();
    let config = host.wslconfig().ok();
    let pc = host.estimated_pc().ok();
    let of_pc = pc.map_or(String::new(), |pc| format!(" of this PC's {}", format::memory(pc.memory)));
    let has = format!("WSL has {}{of_pc}", format::memory(memory.total));
    if memory.total as f64 * (1.0 + KERNEL_PART) >= need as f64 {
        return Ok(vec![Finding::ok("wsl.memory", has)]);
    }
    if config.as_ref().is_some_and(|config| is_explained(config, need)) {
        return Ok(Vec::new());
    }
    let asked = config.as_ref().and_then(|config| config.value("memory"));
    let by_default = config.is_some() && asked.is_none();
    let half = if by_default && pc.is_none() { ", by default half of the PC's memory" } else { "" };
    let title = format!("{has}{half}; {} about {}", who(intent, &training), format::memory(need));
    let mut finding =
        Finding::new("wsl.memory-low", title).seen(format!("swap {}", format::memory(memory.swap_total)));
    if let Some(asked) = asked {
        finding = finding.seen(format!(".wslconfig: memory={asked}")).because(
            "`memory=` in .wslconfig is all that WSL gets; a rank that needs more is killed without an \
             error message",
        );
    }
    let Some(config) = config else { return Ok(vec![finding.command(super::SHUTDOWN)]) };
    if let Some(pc) = pc {
        let proposals = propose(&pc, &training, &config.document);
        finding = finding.remedy(advice(&proposals, host, &config));
        let edits = edits(&proposals);
        if !edits.is_empty() {
            finding = finding.change(config.change(edits));
        }
    }
    Ok(vec![finding.command(super::edit(host, &config)).command(super::SHUTDOWN)])
}

/// Whether the file asks for enough, so that another check reports why WSL does not have it.
fn is_explained(config: &WslConfig, need: u64) -> bool {
    let enough = config.value("memory").and_then(size::parse).is_some_and(|bytes| bytes >= need);
    let is_of_memory = |problem: &Problem| match problem {
        Problem::TooSmall { key, .. } | Problem::Value { key, .. } => key.eq_ignore_ascii_case("memory"),
        Problem::WrongSection { key, .. } | Problem::NoSection { key, .. } => {
            key.eq_ignore_ascii_case("memory")
        }
        _ => false,
    };
    enough || config.document.problems().iter().any(|found| is_of_memory(&found.problem))
}

/// The values that give the run enough memory.
fn edits(proposals: &Proposals) -> Vec<Edit> {
    let changing =
        proposals.values.iter().filter(|one| matches!(one.key, "memory" | "swap") && one.changes());
    changing.map(|one| Edit::set("wsl2", one.key, one.value.clone())).collect()
}

fn advice(proposals: &Proposals, host: &Host, config: &WslConfig) -> String {
    let values: Vec<String> = edits(proposals)
        .into_iter()
        .map(|edit| format!("{}={}", edit.key, edit.value.unwrap_or_default()))
        .collect();
    let file = host.windows_path(&config.path);
    let mut words = if values.is_empty() {
        String::new()
    } else {
        format!("write {} under [wsl2] in {file}, then shut WSL down from Windows", values.join(" and "))
    };
    for warning in &proposals.warnings {
        words = if words.is_empty() { warning.clone() } else { format!("{words}; {warning}") };
    }
    words
}

/// `two ranks of yolov5s at 640 need`.
fn who(intent: &Intent, training: &Training) -> String {
    const WORDS: [&str; 9] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
    let number = WORDS
        .get(training.ranks as usize)
        .map_or_else(|| training.ranks.to_string(), |word| (*word).to_owned());
    let (ranks, verb) = if training.ranks == 1 { ("rank", "needs") } else { ("ranks", "need") };
    let model = intent.model.as_deref().or(intent.weights.as_deref()).map_or(String::new(), |model| {
        let name = model.rsplit(['/', '\\']).next().unwrap_or(model);
        let name = name.split('.').next().unwrap_or(name);
        match name {
            "n" | "s" | "m" | "l" | "x" => format!(" of yolov5{name}"),
            _ if name.starts_with("yolov5") => format!(" of {name}"),
            _ => String::new(),
        }
    });
    format!("{number} {ranks}{model} at {} {verb}", training.image_size)
}
