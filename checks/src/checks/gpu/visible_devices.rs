//! How CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change GPU numbers. `yolo` numbers GPUs as
//! nvidia-smi does and refuses one that the variable hides, which may be reserved for somebody else;
//! other programs in this shell number GPUs differently.

use yolo_base::env::{CUDA_DEVICE_ORDER, CUDA_VISIBLE_DEVICES};
use yolo_base::format;
use yolo_base::visible_devices::{Flaw, Named, Visible, VisibleEntry, visible_devices, visible_entry};

use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::gpus_of_job::ask_for;
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
        Err(why) => return unreadable(host, intent, &value).map(|finding| vec![finding]).ok_or(why),
    };
    // The check of the driver says why it has none: there is nothing to hide, and every number would be invalid.
    if gpus.is_empty() {
        return Ok(Vec::new());
    }
    if hides_all(&value) {
        let all = if gpus.len() == 1 { "the GPU".to_owned() } else { format!("all {} GPUs", gpus.len()) };
        let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" hides {all}");
        return Ok(vec![hidden(host, intent, &value, title).status(Status::Warning)]);
    }
    // If a lost card's number is unknown, so are the others'.
    if gpus.iter().any(|gpu| !gpu.is_numbered()) {
        return Ok(Vec::new());
    }
    match seen(&value, &gpus) {
        Visible { flaw: Some(flaw), .. } => Ok(vec![flawed(host, intent, &value, flaw)]),
        Visible { devices, flaw: None } => {
            Ok(subset(host, &value, &devices, &gpus, intent).into_iter().collect())
        }
    }
}

fn hides_all(value: &str) -> bool {
    matches!(value.trim(), "" | "-1" | "NoDevFiles" | "none" | "void")
}

/// What is wrong with the value itself.
fn unreadable(host: &Host, intent: &Intent, value: &str) -> Option<Finding> {
    if hides_all(value) {
        let title = format!("CUDA_VISIBLE_DEVICES=\"{value}\" hides every GPU");
        return Some(hidden(host, intent, value, title).status(Status::Warning));
    }
    let token = value.split(',').map(str::trim).find(|token| visible_entry(token).is_none())?;
    Some(flawed(host, intent, value, Flaw::Invalid(token)))
}

fn flawed(host: &Host, intent: &Intent, value: &str, flaw: Flaw<'_>) -> Finding {
    let title = match flaw {
        Flaw::Invalid(token) if token.starts_with("MIG-") => {
            format!("CUDA_VISIBLE_DEVICES=\"{value}\" names a MIG instance, but no GPU has any")
        }
        Flaw::Invalid(token) => format!("CUDA_VISIBLE_DEVICES=\"{value}\" is invalid at \"{token}\""),
        Flaw::Twice(token) => format!("CUDA_VISIBLE_DEVICES=\"{value}\" names a GPU twice, at \"{token}\""),
    };
    unset(host, intent, Finding::new("gpu.visible-unreadable", title))
}

/// The numbers of the visible cards, in the variable's order.
pub(super) fn seen<'a>(value: &'a str, gpus: &[Gpu]) -> Visible<'a, usize> {
    visible_devices(value, |entry| match entry {
        VisibleEntry::Number(index) if index < gpus.len() => Named::One(index),
        VisibleEntry::Number(_) => Named::Invalid,
        VisibleEntry::Gpu(prefix) => {
            let has_prefix = |gpu: &&Gpu| gpu.uuid().is_ok_and(|uuid| uuid.starts_with(prefix));
            let named: Vec<&Gpu> = gpus.iter().filter(has_prefix).collect();
            match named.as_slice() {
                [gpu] => Named::One(gpu.index),
                // A recording redacts UUIDs, so a shortened one cannot be matched.
                [] if prefix.len() < UUID_LENGTH => Named::Unknown,
                _ => Named::Invalid,
            }
        }
        VisibleEntry::Mig(_) if gpus.iter().all(is_whole) => Named::Invalid,
        VisibleEntry::Mig(_) => Named::Unknown,
    })
}

/// Whether a card is known not to be partitioned: it is not, or cannot be (3 is NVML's "not supported").
fn is_whole(gpu: &Gpu) -> bool {
    gpu.mig() == Ok(false) || gpu.error("mig_mode") == Some(3)
}

fn subset(host: &Host, value: &str, seen: &[usize], gpus: &[Gpu], intent: &Intent) -> Option<Finding> {
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
        let finding = hidden(host, intent, value, title).status(Status::Error);
        let finding = match host.job() {
            // The hidden cards belong to other jobs.
            Some(job) => finding.remedy(format!(
                "use the GPUs that {} gave this job, and leave the variable as it is; for more, ask when you submit the job",
                job.name()
            )),
            None => finding,
        };
        return Some(finding.command(format!("yolo train --device {} …", numbers.join(","))));
    }
    let title = format!(
        "CUDA_VISIBLE_DEVICES={value} shows {} of {}: for other programs, GPU {} is number 0",
        seen.len(),
        format::count(gpus.len(), "GPU"),
        numbers[0]
    );
    Some(hidden(host, intent, value, title).remedy("use nvidia-smi's numbers in --device"))
}

fn hidden(host: &Host, intent: &Intent, value: &str, title: String) -> Finding {
    let finding = Finding::new("gpu.hidden", title).seen(format!("CUDA_VISIBLE_DEVICES=\"{value}\""));
    let finding = match host.job() {
        Some(_) => finding,
        None => {
            finding.remedy("use GPUs that it lists, or unset the variable if nobody else uses the others")
        }
    };
    if hides_all(value) { unset(host, intent, finding) } else { finding }
}

fn unset(host: &Host, intent: &Intent, finding: Finding) -> Finding {
    const NAME: &str = CUDA_VISIBLE_DEVICES;
    if let Some(job) = host.job() {
        return ask_for(job, finding, intent.devices.len());
    }
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

    fn read<'a>(value: &'a str, gpus: &[Gpu]) -> (Vec<usize>, Option<Flaw<'a>>) {
        let visible = seen(value, gpus);
        (visible.devices, visible.flaw)
    }

    #[test]
    fn entries_are_looked_up_by_number_and_uuid() {
        assert_eq!(read("2, 0", &gpus()), (vec![2, 0], None));
        assert_eq!(read("GPU-bb,0", &gpus()), (vec![1, 0], None));
        assert_eq!(read("0,3", &gpus()), (vec![0], Some(Flaw::Invalid("3"))));
        assert_eq!(read("2,GPU-", &gpus()), (vec![2], Some(Flaw::Invalid("GPU-"))), "one of two");
        assert_eq!(read("GPU-c,1", &gpus()), (vec![1], None), "the third has no UUID here");
        assert_eq!(read("0,GPU-a", &gpus()), (vec![], Some(Flaw::Twice("GPU-a"))));
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
        assert_eq!(read("MIG-1", &gpus(json!(true))), (Vec::new(), None));
        assert_eq!(read("MIG-1", &gpus(json!({ "error": 999 }))), (Vec::new(), None));
        assert_eq!(read("MIG-1", &gpus(json!(false))), (Vec::new(), Some(Flaw::Invalid("MIG-1"))));
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "([0-9,-]|GPU-|MIG-|\\PC){0,12}") {
            let _ = seen(&value, &gpus());
        }
    }
}
