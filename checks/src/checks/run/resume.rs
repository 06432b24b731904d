//! Whether there is a run to resume: a checkpoint, of a run that is not complete, with a batch that can be
//! divided among the ranks.

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
    if !named.is_empty() && starts_again(host, &join(&working, named)) {
        return Ok(Vec::new());
    }
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
        // A run of YOLOv5 itself has its options here, which the planner reads.
        if host.exists(&join(&folder, "opt.yaml")).unwrap_or(false) {
            return Ok(Vec::new());
        }
        if let Some(options) = host.text(&join(&folder, "args.yaml")).ok().flatten() {
            return Ok(vec![of_ultralytics(&checkpoint, &options)]);
        }
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
    let batch = plan["task"]["batch"].as_u64().and_then(|batch| usize::try_from(batch).ok());
    let names_ranks = intent.ranks.is_some() || !intent.devices.is_empty();
    let ranks = intent.shares_of_batch();
    // As many ranks as the run has shares may be the ranks of before; the planner compares the devices.
    let keeps_shares = plan["task"]["batch_split"].as_array().is_some_and(|shares| shares.len() == ranks);
    let may_change = findings.is_empty() && names_ranks && !keeps_shares;
    if let Some(batch) = batch.filter(|batch| may_change && !batch.is_multiple_of(ranks.max(1))) {
        let title = format!(
            "the run of {checkpoint} has a batch of {batch}, which cannot be divided among {}",
            format::count(ranks, "rank")
        );
        findings.push(
            Finding::new("run.resume-other-ranks", title)
                .command(format!("yolo train --resume {}", quote(&checkpoint))),
        );
    }
    Ok(findings)
}

/// A run folder of Ultralytics, whose `args.yaml` has one line for each option, such as `model: yolo11n.pt`.
fn of_ultralytics(checkpoint: &str, options: &str) -> Finding {
    let model =
        options.lines().find_map(|line| line.strip_prefix("model:")).map(str::trim).unwrap_or_default();
    let title = format!("the run of {checkpoint} is of Ultralytics (args.yaml), so it cannot be resumed");
    let finding = Finding::new("run.nothing-to-resume", title);
    let finding = if model.is_empty() { finding } else { finding.seen(format!("args.yaml: model: {model}")) };
    finding
        .because("Ultralytics trains models with other layers, whose weights and optimizer fit no YOLOv5 model")
        .remedy(format!(
            "resume it in the Python environment of Ultralytics, whose command has the same name: `yolo train resume \
             model={}`; or start a new run from weights of YOLOv5, which yolo downloads",
            quote(checkpoint)
        ))
        .command("yolo train --weights yolov5s …")
}

/// The checkpoint that `--resume` names, or the newest; `None` if there is none, or nothing is to be resumed.
pub(in crate::checks) fn checkpoint(host: &Host, intent: &Intent) -> Option<String> {
    let named = intent.resume.as_ref()?;
    let working = host.places().ok()?.working?;
    if named.is_empty() { newest(host, &working) } else { given(host, &join(&working, named)) }.ok()?
}

/// Whether this is the folder of a run without a checkpoint, which starts again from the beginning.
fn starts_again(host: &Host, path: &str) -> bool {
    let has = |file: &str| host.exists(&join(path, file)).unwrap_or(false);
    has("plan.json") && !has("weights/last.pt") && !has("last.pt")
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
