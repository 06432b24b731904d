//! The backend of a run: the library through which its ranks exchange tensors. Only this file chooses
//! it, and the settings that it needs. The trainer obeys the plan (`trainer/src/rank/process_group.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use yolo_base::env::{
    NCCL_MAX_CTAS, NCCL_MULTI_RANK_GPU_ENABLE, NCCL_NVLS_ENABLE, NCCL_SOCKET_IFNAME,
    TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN,
};
use yolo_base::format::count;

use crate::device::{self, Device, Inventory};
use crate::error::PlanError;
use crate::options::BackendOption;

/// The file name of the NCCL plugin, which is next to the trainer.
pub const NCCL_PLUGIN: &str = "libtch_nccl.so";

/// Thread blocks of the GPU that all its ranks together may use for NCCL. Ranks that share a GPU need
/// theirs at the same time, or NCCL hangs.
const SHARED_CTAS: usize = 8;

/// A library for collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Backend {
    Gloo,
    Nccl,
}

/// How far apart the ranks of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One plan holds all of them, on one machine.
    Plan,
    /// Several plans hold them, on one machine.
    Machine,
    /// They are on several machines.
    Machines,
}

/// How the ranks of a run exchange tensors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connection {
    /// The backend; `None` for a single rank without `--backend`.
    pub backend: Option<Backend>,
    /// The libnccl to use instead of the one of libtorch.
    pub nccl: Option<PathBuf>,
    /// Environment variables that the ranks get unless the user set them.
    pub variables: BTreeMap<String, String>,
    /// What was chosen and why, one sentence each.
    pub notes: Vec<String>,
}

impl Connection {
    /// Chooses how ranks on these devices exchange tensors, which are all ranks of the run. `nccl` is
    /// `--nccl`: a file that exists.
    ///
    /// # Errors
    /// When `--backend nccl` or `--nccl` cannot be honored.
    pub fn choose(
        wanted: BackendOption,
        nccl: Option<PathBuf>,
        devices: &[Device],
        inventory: &Inventory,
    ) -> Result<Self, PlanError> {
        Self::choose_for(Reach::Plan, wanted, nccl, devices, inventory)
    }

    /// Like [`Self::choose`], for ranks of which `devices` may be only those of this plan.
    ///
    /// # Errors
    /// As [`Self::choose`].
    pub fn choose_for(
        reach: Reach,
        wanted: BackendOption,
        nccl: Option<PathBuf>,
        devices: &[Device],
        inventory: &Inventory,
    ) -> Result<Self, PlanError> {
        let refusal = why_not_nccl(devices, nccl.is_some(), inventory);
        let mut notes = Vec::new();
        let backend = match (wanted, refusal) {
            (BackendOption::Nccl, Some(Refusal { why, hint, missing })) => {
                let message = format!("--backend nccl cannot be used: {why}");
                let error = if missing { PlanError::new(message) } else { PlanError::usage(message) };
                return Err(error.with_hint(hint));
            }
            (BackendOption::Nccl, None) => Some(Backend::Nccl),
            (BackendOption::Gloo, _) => Some(Backend::Gloo),
            (BackendOption::Auto, _) if devices.len() < 2 && reach == Reach::Plan => None,
            (BackendOption::Auto, Some(Refusal { why, .. })) => {
                notes.push(format!("communicating over gloo: {why}"));
                Some(Backend::Gloo)
            }
            (BackendOption::Auto, None) => {
                notes.push("communicating over NCCL, because the ranks are on GPUs".to_owned());
                Some(Backend::Nccl)
            }
        };
        if let Some(nccl) = nccl.as_ref().filter(|_| backend != Some(Backend::Nccl)) {
            let message =
                format!("--nccl {} has no effect, because this run does not use NCCL", nccl.display());
            return Err(PlanError::usage(message).with_hint("add --backend nccl, or omit --nccl"));
        }
        let shared = device::shared(devices);
        if let Some((index, ranks)) = shared {
            notes.push(format!("{} share GPU {index}, which is slower than one rank", count(ranks, "rank")));
        }
        let variables = match backend {
            Some(Backend::Nccl) => nccl_variables(shared.map_or(1, |(_, ranks)| ranks), reach),
            _ => BTreeMap::new(),
        };
        if !variables.is_empty() {
            let all: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            notes.push(format!("settings of NCCL, unless you set them: {}", all.join(", ")));
        }
        Ok(Self { backend, nccl, variables, notes })
    }
}

/// Why NCCL cannot connect ranks.
struct Refusal {
    why: String,
    /// What to do about it.
    hint: &'static str,
    /// Whether this machine lacks a file; otherwise the devices rule it out.
    missing: bool,
}

/// Why NCCL cannot connect ranks on these devices, if it cannot. `newer` is whether the user names another NCCL.
fn why_not_nccl(devices: &[Device], newer: bool, inventory: &Inventory) -> Option<Refusal> {
    const GLOO: &str = "use --backend gloo, or omit --backend";
    let by_devices = |why: String, hint| Some(Refusal { why, hint, missing: false });
    if devices.contains(&Device::Cpu) {
        return by_devices("the ranks are on the CPU, and NCCL works on GPUs only".to_owned(), GLOO);
    }
    if devices.len() > 1 && devices.iter().any(|device| matches!(device, Device::Mig { .. })) {
        return by_devices("NCCL does not connect ranks on MIG instances".to_owned(), GLOO);
    }
    if let Some(why) = &inventory.no_nccl {
        const INSTALL: &str = "run `yolo setup --nccl` in a checkout, or copy the plugin from the release archive next \
                               to yolo-trainer; --backend gloo needs none";
        return Some(Refusal { why: why.clone(), hint: INSTALL, missing: true });
    }
    let (index, ranks) = device::shared(devices).filter(|_| !newer)?;
    let why = format!(
        "{} share GPU {index}, which needs NCCL 2.30 or newer, and libtorch has 2.28",
        count(ranks, "rank")
    );
    by_devices(why, "name a newer libnccl.so.2 with --nccl, or use --backend gloo")
}

/// Settings of NCCL and of its watchdog. `ranks` is the largest number of ranks on one GPU.
fn nccl_variables(ranks: usize, reach: Reach) -> BTreeMap<String, String> {
    // Without it, a failure prints C++ stacks that bury the message.
    let mut variables = vec![(TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN, "0".to_owned())];
    if reach != Reach::Machines {
        // Invariant: ranks of one machine listen on loopback only. NCCL would take another interface.
        variables.push((NCCL_SOCKET_IFNAME, "=lo".to_owned()));
    }
    if ranks > 1 {
        variables.push((NCCL_MULTI_RANK_GPU_ENABLE, "1".to_owned()));
        variables.push((NCCL_NVLS_ENABLE, "0".to_owned()));
        variables.push((NCCL_MAX_CTAS, (SHARED_CTAS / ranks).max(1).to_string()));
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The name, as in plan files and options.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gloo => "gloo",
            Self::Nccl => "nccl",
        })
    }
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    const GPUS: [Device; 2] = [Device::Cuda(0), Device::Cuda(1)];
    const SHARED: [Device; 2] = [Device::Cuda(0); 2];

    fn choose(wanted: BackendOption, devices: &[Device]) -> Result<Connection, PlanError> {
        Connection::choose(wanted, None, devices, &Inventory::default())
    }

    fn automatic(devices: &[Device]) -> (Option<Backend>, Vec<String>) {
        let chosen = choose(BackendOption::Auto, devices).unwrap();
        (chosen.backend, chosen.notes)
    }

    #[test]
    fn the_devices_decide_and_the_reason_is_a_note() {
        assert_eq!(automatic(&[Device::Cpu]), (None, vec![]));
        assert_eq!(automatic(&[Device::Cuda(3)]), (None, vec![]));
        let (backend, notes) = automatic(&[Device::Cpu; 2]);
        assert_eq!(backend, Some(Backend::Gloo));
        assert_eq!(notes, ["communicating over gloo: the ranks are on the CPU, and NCCL works on GPUs only"]);
        let (backend, notes) = automatic(&GPUS);
        assert_eq!(backend, Some(Backend::Nccl));
        assert_eq!(
            notes,
            [
                "communicating over NCCL, because the ranks are on GPUs",
                "settings of NCCL, unless you set them: NCCL_SOCKET_IFNAME==lo, \
                 TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN=0"
            ]
        );
    }

    #[test]
    fn a_single_rank_of_a_plan_has_a_backend_if_there_are_others() {
        let choose = |reach, devices: &[Device]| {
            Connection::choose_for(reach, BackendOption::Auto, None, devices, &Inventory::default()).unwrap()
        };
        assert_eq!(choose(Reach::Plan, &GPUS[..1]).backend, None);
        assert_eq!(choose(Reach::Machine, &[Device::Cpu]).backend, Some(Backend::Gloo));
        let machine = choose(Reach::Machine, &GPUS[..1]);
        assert_eq!(machine.backend, Some(Backend::Nccl));
        assert_eq!(machine.variables[NCCL_SOCKET_IFNAME], "=lo");
        let machines = choose(Reach::Machines, &GPUS[..1]);
        assert_eq!(machines.backend, Some(Backend::Nccl));
        assert!(!machines.variables.contains_key(NCCL_SOCKET_IFNAME), "other machines do not reach loopback");
    }

    #[test]
    fn ranks_that_share_a_gpu_use_gloo_or_a_newer_nccl() {
        let (backend, notes) = automatic(&SHARED);
        assert_eq!(backend, Some(Backend::Gloo));
        assert_eq!(notes[1], "2 ranks share GPU 0, which is slower than one rank");
        let error = choose(BackendOption::Nccl, &SHARED).unwrap_err();
        assert!(error.to_string().contains("2 ranks share GPU 0, which needs NCCL 2.30"), "{error}");
        assert!(error.hint().unwrap().contains("--nccl"));
        let newer = Some(PathBuf::from("/n/libnccl.so.2"));
        let chosen = Connection::choose(BackendOption::Auto, newer, &SHARED, &Inventory::default()).unwrap();
        assert_eq!(chosen.backend, Some(Backend::Nccl));
        assert_eq!(chosen.variables[NCCL_MULTI_RANK_GPU_ENABLE], "1");
        assert_eq!(chosen.variables[NCCL_MAX_CTAS], "4");
        assert!(!choose(BackendOption::Auto, &GPUS).unwrap().variables.contains_key(NCCL_MAX_CTAS));
    }

    #[test]
    fn the_option_wins_or_is_refused_with_the_reason() {
        let backend = |wanted, devices: &[Device]| choose(wanted, devices).unwrap().backend;
        assert_eq!(backend(BackendOption::Gloo, &GPUS), Some(Backend::Gloo));
        assert_eq!(backend(BackendOption::Nccl, &GPUS[..1]), Some(Backend::Nccl));
        assert_eq!(backend(BackendOption::Gloo, &[Device::Cpu]), Some(Backend::Gloo));
        let error = choose(BackendOption::Nccl, &[Device::Cpu; 2]).unwrap_err();
        assert!(error.to_string().contains("NCCL works on GPUs only") && error.is_usage(), "{error}");
        let nccl = Some(PathBuf::from("/n/libnccl.so.2"));
        let error = Connection::choose(BackendOption::Auto, nccl, &[Device::Cpu; 2], &Inventory::default())
            .unwrap_err();
        assert!(error.to_string().starts_with("--nccl /n/libnccl.so.2 has no effect"), "{error}");
    }

    #[test]
    fn without_the_plugin_gpus_use_gloo() {
        let inventory =
            Inventory { no_nccl: Some("the plugin is missing".to_owned()), ..Inventory::default() };
        let chosen = Connection::choose(BackendOption::Auto, None, &GPUS, &inventory).unwrap();
        assert_eq!(chosen.backend, Some(Backend::Gloo));
        assert_eq!(chosen.notes, ["communicating over gloo: the plugin is missing"]);
        let error = Connection::choose(BackendOption::Nccl, None, &GPUS, &inventory).unwrap_err();
        assert_eq!(error.to_string(), "--backend nccl cannot be used: the plugin is missing");
        assert!(!error.is_usage(), "the option is right, and the machine lacks a file");
        assert!(error.hint().unwrap().contains("yolo setup --nccl"));
    }

    #[test]
    fn ranks_on_mig_instances_use_gloo() {
        let instance = |number| Device::Mig {
            gpu: 0,
            uuid: format!("MIG-00000000-0000-0000-0000-00000000000{number}").parse().unwrap(),
        };
        let (backend, notes) = automatic(&[instance(1), instance(2)]);
        assert_eq!(backend, Some(Backend::Gloo));
        assert_eq!(notes, ["communicating over gloo: NCCL does not connect ranks on MIG instances"]);
    }

    #[test]
    fn a_backend_has_one_name() {
        for backend in [Backend::Gloo, Backend::Nccl] {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.to_string());
        }
    }
}
