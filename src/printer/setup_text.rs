//! The text of `yolo setup`: the plan, the result of each step, and what is installed.

use yolo_base::format::{bytes, count, count_of};

use crate::setup::data::Summary;
use crate::setup::{Disk, InstalledItem, SetupStep, StepOutcome, StepState};

/// At most this many classes and problems are listed; the rest is counted.
const SHOWN: usize = 10;

/// The plan, one step per line.
pub(crate) fn plan(steps: &[SetupStep], disks: &[Disk]) -> String {
    let mut lines = Vec::new();
    for step in steps {
        lines.push(match step.state {
            StepState::Installed => format!("  installed  {}: {}", step.what, step.place.display()),
            StepState::Build => format!("  build      {} in {}", step.what, step.place.display()),
            StepState::Make => format!("  create     {} in {}", step.what, step.place.display()),
            StepState::Fetch if step.local => {
                let size = step.size.map_or(String::new(), |size| format!(": {} on disk", bytes(size)));
                format!("  copy       {}{size}, to {}", step.what, step.place.display())
            }
            StepState::Fetch => {
                let size = match (step.transfer, step.size) {
                    (Some(transfer), Some(size)) => {
                        format!("{} to download, {} on disk", bytes(transfer), bytes(size))
                    }
                    (Some(transfer), None) => format!("{} to download", bytes(transfer)),
                    (None, Some(size)) => format!("about {} on disk", bytes(size)),
                    (None, None) => "size unknown".to_owned(),
                };
                let resumed = if step.begun > 0 { ", resuming" } else { "" };
                format!("  download   {}: {size}{resumed}, to {}", step.what, step.place.display())
            }
        });
        if !step.from.is_empty() && step.state == StepState::Fetch {
            lines.push(format!("             from {}", from(&step.from)));
        }
        lines.extend(step.reasons.iter().map(|reason| format!("             {reason}")));
        lines.extend(step.unserved.iter().map(|why| format!("  warning    {why}")));
        if step.kind == "weights" && step.from.iter().any(|from| from.contains("/ultralytics/")) {
            lines.push("             the weights are from Ultralytics, under AGPL-3.0".to_owned());
        }
    }
    for Disk { mount, free, need } in disks.iter().filter(|disk| disk.need > 0) {
        let (free, need) = (bytes(*free), bytes(*need));
        lines.push(format!("the disk of {} has {free} free; {need} is needed", mount.display()));
    }
    lines.join("\n")
}

/// The first two sources, and how many more there are.
fn from(sources: &[String]) -> String {
    match sources {
        [one] => one.clone(),
        [first, second] => format!("{first}, {second}"),
        [first, second, more @ ..] => format!("{first}, {second} and {} more", more.len()),
        [] => String::new(),
    }
}

/// The result of a step.
pub(crate) fn outcome(step: &SetupStep, outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Libtorch { root, variant } => {
            let reasons = if step.state == StepState::Installed { step.reasons.as_slice() } else { &[] };
            let reasons: String = reasons.iter().map(|reason| format!("\n  {reason}")).collect();
            format!("libtorch ({variant}) is in {}{reasons}", root.display())
        }
        StepOutcome::Trainer { path } => format!("the trainer is in {}", path.display()),
        StepOutcome::NcclPlugin { path } => format!("the NCCL plugin is in {}", path.display()),
        StepOutcome::Weights(weights) => format!(
            "weights {}: {} parameters, {}{} (SHA-256 {}…)",
            weights.path.display(),
            weights.parameters,
            weights
                .classes
                .map_or(String::new(), |classes| format!("{}, ", count_of(classes, "class", "classes"))),
            bytes(weights.size),
            weights.sha256.get(..12).unwrap_or_default(),
        ),
        StepOutcome::Data { name, summary } => {
            format!("the data set {name} is in {}:\n{}", step.place.display(), data(summary))
        }
    }
}

/// The contents of a data set.
fn data(summary: &Summary) -> String {
    let mut lines: Vec<String> = summary
        .splits
        .iter()
        .map(|split| {
            format!(
                "  {}: {}, {}, {} without objects, {} corrupt",
                split.name,
                count(split.images, "image"),
                count_of(split.boxes, "box", "boxes"),
                split.background,
                split.corrupt
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
    lines.extend(summary.wrong.iter().take(SHOWN).map(|wrong| format!("  problem: {wrong}")));
    if summary.wrong.len() > SHOWN {
        lines.push(format!("  and {} more problems", summary.wrong.len() - SHOWN));
    }
    lines.join("\n")
}

/// What is installed, one item per line.
pub(crate) fn installed(items: &[InstalledItem]) -> String {
    let width = items.iter().map(|item| item.name.len()).max().unwrap_or(0);
    let line = |item: &InstalledItem| {
        let mark = if item.in_use { "  (in use)" } else { "" };
        format!(
            "{:<10} {:<width$} {:>9}  {}{mark}",
            item.kind,
            item.name,
            bytes(item.size),
            item.place.display()
        )
    };
    let mut lines: Vec<String> = items.iter().map(line).collect();
    lines.push(format!("{} in total", bytes(items.iter().map(|item| item.size).sum())));
    lines.join("\n")
}

/// What was removed.
pub(crate) fn removed(item: &InstalledItem) -> String {
    format!("removed {} {} ({}) from {}", item.kind, item.name, bytes(item.size), item.place.display())
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
            temporary: 0,
            begun: 0,
            local: false,
            place: "/y/yolov5s.pt".into(),
            reasons: vec![],
            unserved: vec!["GPU 1 (K80) is not supported".into()],
        }
    }

    #[test]
    fn a_plan_names_sizes_sources_and_disks() {
        let disk = Disk { mount: "/".into(), free: 5_000_000_000, need: 14_800_000 };
        insta::assert_snapshot!(plan(&[step(StepState::Fetch), step(StepState::Installed)], &[disk]), @r"
          download   weights yolov5s.pt: 14.8 MB to download, 14.8 MB on disk, to /y/yolov5s.pt
                     from https://h.example/ultralytics/yolov5s.pt
          warning    GPU 1 (K80) is not supported
                     the weights are from Ultralytics, under AGPL-3.0
          installed  weights yolov5s.pt: /y/yolov5s.pt
          warning    GPU 1 (K80) is not supported
                     the weights are from Ultralytics, under AGPL-3.0
        the disk of / has 5.0 GB free; 14.8 MB is needed
        ");
    }

    #[test]
    fn a_data_set_is_summarized() {
        let split = SplitSummary { name: "train".into(), images: 3, boxes: 7, background: 1, corrupt: 1 };
        let summary = Summary {
            splits: vec![split],
            classes: vec![("cat".into(), 2), ("dog".into(), 5), ("cow".into(), 0)],
            wrong: vec!["a.jpg: image skipped: too small".into()],
            refused: None,
        };
        insta::assert_snapshot!(data(&summary), @r"
          train: 3 images, 7 boxes, 1 without objects, 1 corrupt
          2 of 3 classes have boxes: dog 5, cat 2
          problem: a.jpg: image skipped: too small
        ");
    }
}
