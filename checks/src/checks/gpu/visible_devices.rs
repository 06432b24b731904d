//! How CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change GPU numbers. `yolo` numbers GPUs as
//! nvidia-smi does and assigns one to each rank; but a GPU that the variable hides may be reserved
//! for somebody else, and other programs in this shell number GPUs differently.

use yolo_base::env::{CUDA_DEVICE_ORDER, CUDA_VISIBLE_DEVICES};
use yolo_base::format;

use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do CUDA's environment variables hide or renumber GPUs?",
    reports: &["gpu.hidden", "gpu.visible-unreadable", "gpu.order"],
    preflight: true,
    run,
};

/// The length of a full UUID with its `GPU-` prefix.
const UUID_LENGTH: usize = 40;

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu {
        return Ok(Vec::new());
    }
    let Some(value) = host.env(CUDA_VISIBLE_DEVICES)? else { return order(host) };
    let gpus = match host.nvml_state() {
        Ok(NvmlState::Ready) => host.gpus()?,
        // A machine without GPUs has none to hide.
        Ok(_) => return Ok(Vec::new()),
        // Some values are invalid whatever GPUs there are.
        Err(why) => return unreadable(&value).map(|finding| vec![finding]).ok_or(why),
    };
    if hides_all(&value) {
        let all = if gpus.len() == 1 { "the GPU".to_owned() } else { format!("all {} GPUs", gpus.len()) };
        let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" hides {all}");
        return Ok(vec![hidden(&value, title).status(Status::Warning)]);
    }
    // If a lost card's number is unknown, so are the others'.
    if gpus.iter().any(|gpu| !gpu.is_numbered()) {
        return Ok(Vec::new());
    }
    match seen(&value, &gpus) {
        Err(token) => Ok(vec![stopped_at(&value, &token)]),
        Ok(seen) => Ok(subset(&value, &seen, &gpus, intent).into_iter().collect()),
    }
}

fn hides_all(value: &str) -> bool {
    matches!(value.trim(), "" | "-1" | "NoDevFiles" | "none" | "void")
}

/// What is wrong with the value itself.
fn unreadable(value: &str) -> Option<Finding> {
    if hides_all(value) {
        let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" hides every GPU");
        return Some(hidden(value, title).status(Status::Warning));
    }
    let is_valid = |token: &str| {
        token.starts_with("GPU-") || token.starts_with("MIG-") || token.parse::<usize>().is_ok()
    };
    let token = value.split(',').find(|token| !is_valid(token))?;
    Some(stopped_at(value, token))
}

fn stopped_at(value: &str, token: &str) -> Finding {
    if token.starts_with("MIG-") {
        let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" names a MIG instance, but no GPU has any");
        return unset(Finding::new("gpu.visible-unreadable", title));
    }
    let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" is invalid at \"{token}\"");
    unset(Finding::new("gpu.visible-unreadable", title))
}

/// The numbers of the visible cards, in the variable's order; CUDA stops reading at a duplicate, missing
/// or invalid number.
fn seen(value: &str, gpus: &[Gpu]) -> Result<Vec<usize>, String> {
    let mut seen = Vec::new();
    for token in value.split(',') {
        let index = if token.starts_with("GPU-") {
            let known = gpus.iter().find(|gpu| gpu.uuid().is_ok_and(|uuid| uuid.starts_with(token)));
            match known {
                Some(gpu) => gpu.index,
                // A recording redacts UUIDs, so a shortened one cannot be matched.
                None if token.len() < UUID_LENGTH => continue,
                None => return Err(token.to_owned()),
            }
        } else if token.starts_with("MIG-") {
            if gpus.iter().all(is_whole) {
                return Err(token.to_owned());
            }
            continue;
        } else {
            let index = token.parse::<usize>().ok().filter(|index| *index < gpus.len());
            index.ok_or_else(|| token.to_owned())?
        };
        if seen.contains(&index) {
            return Err(token.to_owned());
        }
        seen.push(index);
    }
    Ok(seen)
}

/// Whether a card is known not to be partitioned: it is not, or cannot be (3 is NVML's "not supported").
fn is_whole(gpu: &Gpu) -> bool {
    gpu.mig() == Ok(false) || gpu.error("mig_mode") == Some(3)
}

fn subset(value: &str, seen: &[usize], gpus: &[Gpu], intent: &Intent) -> Option<Finding> {
    if seen.is_empty() || seen.iter().copied().eq(0..gpus.len()) {
        return None;
    }
    let numbers: Vec<String> = seen.iter().map(usize::to_string).collect();
    let taken: Vec<String> =
        intent.devices.iter().filter(|index| !seen.contains(index)).map(usize::to_string).collect();
    if !taken.is_empty() {
        let title = format!(
            "the run uses GPU{} {}, which CUDA_VISIBLE_DEVICES={value} hides",
            if taken.len() == 1 { "" } else { "s" },
            taken.join(" and ")
        );
        let finding = hidden(value, title).status(Status::Warning);
        return Some(finding.command(format!("yolo train --device {} …", numbers.join(","))));
    }
    let title = format!(
        "CUDA_VISIBLE_DEVICES={value} shows {} of {}: for other programs, GPU {} is number 0",
        seen.len(),
        format::count(gpus.len(), "GPU"),
        numbers[0]
    );
    Some(hidden(value, title).remedy("use nvidia-smi's numbers in --device"))
}

fn hidden(value: &str, title: String) -> Finding {
    let finding = Finding::new("gpu.hidden", title).seen(format!("CUDA_VISIBLE_DEVICES=\"{value}\""));
    if value.trim().is_empty() || value.trim() == "-1" {
        return unset(finding);
    }
    finding
}

fn unset(finding: Finding) -> Finding {
    const NAME: &str = CUDA_VISIBLE_DEVICES;
    finding.command(format!("unset {NAME}")).change(Change::Variable { name: NAME.to_owned(), value: None })
}

/// GPUs of several types, which CUDA orders by speed and nvidia-smi by bus address.
fn order(host: &Host) -> Answer {
    if host.nvml_state()? != NvmlState::Ready || host.env(CUDA_DEVICE_ORDER)?.as_deref() == Some("PCI_BUS_ID")
    {
        return Ok(Vec::new());
    }
    let mut gpus = host.gpus()?;
    gpus.retain(|gpu| gpu.lost().is_none());
    let names: Vec<(usize, String)> =
        gpus.iter().filter_map(|gpu| Some((gpu.index, gpu.name().ok()?))).collect();
    if names.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Ok(Vec::new());
    }
    let title = "GPUs of different types: other programs may number them differently from nvidia-smi and \
                 yolo";
    let finding = Finding::new("gpu.order", title).command("export CUDA_DEVICE_ORDER=PCI_BUS_ID").change(
        Change::Variable { name: CUDA_DEVICE_ORDER.to_owned(), value: Some("PCI_BUS_ID".to_owned()) },
    );
    let numbered = names.iter().map(|(index, name)| format!("GPU {index}: {name}"));
    Ok(vec![numbered.fold(finding, Finding::seen)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn gpus() -> Vec<Gpu> {
        let devices = json!([{ "uuid": "GPU-aaaa" }, { "uuid": "GPU-bbbb" }, {}]);
        Host::from_value(json!({ "version": 1, "nvml": { "devices": devices } })).unwrap().0.gpus().unwrap()
    }

    #[test]
    fn cuda_stops_at_what_it_cannot_read() {
        assert_eq!(seen("2,0", &gpus()), Ok(vec![2, 0]));
        assert_eq!(seen("GPU-bb,0", &gpus()), Ok(vec![1, 0]));
        for (value, token) in
            [("0,0", "0"), ("cuda:0", "cuda:0"), ("0,3", "3"), ("0, 1", " 1"), ("1,-1", "-1")]
        {
            assert_eq!(seen(value, &gpus()), Err(token.to_owned()), "{value}");
        }
    }

    #[test]
    fn an_instance_needs_a_card_that_may_be_divided() {
        let gpus = |mode: serde_json::Value| {
            let devices = json!([{ "mig_mode": mode }, { "mig_mode": { "error": 3 } }]);
            Host::from_value(json!({ "version": 1, "nvml": { "devices": devices } }))
                .unwrap()
                .0
                .gpus()
                .unwrap()
        };
        assert_eq!(seen("MIG-1", &gpus(json!(true))), Ok(Vec::new()));
        assert_eq!(seen("MIG-1", &gpus(json!({ "error": 999 }))), Ok(Vec::new()));
        assert_eq!(seen("MIG-1", &gpus(json!(false))), Err("MIG-1".to_owned()));
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "([0-9,-]|GPU-|MIG-|\\PC){0,12}") {
            let _ = seen(&value, &gpus());
        }
    }
}
