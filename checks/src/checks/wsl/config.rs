//! What WSL ignores in its two settings files: sizes without a unit, unsupported encodings,
//! paths with single backslashes, keys in the wrong section and malformed lines.

use crate::change::Edit;
use crate::checks::{Answer, Check};
use crate::facts::{Host, WslConfig};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::config::{Broken, Found, Problem, size};

pub(super) static CHECK: Check = Check {
    question: "Does WSL accept all of its settings?",
    reports: &[
        "wsl.config",
        "wsl.config-unit",
        "wsl.config-encoding",
        "wsl.config-path",
        "wsl.config-ignored",
        "wsl.config-moved",
        "wsl.conf-ignored",
    ],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::has_wslconfig(host)? {
        return Ok(Vec::new());
    }
    let mut findings: Vec<Finding> = wsl_conf(host).into_iter().collect();
    let config = match host.wslconfig() {
        Ok(config) if config.is_there => config,
        Ok(_) => return Ok(findings),
        // The findings of one file are valid even if the other is unknown.
        Err(_) if !findings.is_empty() => return Ok(findings),
        Err(why) => return Err(why),
    };
    findings.extend(wslconfig(host, &config));
    findings.extend(super::policy::disabled_setting(host, &config));
    if findings.iter().all(|finding| finding.status < Status::Warning) {
        let number = config.document.settings().count();
        let title = format!(".wslconfig is valid ({})", yolo_base::format::count(number, "setting"));
        findings.push(Finding::ok("wsl.config", title).seen(config.path));
    }
    Ok(findings)
}

/// What WSL ignores in `/etc/wsl.conf`, as one finding.
fn wsl_conf(host: &Host) -> Option<Finding> {
    let file = host.wsl_conf().ok()?;
    let lost: Vec<String> = file.problems().iter().filter(|found| found.problem.loses()).map(title).collect();
    ignored("wsl.conf-ignored", "/etc/wsl.conf", &lost)
}

/// The problems of `.wslconfig`. Some have findings of their own; the others are reported together.
fn wslconfig(host: &Host, config: &WslConfig) -> Vec<Finding> {
    let edit = super::edit(host, config);
    let was_read = was_read(host, config);
    let problems = config.document.problems();
    let (mut findings, mut moved, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_certain = false;
    for found in &problems {
        match &found.problem {
            Problem::Encoding(_) if was_read => {}
            Problem::Moved { .. } => moved.push(title(found)),
            problem => match separate(host, config, found) {
                Some(finding) => {
                    let place = found
                        .line
                        .map_or(config.path.clone(), |line| format!("{}, line {line}", config.path));
                    findings.push(finding.seen(place).command(edit.clone()).command(super::SHUTDOWN));
                }
                None => {
                    // A key that resembles no known one may be of a newer WSL than this table.
                    is_certain |=
                        problem.loses() && !matches!(problem, Problem::UnknownKey { like: None, .. });
                    others.push(title(found));
                }
            },
        }
    }
    if let Some(finding) = ignored("wsl.config-ignored", ".wslconfig", &others) {
        let status = if is_certain { Status::Warning } else { Status::Info };
        findings.push(finding.status(status).command(edit).command(super::SHUTDOWN));
    }
    if let Some((first, rest)) = moved.split_first() {
        let finding = Finding::new("wsl.config-moved", format!(".wslconfig, {first}"));
        findings.push(rest.iter().fold(finding, |finding, text| finding.seen(text.clone())));
    }
    findings
}

/// The finding of a problem that is reported separately.
fn separate(host: &Host, config: &WslConfig, found: &Found) -> Option<Finding> {
    match &found.problem {
        Problem::TooSmall { key, value, .. } => Some(unit(host, config, key, value)),
        Problem::Encoding(encoding) => {
            let title = format!(".wslconfig is {encoding}: WSL may ignore all of it");
            Some(Finding::new("wsl.config-encoding", title).change(config.change(Vec::new())))
        }
        Problem::Path { .. } | Problem::Broken { why: Broken::Escape, .. } => Some(path(&title(found))),
        _ => None,
    }
}

/// Whether the running VM has the memory that the file asks for, and would have another amount without
/// the file: then WSL read it, whatever its encoding.
fn was_read(host: &Host, config: &WslConfig) -> bool {
    let asked = config.value("memory").and_then(size::parse).filter(|&asked| asked > 0);
    let (Some(asked), Ok(memory), Ok(pc)) = (asked, host.memory(), host.estimated_pc()) else { return false };
    let has = memory.total as f64;
    // The kernel keeps a part for itself.
    let fits = |given: u64| has <= given as f64 && has >= given as f64 * 0.9;
    host.is_wsl2().unwrap_or(false) && fits(asked.max(size::LEAST_MEMORY)) && !fits(pc.memory / 2)
}

fn title(found: &Found) -> String {
    match found.line {
        Some(line) => format!("line {line}: {}", found.problem),
        None => found.problem.to_string(),
    }
}

/// A size without a unit: the number shows which unit was intended.
fn unit(host: &Host, config: &WslConfig, key: &str, value: &str) -> Finding {
    let unit = if value.parse::<u64>().is_ok_and(|number| number >= 512) { "MB" } else { "GB" };
    let is_memory = key.eq_ignore_ascii_case("memory");
    let mut intended = format!("{value}{unit}");
    // More than this PC should give was probably not intended.
    if let (true, Ok(pc)) = (is_memory, host.estimated_pc())
        && size::parse(&intended).is_some_and(|bytes| bytes > pc.memory / 10 * 9)
    {
        intended = size::format(pc.memory / 2);
    }
    let title = if is_memory {
        let least = size::LEAST_MEMORY >> 20;
        format!("`{key}={value}` in .wslconfig means {value} bytes, so WSL gets its minimum, {least} MB")
    } else {
        format!("`{key}={value}` in .wslconfig means {value} bytes")
    };
    Finding::new("wsl.config-unit", title)
        .status(if is_memory { Status::Error } else { Status::Warning })
        .remedy(format!("write `{key}={intended}` instead, then shut WSL down from Windows"))
        .change(config.change(vec![Edit::set("wsl2", key, intended)]))
}

fn path(text: &str) -> Finding {
    Finding::new("wsl.config-path", format!(".wslconfig, {text}"))
}

/// Everything that WSL ignores in a file, as one finding.
fn ignored(id: &'static str, file: &str, lost: &[String]) -> Option<Finding> {
    let (first, rest) = lost.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        number => format!(" (and {number} more)"),
    };
    let finding = Finding::new(id, format!("{file}, {first}{more}"));
    Some(rest.iter().fold(finding, |finding, text| finding.seen(text.clone())))
}
