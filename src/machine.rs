//! What commands need from this machine before they plan: its devices, the folders where files are
//! looked for, and the programs of a run, which are installed if they are missing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use yolo_base::env::{CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS};
use yolo_checks::libtorch_choice::{Card, Machine};
use yolo_checks::{Host, NcclSetting, facts, nccl_settings};
use yolo_plan::backend::Backend;
use yolo_plan::dataset;
use yolo_plan::device::{Device, Gpu, Inventory, MigInstance};

use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::Programs;
use crate::printer::{Printer, SetupView};
use crate::setup::{self, Chosen, Context, Libtorch, NcclPluginStatus, Variant};

/// Finds libtorch, the trainer and what the backend needs, and installs or builds what is missing.
/// `printed` are the plan's notes, which the user has already read.
pub(crate) fn programs(
    dirs: &YoloDirs,
    backend: Option<Backend>,
    offline: bool,
    printed: &[String],
    printer: &Printer,
) -> Result<Programs, CommandError> {
    let view = SetupView::new(printer);
    let context = Context::new(dirs, offline, &view);
    let choose = || {
        let chosen = chosen_for_this_machine(dirs);
        new_reasons(&chosen, printed).for_each(|reason| printer.say(reason));
        chosen
    };
    let libtorch = setup::ensure_libtorch(&context, choose, setup::checkout_needs_headers())?;
    let trainer = setup::ensure_trainer(dirs, &libtorch, &view)?;
    if backend == Some(Backend::Nccl) {
        setup::ensure_nccl_plugin(&context, &libtorch)?;
    }
    Ok(started_with(trainer, &libtorch))
}

/// Why a variant was chosen, without what a note already states: both quote the same fact when there
/// is no GPU.
fn new_reasons<'a>(chosen: &'a Chosen, printed: &'a [String]) -> impl Iterator<Item = &'a String> {
    let is_new = |reason: &&String| !printed.iter().any(|note| note.contains(reason.as_str()));
    chosen.reasons.iter().chain(&chosen.unserved).filter(is_new)
}

/// The trainer with the environment in which it loads this libtorch.
pub(crate) fn started_with(trainer: PathBuf, libtorch: &Libtorch) -> Programs {
    Programs {
        trainer,
        variant: libtorch.variant.clone(),
        libtorch: format!("{}+{}", setup::LIBTORCH_VERSION, libtorch.variant),
        libtorch_lib: libtorch.lib_dir.clone(),
        environment: setup::trainer_environment(libtorch),
    }
}

/// The libtorch variant for the driver and the GPUs.
pub(crate) fn chosen_for_this_machine(dirs: &YoloDirs) -> Chosen {
    chosen_from(&this_host(dirs))
}

fn chosen_from(host: &Host) -> Chosen {
    let cards = host.gpus().unwrap_or_default().into_iter().map(|gpu| Card {
        index: gpu.index,
        name: gpu.name().unwrap_or_else(|_| "GPU".to_owned()),
        capability: gpu.capability().ok(),
    });
    let driver = match host.gpus() {
        Err(why) => Err(why.to_string()),
        Ok(_) => host
            .driver_version()
            .map(|version| version.to_string())
            .map_err(|_| "the NVIDIA driver does not report its version".to_owned()),
    };
    let family = host.os().unwrap_or_default();
    let architecture = host.arch().unwrap_or_default();
    let cards = cards.collect();
    Chosen::for_machine(&Machine { family, architecture, driver, cards })
}

/// CPU threads per rank if the user sets `OMP_NUM_THREADS`, which overrides the plan's share of the
/// cores. Of a list, the first number is for the outermost level, as in OpenMP. The preflight checks warn of other values.
pub(crate) fn threads_of_user() -> Option<usize> {
    let value = std::env::var(OMP_NUM_THREADS).ok()?;
    value.split(',').next()?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Adds the settings to the `variables` of ranks on these devices with which NCCL neither hangs nor fails on
/// this machine, and returns a note for each reason. `here` is how many ranks the machine has: those of other
/// plans may be on any of its GPUs. The trainer knows nothing of WSL or of PCIe.
pub(crate) fn avoid_nccl_traps(
    host: &Host,
    backend: Option<Backend>,
    devices: &[Device],
    here: usize,
    variables: &mut BTreeMap<String, String>,
) -> Vec<String> {
    let index = |device: &Device| match device {
        Device::Cuda(index) => Some(*index),
        _ => None,
    };
    if backend != Some(Backend::Nccl) || here < 2 {
        return Vec::new();
    }
    let gpus: Vec<usize> = if here > devices.len() {
        host.gpus().unwrap_or_default().iter().map(|gpu| gpu.index).collect()
    } else {
        devices.iter().filter_map(index).collect()
    };
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for NcclSetting { name, value, why } in nccl_settings(host, &gpus, here) {
        let setting = format!("{name}={value}");
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, settings)) => settings.push(setting),
            None => reasons.push((why, vec![setting])),
        }
        variables.entry(name).or_insert(value);
    }
    let note = |(why, settings): (String, Vec<String>)| {
        format!("more settings of NCCL, unless you set them: {} ({why})", settings.join(", "))
    };
    reasons.into_iter().map(note).collect()
}

/// Where planning looks for files.
pub(crate) fn plan_places(dirs: &YoloDirs) -> Result<dataset::Places, CommandError> {
    let working_dir = std::env::current_dir().map_err(|source| CommandError::File {
        what: "cannot determine the current folder".to_owned(),
        source,
        hint: Some("change into a folder that exists".to_owned()),
    })?;
    Ok(dataset::Places { working_dir, data_sets: dirs.data_sets() })
}

/// This machine, for the doctor and for planning. No fact is read yet.
pub(crate) fn this_host(dirs: &YoloDirs) -> Host {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let found = setup::find_libtorch(dirs).ok().flatten().map(|found| found.root);
    // Cargo always sets LIBTORCH, to the link that setup maintains, so only the path can tell whether
    // the user set it.
    let named = found.as_ref().filter(|root| !root.starts_with(dirs.libtorch()));
    Host::of_this_machine(&yolo_checks::KnownPaths {
        data: Some(text(dirs.data())),
        cache: Some(text(dirs.cache())),
        config: Some(text(dirs.config())),
        working: std::env::current_dir().ok().map(|folder| text(&folder)),
        program: std::env::current_exe().ok().map(|program| text(&program)),
        trainer: setup::installed_trainer().map(|program| text(&program)),
        libtorch_named: named.map(|root| text(root)),
        libtorch: found.as_ref().map(|root| text(root)),
    })
}

/// About what WSL lets all programs page-lock, in bytes, however much memory it has.
const WSL_PAGE_LOCKABLE: u64 = 1 << 30;

/// What a plan can use: cores, GPUs, and whether a libtorch with CUDA is available.
pub(crate) fn inventory(host: &Host, dirs: &YoloDirs) -> Inventory {
    let (gpus, no_gpu_reason) = match host.gpus() {
        Ok(found) => {
            let version = host.driver_version().map(|version| format!(" {version}")).unwrap_or_default();
            let reason = found.is_empty().then(|| format!("the NVIDIA driver{version} reports no GPU"));
            let gpus = found.iter().filter(|gpu| gpu.lost().is_none()).map(|gpu| Gpu {
                index: gpu.index,
                name: gpu.name().unwrap_or_else(|_| "GPU".to_owned()),
                memory: gpu.memory().map_or(0, |memory| memory.total),
                free: gpu.memory().map_or(0, |memory| memory.free),
                uuid: gpu.uuid().ok(),
                instances: instances(gpu),
            });
            (gpus.collect(), reason)
        }
        Err(why) => (Vec::new(), Some(why.to_string())),
    };
    // If nothing is installed yet, setup will install the variant for this machine.
    let cuda_libtorch = match setup::find_libtorch(dirs).ok().flatten() {
        Some(found) => found.has_cuda,
        None => chosen_from(host).variant != Variant::Cpu,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let visible = host.env(CUDA_VISIBLE_DEVICES).ok().flatten();
    let page_lockable = host.is_wsl2().unwrap_or(false).then_some(WSL_PAGE_LOCKABLE);
    Inventory { cores, gpus, no_gpu_reason, visible, cuda_libtorch, page_lockable, no_nccl: no_nccl(dirs) }
}

/// The MIG instances of a GPU. Drivers before 470 name them in another way, which CUDA 12 does not take.
fn instances(gpu: &facts::Gpu) -> Vec<MigInstance> {
    let instance = |one: facts::MigDevice| {
        Some(MigInstance { uuid: one.uuid.parse().ok()?, memory: one.memory.unwrap_or(0) })
    };
    gpu.mig_devices().unwrap_or_default().into_iter().filter_map(instance).collect()
}

/// Why there is no NCCL plugin and none can be built.
fn no_nccl(dirs: &YoloDirs) -> Option<String> {
    let libtorch = setup::find_libtorch(dirs).ok().flatten();
    match setup::nccl_plugin_status(libtorch.as_ref()) {
        Ok(NcclPluginStatus::Missing(plugin)) => {
            Some(format!("the NCCL plugin is missing: there is no {}", plugin.display()))
        }
        // Without a trainer there will be another error.
        Ok(NcclPluginStatus::Installed(_) | NcclPluginStatus::Build(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use yolo_plan::device;

    use super::*;

    #[test]
    fn the_inventory_has_uuids_instances_and_the_variable() {
        let home = tempfile::tempdir().unwrap();
        let uuid = "MIG-0a0b0c0d-1111-2222-3333-444455556666";
        let recording = serde_json::json!({
            "version": 1, "os": "linux", "arch": "x86_64",
            "env": { "CUDA_VISIBLE_DEVICES": "1" },
            "nvml": { "driver_version": "580.95.05", "devices": [
                { "name": "NVIDIA A10", "uuid": "GPU-aa", "memory": { "total": 24_u64 << 30, "free": 1 } },
                {
                    "name": "NVIDIA A100", "uuid": "GPU-bb", "memory": { "total": 40_u64 << 30, "free": 1 },
                    "mig_devices": [{ "uuid": uuid, "memory": 5_u64 << 30 }, { "uuid": "MIG-GPU-bb/1/0" }],
                },
            ] },
        });
        let (host, _) = Host::from_value(recording).unwrap();
        let found = inventory(&host, &YoloDirs::under(home.path()));
        assert_eq!(found.visible.as_deref(), Some("1"));
        assert_eq!(found.gpus[0].uuid.as_deref(), Some("GPU-aa"));
        assert_eq!(found.gpus[1].instances, [MigInstance { uuid: uuid.parse().unwrap(), memory: 5 << 30 }]);
        let named = |device: &str| device::choose(Some(device), None, &found).map(|choice| choice.devices);
        let instance = device::Device::Mig { gpu: 1, uuid: uuid.parse().unwrap() };
        assert_eq!(named("MIG-0a").unwrap(), [instance]);
        let refused = named("GPU-aa").unwrap_err().to_string();
        assert!(refused.contains("CUDA_VISIBLE_DEVICES=\"1\" hides"), "{refused}");
    }

    #[test]
    fn only_wsl_has_a_known_limit_of_page_locked_memory() {
        let home = tempfile::tempdir().unwrap();
        let limit = |release: &str| {
            let recording = serde_json::json!({
                "version": 1, "os": "linux", "arch": "x86_64",
                "files": { "/proc/sys/kernel/osrelease": release },
            });
            let (host, _) = Host::from_value(recording).unwrap();
            inventory(&host, &YoloDirs::under(home.path())).page_lockable
        };
        assert_eq!(limit("6.6.87.2-microsoft-standard-WSL2"), Some(1 << 30));
        assert_eq!(limit("6.8.0-60-generic"), None);
    }

    #[test]
    fn ranks_get_the_settings_that_the_machine_needs() {
        let recording = |name: &str| -> serde_json::Value {
            let folder = "checks/tests/hosts/bases";
            serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap()).unwrap()
        };
        let on = |recording: serde_json::Value, backend, devices: &[Device], here| {
            let (host, _) = Host::from_value(recording).unwrap();
            let mut variables = BTreeMap::new();
            let notes = avoid_nccl_traps(&host, Some(backend), devices, here, &mut variables);
            (notes, variables)
        };
        let on_two = |recording, backend| on(recording, backend, &[Device::Cuda(0), Device::Cuda(1)], 2);
        assert!(on_two(recording("linux-8-gpus"), Backend::Nccl).0.is_empty());
        let mut blackwell = recording("two-a6000");
        for device in blackwell["nvml"]["devices"].as_array_mut().unwrap() {
            device["name"] = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition".into();
        }
        // A virtual machine does not see the IOMMU of its host.
        blackwell["files"]["/sys/class/dmi/id/sys_vendor"] = "QEMU\n".into();
        let (notes, variables) = on_two(blackwell.clone(), Backend::Nccl);
        assert_eq!(
            notes,
            [
                "more settings of NCCL, unless you set them: NCCL_P2P_DISABLE=1 (2 RTX PRO 6000 Blackwell cards are \
                 known to hang when they communicate directly)"
            ]
        );
        assert_eq!(variables["NCCL_P2P_DISABLE"], "1");
        assert!(on_two(blackwell.clone(), Backend::Gloo).0.is_empty());
        // A launcher starts each rank with a plan of its own.
        let (_, variables) = on(blackwell.clone(), Backend::Nccl, &[Device::Cuda(1)], 2);
        assert_eq!(variables["NCCL_P2P_DISABLE"], "1");
        assert!(on(blackwell, Backend::Nccl, &[Device::Cuda(1)], 1).0.is_empty());
    }

    #[test]
    fn a_reason_in_the_plans_notes_is_not_printed_again() {
        let home = tempfile::tempdir().unwrap();
        let dirs = YoloDirs::under(home.path());
        for nvml in
            [serde_json::Value::Null, serde_json::json!({ "driver_version": "580.95.05", "devices": [] })]
        {
            let recording = serde_json::json!({
                "version": 1, "os": "linux", "arch": "x86_64", "nvml": nvml,
            });
            let (host, _) = Host::from_value(recording).unwrap();
            let note = device::choose(None, None, &inventory(&host, &dirs)).unwrap().note.unwrap();
            let chosen = chosen_from(&host);
            assert_eq!(chosen.reasons.len(), 1, "{chosen:?}");
            assert_eq!(new_reasons(&chosen, &[]).count(), 1);
            assert_eq!(new_reasons(&chosen, std::slice::from_ref(&note)).count(), 0, "{note}: {chosen:?}");
        }
    }
}
