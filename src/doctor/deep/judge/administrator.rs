//! What only an administrator can do with a card, as this user can do it or pass it on: in a container on its host, in WSL
//! in Windows, and in a batch job or a pod by whoever administers the node.

use crate::doctor::deep::observed::{Administrator, Observed};

/// A change of a card's settings: the command with its arguments, where it is typed, or who is asked for it.
pub(super) fn setting(seen: &Observed, rank: usize, arguments: &str) -> String {
    let command = format!("nvidia-smi -i {} {arguments}", card(seen, rank));
    match &seen.host.administrator {
        Administrator::User => format!("`sudo {command}`"),
        Administrator::Windows => format!("`{command}` in a Windows terminal as administrator"),
        Administrator::Host => format!("`sudo {command}` on the host of this container"),
        Administrator::Job(system) => {
            format!("ask the administrator of this {system} node for `{command}`")
        }
        Administrator::Machine => format!("ask the administrator of this machine for `{command}`"),
        Administrator::Node => format!("ask the administrator of the cluster for `{command}`"),
        Administrator::Service(name) => format!("only {name} can change its machines"),
    }
}

/// Whether the user can look after the machine, or at least after the host of the container.
pub(super) fn is_at_hand(seen: &Observed) -> bool {
    matches!(seen.host.administrator, Administrator::User | Administrator::Windows | Administrator::Host)
}

/// The reset of a card. Where the user cannot reset it, a restart, or another machine.
pub(super) fn reset(seen: &Observed, rank: usize) -> String {
    let command = format!("`sudo nvidia-smi --gpu-reset -i {}`", card(seen, rank));
    match &seen.host.administrator {
        Administrator::User => format!("then reset it with {command}"),
        Administrator::Host => format!("then reset it on the host of this container: {command}"),
        Administrator::Windows => format!("then {}", restart(seen)),
        _ => restart(seen),
    }
}

/// The restart of the machine, or another machine.
pub(super) fn restart(seen: &Observed) -> String {
    match &seen.host.administrator {
        Administrator::User => "restart the machine with `sudo reboot`".to_owned(),
        // The driver of the cards is that of Windows.
        Administrator::Windows => "restart Windows".to_owned(),
        Administrator::Host => "have the machine restarted that this container runs on".to_owned(),
        Administrator::Job(system) => format!(
            "tell the administrator of this {system} node, and submit the job again so that it runs on another one"
        ),
        Administrator::Machine => "tell the administrator of this machine".to_owned(),
        Administrator::Node => {
            "delete the pod, so that it is started again, on another node if possible; tell the \
                                cluster's administrator about this node"
                .to_owned()
        }
        Administrator::Service(name) => {
            format!("start a new session on another machine, as only {name} can change this one")
        }
    }
}

/// The card as `nvidia-smi -i` takes it: by its number, or by its address where numbers differ from those outside.
fn card(seen: &Observed, rank: usize) -> String {
    let Some(rank) = seen.ranks.get(rank) else { return "N".to_owned() };
    let has_numbers = matches!(seen.host.administrator, Administrator::User | Administrator::Windows);
    let address = rank.address.clone().filter(|_| !has_numbers);
    // `CUDA device 3`, `MIG instance … of GPU 3`.
    let number = rank.device.rsplit(' ').next().filter(|word| word.parse::<u32>().is_ok());
    address.or(number.map(str::to_owned)).unwrap_or_else(|| "N".to_owned())
}
