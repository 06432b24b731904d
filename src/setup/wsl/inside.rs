//! `yolo setup --wsl` inside WSL: `.wslconfig` through the Windows drive, the loader's way to the
//! driver's libraries, data on the Linux side, the clock; and whether the running virtual machine
//! has the values of the file. What needs root is done as root, and otherwise shown.

use std::path::Path;

use serde_json::json;
use yolo_checks::shell_quote::quote;
use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::wsl::sizing::{Pc, Proposal, Training, gigabytes, propose};
use yolo_checks::wsl::vm::{Difference, differences};

use super::command::Talk;
pub(super) use super::host::Host;
use super::host::{Inside, LOADER_FILE, WSL_LIBRARIES};
use super::windows::kept;
use super::{WslError, config};

/// A clock that is further from Windows' than this, in seconds, breaks TLS and confuses cargo.
const SKEW: i64 = 2;

/// One thing to do, or to know.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// Values of `.wslconfig`.
    WriteConfig(Vec<Proposal>),
    /// The loader does not know the driver's libraries.
    Loader,
    /// WSL is told not to tell the loader.
    LoaderForbidden,
    /// The clock is behind or ahead by so many seconds.
    Clock(i64),
    /// A folder lies on a Windows drive.
    SlowFolder { what: &'static str, path: String },
    /// `wsl --shutdown` is due.
    Shutdown(String),
    /// A value did not take effect although WSL has started since.
    NotTaken(Difference),
}

impl Action {
    fn id(&self) -> &'static str {
        match self {
            Self::WriteConfig(_) => "write-config",
            Self::Loader => "loader-path",
            Self::LoaderForbidden => "loader-forbidden",
            Self::Clock(_) => "clock",
            Self::SlowFolder { .. } => "slow-folder",
            Self::Shutdown(_) => "shutdown-wsl",
            Self::NotTaken(_) => "not-taken",
        }
    }

    /// What to type for it, and where.
    fn command(&self) -> Option<String> {
        Some(match self {
            Self::Loader => format!("echo {WSL_LIBRARIES} | sudo tee {LOADER_FILE} && sudo ldconfig"),
            Self::Clock(_) => "sudo hwclock -s".to_owned(),
            Self::SlowFolder { path, .. } => format!("cp -r {} ~/", quote(path)),
            Self::Shutdown(_) => "wsl.exe --shutdown".to_owned(),
            Self::WriteConfig(_) | Self::LoaderForbidden | Self::NotTaken(_) => return None,
        })
    }

    fn text(&self) -> String {
        match self {
            Self::WriteConfig(values) => {
                let values: Vec<_> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("write {} into .wslconfig, and keep the rest of it", values.join(", "))
            }
            Self::Loader => format!(
                "the loader does not look into {WSL_LIBRARIES}, where Windows' driver keeps libcuda.so.1"
            ),
            Self::LoaderForbidden => {
                "ldconfig=false in /etc/wsl.conf keeps WSL from telling the loader where libcuda.so.1 is"
                    .to_owned()
            }
            Self::Clock(skew) if *skew < 0 => format!("this clock is {} s behind Windows'", -skew),
            Self::Clock(skew) => format!("this clock is {skew} s ahead of Windows'"),
            Self::SlowFolder { what, path } => {
                format!(
                    "{what} ({path}) is on a Windows drive, which is many times slower from Linux: keep it on the Linux side"
                )
            }
            Self::Shutdown(why) => format!("`wsl.exe --shutdown` is due, in Windows: {why}"),
            Self::NotTaken(one) => format!(
                ".wslconfig asks for {}={}, and WSL has {} although it has started since",
                one.key, one.asked, one.has
            ),
        }
    }
}

/// What is to be done, and what else the user should know.
fn plan(facts: &Inside, training: &Training) -> (Vec<Action>, Vec<String>) {
    let mut actions = Vec::new();
    let mut notes = Vec::new();
    let file = Document::parse(ConfigFile::WslConfig, facts.config.bytes.as_deref().unwrap_or_default());
    if let Some(misnamed) = &facts.config.misnamed {
        notes.push(format!("WSL does not read {}: its file is called .wslconfig", misnamed.display()));
    }
    for found in file.problems() {
        let place = found.line.map_or_else(String::new, |line| format!(" line {line}"));
        notes.push(format!(".wslconfig{place}: {}", found.problem));
    }
    let mut changes = Vec::new();
    match pc(facts, &file) {
        Some(pc) => {
            let proposals = propose(&pc, training, &file);
            notes.extend(proposals.warnings);
            changes.extend(proposals.values.into_iter().filter(Proposal::changes));
        }
        None => notes.push(
            "this PC's memory cannot be told from inside WSL (interop with Windows is off), so .wslconfig stays as it is"
                .to_owned(),
        ),
    }
    if changes.is_empty() {
        for one in differences(&file, facts.pc.as_ref(), &facts.vm) {
            if facts.started_since_config {
                actions.push(Action::NotTaken(one));
            } else {
                let why = format!(
                    "{}={} of .wslconfig takes effect then, WSL still has {}",
                    one.key, one.asked, one.has
                );
                actions.push(Action::Shutdown(why));
                break;
            }
        }
    } else {
        actions.push(Action::WriteConfig(changes));
        actions.push(Action::Shutdown("the new values take effect then".to_owned()));
    }
    if facts.driver && !facts.loader_knows {
        actions.push(if facts.loader_forbidden { Action::LoaderForbidden } else { Action::Loader });
    }
    if let Some(skew) = facts.skew.filter(|skew| skew.abs() > SKEW) {
        actions.push(Action::Clock(skew));
    }
    actions.extend(facts.slow.iter().map(|(what, path)| Action::SlowFolder { what, path: path.clone() }));
    (actions, notes)
}

/// The PC, asked of Windows; where Windows does not answer, what the virtual machine tells of it
/// while no value of the file bounds it: WSL takes half of the memory and all processors.
fn pc(facts: &Inside, file: &Document) -> Option<Pc> {
    facts.pc.or_else(|| {
        let free = file.value("wsl2", "memory").is_none() && file.value("wsl2", "processors").is_none();
        free.then(|| Pc {
            memory: facts.vm.memory.saturating_mul(2),
            processors: facts.vm.processors,
            windows_build: None,
            swap_disk_free: facts.drive_free,
        })
    })
}

/// Does what can be done from inside, and says the rest.
pub(super) fn set_up(host: &Host, training: &Training, talk: &Talk<'_>) -> Result<(), WslError> {
    let printer = talk.printer;
    let facts = host.facts()?;
    let (actions, notes) = plan(&facts, training);
    if talk.json {
        let actions: Vec<_> = actions
            .iter()
            .map(|one| json!({"id": one.id(), "text": one.text(), "command": one.command()}))
            .collect();
        printer.result(json!({"schema": 1, "steps": actions, "notes": notes}));
    }
    for note in notes {
        printer.warning(note);
    }
    for action in &actions {
        match action {
            Action::WriteConfig(values) => {
                printer.say(action.text());
                for one in values {
                    let was = one.now.as_deref().map_or_else(String::new, |now| format!(" instead of {now}"));
                    printer.say(format_args!("  {}={}{was}: {}", one.key, one.value, one.why));
                }
                if !talk.dry_run {
                    let written = config::write(&facts.config, values)?;
                    let kept = written.backup.map_or_else(String::new, |backup| kept(&backup));
                    printer.say(format_args!("  {} is written{kept}", written.path.display()));
                }
            }
            Action::Loader if host.is_root && !talk.dry_run => {
                host.tell_loader()?;
                printer.say(format_args!("{WSL_LIBRARIES} is in the loader's path now"));
            }
            Action::Shutdown(_) => {
                printer.say(action.text());
                printer.say(
                    "  in Windows, `wsl.exe --shutdown` ends all Linux programs, this one too; then open Linux again \
                     and type `yolo setup --wsl`, which checks that it took",
                );
            }
            action => {
                printer.warning(action.text());
                if let Some(command) = action.command() {
                    printer.say(format_args!("  {command}"));
                }
            }
        }
    }
    let due = actions.iter().any(|one| matches!(one, Action::Shutdown(_) | Action::NotTaken(_)));
    if !due {
        printer.say(format_args!(
            "WSL has {} of memory, {} of swap and {} processors, as .wslconfig says",
            gigabytes(facts.vm.memory),
            gigabytes(facts.vm.swap),
            facts.vm.processors
        ));
    }
    Ok(())
}

/// A path as it is shown and typed.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
#[cfg(unix)]
#[path = "inside_tests.rs"]
mod tests;
