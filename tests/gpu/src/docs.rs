//! `docs/gpu.md`: what was proven on which GPU, generated from the last good report, which is committed
//! as `docs/gpu/report.json`.

use crate::report::{Report, about};

/// The page, from the committed report if there is one.
pub fn page(report: Option<&Report>) -> String {
    let state = match report {
        None => "Not yet run on a GPU.\n".to_owned(),
        Some(report) => about(report).trim_end().to_owned() + "\n",
    };
    format!("{HEAD}{state}")
}

const HEAD: &str = "\
# GPU acceptance

What was proven on a GPU, when, and how fast it was. This page is generated from the last good report of the
[GPU acceptance kit](../tests/gpu/README.md); `YOLO_UPDATE_REFERENCE=1 cargo test -p gpu-kit` writes it.

A GPU is often lent for 15 minutes, with at most 10 minutes for a command. The first of these commands measures the speeds, the
second proves as much else as its time allows, if the 15 minutes are for the kit alone:

```sh
yolo-gpu-kit/run --only speed --full --limit 590 --out speed
yolo-gpu-kit/run --skip speed original ranks --limit 300 --out others
```

If starting the machine takes two or three of them, use `--only speed --limit 480` and a `--limit` of 270. What does not
fit into the time is \"not finished\" in the report, and never passed.

";
