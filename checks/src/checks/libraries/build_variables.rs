//! Whether variables that choose a libtorch for a build say what was meant. They count only where
//! Rust programs with libtorch are built on this machine.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are the variables for building with libtorch right?",
    reports: &["libraries.build-variables"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let Some(variant) = host.env("TORCH_CUDA_VERSION")? else { return Ok(Vec::new()) };
    let is_variant = |word: &str| {
        word == "cpu"
            || word.strip_prefix("cu").is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
            })
    };
    if variant.is_empty() || is_variant(&variant) {
        return Ok(Vec::new());
    }
    let title = format!("TORCH_CUDA_VERSION is \"{variant}\", which names no build of libtorch");
    let finding = Finding::new("libraries.build-variables", title);
    let swapped = host.env("TORCH_VERSION").ok().flatten().filter(|version| is_variant(version));
    if let Some(other) = swapped {
        let finding = finding.seen(format!("TORCH_VERSION is \"{other}\": the two look swapped"));
        return Ok(vec![
            finding.command(format!("export TORCH_CUDA_VERSION={other}")).command("unset TORCH_VERSION"),
        ]);
    }
    let digits: String = variant.chars().filter(char::is_ascii_digit).collect();
    Ok(vec![match digits.len() {
        2..=3 => finding.command(format!("export TORCH_CUDA_VERSION=cu{digits}")),
        _ => finding.command("unset TORCH_CUDA_VERSION"),
    }])
}
