//! The crates' own tests of a device, packed as programs.

use yolo_base::env::{YOLO_TEST_DEVICE, YOLO_TEST_WEIGHTS};

use crate::stage_run::{StageRun, Stop};

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    if session.kit.manifest.tests.is_empty() {
        return Err(Stop::Failed("the kit contains no test programs".to_owned()));
    }
    for name in &session.kit.manifest.tests {
        check_tests(stage, name, "", &format!("the tests of {name} on the device"))?;
    }
    Ok(())
}

/// Runs those tests of a crate whose names contain `filter`, and checks that there are some and that all
/// pass.
pub(super) fn check_tests(
    stage: &mut StageRun<'_>,
    name: &str,
    filter: &str,
    what: &str,
) -> Result<(), Stop> {
    let session = stage.session;
    let mut invocation = session
        .test_program(name)
        .args(&format!("--test-threads 1 --nocapture {filter}"))
        .env(YOLO_TEST_DEVICE, session.scale.test_device.as_str());
    if let Some(weights) = session.kit.weights() {
        invocation = invocation.env(YOLO_TEST_WEIGHTS, weights);
    }
    let ended = stage.run(invocation)?;
    let summary = ended.stdout.lines().rev().find(|line| line.starts_with("test result: "));
    let detail = match summary {
        Some(line) => line.trim_start_matches("test result: ").to_owned(),
        None => format!("it ended with {} before its summary", ended.how()),
    };
    let passed = number_before(&detail, " passed");
    if !stage.check(what, ended.succeeded() && passed > 0, detail) {
        stage.lines.extend(failed_tests(&ended.stdout));
        stage.lines.extend(ended.last_lines(12));
    }
    Ok(())
}

/// The number before this word in a summary of tests; 0 if there is none.
fn number_before(summary: &str, word: &str) -> u64 {
    let before = summary.split_once(word).map(|(before, _)| before);
    before.and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// The names of tests that failed, and what their assertions say.
fn failed_tests(output: &str) -> Vec<String> {
    let is_telling = |line: &&str| line.contains("panicked at") || line.ends_with("FAILED");
    output.lines().filter(is_telling).take(12).map(str::to_owned).collect()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_number_of_passed_tests_is_read() {
        assert_eq!(number_before("ok. 12 passed; 0 failed; 0 ignored", " passed"), 12);
        assert_eq!(number_before("it ended with signal 6", " passed"), 0);
    }
}
