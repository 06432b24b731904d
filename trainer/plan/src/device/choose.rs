//! Chooses the devices of a run: looks up the entries of `--device` on the machine, or takes the best
//! device if there are none.

use yolo_base::env::CUDA_VISIBLE_DEVICES;

use super::entry::{Entry, entries};
use super::inventory::Inventory;
use super::kind::{Device, argument};
use crate::error::PlanError;

/// More CPU ranks than this are a mistake.
const MAX_CPU_RANKS: usize = 1024;

/// The devices of the local ranks, and a note for the user if they were chosen automatically.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// One device per rank.
    pub devices: Vec<Device>,
    /// What was chosen and why, if `--device` did not name it.
    pub note: Option<String>,
}

/// Chooses the devices of a run. `device` is the argument of `--device`, empty for the best available;
/// `ranks_on_cpu` is `--nproc-per-node`. Whether a libtorch with CUDA is installed matters only for the
/// automatic choice: for a named device, setup can still install it.
///
/// # Errors
/// When `device` is not a list of devices, or a device does not exist or is hidden.
pub fn choose(
    device: Option<&str>,
    ranks_on_cpu: Option<usize>,
    inventory: &Inventory,
) -> Result<Choice, PlanError> {
    let named = device.unwrap_or_default().trim();
    let choice = if named.is_empty() {
        automatic(inventory, ranks_on_cpu.is_some_and(|ranks| ranks > 1))
    } else {
        Choice { devices: Lookup { argument: named, inventory }.devices()?, note: None }
    };
    let Some(ranks) = ranks_on_cpu else {
        return Ok(choice);
    };
    if ranks == 0 || ranks > MAX_CPU_RANKS {
        return Err(PlanError::usage(format!(
            "--nproc-per-node {ranks} is not a number of ranks from 1 to {MAX_CPU_RANKS}"
        ))
        .with_hint("give the number of ranks, for example --nproc-per-node 2, or omit it for one"));
    }
    if choice.devices == [Device::Cpu] {
        return Ok(Choice { devices: vec![Device::Cpu; ranks], note: choice.note });
    }
    if ranks == choice.devices.len() {
        return Ok(choice);
    }
    let devices = &choice.devices;
    if devices.contains(&Device::Cpu) {
        let message = format!(
            "--nproc-per-node {ranks} does not match --device {}, which starts {} ranks",
            argument(devices),
            devices.len()
        );
        return Err(PlanError::usage(message).with_hint("omit one of the two"));
    }
    Err(PlanError::usage(format!(
        "--nproc-per-node {ranks} is for ranks on the CPU; on GPUs there is one rank per device, and the devices are {}",
        list(devices)
    ))
    .with_hint("add --device cpu, or omit --nproc-per-node"))
}

/// As [`choose`], for a command that runs on one device. `command` is its name in messages.
///
/// # Errors
/// As [`choose`], and when `device` names several devices.
pub fn choose_one(device: Option<&str>, command: &str, inventory: &Inventory) -> Result<Choice, PlanError> {
    let choice = choose(device, None, inventory)?;
    if let [first, _, ..] = choice.devices.as_slice() {
        return Err(PlanError::usage(format!(
            "--device {} names {} devices, but `{command}` runs on one",
            argument(&choice.devices),
            choice.devices.len()
        ))
        .with_hint(format!(
            "use one of them (--device {}), or compare numbers of devices with --scaling",
            argument(&[*first])
        )));
    }
    Ok(choice)
}

/// The best available device. Several ranks imply the CPU.
fn automatic(inventory: &Inventory, several: bool) -> Choice {
    let cpu = |why: String| (Device::Cpu, format!("using the CPU{why}"));
    let (device, note) = match inventory.visible_devices().first() {
        Some(_) if several => cpu(", because --nproc-per-node starts ranks on the CPU".to_owned()),
        Some(device) => {
            let name = match device {
                Device::Cuda(index) | Device::Mig { gpu: index, .. } => inventory.gpu(*index),
                Device::Cpu => None,
            };
            let name = name.map_or("GPU", |gpu| gpu.name.as_str());
            if inventory.cuda_libtorch {
                (*device, format!("using {device}: {name}"))
            } else {
                cpu(format!(", because the installed libtorch has no CUDA support for the {name}"))
            }
        }
        None => cpu(format!(": {}", why_none(inventory))),
    };
    Choice { devices: vec![device], note: Some(note) }
}

/// Why no GPU can be used.
fn why_none(inventory: &Inventory) -> String {
    match &inventory.visible {
        Some(value) if !inventory.gpus.is_empty() => {
            format!("{CUDA_VISIBLE_DEVICES}=\"{value}\" hides all GPUs")
        }
        _ => inventory.no_gpu_reason.clone().unwrap_or_else(|| "no GPU was found".to_owned()),
    }
}

/// Looks up the entries of an argument on a machine.
struct Lookup<'a> {
    argument: &'a str,
    inventory: &'a Inventory,
}

impl Lookup<'_> {
    fn devices(&self) -> Result<Vec<Device>, PlanError> {
        let found = entries(self.argument).map_err(|wrong| self.not_a_device(wrong))?;
        if found.iter().all(|entry| *entry == Entry::Cpu) {
            return self.cpus(found.len());
        }
        if found.contains(&Entry::Cpu) {
            let message = format!("--device {} mixes cpu with GPUs", self.argument);
            return Err(PlanError::usage(message).with_hint("a run is on GPUs or on the CPU: name one kind"));
        }
        if let [Entry::All] = found.as_slice() {
            let all = self.inventory.visible_devices();
            return if all.is_empty() { Err(self.no_gpu()) } else { Ok(all) };
        }
        found.iter().map(|entry| self.device(entry)).collect()
    }

    fn cpus(&self, ranks: usize) -> Result<Vec<Device>, PlanError> {
        if ranks <= MAX_CPU_RANKS {
            return Ok(vec![Device::Cpu; ranks]);
        }
        Err(PlanError::usage(format!(
            "--device names cpu {ranks} times, and {MAX_CPU_RANKS} ranks are the most"
        ))
        .with_hint("name it once for each rank, for example --device cpu,cpu"))
    }

    fn device(&self, entry: &Entry) -> Result<Device, PlanError> {
        if self.inventory.gpus.is_empty() {
            return Err(self.no_gpu());
        }
        let device = match entry {
            Entry::Number(index) => match self.inventory.gpu(*index) {
                Some(gpu) => Device::Cuda(gpu.index),
                None => return Err(self.missing(&format!("GPU {index}"))),
            },
            Entry::Gpu(prefix) => {
                let found = self.inventory.gpus_named(prefix);
                self.one(prefix, found.into_iter().map(|gpu| Device::Cuda(gpu.index)).collect())?
            }
            Entry::Mig(prefix) => self.one(prefix, self.inventory.instances_named(prefix))?,
            Entry::Cpu | Entry::All => {
                let message = format!("--device {} joins all with other devices", self.argument);
                return Err(
                    PlanError::usage(message).with_hint("use --device all alone, or name the devices")
                );
            }
        };
        if self.inventory.is_visible(device) { Ok(device) } else { Err(self.hidden(device)) }
    }

    /// The only device of `found`, whose UUIDs begin with `prefix`.
    fn one(&self, prefix: &str, found: Vec<Device>) -> Result<Device, PlanError> {
        match found.as_slice() {
            [device] => Ok(*device),
            [] => Err(self.missing(prefix)),
            several => {
                let labels: Vec<String> =
                    several.iter().map(|device| self.inventory.label(*device)).collect();
                let message = format!(
                    "--device {}: {prefix} is the beginning of several UUIDs, those of {}",
                    self.argument,
                    labels.join(", ")
                );
                Err(PlanError::new(message).with_hint("give more of the UUID, which `nvidia-smi -L` shows"))
            }
        }
    }

    fn not_a_device(&self, wrong: &str) -> PlanError {
        let message = match wrong {
            "" => format!("--device {} has an empty entry, which is not a device", self.argument),
            _ if wrong == self.argument => format!("--device {wrong} is not a device"),
            _ => format!("--device {}: {wrong} is not a device", self.argument),
        };
        let there = self.inventory.labels();
        PlanError::usage(message).with_hint(if there.is_empty() {
            "use cpu, or on a machine with GPUs a number that nvidia-smi shows (0), a list of them (0,1), all, or a UUID \
             (GPU-…, MIG-…); omit --device for the best available"
                .to_owned()
        } else {
            format!("use cpu, all, or some of {}; omit --device for the best available", there.join(", "))
        })
    }

    fn no_gpu(&self) -> PlanError {
        PlanError::new(format!(
            "--device {} needs a GPU, but there is none: {}",
            self.argument,
            why_none(self.inventory)
        ))
        .with_hint(format!(
            "`yolo doctor -- --device {}` shows what is missing; --device cpu needs no GPU",
            self.argument
        ))
    }

    /// `what` is not among the GPUs, of which there are some.
    fn missing(&self, what: &str) -> PlanError {
        let there = self.inventory.labels();
        PlanError::new(format!(
            "--device {} needs {what}, but this machine has only {}: {}",
            self.argument,
            if there.len() == 1 { "one".to_owned() } else { there.len().to_string() },
            there.join(", ")
        ))
        .with_hint(format!("use --device {}", self.inventory.gpus[0].index))
    }

    fn hidden(&self, device: Device) -> PlanError {
        let value = self.inventory.visible.as_deref().unwrap_or_default();
        let visible = self.inventory.visible_devices();
        let message = format!(
            "--device {} names {}, which {CUDA_VISIBLE_DEVICES}=\"{value}\" hides",
            self.argument,
            self.inventory.label(device)
        );
        PlanError::new(message).with_hint(match visible.as_slice() {
            [] => format!("unset {CUDA_VISIBLE_DEVICES}"),
            some => format!("use --device {}, or unset {CUDA_VISIBLE_DEVICES}", argument(some)),
        })
    }
}

fn list(devices: &[Device]) -> String {
    devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::super::inventory::{Gpu, MigInstance};
    use super::super::kind::shared;
    use super::*;

    fn machine(gpus: usize, cuda_libtorch: bool) -> Inventory {
        let gpu = |index| Gpu {
            index,
            name: "NVIDIA H200".into(),
            memory: 1 << 37,
            free: 0,
            uuid: Some(format!("GPU-{index}fb0aaaa-0000-0000-0000-000000000000")),
            instances: Vec::new(),
        };
        Inventory {
            cores: 8,
            gpus: (0..gpus).map(gpu).collect(),
            no_gpu_reason: (gpus == 0).then(|| "the NVIDIA driver is not installed".into()),
            cuda_libtorch,
            ..Inventory::default()
        }
    }

    /// Two GPUs, of which the second is divided in two.
    fn divided() -> Inventory {
        let mut machine = machine(2, true);
        let instance = |number| MigInstance { uuid: mig_name(number).parse().unwrap(), memory: 1 << 35 };
        machine.gpus[1].instances = vec![instance(1), instance(2)];
        machine
    }

    fn mig_name(number: usize) -> String {
        format!("MIG-{number}aaaaaaa-0000-0000-0000-000000000000")
    }

    fn mig(number: usize) -> Device {
        Device::Mig { gpu: 1, uuid: mig_name(number).parse().unwrap() }
    }

    fn named(device: &str, inventory: &Inventory) -> Result<Vec<Device>, (String, String)> {
        let chosen = choose(Some(device), None, inventory).map(|choice| choice.devices);
        chosen.map_err(|error| (error.to_string(), error.hint().unwrap_or_default().into_owned()))
    }

    #[test]
    fn all_is_every_gpu_and_every_instance() {
        assert_eq!(named("all", &machine(3, true)).unwrap(), [0, 1, 2].map(Device::Cuda));
        assert_eq!(named("ALL", &divided()).unwrap(), [Device::Cuda(0), mig(1), mig(2)]);
        assert!(named("all", &machine(0, true)).unwrap_err().0.starts_with("--device all needs a GPU"));
        assert!(named("all,0", &machine(2, true)).unwrap_err().0.contains("joins all with other devices"));
    }

    #[test]
    fn the_cpu_is_named_once_per_rank() {
        assert_eq!(named("cpu,CPU", &machine(2, true)).unwrap(), [Device::Cpu; 2]);
        assert!(named("cpu,0", &machine(2, true)).unwrap_err().0.contains("mixes cpu with GPUs"));
        let both = |ranks| choose(Some("cpu,cpu"), Some(ranks), &machine(0, true));
        assert_eq!(both(2).unwrap().devices, [Device::Cpu; 2]);
        assert_eq!(
            both(3).unwrap_err().to_string(),
            "--nproc-per-node 3 does not match --device cpu,cpu, which starts 2 ranks"
        );
    }

    #[test]
    fn uuids_can_be_shortened_while_they_are_unique() {
        let machine = divided();
        assert_eq!(named("GPU-1fb0,GPU-0", &machine).unwrap(), [Device::Cuda(1), Device::Cuda(0)]);
        assert_eq!(named(&format!("{},mig-2", mig_name(1)), &machine).unwrap(), [mig(1), mig(2)]);
        let (message, hint) = named("0,MIG-", &machine).unwrap_err();
        assert_eq!(
            message,
            format!(
                "--device 0,MIG-: MIG- is the beginning of several UUIDs, those of {} (of GPU 1), {} (of GPU 1)",
                mig_name(1),
                mig_name(2)
            )
        );
        assert!(hint.contains("nvidia-smi -L"), "{hint}");
        let (message, _) = named("GPU-77", &machine).unwrap_err();
        assert_eq!(
            message,
            format!(
                "--device GPU-77 needs GPU-77, but this machine has only 4: 0 (NVIDIA H200), 1 (NVIDIA H200), \
                 {} (of GPU 1), {} (of GPU 1)",
                mig_name(1),
                mig_name(2)
            )
        );
    }

    #[test]
    fn the_users_cuda_visible_devices_counts() {
        let visible = |value: &str| Inventory { visible: Some(value.into()), ..divided() };
        assert_eq!(named("1", &visible("1,0")).unwrap(), [Device::Cuda(1)]);
        assert_eq!(named("all", &visible("1,0")).unwrap(), [Device::Cuda(1), Device::Cuda(0)]);
        assert_eq!(named("all", &visible("GPU-1f")).unwrap(), [Device::Cuda(1)]);
        assert_eq!(named("MIG-1", &visible("MIG-1")).unwrap(), [mig(1)]);
        // An instance of a visible GPU is visible.
        assert_eq!(named("MIG-1", &visible("1")).unwrap(), [mig(1)]);
        // CUDA stops at what it cannot read.
        assert_eq!(named("all", &visible("0,7,1")).unwrap(), [Device::Cuda(0)]);
        assert_eq!(named("all", &visible("0, 1")).unwrap(), [Device::Cuda(0), Device::Cuda(1)]);
        assert!(named("0", &visible("0,0,1")).unwrap_err().0.ends_with("hides"), "twice hides all");
        let (message, hint) = named("0,1", &visible("1")).unwrap_err();
        assert_eq!(message, "--device 0,1 names 0 (NVIDIA H200), which CUDA_VISIBLE_DEVICES=\"1\" hides");
        assert_eq!(hint, "use --device 1, or unset CUDA_VISIBLE_DEVICES");
        for hides_all in ["", "-1", "NoDevFiles"] {
            let (message, _) = named("all", &visible(hides_all)).unwrap_err();
            assert!(message.contains("hides all GPUs"), "{message}");
            assert!(named("0", &visible(hides_all)).is_err());
        }
        let automatic = |value: &str| choose(None, None, &visible(value)).unwrap();
        assert_eq!(automatic("1").note.unwrap(), "using CUDA device 1: NVIDIA H200");
        assert_eq!(automatic("").note.unwrap(), "using the CPU: CUDA_VISIBLE_DEVICES=\"\" hides all GPUs");
    }

    #[test]
    fn a_wrong_entry_is_named_with_what_is_there() {
        let (message, hint) = named("0,gpu", &machine(2, true)).unwrap_err();
        assert_eq!(message, "--device 0,gpu: gpu is not a device");
        assert!(hint.starts_with("use cpu, all, or some of 0 (NVIDIA H200), 1 (NVIDIA H200)"), "{hint}");
        let (message, _) = named("0,", &machine(2, true)).unwrap_err();
        assert_eq!(message, "--device 0, has an empty entry, which is not a device");
    }

    fn error(device: &str, ranks: Option<usize>, gpus: usize) -> String {
        choose(Some(device), ranks, &machine(gpus, true)).unwrap_err().to_string()
    }

    #[test]
    fn the_best_device_is_chosen_with_a_note() {
        let best = |gpus, cuda| choose(None, None, &machine(gpus, cuda)).unwrap();
        assert_eq!(best(2, true).devices, [Device::Cuda(0)]);
        assert_eq!(best(2, true).note.unwrap(), "using CUDA device 0: NVIDIA H200");
        assert_eq!(best(1, false).devices, [Device::Cpu]);
        assert!(best(1, false).note.unwrap().contains("no CUDA support"));
        assert_eq!(best(0, false).note.unwrap(), "using the CPU: the NVIDIA driver is not installed");
        assert_eq!(choose(Some(""), Some(2), &machine(1, true)).unwrap().devices, [Device::Cpu; 2]);
    }

    #[test]
    fn devices_are_named_as_in_yolov5() {
        let two = choose(Some("1,0"), None, &machine(2, true)).unwrap();
        assert_eq!(two.devices, [Device::Cuda(1), Device::Cuda(0)]);
        for argument in ["0", "cuda:0", "cuda", " 0 ", "CUDA:0"] {
            assert_eq!(
                choose(Some(argument), None, &machine(1, false)).unwrap().devices,
                [Device::Cuda(0)],
                "{argument}"
            );
        }
        assert_eq!(choose(Some("cpu"), Some(3), &machine(1, true)).unwrap().devices, [Device::Cpu; 3]);
        assert_eq!(choose(Some("0"), Some(1), &machine(1, true)).unwrap().devices, [Device::Cuda(0)]);
    }

    #[test]
    fn a_gpu_named_twice_gets_two_ranks() {
        let devices = choose(Some("0,1,0"), None, &machine(2, true)).unwrap().devices;
        assert_eq!(devices, [Device::Cuda(0), Device::Cuda(1), Device::Cuda(0)]);
        assert_eq!(shared(&devices), Some((0, 2)));
        assert_eq!(shared(&[Device::Cuda(1), Device::Cuda(0)]), None);
        assert_eq!(shared(&[Device::Cpu; 2]), None);
    }

    #[test]
    fn errors_name_the_missing_device() {
        assert_eq!(
            error("0", None, 0),
            "--device 0 needs a GPU, but there is none: the NVIDIA driver is not installed"
        );
        assert_eq!(
            error("7", None, 2),
            "--device 7 needs GPU 7, but this machine has only 2: 0 (NVIDIA H200), 1 (NVIDIA H200)"
        );
        assert!(error("0,0,2", None, 2).contains("needs GPU 2"));
        assert!(error("0", Some(2), 2).contains("one rank per device"));
        assert!(error("cpu", Some(0), 2).contains("--nproc-per-node 0"));
        for junk in ["gpu", "0,", "-1", "0 1", "cuda0", "mps", "99999999999999999999", "٣"] {
            assert!(error(junk, None, 1).contains("is not a device"), "{junk}");
        }
    }
}
