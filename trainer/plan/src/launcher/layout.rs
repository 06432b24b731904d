//! Where a rank is among all ranks, and where they meet.

use yolo_base::format::{count, list};

use super::name::Launcher;
use super::variables::CHECK;
use crate::device::{self, Choice, Device, Inventory};
use crate::error::PlanError;
use crate::run::Part;

/// What a launcher tells one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Who has started it.
    pub launcher: Launcher,
    /// The number of this rank among all ranks.
    pub rank: usize,
    /// The number of this rank on its machine.
    pub local_rank: usize,
    /// Ranks over all machines.
    pub world_size: usize,
    /// Ranks on this machine.
    pub local_world_size: usize,
    /// The host on which the store of the ranks is.
    pub master_addr: String,
    /// Its port.
    pub master_port: u16,
    /// If the launcher serves the store: the part of it in which the ranks of this start meet. Otherwise
    /// rank 0 serves it.
    pub agent_store: Option<String>,
    /// Whether the launcher may have limited each rank to its own GPU, so that rank 1 has GPU 0 of those
    /// that it sees.
    pub limits_gpus: bool,
}

impl Layout {
    /// Refuses numbers that contradict each other. The names are those of the launcher's variables for the
    /// number of the rank, and for that on its machine.
    pub(super) fn checked(self, (rank_name, local_name): (&str, &str)) -> Result<Self, PlanError> {
        let Self { launcher, rank, local_rank, world_size, local_world_size, .. } = self;
        for (name, number, size, place) in [
            (rank_name, rank, world_size, "in the run"),
            (local_name, local_rank, local_world_size, "on this machine"),
        ] {
            if number >= size {
                let are = if size == 1 { "is" } else { "are" };
                let message = format!(
                    "{name} is {number}, but there {are} {} {place}, numbered from 0",
                    count(size, "rank")
                );
                return Err(PlanError::usage(message).with_hint(match size {
                    0 | 1 => CHECK.to_owned(),
                    _ => format!("give each process another number in {name}, from 0 to {}", size - 1),
                }));
            }
        }
        if local_world_size > world_size {
            return Err(PlanError::usage(format!(
                "{launcher} says that this machine has {}, but the whole run has only {world_size}",
                count(local_world_size, "rank")
            ))
            .with_hint(CHECK));
        }
        if local_rank > rank {
            return Err(PlanError::usage(format!(
                "{local_name} is {local_rank} and {rank_name} is {rank}, but a rank's number on its machine cannot be \
                 greater than that in the run"
            ))
            .with_hint(CHECK));
        }
        Ok(self)
    }

    /// Which part of the run the plan of this rank holds.
    pub fn part(&self) -> Part {
        Part {
            first: self.rank,
            first_here: self.local_rank,
            here: self.local_world_size,
            world_size: self.world_size,
        }
    }

    /// The device of this rank: number `local_rank` of those that `--device` names, or of all visible GPUs.
    ///
    /// # Errors
    /// When `device` is invalid, or there are fewer devices than ranks on this machine.
    pub fn device(&self, device: Option<&str>, inventory: &Inventory) -> Result<Choice, PlanError> {
        let named = device.map(str::trim).filter(|device| !device.is_empty());
        let choice = device::choose(named, None, inventory)?;
        if choice.devices == [Device::Cpu] {
            return Ok(choice);
        }
        let all = match named {
            Some(_) => choice.devices,
            None => device::choose(Some("all"), None, inventory)?.devices,
        };
        let note = choice.note;
        match all.as_slice() {
            [only] if self.limits_gpus => Ok(Choice { devices: vec![*only], note }),
            all => match all.get(self.local_rank) {
                Some(own) if all.len() >= self.local_world_size => {
                    Ok(Choice { devices: vec![*own], note: note.map(|_| format!("using {own}")) })
                }
                _ => Err(PlanError::new(format!(
                    "{} starts {} on this machine, but {}",
                    self.launcher,
                    count(self.local_world_size, "rank"),
                    only(all, named.is_some())
                ))
                .with_hint("start one rank per GPU, or use --device cpu")),
            },
        }
    }
}

/// `only GPU 1 is visible`, or `--device names only GPUs 1 and 2`.
fn only(devices: &[Device], named: bool) -> String {
    let gpus: Vec<String> = devices.iter().map(|device| device.visible()).collect();
    let one = gpus.len() == 1;
    let gpus = format!("{} {}", if one { "GPU" } else { "GPUs" }, list(&gpus));
    match (named, one) {
        (true, _) => format!("--device names only {gpus}"),
        (false, true) => format!("only {gpus} is visible"),
        (false, false) => format!("only {gpus} are visible"),
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Gpu;

    use super::*;

    fn layout(local_rank: usize, local_world_size: usize) -> Layout {
        Layout {
            launcher: Launcher::Torchrun,
            rank: local_rank,
            local_rank,
            world_size: local_world_size,
            local_world_size,
            master_addr: "localhost".to_owned(),
            master_port: 29500,
            agent_store: None,
            limits_gpus: false,
        }
    }

    fn gpus(number: usize, visible: Option<&str>) -> Inventory {
        let gpus = (0..number).map(|index| Gpu { index, name: "NVIDIA A10".to_owned(), ..Gpu::default() });
        let visible = visible.map(str::to_owned);
        Inventory { gpus: gpus.collect(), visible, cuda_libtorch: true, ..Inventory::default() }
    }

    #[test]
    fn each_rank_has_a_device_of_its_own() {
        let device = |layout: &Layout, named, inventory: &Inventory| {
            layout.device(named, inventory).map(|choice| choice.devices[0]).map_err(|error| error.to_string())
        };
        let second = layout(1, 2);
        assert_eq!(device(&second, None, &gpus(2, None)), Ok(Device::Cuda(1)));
        assert_eq!(device(&second, None, &gpus(8, Some("4,6"))), Ok(Device::Cuda(6)));
        assert_eq!(device(&second, Some("3,2"), &gpus(4, None)), Ok(Device::Cuda(2)));
        assert_eq!(device(&second, Some("cpu"), &gpus(4, None)), Ok(Device::Cpu));
        assert_eq!(device(&second, None, &gpus(0, None)), Ok(Device::Cpu));
        let too_few = device(&layout(0, 2), None, &gpus(4, Some("1"))).unwrap_err();
        assert_eq!(too_few, "torchrun starts 2 ranks on this machine, but only GPU 1 is visible");
        let too_few = device(&layout(0, 3), Some("3,2"), &gpus(4, None)).unwrap_err();
        assert_eq!(too_few, "torchrun starts 3 ranks on this machine, but --device names only GPUs 3 and 2");
    }

    #[test]
    fn a_scheduler_may_show_each_rank_only_its_gpu() {
        let limited = Layout { limits_gpus: true, launcher: Launcher::Srun, ..layout(1, 2) };
        let choice = limited.device(None, &gpus(4, Some("3"))).unwrap();
        assert_eq!(choice.devices, [Device::Cuda(3)]);
        let choice = limited.device(None, &gpus(4, Some("2,3"))).unwrap();
        assert_eq!(choice.devices, [Device::Cuda(3)]);
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        let checked =
            |layout: Layout| layout.checked(("RANK", "LOCAL_RANK")).map_err(|error| error.to_string());
        let refused = |layout: Layout| checked(layout).unwrap_err();
        assert!(checked(layout(1, 2)).is_ok());
        assert_eq!(refused(layout(2, 2)), "RANK is 2, but there are 2 ranks in the run, numbered from 0");
        let error = refused(Layout { rank: 3, world_size: 4, ..layout(2, 2) });
        assert_eq!(error, "LOCAL_RANK is 2, but there are 2 ranks on this machine, numbered from 0");
        let error = refused(Layout { world_size: 1, rank: 0, ..layout(0, 2) });
        assert!(error.contains("this machine has 2 ranks, but the whole run has only 1"), "{error}");
        let error = refused(Layout { rank: 0, ..layout(1, 2) });
        assert!(error.starts_with("LOCAL_RANK is 1 and RANK is 0"), "{error}");
    }
}
