//! Whether NVIDIA's Multi-Process Service (MPS) stands between a run and its GPU. Where its control daemon runs,
//! every program computes through it; a daemon that belongs to a user serves only that user, and a card in
//! exclusive mode cannot be used past it. Where no daemon answers, programs compute without it.

use super::processes;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, GpuProcess, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does NVIDIA's Multi-Process Service (MPS) let this run compute?",
    reports: &["gpu.mps"],
    preflight: true,
    run,
};

const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const DEFAULT_PIPES: &str = "/tmp/nvidia-mps";
/// The share of the multiprocessors that a program may use.
const SHARE: &str = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
/// The memory that a program may use, as `0=2G,1=4G`.
const MEMORY: &str = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

fn run(host: &Host, intent: &Intent) -> Answer {
    // Other checks say why the driver does not answer.
    if intent.cpu || host.os()? != "linux" || host.nvml_state() != Ok(NvmlState::Ready) {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let exclusive: Vec<&Gpu> = gpus.iter().filter(|gpu| is_exclusive(gpu)).collect();
    let folder = folder(host);
    let Some(owner) = daemon(host, &folder) else {
        let served = exclusive.iter().find(|gpu| gpu.processes().is_ok_and(|all| all.iter().any(is_server)));
        // Without a recorded folder, the daemon may well be there.
        let is_absent = host.exists(&folder) == Ok(false);
        return Ok(served
            .filter(|_| is_absent)
            .map(|gpu| out_of_reach(host, gpu, &folder))
            .into_iter()
            .collect());
    };
    let own = host.user().ok().and_then(|user| user.uid);
    if let (Some(owner), Some(own)) = (owner, own)
        && owner != 0
        && owner != own
    {
        return Ok(vec![of_another(host, &folder, owner, exclusive.first().copied())]);
    }
    Ok(limits(host, &gpus))
}

/// Whether MPS keeps this run from a card.
pub(super) fn keeps_out(host: &Host, intent: &Intent) -> bool {
    run(host, intent).is_ok_and(|findings| findings.iter().any(|finding| finding.status == Status::Error))
}

/// Whether only one program at a time may open a card.
fn is_exclusive(gpu: &Gpu) -> bool {
    gpu.compute_mode().is_ok_and(|mode| mode.starts_with("exclusive"))
}

/// NVIDIA's service that lets several programs share one card.
pub(super) fn is_server(process: &GpuProcess) -> bool {
    process.name.as_deref().is_some_and(|name| processes::short(name).starts_with("nvidia-cuda-mps-server"))
}

/// Where the daemon's sockets are.
fn folder(host: &Host) -> String {
    let named = host.env(PIPES).ok().flatten().filter(|value| !value.trim().is_empty());
    named.map_or(DEFAULT_PIPES.to_owned(), |value| value.trim_end_matches('/').to_owned())
}

/// The user who runs the control daemon, if it runs; the inner `None` is an unknown user.
fn daemon(host: &Host, folder: &str) -> Option<Option<u32>> {
    let socket = host.stat(&format!("{folder}/control")).ok().flatten()?;
    let process = host.text(&format!("{folder}/nvidia-cuda-mps-control.pid")).ok().flatten();
    let process = process.and_then(|text| text.trim().parse::<u32>().ok());
    // A container does not see the processes of its host.
    let is_dead = !host.is_container()
        && process.is_some_and(|process| host.exists(&format!("/proc/{process}")) == Ok(false));
    (!is_dead).then_some(socket.uid)
}

/// A daemon whose server refuses the programs of other users.
fn of_another(host: &Host, folder: &str, owner: u32, exclusive: Option<&Gpu>) -> Finding {
    let title =
        format!("the MPS daemon in {folder} belongs to user {owner} and serves only that user's programs");
    let finding = Finding::new("gpu.mps", title);
    let finding = match host.env(PIPES).ok().flatten() {
        Some(value) => finding.seen(format!("{PIPES}={value}")),
        None => finding,
    };
    let Some(gpu) = exclusive else {
        return finding
            .remedy(format!(
                "compute without this daemon, since the card does not require it: name a folder without a daemon, or ask \
                 user {owner} to stop the daemon (`echo quit | nvidia-cuda-mps-control`)"
            ))
            .command(format!("export {PIPES}=/dev/null"));
    };
    finding
        .seen(format!("{} is in exclusive mode, so nothing can use it past the daemon", super::label(gpu)))
        .remedy("use another GPU")
        .machine_remedy(format!(
            "stop the daemon of user {owner} when its programs have ended (`echo quit | nvidia-cuda-mps-control`, as that user \
             or root), and set the compute mode back to default"
        ))
        .command(format!("sudo nvidia-smi -i {} -c DEFAULT", gpu.index))
}

/// A card that only an MPS server may open, whose daemon this process cannot reach.
fn out_of_reach(host: &Host, gpu: &Gpu, folder: &str) -> Finding {
    let title = format!(
        "{} is in exclusive mode for an MPS server, but its daemon cannot be reached: {folder} does not exist here",
        super::label(gpu)
    );
    let finding = Finding::new("gpu.mps", title);
    if host.is_container() {
        let finding = finding.remedy(format!(
            "start the container with the daemon's folder and the host's shared memory, or have the compute mode set \
             back to default; set {PIPES} if the folder has another name on the host"
        ));
        return start_with(host, finding, Start::Mps);
    }
    finding.remedy(format!(
        "set {PIPES} to the daemon's folder; or have its owner or an administrator stop the daemon when its programs \
         have ended (`echo quit | nvidia-cuda-mps-control`), and set the compute mode back to default"
    ))
}

/// Variables by which the daemon limits the programs of this shell.
fn limits(host: &Host, gpus: &[Gpu]) -> Vec<Finding> {
    let set = |name: &str| host.env(name).ok().flatten().filter(|value| !value.trim().is_empty());
    let limited = |name: &str, value: &str, what: String| {
        let title = format!("{name} is \"{value}\": MPS gives each rank {what}");
        Finding::new("gpu.mps", title)
            .status(Status::Warning)
            .because(
                "the MPS daemon runs, and it limits the programs of shells in which this variable is set",
            )
            .remedy("unset the variable, unless the card is shared on purpose")
            .command(format!("unset {name}"))
    };
    let share = set(SHARE).and_then(|value| Some((value.trim().parse::<f64>().ok()?, value)));
    let share = share.filter(|(share, _)| *share < 100.0);
    let share =
        share.map(|(_, value)| limited(SHARE, &value, format!("only {value} % of the GPU's processors")));
    let memory = set(MEMORY).and_then(|value| Some((least(&value)?, value)));
    // What a run needs is for other checks; a limit near the whole card is none.
    let is_less = |bytes: u64| {
        gpus.iter().filter_map(|gpu| gpu.memory().ok()).any(|memory| bytes < memory.total / 10 * 9)
    };
    let memory = memory.filter(|(bytes, _)| is_less(*bytes));
    let memory = memory.map(|(bytes, value)| {
        limited(MEMORY, &value, format!("only {} of the GPU's memory", yolo_base::format::memory(bytes)))
    });
    share.into_iter().chain(memory).collect()
}

/// The smallest limit of `0=2G,1=512M`; without a unit they are bytes.
fn least(value: &str) -> Option<u64> {
    let bytes = |text: &str| {
        let text = text.trim();
        let (number, shift) = match text.to_ascii_uppercase().trim_end_matches('B').chars().last()? {
            'G' => (text.trim_end_matches(['g', 'G', 'b', 'B']), 30),
            'M' => (text.trim_end_matches(['m', 'M', 'b', 'B']), 20),
            'K' => (text.trim_end_matches(['k', 'K', 'b', 'B']), 10),
            _ => (text, 0),
        };
        number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
    };
    value.split(',').filter_map(|one| bytes(one.split_once('=')?.1)).min()
}

#[cfg(test)]
mod tests {
    use super::least;

    #[test]
    fn the_smallest_limit_of_all_cards_counts() {
        assert_eq!(least("0=2G,1=512M"), Some(512 << 20));
        assert_eq!(least("0=1024MB"), Some(1 << 30));
        assert_eq!(least("0=4096"), Some(4096));
        assert_eq!(least("2G"), None);
        assert_eq!(least("0=much"), None);
        assert_eq!(least("0=99999999999999G"), None);
    }
}
