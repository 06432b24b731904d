//! The other half of a report in Windows: what the doctor inside WSL finds. It is asked once, as JSON; its findings
//! are shown under a heading of their own, without those that the doctor in Windows reports in the same words. If it cannot be
//! asked, the report says why.

use std::ffi::OsString;

use serde_json::{Value, json};
use yolo_base::{Hint as _, exit};
use yolo_checks::{Area, Finding, Remedy, Status, entry};

use crate::cli::DoctorArgs;
use crate::in_wsl::{InWslError, Said, Wsl};

/// What does not concern Windows once WSL is set up: libtorch is installed there, and runs go there.
pub(super) const SETTLED: [&str; 4] =
    ["libraries.libtorch-missing", "windows.trains-in-wsl", "windows.backend", "windows.gloo-broken"];

/// What the doctor in WSL answered.
#[derive(Debug)]
pub(super) struct Inside {
    /// The distribution, if one was chosen.
    pub(super) distribution: Option<String>,
    /// Its report, or why there is none and what to do.
    answer: Result<Value, (String, Option<String>)>,
    /// The command of `wsl.exe` that failed.
    said: Option<Said>,
}

impl Inside {
    /// Asks the doctor in this distribution the same as these arguments ask here.
    pub(super) fn ask(wsl: &Result<Wsl, InWslError>, args: &DoctorArgs) -> Self {
        let refused = |error: &InWslError, distribution| Self {
            distribution,
            answer: Err((error.to_string(), error.hint().map(|hint| hint.into_owned()))),
            said: error.said(),
        };
        let wsl = match wsl {
            Ok(wsl) => wsl,
            Err(error) => return refused(error, None),
        };
        let distribution = Some(wsl.distribution().to_owned());
        let answer = match wsl.output(&arguments(args)) {
            Ok((status, output)) => match serde_json::from_slice(&output.stdout) {
                Ok(report) if matches!(status, exit::SUCCESS | exit::FAILURE) => Ok(report),
                _ => match wsl.why_not(&output) {
                    error @ InWslError::OtherVersion { .. } => return refused(&error, distribution),
                    _ => {
                        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                        Err(if said.is_empty() {
                            ("its answer is not a report".to_owned(), None)
                        } else {
                            (format!("it could not check: {said}"), None)
                        })
                    }
                },
            },
            Err(error) => return refused(&error, distribution),
        };
        Self { distribution, answer, said: None }
    }

    /// The command of `wsl.exe` that failed, and what it wrote.
    pub(super) fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    /// Why the doctor in WSL did not answer.
    pub(super) fn why_not(&self) -> Option<String> {
        let (why, hint) = self.answer.as_ref().err()?;
        Some(hint.as_ref().map_or_else(|| why.clone(), |hint| format!("{why}; {hint}")))
    }

    /// Its findings, without those that are shown here in the same words. One of another title is of another value or
    /// place, even if the id is the same: a full disk there is not the full drive here.
    pub(super) fn findings(&self, here: &[&Finding]) -> Vec<Finding> {
        let is_shown =
            |finding: &Finding| finding.status == Status::Info || finding.status >= Status::Warning;
        let is_known = |finding: &Finding| {
            let same = |other: &Finding| other.id == finding.id && other.title == finding.title;
            is_shown(finding) && here.iter().any(|other| is_shown(other) && same(other))
        };
        let listed = self.answer.as_ref().ok().and_then(|report| report["findings"].as_array());
        listed.into_iter().flatten().filter_map(of_json).filter(|finding| !is_known(finding)).collect()
    }

    /// How many checks it has made.
    pub(super) fn checks(&self) -> usize {
        let checks = self.answer.as_ref().ok().and_then(|report| report["checks"].as_array());
        checks.map_or(0, Vec::len)
    }

    /// For programs: the whole report, or the error.
    pub(super) fn json(&self) -> Value {
        match &self.answer {
            Ok(report) => json!({ "distribution": self.distribution, "report": report }),
            Err((why, hint)) => json!({ "distribution": self.distribution, "error": why, "hint": hint }),
        }
    }
}

/// The arguments for the doctor in WSL.
fn arguments(args: &DoctorArgs) -> Vec<OsString> {
    let mut words: Vec<String> = vec!["doctor".to_owned(), "--json".to_owned()];
    for (option, names) in [("--only", &args.only), ("--skip", &args.skip)] {
        if !names.is_empty() {
            words.push(format!("{option}={}", names.join(",")));
        }
    }
    if !args.run.is_empty() {
        words.push("--".to_owned());
        words.extend(args.run.iter().cloned());
    }
    words.into_iter().map(OsString::from).collect()
}

/// A finding as `--json` writes it. What `--fix` would do is left out: it would do it there.
fn of_json(value: &Value) -> Option<Finding> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| value.as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>();
    let status = match value["status"].as_str()? {
        "ok" => Status::Ok,
        "info" => Status::Info,
        "skipped" => Status::Skipped,
        "warning" => Status::Warning,
        "error" => Status::Error,
        _ => return None,
    };
    let remedy = value["remedy"].as_object().map(|remedy| Remedy {
        text: remedy.get("text").and_then(text).unwrap_or_default(),
        for_machine: None,
        commands: remedy.get("commands").map(texts).unwrap_or_default(),
        fixable: false,
        changes: Vec::new(),
        undo: None,
    });
    Some(Finding {
        id: entry(value["id"].as_str()?)?.id,
        area: Area::ALL.into_iter().find(|area| value["area"] == area.name())?,
        status,
        title: text(&value["title"])?,
        cause: text(&value["cause"]),
        evidence: texts(&value["evidence"]),
        remedy,
        detects: &[],
        link: text(&value["link"]).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        let host: Value = serde_json::from_str(
            &std::fs::read_to_string("checks/tests/hosts/bases/linux-gpu.json").unwrap(),
        )
        .unwrap();
        let mut host = host;
        host["env"]["CUDA_VISIBLE_DEVICES"] = "7".into();
        let (host, intent) = (yolo_checks::Host::from_value(host).unwrap().0, yolo_checks::Intent::default());
        let selection = super::super::Selection::of(&[], &[]).unwrap();
        let report = super::super::Report::of(&host, &intent, &selection);
        serde_json::from_str(&super::super::json::render(&report, None, None)).unwrap()
    }

    #[test]
    fn every_finding_of_a_report_is_read_and_duplicates_are_dropped() {
        let report = report();
        let count = report["findings"].as_array().unwrap().len();
        let inside =
            Inside { distribution: Some("Ubuntu".to_owned()), answer: Ok(report.clone()), said: None };
        let findings = inside.findings(&[]);
        assert!(count > 10 && findings.len() == count, "{count} {}", findings.len());
        let problem = findings.iter().find(|finding| finding.status >= Status::Warning).unwrap();
        assert_eq!(inside.findings(&[problem]).len(), count - 1);
        // The same variable with another value is another problem.
        let other = Finding { title: format!("{} there", problem.title), ..problem.clone() };
        assert_eq!(inside.findings(&[&other]).len(), count);
        assert_eq!(inside.json()["report"], report);
        assert_eq!(inside.why_not(), None);
    }

    #[test]
    fn that_wsl_cannot_be_asked_is_said() {
        let args = DoctorArgs::default();
        let inside = Inside::ask(&Err(InWslError::NotInstalled), &args);
        assert!(inside.why_not().unwrap().contains("yolo setup --wsl"));
        assert!(inside.findings(&[]).is_empty());
        assert!(inside.json()["error"].as_str().unwrap().contains("not installed"));
    }
}
