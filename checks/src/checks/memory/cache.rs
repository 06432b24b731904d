//! Whether `--cache ram` fits: the ranks of a machine keep all resized images of the data set in memory, each image once.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::Described;
use crate::finding::Finding;
use crate::intent::Intent;

/// Images are usually wider than high: a 4:3 image fills three quarters of the square.
const FILLED: f64 = 0.75;

pub(super) static CHECK: Check = Check {
    question: "Does the data set fit in memory with --cache?",
    reports: &["memory.cache"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let (Some("ram"), Some(word)) = (intent.cache.as_deref(), &intent.data) else { return Ok(Vec::new()) };
    let Described::Yaml(set) = host.data_set(word)? else { return Ok(Vec::new()) };
    // Both are kept: those of training, and those of each validation.
    let of_val = set.images(host, "val").map_or(0, |images| images.paths.len());
    let images = set.images(host, "train")?.paths.len() + of_val;
    let pixels = intent.pixels() as f64;
    let need = (images as f64 * pixels * pixels * 3.0 * FILLED) as u64;
    let available = host.memory()?.available;
    let limit = host
        .cgroup_memory_limit()
        .ok()
        .flatten()
        .map_or(available, |limit| limit.bytes.saturating_sub(limit.used).min(available));
    if need <= limit {
        return Ok(Vec::new());
    }
    let title = format!(
        "--cache ram needs about {}, but only {} is available",
        format::memory(need),
        format::memory(limit)
    );
    let counted = format!(
        "{} of {} px, three bytes per pixel, once for all ranks of the machine",
        format::count(images, "image"),
        intent.pixels()
    );
    Ok(vec![Finding::new("memory.cache", title).seen(counted)])
}
