//! Whether the running WSL matches `.wslconfig`. WSL reads the file when its virtual machine starts:
//! later changes need `wsl --shutdown`. A value that differs although the file is older was not
//! applied.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Fact, Host, WslConfig};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::sizing::Pc;
use crate::wsl::vm::{Difference, Vm, differences};

/// The values that the running VM reveals.
const VISIBLE: [&str; 3] = ["memory", "swap", "processors"];

pub(super) static CHECK: Check = Check {
    question: "Does the running WSL use its settings?",
    reports: &["wsl.restart-due", "wsl.config-not-taken"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let config = host.wslconfig()?;
    if !config.is_there {
        return Ok(Vec::new());
    }
    let vm = vm(host, &config)?;
    // A PC whose memory is unknown is assumed to have what the file asks for; CPUs beyond those of the
    // VM may not exist, and are not compared.
    let pc = host.estimated_pc().unwrap_or(Pc {
        memory: u64::MAX,
        processors: vm.processors,
        windows_build: None,
        swap_disk_free: None,
    });
    let differences = differences(&config.document, Some(&pc), &vm);
    let since = config.modified.and_then(|modified| {
        Some(i64::try_from(modified).ok()? - i64::try_from(host.boot_time().ok()?).ok()?)
    });
    let words = differences.iter().map(|one| format!("{} is {}, not {}", one.key, one.has, one.asked));
    let finding = match since {
        Some(seconds) if seconds > 0 => {
            let others = config
                .document
                .settings()
                .any(|setting| !VISIBLE.iter().any(|key| key.eq_ignore_ascii_case(setting.key)));
            if differences.is_empty() && !others {
                return Ok(Vec::new());
            }
            let what = match differences.first() {
                Some(one) => format!(": it still has {}", of_one(one)),
                None => String::new(),
            };
            let title = format!(
                ".wslconfig was changed {} after WSL started{what}",
                format::duration(seconds as f64)
            );
            Finding::new("wsl.restart-due", title)
        }
        Some(_) if differences.is_empty() => return Ok(Vec::new()),
        Some(_) => {
            // Another check reports what WSL cannot read.
            if config.document.problems().iter().any(|found| found.problem.loses()) {
                return Ok(Vec::new());
            }
            let title =
                format!("WSL did not apply .wslconfig when it started: it has {}", of_one(&differences[0]));
            Finding::new("wsl.config-not-taken", title)
        }
        None => match differences.first() {
            None => return Ok(Vec::new()),
            Some(_) if config.document.problems().iter().any(|found| found.problem.loses()) => {
                return Ok(Vec::new());
            }
            Some(one) => {
                let title = format!("the running WSL does not match .wslconfig: it has {}", of_one(one));
                Finding::new("wsl.restart-due", title)
            }
        },
    };
    let finding = words.fold(finding.seen(config.path), Finding::seen);
    Ok(vec![finding.command(super::SHUTDOWN)])
}

/// The running VM. If its number of CPUs is unknown, that of the file is used, so that only memory is
/// compared.
fn vm(host: &Host, config: &WslConfig) -> Fact<Vm> {
    host.wsl_vm().or_else(|_| {
        let memory = host.memory()?;
        let processors = config.value("processors").and_then(|value| value.parse().ok()).unwrap_or(1);
        Ok(Vm { memory: memory.total, swap: memory.swap_total, processors })
    })
}

/// `7.8 GB of memory instead of 24 GB`.
fn of_one(one: &Difference) -> String {
    let what = match one.key {
        "processors" => "processors".to_owned(),
        key => format!("of {key}"),
    };
    format!("{} {what} instead of {}", one.has, one.asked)
}
