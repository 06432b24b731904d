//! Whether the values in `.wslconfig` suit this PC: memory that leaves Windows none, a swap file
//! larger than its disk, few CPUs, a page cache that is dropped during a run.

use yolo_base::format;

use crate::change::Edit;
use crate::checks::{Answer, Check};
use crate::facts::{Host, WslConfig};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::config::size;
use crate::wsl::sizing::{Training, propose};

/// Above this part of the PC's memory, Windows starts to swap while WSL runs.
const TOO_MUCH: f64 = 0.9;
/// WSL's default timeouts in milliseconds: of the virtual machine and of a distribution.
const IDLE: [(&str, &str, i64); 2] =
    [("wsl2", "vmIdleTimeout", 60_000), ("general", "instanceIdleTimeout", 15_000)];

pub(super) static CHECK: Check = Check {
    question: "Do the values in .wslconfig suit this PC?",
    reports: &[
        "wsl.memory-greedy",
        "wsl.swap-huge",
        "wsl.processors-low",
        "wsl.memory-reclaim",
        "wsl.idle-short",
        "wsl.mirrored-unsupported",
    ],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::has_wslconfig(host)? {
        return Ok(Vec::new());
    }
    let config = host.wslconfig()?;
    if !config.is_there {
        return Ok(Vec::new());
    }
    let found = [
        greedy(host, intent, &config),
        swap(host, &config),
        processors(intent, &config),
        reclaim(&config),
        mirrored(host, &config),
    ];
    let edited = |finding: Finding| finding.command(super::edit(host, &config)).command(super::SHUTDOWN);
    Ok(found.into_iter().flatten().chain(idle(&config)).map(edited).collect())
}

fn greedy(host: &Host, intent: &Intent, config: &WslConfig) -> Option<Finding> {
    let asked = config.value("memory").and_then(size::parse)?;
    let pc = host.estimated_pc().ok()?;
    if asked as f64 <= TOO_MUCH * pc.memory as f64 {
        return None;
    }
    let installed = format::memory(pc.memory);
    let title = format!(
        "`memory={}` in .wslconfig leaves Windows almost none of this PC's {installed}",
        config.value("memory")?
    );
    let proposals = propose(&pc, &Training::of(intent), &config.document);
    let better = proposals.values.iter().find(|one| one.key == "memory")?;
    Some(
        Finding::new("wsl.memory-greedy", title)
            .remedy(format!("write `memory={}` instead, then shut WSL down from Windows", better.value))
            .change(config.change(vec![Edit::set("wsl2", "memory", better.value.clone())])),
    )
}

fn swap(host: &Host, config: &WslConfig) -> Option<Finding> {
    let asked = config.value("swap").and_then(size::parse).filter(|&bytes| bytes >= 1 << 20)?;
    let letter =
        config.value("swapFile").and_then(|path| path.split_once(':')).map_or("C", |(letter, _)| letter);
    let drive = if host.is_windows().ok()? {
        format!("{letter}:\\")
    } else {
        let c = host.windows_drive();
        format!("{}/{}", c.rsplit_once('/').map_or("", |(root, _)| root), letter.to_ascii_lowercase())
    };
    let free = host.file_system(&drive).ok()?.available?;
    if asked <= free {
        return None;
    }
    let title = format!(
        "`swap={}` in .wslconfig is more than the {} free on drive {}:",
        config.value("swap")?,
        format::bytes(free),
        letter.to_ascii_uppercase()
    );
    // Half of the free space, in whole gigabytes, leaves space for both systems.
    let fitting = size::format((free / 2) >> 30 << 30);
    Some(Finding::new("wsl.swap-huge", title).change(config.change(vec![Edit::set("wsl2", "swap", fitting)])))
}

fn processors(intent: &Intent, config: &WslConfig) -> Option<Finding> {
    let given = config.value("processors")?.parse::<u32>().ok().filter(|&number| number > 0)?;
    let training = Training::of(intent);
    let useful = training.ranks.saturating_mul(training.workers.saturating_add(1));
    if given >= useful || given >= 4 && !intent.run {
        return None;
    }
    let workers = training.ranks.saturating_mul(training.workers);
    let title = format!(
        "`processors={given}` in .wslconfig gives WSL {}, but a run loads images with {workers} threads by default",
        yolo_base::format::count(given as usize, "CPU")
    );
    let title = if intent.workers.is_some() { title.replace(" by default", "") } else { title };
    Some(Finding::new("wsl.processors-low", title))
}

fn reclaim(config: &WslConfig) -> Option<Finding> {
    let value = config.document.value("experimental", "autoMemoryReclaim")?;
    if value.eq_ignore_ascii_case("disabled") {
        return None;
    }
    let title = format!(
        "`autoMemoryReclaim={value}` in .wslconfig returns cached images to Windows between \
                 epochs"
    );
    Some(Finding::new("wsl.memory-reclaim", title))
}

fn idle(config: &WslConfig) -> Option<Finding> {
    IDLE.iter().find_map(|&(section, key, usual)| {
        let value = config.document.value(section, key)?;
        let milliseconds = value.parse::<i64>().ok().filter(|time| (0..usual).contains(time))?;
        let title = format!(
            "`{key}={value}` in .wslconfig stops WSL {} s after the last terminal closes",
            milliseconds / 1000
        );
        Some(Finding::new("wsl.idle-short", title))
    })
}

/// Whether this Windows does not know the mirrored mode that the file asks for.
pub(super) fn is_mirroring_unsupported(host: &Host) -> bool {
    host.wslconfig().is_ok_and(|config| mirrored(host, &config).is_some())
}

fn mirrored(host: &Host, config: &WslConfig) -> Option<Finding> {
    let asked = config.value("networkingMode")?.eq_ignore_ascii_case("mirrored");
    if asked && host.is_windows_server() {
        let title = "`networkingMode=mirrored` does not work on Windows Server: WSL starts without a network";
        return Some(
            Finding::new("wsl.mirrored-unsupported", title)
                .because(
                    "WSL on Windows Server supports the modes nat and virtioproxy, and falls back to none",
                )
                .remedy(
                    "write networkingMode=nat, or remove the line; for a run on several machines, use a machine with Linux",
                ),
        );
    }
    let build = host
        .windows_build()
        .ok()
        .filter(|&build| asked && build < crate::wsl::sizing::MIRRORED_NEEDS_BUILD)?;
    let title = format!(
        "`networkingMode=mirrored` needs Windows 11 22H2 or later, but this is build {build}: WSL uses NAT instead"
    );
    Some(Finding::new("wsl.mirrored-unsupported", title).status(Status::Warning))
}
