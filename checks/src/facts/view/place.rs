//! Where this system is, as far as that decides what its user can do: who can restart it, install a
//! driver, or give it more memory. A batch job or a notebook service limits that as containers do.

use super::container::Container;
use crate::facts::host::Host;

/// What surrounds this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A machine, real or virtual, whose user may be its administrator.
    Machine,
    /// Docker, or another manager of the same kind.
    Docker,
    /// Docker in the virtual machine of Docker Desktop or in WSL.
    DockerInWsl,
    /// Podman, with or without root.
    Podman,
    /// Apptainer: the host's system seen from a container.
    Apptainer,
    /// Enroot, which Slurm's plugin Pyxis calls.
    Enroot,
    /// LXC, LXD, Incus, or a container of Proxmox.
    Lxc,
    /// A pod of Kubernetes.
    Pod,
    /// A notebook of Google Colab.
    Colab,
    /// A notebook of Kaggle.
    Kaggle,
    /// A distribution in WSL 1 or 2.
    Wsl,
    /// A Windows prompt.
    Windows,
    /// macOS.
    Mac,
}

/// The batch system that runs this program as a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// Slurm.
    Slurm,
    /// PBS Professional or OpenPBS.
    Pbs,
    /// IBM Spectrum LSF.
    Lsf,
    /// Grid Engine: Altair's, Open Cluster Scheduler and Son of Grid Engine.
    GridEngine,
    /// HTCondor.
    Condor,
    /// Flux.
    Flux,
    /// OAR.
    Oar,
}

impl Job {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slurm => "Slurm",
            Self::Pbs => "PBS",
            Self::Lsf => "LSF",
            Self::GridEngine => "Grid Engine",
            Self::Condor => "HTCondor",
            Self::Flux => "Flux",
            Self::Oar => "OAR",
        }
    }
}

/// Where Slurm keeps its configuration.
pub(crate) const SLURM_CONF: [&str; 3] =
    ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];

impl Host {
    /// What surrounds this system. Without a sign of anything else, it is a machine.
    pub fn place(&self) -> Place {
        let is_set = |name: &str| matches!(self.env(name), Ok(Some(_)));
        match self.os().as_deref() {
            Ok("windows") => return Place::Windows,
            Ok("macos") => return Place::Mac,
            _ => {}
        }
        if is_set("COLAB_RELEASE_TAG") || is_set("COLAB_GPU") {
            return Place::Colab;
        }
        if is_set("KAGGLE_KERNEL_RUN_TYPE") {
            return Place::Kaggle;
        }
        let in_wsl = matches!(self.wsl(), Ok(Some(_)));
        match self.container().ok().flatten() {
            Some(Container::Docker) if in_wsl => Place::DockerInWsl,
            Some(Container::Docker) => Place::Docker,
            Some(Container::Podman) => Place::Podman,
            Some(Container::Apptainer) => Place::Apptainer,
            Some(Container::Enroot) => Place::Enroot,
            Some(Container::Lxc) => Place::Lxc,
            Some(Container::Kubernetes) => Place::Pod,
            None if in_wsl => Place::Wsl,
            None => Place::Machine,
        }
    }

    /// The batch system that this program runs in, if any.
    pub fn job(&self) -> Option<Job> {
        let is_set = |name: &str| matches!(self.env(name), Ok(Some(_)));
        if is_set("SLURM_JOB_ID") || is_set("SLURM_JOBID") {
            return Some(Job::Slurm);
        }
        if is_set("PBS_JOBID") {
            return Some(Job::Pbs);
        }
        if is_set("LSB_JOBID") {
            return Some(Job::Lsf);
        }
        if is_set("JOB_ID") && (is_set("SGE_ROOT") || is_set("SGE_TASK_ID")) {
            return Some(Job::GridEngine);
        }
        if is_set("_CONDOR_JOB_AD") || is_set("_CONDOR_SCRATCH_DIR") {
            return Some(Job::Condor);
        }
        // In the script of `flux batch` and the shell of `flux alloc` only the number of the enclosing job is set.
        if is_set("FLUX_JOB_ID") || is_set("FLUX_ENCLOSING_ID") {
            return Some(Job::Flux);
        }
        if is_set("OAR_JOB_ID") || is_set("OAR_JOBID") {
            return Some(Job::Oar);
        }
        let groups = self.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
        let of_group = [("/slurm", Job::Slurm), ("/oar/", Job::Oar), ("/htcondor/", Job::Condor)];
        of_group.into_iter().find_map(|(part, job)| groups.contains(part).then_some(job))
    }

    /// The batch system that this machine belongs to: that of the job, or the one whose commands are installed, as on a
    /// login node. A container may have such commands without being of use to them.
    pub fn batch_system(&self) -> Option<Job> {
        let path = self.env("PATH").ok().flatten().unwrap_or_default();
        let folders: Vec<&str> = path.split(':').filter(|folder| folder.starts_with('/')).collect();
        let has_command = |name: &str| {
            folders
                .iter()
                .any(|folder| self.exists(&format!("{}/{name}", folder.trim_end_matches('/'))) == Ok(true))
        };
        let has_file = |path: &&str| self.exists(path) == Ok(true);
        self.job().or_else(|| {
            if self.place() != Place::Machine {
                None
            } else if has_command("sbatch") || SLURM_CONF.iter().any(has_file) {
                Some(Job::Slurm)
            } else if has_command("pbsnodes") || has_file(&"/etc/pbs.conf") {
                Some(Job::Pbs)
            } else if matches!(self.env("LSF_ENVDIR"), Ok(Some(_))) || has_command("bsub") {
                Some(Job::Lsf)
            } else if has_command("qconf") {
                Some(Job::GridEngine)
            } else if has_command("oarsub") {
                Some(Job::Oar)
            } else if has_command("condor_submit") {
                Some(Job::Condor)
            } else {
                None
            }
        })
    }

    /// Whether this user administers the system: not in a batch job, whose machine belongs to others.
    pub fn is_own_machine(&self) -> bool {
        self.place() == Place::Machine && self.job().is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(env: Value, files: Value) -> Host {
        let recording = json!({ "version": 1, "os": "linux", "env": env, "files": files });
        Host::from_value(recording).unwrap().0
    }

    #[test]
    fn services_are_known_by_their_variables() {
        let docker = json!({ "/.dockerenv": "" });
        assert_eq!(host(json!({ "COLAB_GPU": "1" }), docker.clone()).place(), Place::Colab);
        assert_eq!(
            host(json!({ "KAGGLE_KERNEL_RUN_TYPE": "Interactive" }), docker.clone()).place(),
            Place::Kaggle
        );
        assert_eq!(host(json!({}), docker).place(), Place::Docker);
        assert_eq!(host(json!({}), json!({ "/.dockerenv": null })).place(), Place::Machine);
    }

    #[test]
    fn a_job_is_known_by_its_variable_or_its_control_group() {
        assert_eq!(host(json!({ "PBS_JOBID": "7" }), json!({})).job(), Some(Job::Pbs));
        let group =
            json!({ "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n" });
        assert_eq!(host(json!({}), group).job(), Some(Job::Slurm));
        assert_eq!(host(json!({}), json!({})).job(), None);
        for (env, job) in [
            (json!({ "JOB_ID": "7", "SGE_ROOT": "/opt/sge" }), Job::GridEngine),
            (json!({ "_CONDOR_SCRATCH_DIR": "/var/lib/condor/execute/dir_7" }), Job::Condor),
            (json!({ "FLUX_JOB_ID": "f7" }), Job::Flux),
            (json!({ "FLUX_ENCLOSING_ID": "f7", "FLUX_URI": "local:///tmp/flux/local-0" }), Job::Flux),
            (json!({ "OAR_JOB_ID": "7" }), Job::Oar),
        ] {
            assert_eq!(host(env, json!({})).job(), Some(job));
        }
        assert_eq!(host(json!({ "JOB_ID": "7" }), json!({})).job(), None);
        let group =
            json!({ "/proc/self/cgroup": "0::/htcondor/condor_var_lib_condor_execute_slot1_1@node\n" });
        assert_eq!(host(json!({}), group).job(), Some(Job::Condor));
        assert!(!host(json!({ "LSB_JOBID": "7" }), json!({})).is_own_machine());
    }
}
