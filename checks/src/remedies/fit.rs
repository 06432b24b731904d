//! Fits the remedy of a finding to who may do it. A check writes the commands for the administrator of a
//! machine. In a container those that concern the kernel, the driver or the services of the machine are
//! for its host; in a batch job or a pod they are for whoever administers the node; and on a notebook
//! service they are for nobody. What remains is what this user can type here.

use super::rented;
use crate::facts::{Family, Host, Job, Place, Rental};
use crate::finding::{Finding, Remedy};

/// What changes files of this system only, so that root in a container can do it.
const OF_FILES: [&str; 5] = ["sudo chmod ", "sudo chown ", "sudo ldconfig", "sudo rm ", "sudo mkdir "];
/// Packages with libraries and certificates, and files of libraries, which belong to the system that loads them, also to a container.
const OF_LIBRARIES: [&str; 5] = ["libgomp", "ca-certificates", "libibverbs", "rdma-core", "/etc/nccl.conf"];
/// Words of advice that only those can follow who can touch the machine, or who start it.
const OF_HARDWARE: [&str; 12] = [
    "firmware",
    "BIOS",
    "power cable",
    "power suppl",
    "reseat",
    "riser",
    "Secure Boot",
    "kernel's command line",
    "kernel command line",
    "restart the machine",
    "turn the machine off",
    "boot Linux with",
];
/// Words of advice that says already who is to follow it.
const PASSED_ON: [&str; 5] = ["administrator", "the host", "the node", "another machine", "provider"];
/// How a command begins that asks for an administrator.
const SUDO: &str = "sudo ";

/// Who else than the user administers the machine.
enum Others {
    /// Nobody: it is the user's.
    None,
    /// The host of a container. The user is root inside it, or in a user namespace.
    Host,
    /// The node of a pod, in which the user is often root.
    NodeOfPod,
    /// The node of a batch job, or the machine of an Apptainer container: the user has no rights there.
    Node(Option<Job>),
    /// A notebook service, in which the user is root of a container.
    Service(&'static str),
}

/// The finding with a remedy that its reader can carry out on this host, or pass on.
pub(crate) fn fit(host: &Host, mut finding: Finding) -> Finding {
    if let Some(remedy) = finding.remedy.as_mut().filter(|_| host.family() == Some(Family::NixOs)) {
        as_configuration(remedy);
    }
    let is_image = host.family() == Some(Family::Fedora) && host.exists("/run/ostree-booted") == Ok(true);
    if let Some(remedy) = finding.remedy.as_mut().filter(|_| is_image) {
        as_layers(remedy);
    }
    let others = others(host);
    let Some(remedy) = finding.remedy.as_mut().filter(|remedy| is_for_others(remedy)) else {
        return finding;
    };
    match others {
        Others::None => {}
        Others::Host => {
            if concerns_hardware(&remedy.text) {
                remedy.text = format!("on the host: {}", remedy.text);
            }
            mark(remedy, "  # on the host");
            // Most images have no sudo, and their user is root.
            if host.user().is_ok_and(|user| user.uid == Some(0)) {
                without_sudo(remedy);
            }
        }
        Others::NodeOfPod => {
            if concerns_hardware(&remedy.text) {
                remedy.text = format!("ask the administrator of the node: {}", remedy.text);
            }
            mark(remedy, "  # on the node");
            without_sudo(remedy);
        }
        Others::Node(job) => {
            let who = match job {
                Some(job) => format!("ask the administrator of this {} node", job.name()),
                None => "ask the administrator of this machine".to_owned(),
            };
            // The advice for a job may say it already.
            if !["tell the administrator", "ask the administrator"]
                .iter()
                .any(|start| remedy.text.starts_with(start))
            {
                remedy.text = format!("{who}: {}", remedy.text);
            }
            for command in remedy.commands.iter_mut().filter(|command| command.contains(SUDO)) {
                place(command, "  # on the node");
            }
        }
        Others::Service(name) => {
            remedy.commands.retain(|command| !is_of_machine(command));
            without_sudo(remedy);
            let is_of_service = host.rental().is_some_and(|rental| rented::says(rental, &remedy.text))
                || remedy.text.starts_with("in the notebook's menu");
            if (remedy.commands.is_empty() || concerns_hardware(&remedy.text)) && !is_of_service {
                remedy.text = format!("start a new session: only {name} can change its machines");
            }
        }
    }
    finding
}

fn others(host: &Host) -> Others {
    if let Some(job) = host.job() {
        return Others::Node(Some(job));
    }
    // The administrator of a hub can be asked; a service cannot.
    match host.rental() {
        Some(Rental::JupyterHub) => return Others::Node(None),
        Some(rental) => return Others::Service(rental.name()),
        None => {}
    }
    match host.place() {
        Place::Docker | Place::DockerInWsl | Place::Podman | Place::Lxc => Others::Host,
        Place::Pod => Others::NodeOfPod,
        Place::Apptainer | Place::Enroot => Others::Node(None),
        Place::Colab => Others::Service("Colab"),
        Place::Kaggle => Others::Service("Kaggle"),
        Place::Machine | Place::Wsl | Place::Windows | Place::Mac => Others::None,
    }
}

fn is_for_others(remedy: &Remedy) -> bool {
    remedy.commands.iter().any(|command| command.contains(SUDO)) || concerns_hardware(&remedy.text)
}

/// Whether a text gives advice about the machine itself, and does not say to whom.
fn concerns_hardware(text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&OF_HARDWARE) && !has(&PASSED_ON)
}

/// Whether a command changes the machine and not only files of this system.
fn is_of_machine(command: &str) -> bool {
    command.contains(SUDO)
        && !OF_FILES.iter().any(|start| command.starts_with(start))
        && !OF_LIBRARIES.iter().any(|name| command.contains(name))
}

/// NixOS generates what is below /etc, and builds modules and services from its configuration: a change by
/// hand is lost at the next start, if it works at all.
fn as_configuration(remedy: &mut Remedy) {
    const GENERATED: [&str; 6] =
        ["sudo tee /etc/", "sudo mkdir -p /etc/", "dkms ", "mokutil ", "systemctl enable", "hostnamectl "];
    // There is no cache of the loader: the driver's libraries are in a folder of their own.
    for command in remedy.commands.iter_mut().filter(|command| *command == "sudo ldconfig") {
        "export LD_LIBRARY_PATH=/run/opengl-driver/lib:$LD_LIBRARY_PATH".clone_into(command);
    }
    let before = remedy.commands.len();
    remedy.commands.retain(|command| !GENERATED.iter().any(|word| command.contains(word)));
    if remedy.commands.len() < before {
        remedy.text = format!("in configuration.nix: {}", remedy.text);
        remedy.commands.insert(0, "sudo nixos-rebuild switch".to_owned());
    }
}

/// Silverblue and its relatives are images: packages are layers of the next one, which is also when modules are built.
fn as_layers(remedy: &mut Remedy) {
    const BUILT_WITH_IT: [&str; 3] = ["sudo akmods ", "sudo dkms ", "sudo dnf reinstall "];
    const NEXT: &str = "sudo rpm-ostree upgrade";
    let before = remedy.commands.len();
    remedy.commands.retain(|command| !BUILT_WITH_IT.iter().any(|start| command.starts_with(start)));
    if remedy.commands.len() < before && !remedy.commands.iter().any(|command| command.contains("rpm-ostree"))
    {
        remedy.commands.insert(0, NEXT.to_owned());
    }
    for command in &mut remedy.commands {
        if let Some(packages) = command.strip_prefix("sudo dnf install ") {
            *command = format!("sudo rpm-ostree install {packages}");
        }
    }
}

fn mark(remedy: &mut Remedy, comment: &str) {
    remedy
        .commands
        .iter_mut()
        .filter(|command| is_of_machine(command))
        .for_each(|command| place(command, comment));
}

/// Adds where a command is to be typed, unless it says so already.
fn place(command: &mut String, comment: &str) {
    if !command.contains("  # ") {
        command.push_str(comment);
    }
}

fn without_sudo(remedy: &mut Remedy) {
    for command in remedy.commands.iter_mut().filter(|command| !is_of_machine(command)) {
        *command = command.replace(SUDO, "");
    }
}
