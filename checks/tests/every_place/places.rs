//! The places that each recorded machine is moved to: distributions, shells, and machines of somebody else.

use serde_json::{Value, json};
use yolo_checks::Host;
use yolo_checks::facts::{Job, Place, Rental};

use crate::support::merge;

/// Distributions, by the content of /etc/os-release.
pub(crate) const DISTRIBUTIONS: [(&str, &str); 25] = [
    ("ubuntu", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n"),
    ("mint", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22.1\"\n"),
    ("pop", "ID=pop\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"24.04\"\n"),
    ("debian", "ID=debian\nVERSION_ID=\"12\"\n"),
    ("fedora", "ID=fedora\nVERSION_ID=42\n"),
    ("nobara", "ID=nobara\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=42\n"),
    ("rocky", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.5\"\n"),
    ("amazon", "ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n"),
    ("leap", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n"),
    ("sles", "ID=sles\nID_LIKE=suse\nVERSION_ID=\"15.7\"\n"),
    ("tumbleweed", "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n"),
    ("arch", "ID=arch\n"),
    ("manjaro", "ID=manjaro\nID_LIKE=arch\n"),
    ("nixos", "ID=nixos\nVERSION_ID=\"25.05\"\n"),
    ("alpine", "ID=alpine\nVERSION_ID=3.21\n"),
    ("void", "ID=\"void\"\n"),
    // Relatives with numbers of their own.
    ("lmde", "ID=linuxmint\nID_LIKE=debian\nVERSION_ID=\"7\"\nDEBIAN_CODENAME=trixie\n"),
    ("devuan", "ID=devuan\nID_LIKE=debian\nVERSION_ID=\"6\"\nVERSION_CODENAME=excalibur\n"),
    ("sid", "ID=debian\nVERSION_CODENAME=forky\n"),
    (
        "alibaba",
        "ID=\"alinux\"\nID_LIKE=\"rhel fedora centos anolis\"\nVERSION_ID=\"3\"\nPLATFORM_ID=\"platform:al8\"\n",
    ),
    (
        "slowroll",
        "ID=\"opensuse-slowroll\"\nID_LIKE=\"opensuse opensuse-tumbleweed suse\"\nVERSION_ID=\"20260401\"\n",
    ),
    // Their packages are not changed in place, or not at all.
    (
        "microos",
        "ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\nVERSION_ID=\"20260401\"\n",
    ),
    ("steamos", "ID=steamos\nID_LIKE=arch\nVERSION_ID=3.7\n"),
    ("amazon-2", "ID=\"amzn\"\nID_LIKE=\"centos rhel fedora\"\nVERSION_ID=\"2\"\n"),
    ("gentoo", "ID=gentoo\n"),
];
/// Where commands of a shell on a machine with Ubuntu are typed.
pub(crate) const SHELLS: [&str; 6] = ["fish", "csh", "nushell", "powershell", "notebook", "snap"];
/// Machines whose driver comes with the system, or which have none.
pub(crate) const MACHINES: [&str; 3] = ["jetson", "dgx-spark", "macos"];
/// Machines whose user is not their administrator. All of them have Ubuntu's files.
pub(crate) const GUESTS: [&str; 16] = [
    "docker",
    "podman",
    "lxc",
    "proxmox",
    "pod",
    "apptainer",
    "colab",
    "kaggle",
    "runpod",
    "slurm",
    "pbs",
    "lsf",
    "grid-engine",
    "condor",
    "flux",
    "oar",
];
/// Those of them that are jobs of a batch system.
pub(crate) const JOBS: [&str; 7] = ["slurm", "pbs", "lsf", "grid-engine", "condor", "flux", "oar"];
/// What makes a machine one of [`GUESTS`].
pub(crate) fn guest(name: &str) -> Value {
    match name {
        "docker" => json!({ "files": { "/.dockerenv": "" } }),
        "podman" => json!({ "files": { "/run/.containerenv": "engine=\"podman-5.2.2\"\nrootless=1\n" } }),
        "lxc" => json!({ "env": { "container": "lxc" } }),
        "proxmox" => json!({
            "env": { "container": "lxc" },
            "files": { "/proc/sys/kernel/osrelease": "6.14.11-4-pve\n" },
        }),
        "pod" => json!({ "env": { "KUBERNETES_SERVICE_HOST": "10.96.0.1" } }),
        "apptainer" => json!({ "env": { "APPTAINER_CONTAINER": "/images/torch.sif" } }),
        "colab" => {
            json!({ "files": { "/.dockerenv": "" }, "env": { "COLAB_RELEASE_TAG": "release-colab_20260101" } })
        }
        "kaggle" => {
            json!({ "files": { "/.dockerenv": "" }, "env": { "KAGGLE_KERNEL_RUN_TYPE": "Interactive" } })
        }
        "runpod" => json!({ "files": { "/.dockerenv": "" }, "env": { "RUNPOD_POD_ID": "abc" } }),
        "slurm" => json!({ "env": { "SLURM_JOB_ID": "4711" } }),
        "pbs" => json!({ "env": { "PBS_JOBID": "4711.head" } }),
        "lsf" => json!({ "env": { "LSB_JOBID": "4711" } }),
        "grid-engine" => json!({ "env": { "JOB_ID": "4711", "SGE_ROOT": "/opt/sge" } }),
        "condor" => json!({ "env": { "_CONDOR_SCRATCH_DIR": "/var/lib/condor/execute/dir_4711" } }),
        "flux" => json!({ "env": { "FLUX_JOB_ID": "f4711" } }),
        "oar" => json!({ "env": { "OAR_JOB_ID": "4711" } }),
        _ => panic!("no such guest: {name}"),
    }
}

/// What makes a machine one of [`SHELLS`].
pub(crate) fn shell(name: &str) -> Value {
    match name {
        "fish" => json!({ "env": { "SHELL": "/usr/bin/fish" } }),
        "csh" => json!({ "env": { "SHELL": "/bin/tcsh" } }),
        "nushell" => json!({ "env": { "SHELL": "/usr/bin/nu" } }),
        "powershell" => json!({ "env": { "SHELL": "/usr/bin/pwsh" } }),
        "notebook" => json!({ "env": { "JPY_PARENT_PID": "4711" } }),
        "snap" => json!({ "env": { "SNAP_NAME": "code", "SNAP": "/snap/code/170" } }),
        _ => panic!("no such shell: {name}"),
    }
}

/// What makes a machine one of [`MACHINES`].
pub(crate) fn machine(name: &str) -> Value {
    match name {
        "jetson" => {
            json!({ "arch": "aarch64", "files": { "/etc/nv_tegra_release": "# R36 (release), REVISION: 4.3\n" } })
        }
        "dgx-spark" => {
            json!({ "arch": "aarch64", "files": { "/etc/dgx-release": "DGX_NAME=\"DGX Spark\"\n" } })
        }
        "macos" => json!({ "os": "macos", "arch": "aarch64" }),
        _ => panic!("no such machine: {name}"),
    }
}

/// Every place, with what it changes in a recording; first the one with which the others are compared.
pub(crate) fn places() -> Vec<(&'static str, Value)> {
    let file = |text: &str| json!({ "files": { "/etc/os-release": text } });
    let machines = DISTRIBUTIONS.iter().map(|(name, text)| (*name, file(text)));
    let guests = GUESTS.iter().map(|name| {
        let mut patch = file(DISTRIBUTIONS[0].1);
        merge(&mut patch, &guest(name));
        (*name, patch)
    });
    // Its packages are layered into an image.
    let silverblue = json!({
        "files": { "/etc/os-release": "ID=fedora\nVERSION_ID=42\nVARIANT_ID=silverblue\n" },
        "stats": { "/run/ostree-booted": { "kind": "file" } },
    });
    // Its packages come with an image that is built elsewhere.
    let rhel_image = json!({
        "files": { "/etc/os-release": "ID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"9.6\"\n" },
        "stats": { "/run/ostree-booted": { "kind": "file" }, "/usr/bin/bootc": { "kind": "file" } },
    });
    let images = [("silverblue", silverblue), ("rhel-image", rhel_image)];
    let like_ubuntu = |patch: &Value| {
        let mut all = file(DISTRIBUTIONS[0].1);
        merge(&mut all, patch);
        all
    };
    let shells = SHELLS.iter().map(|name| (*name, like_ubuntu(&shell(name))));
    let others = MACHINES.iter().map(|name| (*name, like_ubuntu(&machine(name))));
    machines.chain(images).chain(guests).chain(shells).chain(others).collect()
}

/// Whether a recording is in WSL or in one of the places already.
pub(crate) fn is_placed(recording: &Value) -> bool {
    let host = Host::from_value(recording.clone()).unwrap().0;
    let in_wsl = !matches!(host.wsl(), Ok(None));
    in_wsl || host.is_container() || host.job().is_some()
}

/// Where a recorded machine is; `None` for one that is in two places at once, such as a job in a container.
pub(crate) fn place_of(host: &Host) -> Option<&'static str> {
    if let Some(job) = host.job() {
        return (!host.is_container() && is_like_guests(host)).then(|| name_of(job));
    }
    // Services that rent containers have remedies of their own, of which one is listed.
    if let Some(rental) = host.rental() {
        return (rental == Rental::Runpod && is_like_guests(host)).then_some("runpod");
    }
    Some(match host.place() {
        Place::Wsl => "wsl",
        Place::Windows => "windows",
        Place::DockerInWsl => "docker-in-wsl",
        Place::Docker => "docker",
        Place::Podman => "podman",
        Place::Lxc => "lxc",
        Place::Pod => "pod",
        Place::Apptainer => "apptainer",
        Place::Enroot => "enroot",
        Place::Colab => "colab",
        Place::Kaggle => "kaggle",
        Place::Mac => "macos",
        Place::Machine => return None,
    })
}

/// Whether a recorded machine has the packages that all of [`GUESTS`] have.
pub(crate) fn is_like_guests(host: &Host) -> bool {
    host.distribution().is_ok_and(|distribution| distribution.id == "ubuntu")
}

/// The place of a job.
pub(crate) fn name_of(job: Job) -> &'static str {
    match job {
        Job::Slurm => "slurm",
        Job::Pbs => "pbs",
        Job::Lsf => "lsf",
        Job::GridEngine => "grid-engine",
        Job::Condor => "condor",
        Job::Flux => "flux",
        Job::Oar => "oar",
    }
}
