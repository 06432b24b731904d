//! Whether environment variables that the ranks inherit break them or slow them down. Variables that
//! `yolo` sets for every rank, such as RANK and MASTER_PORT, are harmless and ignored.

use yolo_base::env::{
    LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE,
    OMP_NUM_THREADS, RANK, WORLD_SIZE,
};

use crate::change::Change;
use crate::checks::gpu::peer_access::is_nvlinked;
use crate::checks::memory::shared;
use crate::checks::{Answer, Check, cores, reaches_others};
use crate::facts::{Host, Interface};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files::{self, Setting};
use crate::status::Status;
use yolo_base::format;

pub(super) static CHECK: Check = Check {
    question: "Do environment variables break or slow down a run?",
    reports: &["shell.variable-breaks", "shell.variable-slows", "shell.variable-ignored"],
    preflight: true,
    run,
};

/// What a value does to a run.
struct Effect {
    /// How serious it is.
    status: Status,
    /// Whether it ends a run or makes it wrong, and does not only slow it down.
    breaks: bool,
    what: &'static str,
}

/// A variable, and the effect of its value, if any.
type Rule = (&'static str, fn(&str) -> Option<Effect>);

const fn breaks(what: &'static str) -> Option<Effect> {
    Some(Effect { status: Status::Error, breaks: true, what })
}

/// Breaks some runs, as was reported.
const fn may_break(what: &'static str) -> Option<Effect> {
    Some(Effect { status: Status::Warning, breaks: true, what })
}

const fn slows(what: &'static str) -> Option<Effect> {
    Some(Effect { status: Status::Warning, breaks: false, what })
}

/// Often set on purpose, or harmless.
const fn notable(what: &'static str) -> Option<Effect> {
    Some(Effect { status: Status::Info, breaks: false, what })
}

fn on(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// Variables that matter for any number of ranks.
const ALWAYS: &[Rule] = &[
    ("CUDA_LAUNCH_BLOCKING", |value| {
        on(value).then_some(()).and(slows("the CPU waits for the GPU after each operation"))
    }),
    ("PYTORCH_NO_CUDA_MEMORY_CACHING", |value| {
        on(value).then_some(()).and(slows("every tensor's memory is requested from the driver again"))
    }),
    ("CUDA_CACHE_DISABLE", |value| on(value).then_some(()).and(slows("kernels are compiled at every start"))),
    ("NVIDIA_TF32_OVERRIDE", |value| {
        (value.trim() == "0").then_some(()).and(slows("matrix products may not use TF32 on tensor cores"))
    }),
    ("CUDA_DEVICE_WAITS_ON_EXCEPTION", |value| {
        on(value).then_some(()).and(breaks("a rank that fails hangs and waits for a debugger"))
    }),
    ("CUDA_FORCE_PTX_JIT", |value| {
        on(value).then_some(()).and(breaks(
            "CUDA ignores libtorch's compiled kernels, of which most have no PTX to compile instead",
        ))
    }),
    ("CUDNN_LOGLEVEL_DBG", |value| {
        matches!(first_number(value), Some(3..)).then_some(()).and(slows("cuDNN logs every call"))
    }),
    (OMP_NUM_THREADS, |value| match first_number(value) {
        Some(1..) => None,
        _ => slows("not a number of threads, so yolo divides the cores equally"),
    }),
];

/// Variables that matter for several ranks.
const SEVERAL: &[Rule] = &[
    ("GLOO_DEVICE_TRANSPORT", |value| {
        let known = ["", "TCP", "TCP_TLS", "UV", "IBVERBS"];
        (!known.contains(&value.trim())).then_some(()).and(breaks("gloo supports only TCP, TCP_TLS and UV"))
    }),
    ("NCCL_SOCKET_FAMILY", |value| {
        let known = ["", "AF_INET", "AF_INET6"];
        (!known.contains(&value.trim())).then_some(()).and(breaks("NCCL supports only AF_INET and AF_INET6"))
    }),
    ("NCCL_COMM_ID", |value| {
        on(value).then_some(()).and(breaks(
            "NCCL uses its own address to connect the ranks instead of \
                                            yolo's",
        ))
    }),
    (NCCL_SHM_DISABLE, |value| {
        on(value).then_some(()).and(slows("GPUs without a direct path communicate through sockets"))
    }),
    (NCCL_P2P_DISABLE, |value| on(value).then_some(()).and(notable("GPUs cannot communicate directly"))),
    ("NCCL_P2P_LEVEL", |value| {
        (value.trim() == "LOC" || value.trim() == "0")
            .then_some(())
            .and(slows("GPUs cannot communicate directly"))
    }),
    ("NCCL_ALGO", |value| {
        on(value).then_some(()).and(slows("NCCL may not choose the fastest algorithm or protocol"))
    }),
    ("NCCL_PROTO", |value| {
        on(value).then_some(()).and(slows("NCCL may not choose the fastest algorithm or protocol"))
    }),
    ("NCCL_BUFFSIZE", |value| {
        let is_odd = value.trim().parse::<u64>().is_ok_and(|size| size > 0 && !size.is_power_of_two());
        is_odd.then_some(()).and(may_break(
            "NCCL was reported to hang or to compute wrong sums with sizes that are no power of two",
        ))
    }),
    ("NCCL_NTHREADS", |value| {
        let is_odd = first_number(value).is_some_and(|count| ![0, 64, 128, 256, 512].contains(&count));
        is_odd.then_some(()).and(may_break(
            "NCCL works with 64, 128, 256 or 512 threads, and was reported to compute wrong sums with others",
        ))
    }),
    ("NCCL_CHUNK_SIZE", |value| {
        let is_large = value.trim().parse::<u64>().is_ok_and(|size| size >= 1 << 20);
        is_large
            .then_some(())
            .and(may_break("NCCL was reported to compute wrong sums with chunks of 1 MiB and more"))
    }),
    ("NCCL_MAX_NCHANNELS", |value| match first_number(value) {
        Some(0..=2) => slows("with so few channels, NCCL cannot saturate a link"),
        _ => None,
    }),
    ("NCCL_DEBUG", |value| {
        matches!(value.trim().to_ascii_uppercase().as_str(), "TRACE")
            .then_some(())
            .and(slows("NCCL logs every call"))
    }),
    ("TORCH_DISTRIBUTED_DEBUG", |value| {
        value
            .trim()
            .eq_ignore_ascii_case("DETAIL")
            .then_some(())
            .and(slows("every collective operation is verified before it runs"))
    }),
    ("NCCL_ASYNC_ERROR_HANDLING", never_ends),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING", never_ends),
];

/// Without error handling, the others wait forever for a rank that failed.
fn never_ends(value: &str) -> Option<Effect> {
    (value.trim() == "0").then_some(()).and(breaks("if one rank fails, the others wait forever"))
}

/// Variables that bind all ranks to the same cores.
const PINS: [&str; 4] = ["GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND"];

fn run(host: &Host, intent: &Intent) -> Answer {
    host.env(OMP_NUM_THREADS)?;
    let several = intent.ranks_in_all() > 1;
    let rules = ALWAYS.iter().chain(SEVERAL.iter().filter(|_| several || !intent.run));
    // Where shared memory is too small, this variable is the remedy.
    let is_needed = |name: &str| name == NCCL_SHM_DISABLE && shared::is_too_small(host, intent);
    let rules = rules.filter(|(name, _)| !is_needed(name));
    let mut findings: Vec<Finding> = rules.filter_map(|(name, rule)| finding(host, name, *rule)).collect();
    findings.extend(super::allocator::findings(host, intent));
    findings.extend(threads(host, intent));
    findings.extend(super::infiniband::findings(host, intent));
    findings.extend(super::graph_file::finding(host, intent));
    findings.extend(ignored(host));
    if intent.has_several_nodes() {
        findings.extend(interface_of_gloo(host));
    }
    if several && intent.ranks_here() > 1 {
        findings.extend(PINS.iter().filter_map(|name| {
            let value = set(host, name)?;
            let pins = !matches!(
                value.to_ascii_lowercase().as_str(),
                "disabled" | "none" | "cores" | "threads" | "sockets" | "false"
            );
            pins.then(|| slow(name, &value, "all ranks use the same cores"))
        }));
    }
    Ok(findings)
}

/// Which interface PyTorch's ranks over gloo use.
const GLOO_SOCKET_IFNAME: &str = "GLOO_SOCKET_IFNAME";

/// Variables that `yolo` sets for each rank.
const OF_A_RANK: [&str; 6] = [RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT];

/// Those that are already set, except under a batch system, which sets them on purpose.
fn ignored(host: &Host) -> Option<Finding> {
    let is_job = ["SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "KUBERNETES_SERVICE_HOST"]
        .iter()
        .any(|name| set(host, name).is_some());
    let listed: Vec<String> =
        OF_A_RANK.iter().filter_map(|name| Some(format!("{name}={}", set(host, name)?))).collect();
    let title = format!("yolo ignores {} in this shell", listed.join(" "));
    (!is_job && !listed.is_empty()).then(|| Finding::new("shell.variable-ignored", title))
}

/// gloo's own variable, which `yolo` replaces by the address through which this machine reaches machine 0.
fn interface_of_gloo(host: &Host) -> Option<Finding> {
    let value = set(host, GLOO_SOCKET_IFNAME)?;
    let title = format!(
        "yolo ignores {GLOO_SOCKET_IFNAME}={value}: its ranks take the address that reaches machine 0"
    );
    let finding = Finding::new("shell.variable-ignored", title)
        .because("gloo in PyTorch finds its own address with this variable; yolo tells it the address");
    if !value.starts_with('^') {
        return Some(finding);
    }
    let interfaces = host.interfaces().unwrap_or_default();
    let works = |one: &&Interface| one.up != Some(false) && !one.addresses.is_empty() && reaches_others(one);
    let example = interfaces.iter().find(works).map(|one| format!(", here {}", one.name)).unwrap_or_default();
    Some(finding.seen(format!(
        "only NCCL understands a list of exclusions; PyTorch's own ranks over gloo need the name of one interface\
         {example}"
    )))
}

fn set(host: &Host, name: &str) -> Option<String> {
    host.env_of_run(name).ok().flatten()
}

fn finding(host: &Host, name: &'static str, rule: fn(&str) -> Option<Effect>) -> Option<Finding> {
    let of_shell = || Some(Setting { name: name.to_owned(), value: set(host, name)?, file: None });
    let setting = of_shell().or_else(|| nccl_files::setting(host, name))?;
    let effect = rule(&setting.value)?;
    let is_worse = name == NCCL_P2P_DISABLE && has_nvlink(host);
    let what = if is_worse {
        "these GPUs cannot use NVLink, and communicate many times slower"
    } else {
        effect.what
    };
    let title = format!("{} is \"{}\": {what}", setting.place(), setting.value);
    Some(match effect.status {
        status if effect.breaks => {
            setting.removed(setting.finding("shell.variable-breaks", title).status(status))
        }
        Status::Warning => setting.removed(setting.finding("shell.variable-slows", title)),
        _ if is_worse => setting.removed(setting.finding("shell.variable-slows", title)),
        // The user decides which value is right.
        other => {
            let finding = setting.finding("shell.variable-slows", title).status(other);
            setting.command(setting.text(finding))
        }
    })
}

fn has_nvlink(host: &Host) -> bool {
    host.gpus().is_ok_and(|gpus| gpus.len() > 1 && gpus.iter().all(is_nvlinked))
}

fn slow(name: &str, value: &str, what: &str) -> Finding {
    unsetting(Finding::new("shell.variable-slows", format!("{name} is \"{value}\": {what}")), name)
}

/// With the remedy for a variable that should not be set.
fn unsetting(finding: Finding, name: &str) -> Finding {
    finding.command(format!("unset {name}")).change(Change::Variable { name: name.to_owned(), value: None })
}

/// The threads of all ranks compared with the cores.
fn threads(host: &Host, intent: &Intent) -> Option<Finding> {
    let value = set(host, OMP_NUM_THREADS)?;
    let threads = usize::try_from(first_number(&value)?).ok()?;
    let cores = cores(host)?;
    let ranks = intent.ranks_here();
    let fitting = (cores / ranks).max(1);
    // On the CPU these threads do all the work; on GPUs they do little.
    if intent.run && intent.cpu && threads > 0 && threads.checked_mul(ranks)?.checked_mul(4)? <= cores {
        let (ranks, cores) = (format::count(ranks, "rank"), format::count(cores, "core"));
        let title =
            format!("OMP_NUM_THREADS is {threads}: {ranks} on the CPU would leave most of {cores} idle");
        return Some(
            Finding::new("shell.variable-slows", title)
                .status(Status::Warning)
                .remedy("unset the variable, so that yolo gives each rank its share of the cores, or set that share yourself")
                .command(format!("export OMP_NUM_THREADS={fitting}"))
                .change(Change::Variable { name: OMP_NUM_THREADS.to_owned(), value: Some(fitting.to_string()) }),
        );
    }
    // Twice the number of cores is still sharing; more is a mistake.
    (threads > 0 && threads.checked_mul(ranks)? > cores * 2).then(|| {
        let share = if ranks == 1 { "has" } else { "share" };
        let (ranks, cores) = (format::count(ranks, "rank"), format::count(cores, "core"));
        let title = format!("OMP_NUM_THREADS is {threads}: {ranks} {share} {cores}");
        Finding::new("shell.variable-slows", title)
            .status(Status::Warning)
            .remedy("unset the variable, so that yolo gives each rank its share of the cores, or set that share yourself")
            .command(format!("export OMP_NUM_THREADS={fitting}"))
            .change(Change::Variable { name: OMP_NUM_THREADS.to_owned(), value: Some(fitting.to_string()) })
    })
}

/// `8`, or `8,4` for nested loops.
fn first_number(value: &str) -> Option<u32> {
    value.split(',').next()?.trim().parse().ok()
}
