//! Whether libtorch has kernels for the GPUs. Machine code for 8.0 runs on 8.6; PTX runs on every
//! newer GPU after it is compiled once; anything else fails with "no kernel image is available". If
//! the build does not support a GPU, the check looks for one that does; some pairs of GPUs have none
//! in common.

use crate::checks::gpu::chosen;
use crate::checks::{Answer, Check};
use crate::facts::{Fact, Gpu, Host, Libtorch, NvmlState, Variant};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::{self, BUILDS, Build, Capability, Serves};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does libtorch have kernels for these GPUs?",
    reports: &[
        "libraries.kernels",
        "libraries.no-kernels",
        "libraries.kernels-ptx",
        "libraries.no-common-build",
        "libraries.gpu-unserved",
    ],
    preflight: true,
    run,
};

/// Equal cards that the run would use: what is wrong with one is wrong with all.
struct Cards {
    numbers: Vec<usize>,
    name: String,
    capability: Capability,
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let cards = cards(&chosen(host, intent, host.gpus()?))?;
    if cards.is_empty() {
        return Ok(Vec::new());
    }
    let driver = host.driver_version().map_or(u32::MAX, |version| version.major());
    let capabilities: Vec<Capability> = cards.iter().map(|card| card.capability).collect();
    let best = libtorch_builds::best_for(&capabilities, driver);
    let mut findings: Vec<Finding> =
        cards.iter().filter(|card| BUILDS.iter().all(|build| !serves(build, card))).map(unserved).collect();
    if findings.is_empty()
        && best.is_none()
        && BUILDS.iter().all(|build| !cards.iter().all(|c| serves(build, c)))
    {
        let installed = host.libtorch().ok().flatten().and_then(|libtorch| libtorch.build());
        findings.push(no_common_build(host, &cards, intent, installed));
    }
    let libtorch = match host.libtorch() {
        Ok(libtorch) => libtorch,
        // The cards alone are enough.
        Err(_) if !findings.is_empty() => return Ok(findings),
        Err(why) => return Err(why),
    };
    if let (None, true, Some(best)) = (&libtorch, findings.is_empty(), best) {
        return Ok(cards.iter().filter_map(|card| before_setup(card, best)).collect());
    }
    let Some(libtorch) = libtorch else { return Ok(findings) };
    let Some(build) = libtorch.build() else {
        if findings.is_empty() {
            findings.extend(cards.iter().filter_map(|card| beyond_cuda(host, &libtorch, card, best)));
        }
        return Ok(findings);
    };
    if findings.is_empty() {
        findings.extend(cards.iter().filter_map(|card| unsupported(host, build, card, best)));
    }
    if findings.is_empty() {
        let mut names: Vec<String> = cards.iter().map(|card| dotted(card.capability)).collect();
        names.dedup();
        let title = format!(
            "libtorch's {} build has kernels for compute capability {}",
            build.name,
            names.join(" and ")
        );
        findings.push(Finding::ok("libraries.kernels", title));
    }
    Ok(findings)
}

/// Working cards, grouped by model; a capability that the driver does not report is unknown.
fn cards(gpus: &[Gpu]) -> Fact<Vec<Cards>> {
    let mut kinds: Vec<Cards> = Vec::new();
    for gpu in gpus.iter().filter(|gpu| gpu.lost().is_none()) {
        let name = gpu.name().unwrap_or_else(|_| "unknown name".to_owned());
        let capability = gpu.capability()?;
        match kinds.iter_mut().find(|kind| kind.name == name && kind.capability == capability) {
            Some(kind) => kind.numbers.push(gpu.index),
            None => kinds.push(Cards { numbers: vec![gpu.index], name, capability }),
        }
    }
    Ok(kinds)
}

impl Cards {
    /// The pronoun for the cards.
    fn them(&self) -> &'static str {
        if self.numbers.len() == 1 { "it" } else { "them" }
    }

    /// `GPU 0 (NVIDIA A10, compute capability 8.6)`, `GPUs 0, 1 (…)`
    fn label(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(usize::to_string).collect();
        let word = if numbers.len() == 1 { "GPU" } else { "GPUs" };
        format!(
            "{word} {} ({}, compute capability {})",
            numbers.join(", "),
            self.name,
            dotted(self.capability)
        )
    }
}

fn serves(build: &Build, card: &Cards) -> bool {
    build.serves(card.capability) != Serves::No
}

/// A finding unless the build has compiled kernels for the card.
fn unsupported(host: &Host, build: &Build, card: &Cards, best: Option<&Build>) -> Option<Finding> {
    let who = card.label();
    let compiled: Vec<String> = build.compiled.iter().copied().map(dotted).collect();
    let evidence = format!("{} has kernels for {}", build.name, compiled.join(", "));
    match build.serves(card.capability) {
        Serves::Compiled => None,
        Serves::Ptx => {
            let title = format!("{who} can run libtorch's {} build only through PTX", build.name);
            Some(Finding::new("libraries.kernels-ptx", title).seen(evidence))
        }
        Serves::No => {
            let title = format!("libtorch's {} build has no kernels for {who}", build.name);
            let finding = Finding::new("libraries.no-kernels", title).seen(evidence);
            Some(replaced(host, finding, card, best))
        }
    }
}

/// With another libtorch of the user, of which only the version of CUDA is known: no compiler makes machine code for
/// cards that came after it, and the builds that PyTorch made with CUDA before 12.8 have no PTX for a driver to compile.
fn beyond_cuda(host: &Host, libtorch: &Libtorch, card: &Cards, best: Option<&Build>) -> Option<Finding> {
    let Variant::Cuda(Some(cuda)) = libtorch.variant else { return None };
    let first = libtorch_builds::first_cuda(card.capability).filter(|first| cuda < *first)?;
    let title = format!(
        "libtorch in {} is for CUDA {}, which has no kernels for {}",
        libtorch.root,
        dotted(cuda),
        card.label()
    );
    let evidence = format!(
        "compute capability {} needs a libtorch for CUDA {} or later",
        dotted(card.capability),
        dotted(first)
    );
    Some(replaced(host, Finding::new("libraries.no-kernels", title).seen(evidence), card, best))
}

/// With how to get a build that supports the card.
fn replaced(host: &Host, finding: Finding, card: &Cards, best: Option<&Build>) -> Finding {
    match best {
        Some(best) => super::install(
            host,
            best,
            finding.remedy(format!(
                "use the {} build of libtorch, which supports {}",
                best.name,
                card.them()
            )),
        ),
        // A build would support it, but not on this driver.
        None => {
            let (_, commands) = super::newer_driver(host);
            commands.into_iter().fold(finding.remedy(for_newer_driver(card)), Finding::command)
        }
    }
}

/// Before libtorch is installed: a card for which the newest build would be the wrong one.
fn before_setup(card: &Cards, best: &Build) -> Option<Finding> {
    BUILDS.last().filter(|newest| newest.name != best.name && !serves(newest, card))?;
    let (major, minor) = best.cuda;
    let title = format!(
        "{} needs the {} build of libtorch (CUDA {major}.{minor}): newer builds have no kernels for {}",
        card.label(),
        best.name,
        card.them()
    );
    let finding = Finding::new("libraries.no-kernels", title).status(Status::Info);
    Some(finding.remedy(format!(
        "nothing: `yolo setup` chooses {}; other programs need a build of PyTorch for CUDA {major}.{minor} too",
        best.name
    )))
}

fn for_newer_driver(card: &Cards) -> String {
    let build = BUILDS.iter().find(|build| serves(build, card));
    build.map_or("train on another GPU".to_owned(), |build| {
        format!(
            "update the NVIDIA driver to {} or later, then use the {} build of libtorch, which supports \
             {}",
            build.least_driver(),
            build.name,
            card.them()
        )
    })
}

/// A card that no build supports.
fn unserved(card: &Cards) -> Finding {
    let title = format!("no build of libtorch 2.11 supports {}", card.label());
    Finding::new("libraries.gpu-unserved", title)
}

fn no_common_build(host: &Host, cards: &[Cards], intent: &Intent, installed: Option<&Build>) -> Finding {
    let names: Vec<String> = cards.iter().map(Cards::label).collect();
    let title = format!("no single build of libtorch supports {}", names.join(" and "));
    // Only a run that uses both cards fails.
    let status = if intent.devices.len() > 1 { Status::Error } else { Status::Warning };
    let mut finding = Finding::new("libraries.no-common-build", title).status(status);
    let mut best: Option<&(&Build, Vec<String>)> = None;
    let driver = host.driver_version().map_or(u32::MAX, |version| version.major());
    let served: Vec<(&Build, Vec<String>)> = BUILDS
        .iter()
        .rev()
        .map(|build| {
            let served = cards.iter().filter(|card| serves(build, card));
            (build, served.flat_map(|card| card.numbers.iter().map(usize::to_string)).collect())
        })
        .collect();
    for one in served.iter().filter(|(_, numbers)| !numbers.is_empty()) {
        let (build, numbers) = one;
        finding = finding.seen(format!(
            "{} supports GPU{} {}",
            build.name,
            if numbers.len() == 1 { "" } else { "s" },
            numbers.join(", ")
        ));
        // The newest build that supports the most cards, of those that this driver runs.
        let is_more = best.is_none_or(|(_, most)| numbers.len() > most.len());
        if is_more && build.runs_on(driver) {
            best = Some(one);
        }
    }
    let Some((build, numbers)) = best else { return finding };
    // The installed build may also support these cards.
    let serves_these = |installed: &Build| {
        let of_these =
            |card: &&Cards| card.numbers.iter().any(|number| numbers.contains(&number.to_string()));
        cards.iter().filter(of_these).all(|card| serves(installed, card))
    };
    let finding = match installed {
        Some(installed) if !serves_these(installed) => super::install(host, build, finding),
        _ => finding,
    };
    finding.command(format!("yolo train --device {} …", numbers.join(",")))
}

fn dotted((major, minor): Capability) -> String {
    format!("{major}.{minor}")
}
