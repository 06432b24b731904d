//! Whether the run's weights are a checkpoint. The first and last bytes show whether the file is a
//! truncated download, a web page or a Git LFS pointer.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::join;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate::Model;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Is the run's weights file valid?",
    reports: &["disk.weights-missing", "disk.weights-broken"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(word) = intent.weights.as_deref().filter(|word| !word.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    if word.contains("://") {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let data = places.data.map(|data| join(&join(&data, "weights"), word));
    let tried: Vec<String> =
        places.working.map(|working| join(&working, word)).into_iter().chain(data).collect();
    for path in &tried {
        let Some(head) = host.head(path)? else { continue };
        let why = match head.as_slice() {
            [] => "it is empty".to_owned(),
            [b'P', b'K', 3, 4, ..] => match host.tail(path)? {
                Some(tail) if !has_directory(&tail) => "it is truncated".to_owned(),
                _ => return Ok(Vec::new()),
            },
            [b'<', ..] | [b'\n', b'<', ..] => {
                "it is a web page: the address led to an error or a login page".to_owned()
            }
            _ if head.starts_with(b"version https://git-lfs") => {
                "it is a Git LFS pointer, not the file".to_owned()
            }
            // Pickles written by PyTorch before 1.6, and safetensors, whose header starts with its
            // length.
            [0x80, ..] => return Ok(Vec::new()),
            _ if head.get(8) == Some(&b'{') => return Ok(Vec::new()),
            _ => "it does not look like a PyTorch checkpoint".to_owned(),
        };
        let finding =
            Finding::new("disk.weights-broken", format!("the weights file {path} cannot be read: {why}"));
        let finding = if why.contains("Git LFS") {
            finding.remedy("run `git lfs pull` in the repository that contains the file")
        } else {
            finding
        };
        let size = host.stat(path).ok().flatten().and_then(|stat| stat.size);
        let finding = size.map_or(finding.clone(), |size| finding.seen(format!("its size is {size} bytes")));
        return Ok(vec![match Model::named(word) {
            Some(model) => finding
                .command(format!("rm {}", quote(path)))
                .command(format!("yolo setup --weights {}", model.name)),
            None => finding,
        }]);
    }
    // Published weights are downloaded if they are missing.
    let is_fetched = Model::named(word).is_some() && !word.contains(['/', '\\']);
    if tried.is_empty() || is_fetched {
        return Ok(Vec::new());
    }
    let title = format!("the weights file {word} was not found");
    let finding = tried.iter().fold(Finding::new("disk.weights-missing", title), |finding, path| {
        finding.seen(format!("{path} does not exist"))
    });
    Ok(vec![finding])
}

/// Whether the last bytes contain a ZIP end-of-central-directory record.
fn has_directory(tail: &[u8]) -> bool {
    tail.windows(4).any(|word| word == [b'P', b'K', 5, 6])
}
