//! Looks wheels up through the user's pip, so that its mirrors, proxies and certificates apply and this
//! program contains no index address.

use std::io::{BufRead, BufReader, Read};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use reqwest::Url;
use serde::Deserialize;
use yolo_base::env::{PIP_REQUIRE_VIRTUALENV, PIP_USER, TMPDIR};

use super::package_tool::{
    KillOnDrop, SILENCE_LIMIT, WheelLocation, add_credentials, file_of, hung, last_error, states_cause,
};
use super::wheel::Wheel;
use crate::fetch::{Refusal, RefusalKind};

/// pip processes at the same time. Each one needs a core for a second or two.
const AT_ONCE: usize = 5;

/// A way to run pip.
struct Pip {
    program: PathBuf,
    arguments: &'static [&'static str],
    shown: &'static str,
}

/// pip's installation report (PEP 710's format, version 1).
#[derive(Deserialize)]
struct Report {
    install: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    download_info: Download,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    hash: Option<String>,
    #[serde(default)]
    hashes: std::collections::HashMap<String, String>,
}

/// Looks up all wheels. Returns one location per wheel, in order.
pub(super) fn ask_pip(wheels: &[Wheel]) -> Result<Vec<WheelLocation>, Refusal> {
    let mut reasons = Vec::new();
    for (name, arguments, shown) in [
        ("python3", &["-m", "pip"][..], "python3 -m pip"),
        ("pip3", &[], "pip3"),
        ("pip", &[], "pip"),
        ("python", &["-m", "pip"], "python -m pip"),
    ] {
        let Ok(program) = which::which(name) else { continue };
        let pip = Pip { program, arguments, shown };
        match pip.locate(wheels) {
            Ok(mut located) => {
                add_credentials(&mut located, &pip.configured_addresses());
                return Ok(located);
            }
            // This Python has no pip or an old one; another may work.
            Err(Failed { why, other_may_work: true }) => reasons.push(why),
            Err(Failed { why, .. }) => return Err(why.into()),
        }
    }
    Err(if reasons.is_empty() {
        Refusal { why: "no pip on this machine".to_owned(), kind: RefusalKind::NoTool }
    } else {
        reasons.join("; ").into()
    })
}

struct Failed {
    why: String,
    other_may_work: bool,
}

impl Pip {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).stdin(Stdio::null());
        // These settings apply to installations only.
        command.env(PIP_USER, "0").env(PIP_REQUIRE_VIRTUALENV, "0");
        command
    }

    /// Runs one pip per wheel, several at a time. A single pip would look the wheels up one after the other,
    /// and download each one if the index does not serve its metadata.
    fn locate(&self, wheels: &[Wheel]) -> Result<Vec<WheelLocation>, Failed> {
        let mut located = Vec::with_capacity(wheels.len());
        for some in wheels.chunks(AT_ONCE) {
            let found: Result<Vec<_>, _> = thread::scope(|scope| {
                let asked: Vec<_> = some.iter().map(|wheel| scope.spawn(|| self.locate_one(wheel))).collect();
                // A panic in a thread is a bug and must not be swallowed.
                let join = |one: thread::ScopedJoinHandle<'_, _>| one.join();
                asked.into_iter().map(|one| join(one).unwrap_or_else(|panic| resume_unwind(panic))).collect()
            });
            located.extend(found?);
        }
        Ok(located)
    }

    /// Reads pip's log and stops pip once it names the wheel. Otherwise it would download all of it, half a
    /// gigabyte, only to report the same address.
    fn locate_one(&self, wheel: &Wheel) -> Result<WheelLocation, Failed> {
        let failed = |why: String| Failed { why: format!("{}: {why}", self.shown), other_may_work: false };
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let report = folder.path().join("report.json");
        let mut command = self.command();
        command.args(["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]);
        command.args(["-vvv", "--no-input", "--no-color", "--disable-pip-version-check"]);
        command.arg("--target").arg(folder.path().join("target"));
        command.args(["--python-version", "3.12", "--implementation", "cp"]);
        for platform in platforms() {
            command.args(["--platform", &platform]);
        }
        command.arg("--report").arg(&report);
        command.arg(wheel.requirement());
        // The files of a stopped pip are removed with the folder.
        command.env(TMPDIR, folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = KillOnDrop(command.spawn().map_err(|error| failed(error.to_string()))?);
        let (says, said) = mpsc::channel();
        for (stream, is_log) in [
            (child.0.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>), true),
            (child.0.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>), false),
        ] {
            let says = says.clone();
            thread::spawn(move || {
                let lines = stream.map(BufReader::new).into_iter().flat_map(|reader| reader.lines());
                // The receiver is dropped when the wheel is found.
                lines.map_while(Result::ok).try_for_each(|line| says.send((is_log, line)))
            });
        }
        drop(says);
        let mut errors = String::new();
        loop {
            match said.recv_timeout(SILENCE_LIMIT) {
                Ok((true, line)) => {
                    if let Some(found) = parse_found_link(&line, wheel) {
                        return Ok(found);
                    }
                    // At this verbosity, pip writes its warnings into the log.
                    if states_cause(&line) {
                        errors.insert_str(0, &(line + "\n"));
                    }
                }
                Ok((false, line)) => errors = errors + &line + "\n",
                Err(RecvTimeoutError::Timeout) => return Err(failed(hung())),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.0.wait().map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(self.explain(&errors));
        }
        let report = std::fs::read(&report).map_err(|error| failed(error.to_string()))?;
        parse_report(&report, wheel).map_err(failed)
    }

    fn explain(&self, text: &str) -> Failed {
        if text.contains("No module named pip") {
            return Failed { why: format!("{} has no pip", self.shown), other_may_work: true };
        }
        if text.contains("no such option") {
            let why = format!(
                "{} is older than 22.2 and cannot report where a wheel is; \
                 run `python3 -m pip install --user --upgrade pip`",
                self.shown
            );
            return Failed { why, other_may_work: true };
        }
        Failed { why: format!("{}: {}", self.shown, last_error(text)), other_may_work: false }
    }

    /// The index addresses in pip's configuration, which may contain credentials.
    fn configured_addresses(&self) -> Vec<String> {
        let Ok(output) = self.command().args(["config", "list"]).output() else { return Vec::new() };
        String::from_utf8_lossy(&output.stdout)
            .split(['\'', '"', '\n', ' '])
            .filter(|word| word.contains("://"))
            .map(|word| word.trim_end_matches("\\n").to_owned())
            .collect()
    }
}

/// The platform tags of wheels for glibc 2.28 or older. pip takes each tag literally: a newer one
/// does not imply the older ones, and NVIDIA's wheels use any of them.
fn platforms() -> impl Iterator<Item = String> {
    let tags = (17..=28).rev().map(|minor| format!("manylinux_2_{minor}_x86_64"));
    tags.chain(["manylinux2014_x86_64", "manylinux2010_x86_64"].map(str::to_owned))
}

/// `Found link https://host/torch-2.11.0-….whl#sha256=… (from …), version: 2.11.0`: the line in
/// pip's log since pip 20. If a pip writes it differently, its report is used.
fn parse_found_link(line: &str, wheel: &Wheel) -> Option<WheelLocation> {
    let link = line.trim_start().strip_prefix("Found link ")?.split(' ').next()?;
    let (address, fragment) = link.split_once('#').unwrap_or((link, ""));
    if !wheel.is_named(&file_of(address)) {
        return None;
    }
    let sha256 = fragment.split('&').find_map(|part| part.strip_prefix("sha256=")).map(str::to_lowercase);
    // pip writes `user:****@` in its log.
    let mut url = Url::parse(address).ok()?;
    if url.password().is_some_and(|password| password.starts_with("****") || password.starts_with("%2A")) {
        // Both setters fail only for addresses without a host, which have no password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    Some(WheelLocation { address: url.into(), sha256 })
}

fn parse_report(bytes: &[u8], wheel: &Wheel) -> Result<WheelLocation, String> {
    let report: Report =
        serde_json::from_slice(bytes).map_err(|error| format!("its report is not readable: {error}"))?;
    let is_it = |item: &&Item| item.metadata.name.replace('_', "-").eq_ignore_ascii_case(&wheel.package);
    let item =
        report.install.iter().find(is_it).ok_or_else(|| format!("its report lacks {}", wheel.package))?;
    let info = item.download_info.archive_info.as_ref();
    let sha256 = info.and_then(|info| {
        let old = info.hash.as_deref().and_then(|hash| hash.strip_prefix("sha256="));
        info.hashes.get("sha256").map(String::as_str).or(old).map(str::to_lowercase)
    });
    Ok(WheelLocation { address: item.download_info.url.clone(), sha256 })
}

#[cfg(test)]
mod tests {
    use super::super::pinned_headers::NCCL_HEADERS;
    use super::super::pinned_wheels;
    use super::*;

    fn cpu() -> [Wheel; 3] {
        pinned_wheels::CPU.map(Wheel::from)
    }

    fn file(wheel: &Wheel) -> String {
        wheel.file.clone().unwrap()
    }

    #[test]
    fn every_pinned_wheel_has_a_platform_tag_that_pip_is_given() {
        let given: Vec<String> = platforms().collect();
        let pinned = pinned_wheels::CPU.into_iter().chain(pinned_wheels::CU130).chain(NCCL_HEADERS);
        for wheel in pinned.map(Wheel::from) {
            let file = file(&wheel);
            let tags = file.trim_end_matches(".whl").rsplit('-').next().unwrap();
            assert!(tags.split('.').any(|tag| given.iter().any(|given| given == tag)), "{file}");
        }
    }

    #[test]
    fn a_wheel_is_located_in_pips_log() {
        let wheels = cpu();
        let file = &file(&wheels[0]);
        let line = format!(
            "  Found link https://me:****@h/p/{file}#sha256=AB (from https://h/simple/torch/), version: 2.11.0"
        );
        let located = parse_found_link(&line, &wheels[0]).unwrap();
        assert_eq!(located.address, format!("https://h/p/{file}"));
        assert_eq!(located.sha256.as_deref(), Some("ab"));
        assert_eq!(
            parse_found_link(&format!("  Found link file:///w/{file} (from /w), version: 2"), &wheels[0])
                .unwrap()
                .sha256,
            None
        );
        assert!(parse_found_link(&line, &wheels[1]).is_none());
        assert!(parse_found_link(&line.replace("Found", "Skipping"), &wheels[0]).is_none());
    }

    #[test]
    fn the_old_and_the_new_report_format_are_read() {
        let item = |name: &str, url: &str, info: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}"}},"download_info":{{"url":"{url}","archive_info":{info}}}}}"#
            )
        };
        let report = format!(
            "{{\"version\":\"1\",\"install\":[{},{},{}]}}",
            item("nvidia_cuda_cupti", "https://h/c.whl", r#"{"hash":"sha256=AB"}"#),
            item("torch", "https://h/t.whl", r#"{"hash":"md5=0","hashes":{"sha256":"cd"}}"#),
            item("nvidia-cuda-runtime", "file:///wheels/r.whl", "{}"),
        );
        let located = cpu().each_ref().map(|wheel| parse_report(report.as_bytes(), wheel).unwrap());
        let located = located.each_ref().map(|place| (place.address.as_str(), place.sha256.as_deref()));
        assert_eq!(
            located,
            [
                ("https://h/t.whl", Some("cd")),
                ("https://h/c.whl", Some("ab")),
                ("file:///wheels/r.whl", None)
            ]
        );
    }

    #[test]
    fn a_report_without_a_package_names_it() {
        let error = parse_report(br#"{"install":[]}"#, &cpu()[0]).err();
        assert_eq!(error.as_deref(), Some("its report lacks torch"));
    }
}
