//! `docs/gpu.md`: what was seen on which GPU, generated from the reports that are committed in `docs/gpu`, with what
//! failed and what was not finished.

use crate::report::{Report, about};

/// The page, from the committed reports: the newest first.
pub fn page(mut reports: Vec<Report>) -> String {
    if reports.is_empty() {
        return format!("{HEAD}Not yet run on a GPU.\n");
    }
    // Dates are in UTC, in one format.
    reports.sort_by(|one, other| other.date.cmp(&one.date));
    let of_report = |report: &Report| {
        let heading = format!("## {}\n\n", report.date.replace('T', " ").replace('Z', " UTC"));
        let content = about(report).replace("\n## ", "\n### ");
        heading + content.trim_end() + "\n"
    };
    HEAD.to_owned() + &reports.iter().map(of_report).collect::<Vec<_>>().join("\n")
}

const HEAD: &str = "\
# GPU acceptance

What was proven on a GPU and what failed there, when, and how fast it was. This page is generated from reports of the
[GPU acceptance kit](../tests/gpu/README.md) in [docs/gpu](gpu), the newest first; `YOLO_UPDATE_REFERENCE=1 cargo test -p gpu-kit`
writes it. [Benchmarks](benchmarks.md#on-a-gpu) says what was learned from them.

A GPU is often lent for 15 minutes, with at most 10 minutes for a command. The first of these commands measures the speeds, the
second proves as much else as its time allows, if the 15 minutes are for the kit alone:

```sh
yolo-gpu-kit/run --only speed --full --limit 590 --out speed
yolo-gpu-kit/run --skip speed original ranks --limit 300 --out others
```

If starting the machine takes two or three of them, use `--only speed --limit 480` and a `--limit` of 270. What does not
fit into the time is \"not finished\" in the report, and never passed.

";
