//! Fits the remedy of a finding to who may do it. A check writes the commands for the administrator of a
//! machine. In a container those that concern the kernel, the driver or the services of the machine are
//! for its host; in a batch job or a pod they are for whoever administers the node; and on a notebook
//! service they are for nobody. What remains is what this user can type here. Where a text has a part for
//! each of them, the check says so ([`Finding::machine_remedy`]).

use super::appliance::as_offered;
use super::as_packaged::as_packaged;
use super::rented;
use crate::facts::{Host, Job, Place, Rental};
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
/// How advice asks somebody else.
const ASKED: [&str; 2] = ["ask the administrator", "tell the administrator"];
/// Parts of commands with which a container is started on its host.
const STARTS: [&str; 3] = ["docker ", "podman ", "  # on the "];
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

impl Others {
    /// Who is asked, as the start of a sentence.
    fn asked(&self) -> String {
        match self {
            Self::Node(Some(job)) => format!("ask the administrator of this {} node", job.name()),
            Self::NodeOfPod => "ask the administrator of the node".to_owned(),
            _ => "ask the administrator of this machine".to_owned(),
        }
    }
}

/// The finding with a remedy that its reader can carry out on this host, or pass on.
pub(crate) fn fit(host: &Host, mut finding: Finding) -> Finding {
    let Some(remedy) = finding.remedy.as_mut() else { return finding };
    as_packaged(host, remedy);
    as_offered(host, remedy);
    let others = others(host);
    let has_parts = remedy.for_machine.is_some();
    if let Some(part) = remedy.for_machine.take() {
        append(remedy, &part, &others);
    }
    let is_service = matches!(others, Others::Service(_));
    if !is_for_others(remedy) && !is_service {
        return finding;
    }
    // A text that was written in parts says already who is to do what.
    let is_for_machine = !has_parts && concerns_machine(remedy);
    match others {
        Others::None => {}
        Others::Host => {
            if is_for_machine {
                remedy.text = format!("on the host: {}", remedy.text);
            }
            mark(remedy, "  # on the host");
            // Most images have no sudo, and their user is root.
            if host.user().is_ok_and(|user| user.uid == Some(0)) {
                without_sudo(remedy);
            }
        }
        Others::NodeOfPod => {
            if is_for_machine {
                remedy.text = format!("{}: {}", others.asked(), remedy.text);
            }
            mark(remedy, "  # on the node");
            without_sudo(remedy);
        }
        Others::Node(_) => {
            // The advice for a job may say it already.
            let is_said = ASKED.iter().any(|words| remedy.text.contains(words));
            if !has_parts && !is_said && !has_own_command(remedy) {
                remedy.text = format!("{}: {}", others.asked(), remedy.text);
            }
            for command in remedy.commands.iter_mut().filter(|command| needs_rights(command)) {
                place(command, "  # on the node");
            }
        }
        Others::Service(name) => {
            let before = remedy.commands.len();
            remedy.commands.retain(|command| !is_of_machine(command));
            let of_machine = remedy.commands.is_empty() || finding.id.starts_with("gpu.");
            // Who started the container is the service, too.
            remedy.commands.retain(|command| !STARTS.iter().any(|word| command.contains(word)));
            let is_nothing_left = remedy.commands.is_empty() && before > 0 && of_machine;
            without_sudo(remedy);
            let is_of_service = host.rental().is_some_and(|rental| rented::says(rental, &remedy.text))
                || remedy.text.starts_with("in the notebook's menu");
            let is_asked = ASKED.iter().any(|words| remedy.text.starts_with(words));
            if !has_parts && (is_nothing_left || is_for_machine || is_asked) && !is_of_service {
                remedy.text = format!("start a new session: only {name} can change its machines");
                remedy.commands.clear();
            }
        }
    }
    finding
}

/// Adds what is for those who administer the machine to what the user can do.
fn append(remedy: &mut Remedy, part: &str, others: &Others) {
    debug_assert!(!part.starts_with("or "), "the parts are joined with this word: {part}");
    let part = match others {
        Others::None => part.to_owned(),
        Others::Host => format!("on the host: {part}"),
        Others::NodeOfPod | Others::Node(_) => format!("{}: {part}", others.asked()),
        // Nobody there can be asked.
        Others::Service(_) => return,
    };
    remedy.text = format!("{}; or {part}", remedy.text);
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

/// Whether this user has no rights on the machine and no administrator's rights in a container of their own, so that each
/// command with `sudo` is for somebody else: in a batch job, on a hub, in Apptainer and Enroot.
pub(crate) fn is_without_rights(host: &Host) -> bool {
    matches!(others(host), Others::Node(_))
}

/// Whether nobody can be asked about the machine: on a notebook service, and where containers are rented.
pub(crate) fn is_of_service(host: &Host) -> bool {
    matches!(others(host), Others::Service(_))
}

fn is_for_others(remedy: &Remedy) -> bool {
    remedy.commands.iter().any(|command| needs_rights(command)) || concerns_machine(remedy)
}

/// Whether a remedy is as a whole advice about the machine itself, and does not say to whom. One with a command of the
/// user's own is not: its check has to say which part is for the machine.
fn concerns_machine(remedy: &Remedy) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| remedy.text.contains(word));
    has(&OF_HARDWARE) && !has(&PASSED_ON) && !has_own_command(remedy)
}

/// Whether the user can type one of the commands where the run is.
fn has_own_command(remedy: &Remedy) -> bool {
    const OF_RUN: [&str; 5] = ["export ", "unset ", "ulimit ", "pip ", "yolo "];
    remedy.commands.iter().any(|command| OF_RUN.iter().any(|start| command.starts_with(start)))
}

/// Whether a command is for an administrator.
fn needs_rights(command: &str) -> bool {
    command.contains(SUDO) || command.contains("sudoedit ")
}

/// Whether a command changes the machine and not only files of this system.
fn is_of_machine(command: &str) -> bool {
    needs_rights(command)
        && !OF_FILES.iter().any(|start| command.starts_with(start))
        && !OF_LIBRARIES.iter().any(|name| command.contains(name))
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
