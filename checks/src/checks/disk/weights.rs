//! Whether the run's weights are a checkpoint. The first and last bytes show whether the file is a
//! truncated download, a web page or a Git LFS pointer.

use crate::checks::run::resume;
use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{join, parent};
use crate::facts::{Fact, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate::Model;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is the run's weights file valid?",
    reports: &["disk.weights-missing", "disk.weights-broken"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if let Some(finding) = broken_checkpoint(host, intent) {
        return Ok(vec![finding]);
    }
    let Some(name) = intent.weights.as_deref().filter(|name| !name.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    if name.contains("://") {
        return Ok(Vec::new());
    }
    let places = host.places()?;
    let data = places.data.map(|data| join(&join(&data, "weights"), name));
    let tried: Vec<String> =
        places.working.map(|working| join(&working, name)).into_iter().chain(data).collect();
    for path in &tried {
        let Some(head) = host.head(path)? else { continue };
        let Some(fault) = fault_of(&head, || host.tail(path))? else {
            return Ok(of_another_generation(name).map(|text| wrong_model(path, text)).into_iter().collect());
        };
        let title = format!("the weights file {path} cannot be read: {}", fault.why);
        let finding = Finding::new("disk.weights-broken", title);
        let finding = fault.cause.map_or(finding.clone(), |cause| finding.because(cause));
        let finding = fault.remedy.map_or(finding.clone(), |remedy| finding.remedy(remedy));
        let size = host.stat(path).ok().flatten().and_then(|stat| stat.size);
        let finding = size.map_or(finding.clone(), |size| finding.seen(format!("its size is {size} bytes")));
        return Ok(vec![match Model::named(name) {
            Some(model) => finding
                .command(format!("mv {} {}", quote(path), quote(&format!("{path}.broken"))))
                .command(format!("yolo setup --weights {}", model.name)),
            None => finding,
        }]);
    }
    // Pretrained weights are downloaded if they are missing.
    let is_fetched = Model::named(name).is_some() && !name.contains(['/', '\\']);
    if tried.is_empty() || is_fetched {
        return Ok(Vec::new());
    }
    let title = format!("the weights file {name} was not found");
    let finding = tried.iter().fold(Finding::new("disk.weights-missing", title), |finding, path| {
        finding.seen(format!("{path} does not exist"))
    });
    Ok(vec![match of_another_generation(name) {
        Some(text) => finding.remedy(text),
        None => finding,
    }])
}

/// A checkpoint that is to be resumed and is not whole: the disk was full when it was written, or the machine went off.
fn broken_checkpoint(host: &Host, intent: &Intent) -> Option<Finding> {
    let path = resume::checkpoint(host, intent)?;
    let fault = fault_of(&host.head(&path).ok()??, || host.tail(&path)).ok()??;
    let title = format!("the checkpoint {path} cannot be read: {}", fault.why);
    let finding = Finding::new("disk.weights-broken", title)
        .because("the disk was full while it was written, or the machine went off: what it held is lost")
        .remedy("free some space if the disk is full, and start a new run from other weights of this run, or from the beginning");
    let folder = parent(&path)?;
    let names = host.folder(&folder).ok().flatten().unwrap_or_default();
    let mut others = vec!["best.pt".to_owned()];
    others.extend(names.iter().filter(|name| name.starts_with("epoch") && name.ends_with(".pt")).cloned());
    let is_whole = |path: &String| {
        let head = host.head(path).ok().flatten();
        head.is_some_and(|head| matches!(fault_of(&head, || host.tail(path)), Ok(None)))
    };
    let changed = |path: &String| host.stat(path).ok().flatten().and_then(|stat| stat.modified);
    let best = others.iter().map(|name| join(&folder, name)).filter(is_whole).max_by_key(changed);
    Some(match best {
        Some(best) => finding
            .remedy(format!(
                "free some space if the disk is full, and start a new run from {best}, which is whole: the optimizer's state is \
                 lost, the weights are not"
            ))
            .command(format!("yolo train --weights {} …", quote(&best))),
        None => finding,
    })
}

/// A checkpoint that is whole, and by its name of a model that this program does not have.
fn wrong_model(path: &str, remedy: String) -> Finding {
    Finding::new(
        "disk.weights-broken",
        format!("by its name, the weights file {path} is not of a YOLOv5 model"),
    )
    .status(Status::Warning)
    .because("other generations of YOLO have other layers, so their weights fit no YOLOv5 model")
    .remedy(remedy)
}

/// What to say about weights of models that this program does not have: `yolov8n.pt`, `yolo11s.pt`.
fn of_another_generation(name: &str) -> Option<String> {
    let file = name.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let rest = file.strip_prefix("yolo")?.trim_start_matches('v');
    if let Some(variant) = rest.strip_prefix('5').and_then(variant_of_5) {
        return Some(format!(
            "{file} is {variant}: pass one of yolov5n, yolov5s, yolov5m, yolov5l and yolov5x, which yolo downloads"
        ));
    }
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let generation: u32 = digits.parse().ok().filter(|&generation| generation != 5 && generation < 100)?;
    Some(format!(
        "this program trains YOLOv5, and {file} is of YOLO {generation}: pass one of yolov5n, yolov5s, yolov5m, yolov5l and \
         yolov5x, which yolo downloads"
    ))
}

/// What a YOLOv5 model is that this program does not have, by what follows `yolov5`: `su.pt`, `n-seg.pt`.
fn variant_of_5(rest: &str) -> Option<&'static str> {
    let (stem, _) = rest.split_once('.')?;
    let kind = stem.strip_prefix(['n', 's', 'm', 'l', 'x'])?;
    match kind {
        "u" | "6u" => Some("Ultralytics' variant of YOLOv5 with another head, which fits no YOLOv5 model"),
        "-seg" => Some("a YOLOv5 model for segmentation, and this program trains detection"),
        "-cls" => Some("a YOLOv5 model for classification, and this program trains detection"),
        _ => None,
    }
}

/// Why a file is not a checkpoint.
struct Fault {
    why: &'static str,
    /// Why that is not trained, instead of the catalogue's cause.
    cause: Option<&'static str>,
    /// What to do instead of the catalogue's remedy.
    remedy: Option<&'static str>,
}

/// The fault that a file's first and last bytes show; `None` if they are those of a checkpoint.
fn fault_of(head: &[u8], tail: impl FnOnce() -> Fact<Option<Vec<u8>>>) -> Fact<Option<Fault>> {
    let fault = |why| Ok(Some(Fault { why, cause: None, remedy: None }));
    let of_another_program = |why, remedy| {
        let cause = "the file is complete but belongs to another program; yolo reads PyTorch checkpoints and safetensors";
        Ok(Some(Fault { why, cause: Some(cause), remedy: Some(remedy) }))
    };
    let own_models = "pass one of yolov5n, yolov5s, yolov5m, yolov5l and yolov5x, which yolo downloads";
    match head {
        [] => fault("it is empty"),
        _ if head.iter().all(|byte| *byte == 0) => fault("it has nothing but zeros"),
        [b'P', b'K', 3, 4, ..] => match tail()? {
            Some(tail) if !has_directory(&tail) => fault("it is truncated"),
            _ => Ok(None),
        },
        [b'<', ..] | [b'\n', b'<', ..] => {
            fault("it is a web page: the address led to an error or a login page")
        }
        _ if head.starts_with(b"version https://git-lfs") => Ok(Some(Fault {
            why: "it is a Git LFS pointer, not the file",
            cause: Some(
                "Git LFS keeps large files on a server, and puts a short text into the repository until they are fetched",
            ),
            remedy: Some("run `git lfs pull` in the repository that contains the file"),
        })),
        // Pickles written by PyTorch before 1.6.
        [0x80, ..] => Ok(None),
        // safetensors: a header in JSON, after its length in 8 bytes.
        _ if head.get(8) == Some(&b'{') => Ok(None),
        _ if head.get(4..8) == Some(b"TFL3".as_slice()) => of_another_program(
            "it is a model of TensorFlow Lite",
            "pass the checkpoint (.pt) that it was exported from",
        ),
        // ONNX begins with the version of its format and the name of the program that wrote it.
        [8, 3..=12, 18, ..] => of_another_program(
            "it is a model in ONNX format, which cannot be trained",
            "pass the checkpoint (.pt) that it was exported from",
        ),
        // Darknet begins with three numbers of its version.
        [0, 0, 0, 0, 1 | 2, 0, 0, 0, ..] => {
            of_another_program("it is a file of weights of Darknet, which fits no YOLOv5 model", own_models)
        }
        _ => fault("it is neither a PyTorch checkpoint nor a safetensors file"),
    }
}

/// Whether the last bytes contain a ZIP end-of-central-directory record.
fn has_directory(tail: &[u8]) -> bool {
    tail.windows(4).any(|word| word == [b'P', b'K', 5, 6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_yolov5_are_told_from_its_models() {
        for file in ["yolov5su.pt", "yolov5x6u.pt", "yolov5n-seg.pt", "weights/yolov5s-cls.pt"] {
            assert!(of_another_generation(file).is_some(), "{file}");
        }
        for file in ["yolov5s.pt", "yolov5x6.pt", "best.pt", "yolov5s-birds.pt"] {
            assert_eq!(of_another_generation(file), None, "{file}");
        }
    }

    #[test]
    fn models_of_other_programs_are_named() {
        let why = |head: &[u8]| fault_of(head, || Ok(None)).unwrap().map(|fault| fault.why);
        assert!(why(&[8, 8, 18, 7, b'p']).unwrap().contains("ONNX"));
        assert!(why(&[0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]).unwrap().contains("Darknet"));
        assert!(why(&[0; 512]).unwrap().contains("zeros"));
    }
}
