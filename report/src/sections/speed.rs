//! What the run cost: the time of its phases, of the ranks in training, and of a validated image; and on what it ran.

use yolo_base::format::duration;
use yolo_plan::event::Stage;
use yolo_plan::report::{RankFacts, RunFacts, RunReport, Spent};

use crate::html::{Cell, bar, table};

/// The section about time, and the one about the machine.
pub(crate) fn section(report: &RunReport) -> String {
    let mut html = String::new();
    if let Some(run) = &report.run {
        // Reports of older versions have no sums over the starts of a run.
        let mut spent = report.spent.clone();
        if spent.starts == 0 {
            spent.add(run);
        }
        html.push_str(&phases(&spent));
        html.push_str(&ranks(&spent.ranks));
        if spent.starts > 1 {
            html.push_str(&format!(
                "<p class=\"note\">The times are sums over {} starts of this run; one that was killed is not counted.</p>\n",
                spent.starts
            ));
        }
    }
    for validation in &report.validations {
        let [before, inference, nms] = validation.table.speed_ms;
        if before + inference + nms > 0.0 {
            html.push_str(&format!(
                "<p>Validating {}: {before:.1} ms preprocessing, {inference:.1} ms inference and {nms:.1} ms suppression per \
                 image.</p>\n",
                crate::html::esc(&validation.title)
            ));
        }
    }
    let mut sections = match html.is_empty() {
        true => String::new(),
        false => super::section("speed", "Time and speed", &html),
    };
    sections.push_str(&report.run.as_ref().map_or_else(String::new, machine));
    sections
}

/// Where the time of the run went.
fn phases(run: &Spent) -> String {
    let all = run.seconds.max(1e-9);
    let known: f64 = run.phases.iter().map(|phase| phase.seconds).sum();
    let mut parts: Vec<(&str, f64)> =
        run.phases.iter().map(|phase| (phase.doing.as_str(), phase.seconds)).collect();
    if run.seconds - known > 0.01 * all {
        parts.push(("starting and ending the ranks", run.seconds - known));
    }
    let rows: Vec<Vec<Cell>> = parts
        .into_iter()
        .map(|(doing, seconds)| {
            let share = seconds / all;
            vec![
                Cell::text(doing),
                Cell::number(duration(seconds)),
                Cell::Html(bar(share, &format!("{:.0} %", 100.0 * share))),
            ]
        })
        .collect();
    table("Where the time went, on rank 0", &["Phase", "#Time", "Share"], &rows)
}

/// What each rank did in its training steps.
fn ranks(ranks: &[RankFacts]) -> String {
    let stages = Stage::ALL.map(|stage| match stage {
        Stage::Loading => "#Loading",
        Stage::Computing => "#Computing",
        Stage::Exchanging => "#Waiting for others",
    });
    let trained: Vec<&RankFacts> = ranks.iter().filter(|rank| rank.images > 0).collect();
    if trained.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<Cell>> = trained
        .into_iter()
        .map(|rank| {
            let all: f64 = rank.seconds.iter().sum::<f64>().max(1e-9);
            let mut row = vec![
                Cell::text(rank.rank),
                Cell::text(&rank.device),
                Cell::number(rank.images),
                Cell::number(format!("{:.1}", rank.images as f64 / all)),
            ];
            row.extend(rank.seconds.map(|seconds| Cell::number(format!("{:.0} %", 100.0 * seconds / all))));
            row
        })
        .collect();
    let mut headings = vec!["Rank", "Device", "#Images", "#Images per second"];
    headings.extend(stages);
    let note = "<p class=\"note\">Computing includes the exchange of gradients, which overlaps with it. Only training steps \
                count here.</p>\n";
    table("Training steps of each rank", &headings, &rows) + note
}

fn machine(run: &RunFacts) -> String {
    let mut rows: Vec<Vec<Cell>> =
        run.machine.iter().map(|(what, value)| vec![Cell::text(what), Cell::text(value)]).collect();
    rows.push(vec![Cell::text("yolo"), Cell::text(&run.program)]);
    for rank in &run.ranks {
        let threads = yolo_base::format::count(rank.threads, "thread");
        rows.push(vec![
            Cell::text(format!("Rank {}", rank.rank)),
            Cell::text(format!("{}, {threads}", rank.device)),
        ]);
    }
    super::section(
        "machine",
        "Machine and versions",
        &table("Machine and versions", &["What", "Value"], &rows),
    )
}
