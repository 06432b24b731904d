//! Shows what `yolo setup --wsl` plans and does, as text or as JSON, and asks for consent.

use serde_json::{Value, json};
use yolo_base::format;
use yolo_checks::wsl::sizing::Proposal;
use yolo_checks::wsl::vm::Vm;

use super::Printer;
use crate::setup::wsl::{
    LinuxPlan, LinuxStep, Needs, Observer, Progress, WindowsFacts, WindowsPlan, WindowsStep, WrittenConfig,
};

/// The observer of the command.
#[derive(Debug)]
pub(crate) struct WslView<'a> {
    pub(crate) printer: &'a Printer,
    /// The user has agreed to all steps.
    pub(crate) yes: bool,
    /// The plan is printed for programs.
    pub(crate) json: bool,
}

impl Observer for WslView<'_> {
    fn report(&self, progress: &Progress<'_>) {
        let printer = self.printer;
        match progress {
            Progress::WindowsPlan(_, plan) if self.json => printer.result(windows_json(plan)),
            Progress::WindowsPlan(facts, plan) => self.windows_plan(facts, plan),
            Progress::WindowsStep(step) => match step.command() {
                Some(command) => printer.say(format_args!("{}:\n  {command}", step.text())),
                None => printer.say(step.text()),
            },
            Progress::LinuxPlan(plan) => {
                if self.json {
                    printer.result(linux_json(plan));
                }
                plan.notes.iter().for_each(|note| printer.warning(note));
            }
            Progress::LinuxStep(step) => self.linux_step(step),
            Progress::ConfigWritten(written) => printer.say(format_args!("  {}", describe_written(written))),
            Progress::LoaderPathAdded => {
                printer.say(format_args!("the loader now searches {}", yolo_checks::wsl::DRIVER_LIBRARIES));
            }
            Progress::NotInEffect(one) => printer.warning(format_args!(
                ".wslconfig asks for {}={}, but WSL has {}: `wsl.exe --shutdown` makes it read the file again",
                one.key, one.asked, one.has
            )),
            Progress::InEffect(vm) => {
                printer.say(format_args!("WSL has {}, as .wslconfig says", describe_vm(vm)));
            }
            Progress::Ready(command) => {
                let text = format!(
                    "Ready. Train here, at this prompt:\n  yolo train --data shapes\nIt runs in WSL; Linux opens with \
                     `{command}`"
                );
                // A program that reads the plan expects nothing else on stdout.
                if self.json {
                    printer.say(text)
                } else {
                    printer.result(text)
                }
            }
        }
    }

    fn confirm(&self) -> Option<bool> {
        if self.yes { Some(true) } else { self.printer.ask("Continue?") }
    }
}

impl WslView<'_> {
    fn windows_plan(&self, facts: &WindowsFacts, plan: &WindowsPlan) {
        let printer = self.printer;
        printer.say(describe_pc(facts));
        plan.notes.iter().for_each(|note| printer.warning(note));
        if plan.blocked.is_some() {
            return;
        }
        printer.say("Steps:");
        for (number, step) in plan.steps.iter().enumerate() {
            printer.say(format_args!("{:>3}. {}{}", number + 1, step.text(), describe_needs(step.needs())));
            if let Some(command) = step.command() {
                printer.say(format_args!("     {command}"));
            }
            if let WindowsStep::WriteConfig(values) = step {
                values.iter().for_each(|one| printer.say(format_args!("     {}", describe_value(one))));
            }
        }
    }

    fn linux_step(&self, step: &LinuxStep) {
        let printer = self.printer;
        match step {
            LinuxStep::WriteConfig(values) => {
                printer.say(step.text());
                values.iter().for_each(|one| printer.say(format_args!("  {}", describe_value(one))));
            }
            LinuxStep::Shutdown(_) => {
                printer.say(step.text());
                printer.say(
                    "  run `wsl.exe --shutdown` in Windows, which stops all Linux programs, this one too; then open \
                     Linux again and run `yolo setup --wsl`, which checks that the values took effect",
                );
            }
            step => {
                printer.warning(step.text());
                if let Some(command) = step.command() {
                    printer.say(format_args!("  {command}"));
                }
            }
        }
    }
}

fn describe_needs(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing => "",
        Needs::Rights => " (Windows asks for administrator rights)",
        Needs::Restart => " (you restart)",
        Needs::EndOfLinux | Needs::Conversion => " (asks you first)",
    }
}

/// `memory=8GB instead of 8: half of this PC's 16.0 GiB, …`
fn describe_value(value: &Proposal) -> String {
    let before = value.now.as_deref().map_or_else(String::new, |now| format!(" instead of {now}"));
    format!("{}={}{before}: {}", value.key, value.value, value.why)
}

fn describe_written(written: &WrittenConfig) -> String {
    let backup = written.backup.as_ref();
    let backup =
        backup.map_or_else(String::new, |path| format!("; a copy of the old file is {}", path.display()));
    format!("wrote {}{backup}", written.path.display())
}

fn describe_vm(vm: &Vm) -> String {
    format!(
        "{} of memory, {} of swap and {} CPUs",
        format::memory(vm.memory),
        format::memory(vm.swap),
        vm.processors
    )
}

fn describe_pc(facts: &WindowsFacts) -> String {
    let mut parts = Vec::new();
    if let Some(pc) = facts.pc {
        if let Some(build) = pc.windows_build {
            parts.push(format!("Windows build {build}"));
        }
        parts.push(format!("{} of memory", format::memory(pc.memory)));
        parts.push(format!("{} CPUs", pc.processors));
    }
    parts.push(match (facts.wsl.versions, facts.wsl.works) {
        (Some(versions), _) => format!("WSL {}", versions.wsl),
        (None, true) => "the WSL that is part of Windows".to_owned(),
        (None, false) => "no WSL yet".to_owned(),
    });
    if let Some(vm) = facts.vm {
        parts.push(format!("running with {} and {} CPUs", format::memory(vm.memory), vm.processors));
    }
    format!("This PC: {}", parts.join(", "))
}

fn windows_json(plan: &WindowsPlan) -> Value {
    let values = |step: &WindowsStep| match step {
        WindowsStep::WriteConfig(values) => values
            .iter()
            .map(|one| json!({"key": one.key, "value": one.value, "now": one.now, "why": one.why}))
            .collect(),
        _ => Vec::new(),
    };
    let step = |step: &WindowsStep| {
        json!({
            "id": step.id(), "text": step.text(), "command": step.command(), "asks": step.needs(), "values": values(step),
        })
    };
    let steps: Vec<Value> = plan.steps.iter().map(step).collect();
    let blocked = plan.blocked.as_ref().map(|blocked| json!({"why": blocked.why, "remedy": blocked.remedy}));
    json!({"schema": 1, "steps": steps, "blocked": blocked, "notes": plan.notes})
}

fn linux_json(plan: &LinuxPlan) -> Value {
    let step = |step: &LinuxStep| json!({"id": step.id(), "text": step.text(), "command": step.command()});
    let steps: Vec<Value> = plan.steps.iter().map(step).collect();
    json!({"schema": 1, "steps": steps, "notes": plan.notes})
}
