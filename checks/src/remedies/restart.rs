//! Restarting what has to be restarted. A container, a pod, a notebook or a batch job cannot restart the
//! machine that it runs on: its user starts another one, or asks those who administer the machine.

use super::{lxc, rented};
use crate::facts::{Guest, Host, Job, Place};
use crate::finding::Finding;

/// The finding, with the way to restart this system. On a user's own machine that is one command after
/// those that the finding has already; the words of the remedy stay as they are. Everywhere else the
/// words say what to restart, and who can.
pub(crate) fn restart(host: &Host, finding: Finding) -> Finding {
    if let Some(job) = host.job() {
        return of_job(host, job, finding);
    }
    if let Some(rental) = host.rental() {
        return rented::restart(rental, finding);
    }
    match host.place() {
        Place::Machine | Place::Mac => finding.command("sudo reboot"),
        Place::Windows => finding.command("shutdown /r /t 0"),
        Place::Wsl => finding.command("wsl.exe --shutdown"),
        Place::Docker | Place::DockerInWsl | Place::Podman | Place::Lxc => {
            finding.remedy("have the machine restarted that this container runs on")
        }
        Place::Apptainer | Place::Enroot => finding.remedy("restart the machine that this container runs on"),
        Place::Pod | Place::Colab | Place::Kaggle => restart_container(host, finding),
    }
}

/// The finding, with the way to start this container anew, which gives it the present libraries and device
/// files of its host.
pub(crate) fn restart_container(host: &Host, finding: Finding) -> Finding {
    if let Some(rental) = host.rental() {
        return rented::restart(rental, finding);
    }
    let name = host.hostname().ok().filter(|name| !name.is_empty()).unwrap_or("<container>".to_owned());
    match host.place() {
        Place::Docker | Place::DockerInWsl => {
            finding.command(format!("docker restart {name}  # on the host"))
        }
        Place::Podman => finding.command(format!("podman restart {name}  # on the host")),
        Place::Lxc => lxc::commands(host, &lxc::Change::Restart).into_iter().fold(finding, Finding::command),
        Place::Pod => finding.remedy(
            "delete the pod, so that it is started again, on another node if possible; tell the cluster's \
             administrator about this node",
        ),
        Place::Colab => finding.remedy("in the notebook's menu: Runtime, Disconnect and delete runtime"),
        Place::Kaggle => finding.remedy("in the notebook's menu: Run, Restart & clear session"),
        Place::Apptainer | Place::Enroot | Place::Machine | Place::Wsl | Place::Windows | Place::Mac => {
            finding
        }
    }
}

/// The finding, with the command that resets a card: a GPU's number or address. Who does not administer
/// the machine asks for a restart.
pub(crate) fn reset_gpu(host: &Host, finding: Finding, name: &str) -> Finding {
    // The guests of a cloud cannot reset its cards.
    let is_of_cloud = matches!(host.guest(), Some(Guest::Cloud(_)));
    if host.is_own_machine() && !is_of_cloud {
        finding.command(format!("sudo nvidia-smi --gpu-reset -i {name}"))
    } else {
        restart(host, finding)
    }
}

/// The commands name the node: they are typed on another machine, where a variable or `hostname` tells nothing of it.
fn of_job(host: &Host, job: Job, finding: Finding) -> Finding {
    let finding = finding.remedy(
        "tell the administrator of this node, and submit the job again so that it runs on another one",
    );
    match job {
        Job::Slurm => finding.command(format!("sbatch --exclude={} …", node(host, job))),
        Job::Lsf => finding.command(format!("bsub -R \"select[hname!='{}']\" …", node(host, job))),
        Job::GridEngine => {
            // csh, the usual shell there, reads an exclamation mark in quotation marks, too.
            let is_csh = host.env("SHELL").ok().flatten().is_some_and(|shell| shell.ends_with("csh"));
            let not = if is_csh { "\\!" } else { "!" };
            finding.command(format!("qsub -l h='{not}{}' …", node(host, job)))
        }
        Job::Pbs | Job::Condor | Job::Flux | Job::Oar => finding,
    }
}

/// The batch system's name of this node: Slurm says it, others use that of the host.
fn node(host: &Host, job: Job) -> String {
    let said = host.env("SLURMD_NODENAME").ok().flatten().filter(|_| job == Job::Slurm);
    let name = said.or_else(|| host.hostname().ok()).filter(|name| !name.is_empty());
    // Slurm's names are mostly the host's without its domain.
    let short = |name: String| match job {
        Job::Slurm => name.split('.').next().unwrap_or_default().to_owned(),
        _ => name,
    };
    name.map_or("<node>".to_owned(), short)
}
