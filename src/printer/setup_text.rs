//! The words of `yolo setup`: the plan, what each step came to, what is installed.

use yolo_base::format::bytes;

use crate::setup::data::Summary;
use crate::setup::{Disk, InstalledItem, SetupStep, StepOutcome, StepState};

/// Classes and faults that are shown; the rest is counted.
const SHOWN: usize = 10;

/// The plan, as lines.
pub(crate) fn plan(steps: &[SetupStep], disks: &[Disk]) -> String {
    let mut lines = Vec::new();
    for step in steps {
        lines.push(match step.state {
            StepState::Installed => format!("  there   {}: {}", step.what, step.place.display()),
            StepState::Build => format!("  build   {} into {}", step.what, step.place.display()),
            StepState::Make => format!("  make    {} in {}", step.what, step.place.display()),
            StepState::Fetch => {
                let size = match (step.transfer, step.size) {
                    (Some(transfer), Some(size)) => {
                        format!("{} to fetch, {} on the disk", bytes(transfer), bytes(size))
                    }
                    (Some(transfer), None) => format!("{} to fetch", bytes(transfer)),
                    (None, Some(size)) => format!("about {} on the disk", bytes(size)),
                    (None, None) => "of a size that is not told before".to_owned(),
                };
                let left = if step.begun > 0 { ", going on with what has come" } else { "" };
                format!("  fetch   {}: {size}{left}, into {}", step.what, step.place.display())
            }
        });
        if !step.from.is_empty() && step.state == StepState::Fetch {
            lines.push(format!("          from {}", from(&step.from)));
        }
        lines.extend(step.reasons.iter().map(|reason| format!("          {reason}")));
        lines.extend(step.unserved.iter().map(|why| format!("  warning {why}")));
        if step.kind == "weights" && step.from.iter().any(|from| from.contains("/ultralytics/")) {
            lines.push("          Ultralytics' weights are theirs, under AGPL-3.0".to_owned());
        }
    }
    for Disk { mount, free, need } in disks {
        let (free, need) = (bytes(*free), bytes(*need));
        lines.push(format!("the disk of {} has {free} free, of which {need} are needed", mount.display()));
    }
    lines.join("\n")
}

/// The first source, and how many more addresses there are.
fn from(sources: &[String]) -> String {
    match sources {
        [one] => one.clone(),
        [first, second] => format!("{first}, {second}"),
        [first, second, more @ ..] => format!("{first}, {second} and {} more", more.len()),
        [] => String::new(),
    }
}

/// What a step came to.
pub(crate) fn outcome(step: &SetupStep, outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Libtorch { root, variant } => {
            let reasons = if step.state == StepState::Installed { step.reasons.as_slice() } else { &[] };
            let reasons: String = reasons.iter().map(|reason| format!("\n  {reason}")).collect();
            format!("libtorch ({variant}) is in {}{reasons}", root.display())
        }
        StepOutcome::Trainer { path } => format!("the trainer is {}", path.display()),
        StepOutcome::Weights(weights) => format!(
            "weights {}: {} parameters, {}{} (SHA-256 {}…)",
            weights.path.display(),
            weights.parameters,
            weights.classes.map_or(String::new(), |classes| format!("{classes} classes, ")),
            bytes(weights.size),
            weights.sha256.get(..12).unwrap_or_default(),
        ),
        StepOutcome::Data { name, summary } => {
            format!("data set {name} is there: {}\n{}", step.place.display(), data(summary))
        }
    }
}

/// What lies in a data set.
fn data(summary: &Summary) -> String {
    let mut lines: Vec<String> = summary
        .splits
        .iter()
        .map(|split| {
            format!(
                "  {}: {} images, {} boxes, {} without an object, {} corrupt",
                split.name, split.images, split.boxes, split.background, split.corrupt
            )
        })
        .collect();
    let mut classes: Vec<&(String, usize)> = summary.classes.iter().filter(|(_, boxes)| *boxes > 0).collect();
    classes.sort_by(|(_, one), (_, other)| other.cmp(one));
    let named = classes.iter().take(SHOWN).map(|(name, boxes)| format!("{name} {boxes}"));
    let named: Vec<String> = named.collect();
    let rest = classes.len().saturating_sub(SHOWN);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    lines.push(format!(
        "  {} of {} classes have boxes: {}{more}",
        classes.len(),
        summary.classes.len(),
        named.join(", ")
    ));
    lines.extend(summary.wrong.iter().take(SHOWN).map(|wrong| format!("  wrong: {wrong}")));
    if summary.wrong.len() > SHOWN {
        lines.push(format!("  and {} more that are wrong", summary.wrong.len() - SHOWN));
    }
    lines.join("\n")
}

/// What is installed, a line a thing.
pub(crate) fn holdings(holdings: &[InstalledItem]) -> String {
    let width = holdings.iter().map(|holding| holding.name.len()).max().unwrap_or(0);
    let line = |holding: &InstalledItem| {
        let mark = if holding.in_use { "  (runs use it)" } else { "" };
        format!(
            "{:<10} {:<width$} {:>9}  {}{mark}",
            holding.kind,
            holding.name,
            bytes(holding.size),
            holding.place.display()
        )
    };
    let mut lines: Vec<String> = holdings.iter().map(line).collect();
    lines.push(format!("{} in all", bytes(holdings.iter().map(|holding| holding.size).sum())));
    lines.join("\n")
}

/// What was removed.
pub(crate) fn removed(holding: &InstalledItem) -> String {
    format!(
        "removed {} {} ({}) from {}",
        holding.kind,
        holding.name,
        bytes(holding.size),
        holding.place.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::data::SplitSummary;

    fn step(state: StepState) -> SetupStep {
        SetupStep {
            kind: "weights",
            what: "weights yolov5s.pt".into(),
            state,
            from: vec!["https://h.example/ultralytics/yolov5s.pt".into()],
            transfer: Some(14_800_000),
            size: Some(14_800_000),
            beside: 0,
            begun: 0,
            place: "/y/yolov5s.pt".into(),
            reasons: vec![],
            unserved: vec!["GPU 1 (K80) is not served".into()],
        }
    }

    #[test]
    fn a_plan_says_what_comes_from_where_and_onto_which_disk() {
        let disk = Disk { mount: "/".into(), free: 5_000_000_000, need: 14_800_000 };
        insta::assert_snapshot!(plan(&[step(StepState::Fetch), step(StepState::Installed)], &[disk]), @r"
          fetch   weights yolov5s.pt: 14.8 MB to fetch, 14.8 MB on the disk, into /y/yolov5s.pt
                  from https://h.example/ultralytics/yolov5s.pt
          warning GPU 1 (K80) is not served
                  Ultralytics' weights are theirs, under AGPL-3.0
          there   weights yolov5s.pt: /y/yolov5s.pt
          warning GPU 1 (K80) is not served
                  Ultralytics' weights are theirs, under AGPL-3.0
        the disk of / has 5.0 GB free, of which 14.8 MB are needed
        ");
    }

    #[test]
    fn a_data_set_is_summed_up() {
        let split = SplitSummary { name: "train".into(), images: 3, boxes: 7, background: 1, corrupt: 1 };
        let summary = Summary {
            splits: vec![split],
            classes: vec![("cat".into(), 2), ("dog".into(), 5), ("cow".into(), 0)],
            wrong: vec!["a.jpg: image ignored: too small".into()],
            refused: None,
        };
        insta::assert_snapshot!(data(&summary), @r"
          train: 3 images, 7 boxes, 1 without an object, 1 corrupt
          2 of 3 classes have boxes: dog 5, cat 2
          wrong: a.jpg: image ignored: too small
        ");
    }
}
