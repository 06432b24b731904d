//! Whether the environment variables that select a libtorch for a build are valid. They only matter
//! where Rust programs with libtorch are built.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::BUILDS;

pub(super) static CHECK: Check = Check {
    question: "Are the environment variables for building with libtorch correct?",
    reports: &["libraries.build-variables"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(variant) = host.env("TORCH_CUDA_VERSION")? else { return Ok(Vec::new()) };
    let is_variant = |word: &str| word == "cpu" || BUILDS.iter().any(|build| build.name == word);
    if variant.is_empty() || is_variant(&variant) {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = BUILDS.iter().map(|build| build.name).collect();
    let title = format!("TORCH_CUDA_VERSION is \"{variant}\", which is not a build of libtorch 2.11");
    let finding = Finding::new("libraries.build-variables", title)
        .seen(format!("the builds are cpu, {}", names.join(", ")));
    let other = host.env("TORCH_VERSION").ok().flatten();
    // The name of a build, though perhaps of another release.
    let is_swapped = other.as_ref().is_some_and(|other| is_variant(other) || other.starts_with("cu"));
    let finding = match other.as_ref().filter(|_| is_swapped) {
        Some(other) => finding
            .seen(format!("TORCH_VERSION is \"{other}\": the two seem to be swapped"))
            .command("unset TORCH_VERSION"),
        None => finding,
    };
    let digits: String = variant.chars().filter(char::is_ascii_digit).collect();
    let intended = [other.filter(|_| is_swapped), Some(format!("cu{digits}"))];
    let intended = intended.into_iter().flatten().find(|word| is_variant(word));
    let right = intended.or_else(|| super::fitting(host, intent).map(|build| build.name.to_owned()));
    Ok(vec![match right {
        Some(right) => finding.command(format!("export TORCH_CUDA_VERSION={right}")),
        None => finding.command("unset TORCH_CUDA_VERSION"),
    }])
}
