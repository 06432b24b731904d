//! What `-v` adds to the report: a table of the GPUs, the time of each check, and every fact that was
//! read, one per line. Facts are shown as `--record` writes them, without names, addresses and secrets,
//! because people paste this text into bug reports.

use std::fmt::{Display, Write as _};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use yolo_base::format;
use yolo_checks::facts::Gpu;

use super::report::Report;
use crate::printer::{COLUMNS, cut};

/// Appends all three sections.
pub(super) fn append(text: &mut String, report: &Report<'_>) {
    if let Ok(gpus) = report.host.gpus()
        && !gpus.is_empty()
    {
        text.push_str("\nGPUs\n");
        gpu_table(&gpus).lines().for_each(|line| {
            let _ = writeln!(text, " {}", line.trim_end());
        });
    }
    let _ = writeln!(text, "\nTime of each check, including the facts that it was the first to read");
    for verdict in &report.verdicts {
        let milliseconds = verdict.took.as_secs_f64() * 1000.0;
        let _ = writeln!(text, "{milliseconds:>8.1} ms  {}", cut(verdict.check.question, COLUMNS - 13));
    }
    let _ = writeln!(text, "\nFacts (without names, addresses and secrets, as --record writes them)");
    facts(text, &report.host.record(report.intent, env!("CARGO_PKG_VERSION")));
}

/// One row per GPU; `–` marks what the driver does not report.
fn gpu_table(gpus: &[Gpu]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(COLUMNS).unwrap_or(u16::MAX));
    table.set_header(["GPU", "name", "memory free", "capability", "PCIe", "°C", "processes"]);
    for gpu in gpus {
        if let Some(code) = gpu.lost() {
            table.add_row([gpu.index.to_string(), format!("lost (NVML error {code})")]);
            continue;
        }
        let memory = gpu
            .memory()
            .map(|memory| format!("{} of {}", format::memory(memory.free), format::memory(memory.total)));
        let link = |generation: &str, width: &str| {
            Some(format!("{}x{}", gpu.number(generation).ok()?, gpu.number(width).ok()?))
        };
        let link =
            match (link("pcie_generation", "pcie_width"), link("pcie_generation_max", "pcie_width_max")) {
                (Some(now), Some(most)) if now != most => format!("gen {now} of {most}"),
                (Some(now), _) => format!("gen {now}"),
                (None, _) => "–".to_owned(),
            };
        table.add_row([
            gpu.index.to_string(),
            or_dash(gpu.name()),
            or_dash(memory),
            or_dash(gpu.capability().map(|(major, minor)| format!("{major}.{minor}"))),
            link,
            or_dash(gpu.number("temperature")),
            or_dash(gpu.processes().map(|processes| processes.len())),
        ]);
    }
    for column in [0, 3, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn or_dash<T: Display, E>(answer: Result<T, E>) -> String {
    answer.map_or_else(|_| "–".to_owned(), |answer| answer.to_string())
}

fn facts(text: &mut String, recording: &Value) {
    for (section, answer) in recording.as_object().into_iter().flatten() {
        match answer {
            Value::Object(rows)
                if !matches!(section.as_str(), "nvml" | "system" | "places" | "user" | "intent") =>
            {
                for (name, answer) in rows {
                    fact(text, &format!("{section} {name}"), answer);
                }
            }
            answer => fact(text, section, answer),
        }
    }
}

fn fact(text: &mut String, name: &str, answer: &Value) {
    let answer = match answer {
        Value::Null => "absent".to_owned(),
        Value::String(text) => text.trim_end().to_owned(),
        other => other.to_string(),
    };
    let _ = writeln!(text, "  {}", cut(&format!("{name}: {answer}"), COLUMNS - 2));
}
