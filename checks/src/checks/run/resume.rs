//! Whether there is a run to resume: a checkpoint, of a run that is not complete, with the same
//! number of ranks.

use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{join, parent};
use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use yolo_base::format;

pub(super) static CHECK: Check = Check {
    question: "Is there a run to resume?",
    reports: &["run.nothing-to-resume", "run.resume-finished", "run.resume-other-ranks"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(named) = &intent.resume else { return Ok(Vec::new()) };
    let working = host.places()?.working.ok_or_else(|| Unknown::because("the working folder is unknown"))?;
    let checkpoint =
        if named.is_empty() { newest(host, &working)? } else { given(host, &join(&working, named))? };
    let Some(checkpoint) = checkpoint else {
        let title = if named.is_empty() {
            format!("there is no checkpoint in {}", join(&working, "runs"))
        } else {
            format!("there is no checkpoint {named}")
        };
        return Ok(vec![Finding::new("run.nothing-to-resume", title)]);
    };
    let folder = parent(&checkpoint).and_then(|weights| parent(&weights)).unwrap_or_default();
    let plan = join(&folder, "plan.json");
    let Some(text) = host.text(&plan)? else {
        let title = format!("the run of {checkpoint} has no plan.json, so it cannot be resumed");
        let finding = Finding::new("run.nothing-to-resume", title)
            .command(format!("yolo train --weights {} …", quote(&checkpoint)));
        return Ok(vec![finding.remedy("start a new run from its weights")]);
    };
    let plan: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Unknown(format!("{plan} is not valid JSON: {error}")))?;
    let mut findings = Vec::new();
    // A run writes one line per epoch below the header.
    let rows = host.text(&join(&folder, "results.csv")).ok().flatten();
    let done = rows.map(|text| text.lines().skip(1).filter(|line| !line.trim().is_empty()).count());
    let epochs = plan["task"]["epochs"].as_u64().and_then(|epochs| usize::try_from(epochs).ok());
    if let (Some(done), Some(epochs)) = (done, epochs)
        && done >= epochs
        && epochs > 0
    {
        let title = format!("the run of {checkpoint} has already completed all its epochs ({epochs})");
        let command = format!("yolo train --weights {} --epochs {epochs} …", quote(&checkpoint));
        findings.push(Finding::new("run.resume-finished", title).command(command));
    }
    let had = plan["ranks"]["world_size"].as_u64().and_then(|ranks| usize::try_from(ranks).ok());
    let names_ranks = intent.ranks.is_some() || !intent.devices.is_empty();
    if let Some(had) = had.filter(|&had| findings.is_empty() && names_ranks && had != intent.ranks_in_all()) {
        let title = format!(
            "the run of {checkpoint} had {}, but this one would have {}",
            format::count(had, "rank"),
            intent.ranks_in_all()
        );
        findings.push(
            Finding::new("run.resume-other-ranks", title)
                .command(format!("yolo train --resume {}", quote(&checkpoint))),
        );
    }
    Ok(findings)
}

/// A file, or a run folder with `weights/last.pt`.
fn given(host: &Host, path: &str) -> Result<Option<String>, Unknown> {
    for inside in ["weights/last.pt", "last.pt"] {
        let file = join(path, inside);
        if host.exists(&file).unwrap_or(false) {
            return Ok(Some(file));
        }
    }
    Ok(host.exists(path)?.then(|| path.to_owned()))
}

/// The newest `last.pt` of `runs/train/*/weights`.
fn newest(host: &Host, working: &str) -> Result<Option<String>, Unknown> {
    let runs = join(working, "runs/train");
    let names = host.folder(&runs)?.unwrap_or_default();
    let files = names.iter().map(|name| join(&runs, &format!("{name}/weights/last.pt")));
    let there = files.filter(|file| host.exists(file).unwrap_or(false));
    let changed = |file: &String| host.stat(file).ok().flatten().and_then(|stat| stat.modified);
    Ok(there.max_by_key(changed))
}
