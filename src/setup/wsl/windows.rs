//! Taking the steps of a plan on a Windows PC: each is shown, agreed to where it asks for something,
//! and taken; then the facts are asked anew. A step that has to be taken twice has had no effect.

use std::path::{Path, PathBuf};

use serde_json::json;
use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::wsl::sizing::gigabytes;
use yolo_checks::wsl::vm::differences;

use super::command::Talk;
use super::exe::WslExe;
use super::facts::PcFacts;
use super::pc::WindowsPc;
use super::plan::{Asks, Plan, Step, Wishes, plan};
use super::{WslError, config, program};

/// Brings this PC to where `yolo train` starts inside WSL. `exe` is this program, beside which the
/// Linux one lies.
pub(super) fn set_up(pc: &WindowsPc, exe: &Path, wishes: &Wishes, talk: &Talk<'_>) -> Result<(), WslError> {
    let mut facts = pc.facts(wishes)?;
    let mut now = plan(&facts, wishes);
    if talk.json {
        talk.printer.result(as_json(&now));
    } else {
        show(&facts, &now, talk);
    }
    let mut taken: Vec<&'static str> = Vec::new();
    loop {
        if let Some((why, remedy)) = now.blocked {
            return Err(WslError::Blocked { why, remedy });
        }
        if talk.dry_run {
            return Ok(());
        }
        // The check at the end tells of a shutdown that changed nothing.
        let repeated = |step: &Step| matches!(step, Step::Shutdown(_)) && taken.contains(&step.id());
        let Some(step) = now.steps.into_iter().find(|step| !repeated(step)) else { return Ok(()) };
        if taken.contains(&step.id()) {
            let command = step.command().unwrap_or_else(|| step.text());
            return Err(WslError::NoEffect {
                command,
                still: format!("it would have to {} again", step.text()),
            });
        }
        agree(&step, talk)?;
        take(&step, pc, &facts, exe, talk)?;
        taken.push(step.id());
        if let Step::SetUpInside(distribution) = &step {
            return finish(pc, distribution, talk);
        }
        facts = pc.facts(wishes)?;
        now = plan(&facts, wishes);
    }
}

fn show(facts: &PcFacts, plan: &Plan, talk: &Talk<'_>) {
    let printer = talk.printer;
    printer.say(describe(facts));
    for note in &plan.notes {
        printer.warning(note);
    }
    if plan.blocked.is_some() {
        return;
    }
    printer.say("What is to be done:");
    for (number, step) in plan.steps.iter().enumerate() {
        printer.say(format_args!("{:>3}. {}{}", number + 1, step.text(), asks(step.asks())));
        if let Some(command) = step.command() {
            printer.say(format_args!("     {command}"));
        }
        if let Step::WriteConfig(values) = step {
            for one in values {
                let was = one.now.as_deref().map_or_else(String::new, |now| format!(" instead of {now}"));
                printer.say(format_args!("     {}={}{was}: {}", one.key, one.value, one.why));
            }
        }
    }
}

fn asks(asks: Asks) -> &'static str {
    match asks {
        Asks::Nothing => "",
        Asks::Rights => " (Windows asks for administrator's rights)",
        Asks::Restart => " (you restart)",
        Asks::EndOfLinux => " (asks you first)",
        Asks::Conversion => " (asks you first)",
    }
}

fn describe(facts: &PcFacts) -> String {
    let mut parts = Vec::new();
    if let Some(pc) = facts.pc {
        if let Some(build) = pc.windows_build {
            parts.push(format!("Windows build {build}"));
        }
        parts.push(format!("{} of memory", gigabytes(pc.memory)));
        parts.push(format!("{} processors", pc.processors));
    }
    parts.push(match (facts.wsl.versions, facts.wsl.status) {
        (Some(versions), _) => format!("WSL {}", versions.wsl),
        (None, true) => "the WSL that came with Windows".to_owned(),
        (None, false) => "no WSL yet".to_owned(),
    });
    if let Some(vm) = facts.vm {
        parts.push(format!("which runs with {} and {} processors", gigabytes(vm.memory), vm.processors));
    }
    format!("This PC: {}", parts.join(", "))
}

/// The plan for programs.
fn as_json(plan: &Plan) -> String {
    let steps: Vec<_> = plan
        .steps
        .iter()
        .map(|step| {
            let values = match step {
                Step::WriteConfig(values) => values
                    .iter()
                    .map(|one| json!({"key": one.key, "value": one.value, "now": one.now, "why": one.why}))
                    .collect(),
                _ => Vec::new(),
            };
            json!({
                "id": step.id(), "text": step.text(), "command": step.command(), "asks": step.asks(), "values": values,
            })
        })
        .collect();
    let blocked = plan.blocked.as_ref().map(|(why, remedy)| json!({"why": why, "remedy": remedy}));
    json!({"schema": 1, "steps": steps, "blocked": blocked, "notes": plan.notes}).to_string()
}

/// Shows the command of a step and, where the step asks for something, has it agreed to.
fn agree(step: &Step, talk: &Talk<'_>) -> Result<(), WslError> {
    let command = step.command();
    let text = step.text();
    match &command {
        Some(command) => talk.printer.say(format_args!("{text}:\n  {command}")),
        None => talk.printer.say(&text),
    }
    match step.asks() {
        // A restart is the user's own to make.
        Asks::Nothing | Asks::Restart => Ok(()),
        _ if talk.yes => Ok(()),
        _ => match talk.printer.ask("Go on?") {
            Some(true) => Ok(()),
            said => Err(WslError::Consent {
                what: format!("`{}`", command.unwrap_or(text)),
                asked: said.is_some(),
            }),
        },
    }
}

fn take(step: &Step, pc: &WindowsPc, facts: &PcFacts, exe: &Path, talk: &Talk<'_>) -> Result<(), WslError> {
    match step {
        Step::RestartWindows => Err(WslError::Restart),
        Step::WriteConfig(values) => {
            let written = config::write(&facts.config, values)?;
            let kept = written.backup.map_or_else(String::new, |backup| kept(&backup));
            talk.printer.say(format_args!("  {} is written{kept}", written.path.display()));
            Ok(())
        }
        Step::PutProgram(_) => {
            let archive = program::archive_beside(exe)?;
            pc.wsl.feed(&step.words().unwrap_or_default(), &archive)
        }
        Step::InstallWsl => {
            let installed = pc.wsl.take(&step.words().unwrap_or_default());
            // Some releases end with a failure to say that a restart is due: then the next run, after
            // the restart, finds WSL or installs it once more.
            pc.note_installed()?;
            installed
        }
        step => pc.wsl.take(&step.words().unwrap_or_default()),
    }
}

pub(super) fn kept(backup: &Path) -> String {
    format!("; what it was before is in {}", backup.display())
}

/// What WSL has now, and what to type.
fn finish(pc: &WindowsPc, distribution: &str, talk: &Talk<'_>) -> Result<(), WslError> {
    let printer = talk.printer;
    let found = config::look(&pc.profile)?;
    let file = Document::parse(ConfigFile::WslConfig, found.bytes.as_deref().unwrap_or_default());
    if let Some(vm) = pc.vm(distribution)? {
        let missing = differences(&file, pc.pc.as_ref(), &vm);
        for one in &missing {
            printer.warning(format_args!(
                ".wslconfig asks for {}={}, but WSL has {}: `wsl.exe --shutdown` lets it read the file again",
                one.key, one.asked, one.has
            ));
        }
        if missing.is_empty() {
            printer.say(format_args!(
                "WSL has {} of memory, {} of swap and {} processors, as .wslconfig says",
                gigabytes(vm.memory),
                gigabytes(vm.swap),
                vm.processors
            ));
        }
    }
    let enter = WslExe::words(&["-d", distribution, "--cd", "~"]);
    let ready = format!(
        "Ready. Open Linux with\n  {enter}\nand there type\n  yolo doctor\n  yolo train --data shapes"
    );
    // A program that reads the plan wants nothing else on stdout.
    if talk.json {
        printer.say(ready)
    } else {
        printer.result(ready)
    }
    Ok(())
}

/// This program.
pub(super) fn this_exe() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("yolo.exe"))
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
