//! A run that uses a GPU on a machine of a batch system that has none: on a login node, or in a job on a node
//! without a card. No driver would help there, since the cards are in other nodes, to which only a job has access.

use super::{kernel_module, pci};
use crate::facts::view::place::SLURM_CONF;
use crate::facts::{Host, Job, NvmlState, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::gpus_of_job::ask_for;

/// The finding, unless this machine has a card, or the run needs none.
pub(super) fn find(host: &Host, intent: &Intent) -> Option<Finding> {
    let has_no_driver = matches!(host.nvml_state(), Ok(NvmlState::NoLibrary | NvmlState::Failed(9)));
    let is_asked = !intent.devices.is_empty() && has_no_driver && host.place() == Place::Machine;
    if !is_asked || !pci::cards(host).is_empty() || kernel_module::switched_off(host).is_some() {
        return None;
    }
    let system = host.batch_system()?;
    let name = system.name();
    let count = intent.devices.len();
    if let Some(job) = host.job() {
        let title = format!("the run uses a GPU, but the node of this {name} job has no NVIDIA card");
        let finding = Finding::new("gpu.not-there", title)
            .because(format!("{name} starts jobs that ask for no GPU on any node"));
        return Some(
            ask_for(job, finding, count).remedy(format!("ask {name} for GPUs when you submit the job")),
        );
    }
    let title =
        format!("the run uses a GPU, but was started outside the jobs of {name}, on a machine without a GPU");
    let finding = Finding::new("gpu.not-there", title).because(format!(
        "this machine belongs to a cluster and has no NVIDIA card, like a login node; the GPUs are in nodes on which {name} \
         starts jobs"
    ));
    Some(submit(host, system, finding, count))
}

/// The finding, with the commands that start the run in a job with `count` GPUs.
pub(super) fn submit(host: &Host, system: Job, finding: Finding, count: usize) -> Finding {
    let finding = finding.remedy(format!(
        "start the run in a job of {} that asks for GPUs, not on this machine",
        system.name()
    ));
    match system {
        Job::Slurm => {
            let partition = partition(host);
            let option = partition.as_ref().map_or(String::new(), |name| format!("--partition={name} "));
            let finding = match partition {
                Some(_) => finding,
                None => finding.command("sinfo -o '%P %G'  # which partitions have GPUs"),
            };
            finding
                .command(format!("srun {option}--ntasks=1 --gres=gpu:{count} yolo train …"))
                .command(format!("sbatch {option}--ntasks=1 --gres=gpu:{count} --wrap='yolo train …'"))
        }
        Job::Pbs => finding.command(format!("qsub -I -l select=1:ngpus={count}")).command("yolo train …"),
        Job::Lsf => finding.command(format!("bsub -I -gpu num={count} yolo train …")),
        Job::GridEngine => finding.command(format!("qrsh -l gpu={count}")).command("yolo train …"),
        Job::Oar => finding.command(format!("oarsub -I -l gpu={count}")).command("yolo train …"),
        Job::Condor => finding
            .command(format!("condor_submit -interactive -append 'request_gpus = {count}' FILE"))
            .command("yolo train …"),
    }
}

/// The first partition of Slurm's configuration whose nodes have GPUs, if its text tells.
fn partition(host: &Host) -> Option<String> {
    let text = SLURM_CONF.iter().find_map(|file| host.text(file).ok().flatten())?;
    let value = |line: &str, key: &str| {
        let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
        words.find_map(|(name, value)| name.eq_ignore_ascii_case(key).then(|| value.to_owned()))
    };
    let nodes: Vec<String> = text
        .lines()
        .filter(|line| value(line, "Gres").is_some_and(|gres| gres.contains("gpu")))
        .filter_map(|line| value(line, "NodeName"))
        .collect();
    text.lines().find_map(|line| {
        let of_partition = value(line, "Nodes")?;
        // `n1` must not be found in `n10`.
        let inside = |letter: char| letter.is_ascii_alphanumeric() || "-_[]".contains(letter);
        let is_named = |names: &String| {
            of_partition.match_indices(names.as_str()).any(|(at, _)| {
                !of_partition[..at].ends_with(inside) && !of_partition[at + names.len()..].starts_with(inside)
            })
        };
        (of_partition == "ALL" && !nodes.is_empty() || nodes.iter().any(is_named))
            .then(|| value(line, "PartitionName"))?
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_partition_of_the_nodes_with_gpus() {
        let of = |lines: &[&str]| {
            let files = json!({ SLURM_CONF[0]: lines.join("\n") });
            partition(&Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0)
        };
        let node = "NodeName=n1 Gres=gpu:a40:4 CPUs=64";
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(
            of(&[node, "PartitionName=cpu Nodes=n10,n11", "PartitionName=gpu Nodes=n2,n1"]),
            name("gpu")
        );
        assert_eq!(of(&[node, "PartitionName=cpu Nodes=n10 Default=YES"]), None);
        assert_eq!(of(&[node, "PartitionName=all Nodes=ALL"]), name("all"));
        assert_eq!(of(&["NodeName=n1 CPUs=64", "PartitionName=all Nodes=ALL"]), None);
        let several = "NodeName=g[1-4] Gres=gpu:4";
        assert_eq!(of(&[several, "PartitionName=gpu Nodes=g[1-4]"]), name("gpu"));
    }
}
