//! Whether the driver runs the CUDA version that libtorch was built for. The driver's own CUDA
//! version may be lower: within one generation (12.x, 13.x) any driver from the generation's first
//! branch on runs every minor version, without its newer features. So 12.8 runs on driver 525. Only
//! a driver older than the whole generation fails, unless the loader finds a newer libcuda from
//! `cuda-compat`, which works on data center cards.

use crate::checks::gpu::chosen;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState, Variant, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::{self, Serves, least_driver};
use crate::remedies::generation::{Generation, newest};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the driver support libtorch's CUDA version?",
    reports: &["libraries.cuda", "libraries.driver-too-old", "libraries.driver-minor"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let driver = host.driver_version()?;
    // If no build supports the cards, a newer driver does not help; their own check reports it.
    let is_reported_elsewhere = are_unserved(host, intent);
    let libtorch = match host.libtorch() {
        Ok(Some(libtorch)) => libtorch,
        Ok(None) if is_reported_elsewhere => return Ok(Vec::new()),
        Ok(None) => return without_libtorch(host, &driver),
        Err(why) if is_reported_elsewhere => return Err(why),
        Err(why) => {
            let findings = without_libtorch(host, &driver)?;
            return if findings.is_empty() { Err(why) } else { Ok(findings) };
        }
    };
    let Variant::Cuda(Some(cuda)) = libtorch.variant else { return Ok(Vec::new()) };
    let (major, minor) = cuda;
    let evidence = |finding: Finding| {
        let reported = host.driver_cuda().map(|cuda| format!("the driver reports CUDA {cuda}"));
        reported.into_iter().fold(finding.seen(format!("driver {driver}")), Finding::seen)
    };
    let least = least_driver(major);
    if driver.major() < least && is_reported_elsewhere {
        return Ok(Vec::new());
    }
    if let Some((path, version)) = super::libcuda::of_compat(host)
        && driver.major() < least
        && version.major() >= least
        && super::other_libcuda::without_compat(host).is_none()
    {
        let title =
            format!("driver {driver} runs libtorch's CUDA {major}.{minor} through cuda-compat {version}");
        return Ok(vec![Finding::ok("libraries.cuda", title).seen(path)]);
    }
    if driver.major() < least {
        let title = format!(
            "libtorch needs CUDA {major}, and therefore driver {least} or later; the installed driver is {driver}"
        );
        return Ok(vec![evidence(too_old(host, &driver, title))]);
    }
    let Ok(own) = host.driver_cuda() else {
        return Ok(vec![Finding::ok("libraries.cuda", format!("driver {driver} runs CUDA {major}.{minor}"))]);
    };
    if own.is_below(&[major, minor]) {
        let title = format!(
            "driver {driver} was made for CUDA {own}, but also runs libtorch's CUDA {major}.{minor} (same \
             major version)"
        );
        return Ok(vec![evidence(Finding::new("libraries.driver-minor", title))]);
    }
    Ok(vec![Finding::ok("libraries.cuda", format!("driver {driver} runs libtorch's CUDA {major}.{minor}"))])
}

/// Whether no build of libtorch has kernels for any of the run's cards.
fn are_unserved(host: &Host, intent: &Intent) -> bool {
    let mut cards = chosen(host, intent, host.gpus().unwrap_or_default());
    cards.retain(|gpu| gpu.lost().is_none());
    let is_unserved = |gpu: &Gpu| {
        let served = |card| libtorch_builds::BUILDS.iter().any(|build| build.serves(card) != Serves::No);
        gpu.capability().is_ok_and(|card| !served(card))
    };
    !cards.is_empty() && cards.iter().all(is_unserved)
}

/// Before libtorch is installed: whether any build would run.
fn without_libtorch(host: &Host, driver: &Version) -> Answer {
    let oldest = libtorch_builds::BUILDS.iter().map(libtorch_builds::Build::least_driver).min().unwrap_or(0);
    if driver.major() >= oldest {
        return Ok(Vec::new());
    }
    let title = format!("no build of libtorch runs on driver {driver}: {oldest} or later is needed");
    Ok(vec![too_old(host, driver, title)])
}

/// Whether the driver is older than the card: Blackwell needs branch 570.
fn is_unsuited(host: &Host, driver: &Version) -> bool {
    newest(host) == Some(Generation::Blackwell) && driver.major() < FIRST_FOR_BLACKWELL
}

/// The first branch that knows these cards.
const FIRST_FOR_BLACKWELL: u32 = 570;

/// A newer driver, or an older libtorch that runs on this driver and supports the cards.
fn too_old(host: &Host, driver: &Version, title: String) -> Finding {
    let finding = Finding::new("libraries.driver-too-old", title).status(Status::Error);
    let cards: Vec<_> =
        host.gpus().unwrap_or_default().iter().filter_map(|gpu| gpu.capability().ok()).collect();
    // No older build helps a card that this driver does not run.
    let other = libtorch_builds::best_for(&cards, driver.major()).filter(|_| !is_unsuited(host, driver));
    let (update, commands) = super::newer_driver(host);
    match other {
        Some(build) => super::install(
            host,
            build,
            finding.remedy(format!(
                "{update}; or use the {} build of libtorch, which runs on driver {} and later",
                build.name,
                build.least_driver()
            )),
        ),
        None => commands.into_iter().fold(finding.remedy(update), Finding::command),
    }
}
