//! More memory for a run whose control group limits it: the option of the batch system or of the program
//! that starts the container, because the limit is raised where it was set.

use super::start_container::{Start, start_with};
use crate::facts::{Host, Job, MemoryLimit, Place};
use crate::finding::Finding;

/// The finding, with how the next job or container is given this many bytes, or as much as the machine can give. Never a
/// smaller limit than the present one, which would end programs; `None` if the machine has no more.
pub(crate) fn raise(host: &Host, finding: &Finding, limit: &MemoryLimit, bytes: u64) -> Option<Finding> {
    let gib = |bytes: u64| bytes.div_ceil(1 << 30);
    // Batch systems and Kubernetes keep a part of a node for the system, and refuse a request for all of it.
    let most = host.memory().map_or(u64::MAX, |memory| memory.total / 10 * 9);
    let wanted = gib(bytes).min(most >> 30);
    if wanted <= limit.bytes >> 30 {
        return None;
    }
    let finding = finding.clone();
    Some(match host.job() {
        Some(Job::Slurm) => finding.command(format!("sbatch --mem={wanted}G …")),
        Some(Job::Pbs) => finding.command(format!("qsub -l select=1:mem={wanted}gb …")),
        Some(Job::Lsf) => finding.command(format!("bsub -M {wanted}GB …")),
        Some(Job::GridEngine) => finding.remedy(format!(
            "submit the job with {wanted} GiB of the resource that your site limits memory by (often m_mem_free, see `qconf -sc`; \
             h_vmem limits the address space, of which CUDA reserves much more than it uses)"
        )),
        Some(Job::Condor) => {
            finding.command(format!("condor_submit -append 'request_memory = {wanted}GB' …"))
        }
        // The memory of a job is that of its cores or nodes.
        Some(Job::Flux | Job::Oar) => {
            finding.remedy("ask for more cores or a whole node, with which the job gets more memory")
        }
        None if host.place() == Place::Machine => of_unit(host, finding, limit, wanted),
        None => start_with(host, finding, Start::Memory(wanted)),
    })
}

/// A unit of systemd on a machine of its own, such as the slice of a user.
fn of_unit(host: &Host, finding: Finding, limit: &MemoryLimit, wanted: u64) -> Finding {
    let unit = limit.file.rsplit('/').nth(1).unwrap_or_default();
    let is_unit = [".slice", ".service", ".scope"].iter().any(|end| unit.ends_with(end));
    let finding =
        finding.remedy("raise the limit of this group of programs, or train with a smaller --batch");
    if is_unit && host.has_systemd() {
        // Units below that of a user belong to the user's own systemd.
        let program = if limit.file.contains("/user@") { "systemctl --user" } else { "sudo systemctl" };
        let property = if limit.file.ends_with("memory.high") { "MemoryHigh" } else { "MemoryMax" };
        finding.command(format!("{program} set-property {unit} {property}={wanted}G"))
    } else {
        finding
    }
}

/// How a remedy says that, before other advice; nothing where a service decides.
pub(crate) fn words(host: &Host) -> &'static str {
    match (host.job(), host.place()) {
        (Some(_), _) => "ask for more memory when you submit the job, or ",
        (None, Place::Pod) => "raise the memory of the pod's container, or ",
        (None, Place::Docker | Place::DockerInWsl | Place::Podman | Place::Lxc) => {
            "give the container more memory, or "
        }
        (None, Place::Colab | Place::Kaggle) => "",
        (None, _) => "raise the limit, or ",
    }
}
